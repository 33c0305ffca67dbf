"""What TensorBoard is to show, before it is written."""

import dataclasses

# The left edge, the right edge and the number of what lies between them.
Bucket = tuple[float, float, float]


@dataclasses.dataclass(frozen=True)
class Scalar:
  """A number of one step.

  Attributes:
    tag: what it is, parted by `/`; TensorBoard puts those of one first part together.
    step: place on the axis of steps.
    value: also NaN and infinite; a float32 in the file.
    description: for those who look at the chart, Markdown.
  """

  tag: str
  step: int
  value: float
  description: str = ''


@dataclasses.dataclass(frozen=True)
class Histogram:
  """A distribution of one step.

  Attributes:
    tag: as in `Scalar`, and so are the next two.
    step: see there.
    buckets: by rising edges, without gaps.
    description: see there.
  """

  tag: str
  step: int
  buckets: tuple[Bucket, ...]
  description: str = ''


@dataclasses.dataclass(frozen=True)
class Text:
  """A text of one step.

  Attributes:
    tag: as in `Scalar`.
    step: see there.
    markdown: the text.
  """

  tag: str
  step: int
  markdown: str


@dataclasses.dataclass(frozen=True)
class EventFolder:
  """What one folder of events holds: a run, as TensorBoard calls it.

  Attributes:
    name: of the folder, below that of the case; '' for that one itself.
    events: in the order in which they are written.
  """

  name: str
  events: tuple[Scalar | Histogram | Text, ...]
