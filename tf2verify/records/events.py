"""What TensorBoard is to show, before it is written."""

import dataclasses

# The left edge, the right edge and the number of what lies between them.
Bucket = tuple[float, float, float]


@dataclasses.dataclass(frozen=True)
class Scalar:
  """A number of one step."""

  tag: str  # what it is, parted by `/`; TensorBoard puts those of one first part together
  step: int  # place on the axis of steps
  value: float  # also NaN and infinite; a float32 in the file
  description: str = ''  # for those who look at the chart, Markdown


@dataclasses.dataclass(frozen=True)
class Histogram:
  """A distribution of one step."""

  tag: str  # as in `Scalar`, and so are the next two
  step: int  # see there
  buckets: tuple[Bucket, ...]  # by rising edges, without gaps
  description: str = ''  # see there


@dataclasses.dataclass(frozen=True)
class Text:
  """A text of one step."""

  tag: str  # as in `Scalar`
  step: int  # see there
  markdown: str  # the text


@dataclasses.dataclass(frozen=True)
class EventFolder:
  """What one folder of events holds: a run, as TensorBoard calls it."""

  name: str  # of the folder, below that of the case; '' for that one itself
  events: tuple[Scalar | Histogram | Text, ...]  # in the order in which they are written
