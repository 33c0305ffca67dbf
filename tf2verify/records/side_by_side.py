"""What a stage has seen on both sides, equal or not, for reports that lay it side by side."""

import dataclasses

# The remark on a variable that the port's calls use and its layer does not hold.
UNTRACKED = 'untracked'


@dataclasses.dataclass(frozen=True)
class VariableSummary:
  """A variable of one side, in short.

  Attributes:
    name: full name without `:0`.
    shape: None stands for a dimension that is not known.
    dtype: numpy's name of the dtype.
    trainable: whether an optimizer would train it.
  """

  name: str
  shape: tuple[int | None, ...]
  dtype: str
  trainable: bool


@dataclasses.dataclass(frozen=True)
class VariablePair:
  """A variable of the tf1 side next to that of the tf2 side.

  Attributes:
    tf1: None where only the tf2 side has it.
    tf2: None where only the tf1 side has it.
    remark: what sets it apart: `untracked`, `duplicate`, `the global step`, `left out`;
      '' elsewhere.
  """

  tf1: VariableSummary | None
  tf2: VariableSummary | None
  remark: str = ''


@dataclasses.dataclass(frozen=True)
class RandomOps:
  """The random ops of both sides in one run, in the order in which they were made.

  Attributes:
    run: which run: `training, num_random_ops`.
    tf1: one text per op: type, shape, purpose, by tf1 variable names.
    tf2: likewise, by tf1 variable names as well, so that equal ops have equal texts.
    tf1_lines: the user's line behind each of `tf1`; '' where it is not known.
    tf2_lines: the same of `tf2`.
  """

  run: str
  tf1: tuple[str, ...]
  tf2: tuple[str, ...]
  tf1_lines: tuple[str, ...]
  tf2_lines: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Curve:
  """A number of each training step on both sides.

  Attributes:
    quantity: `loss`, `learning rate`.
    steps: numbers of the steps, from 1.
    tf1: one per step; None where the side does not tell it.
    tf2: likewise.
  """

  quantity: str
  steps: tuple[int, ...]
  tf1: tuple[float | None, ...]
  tf2: tuple[float | None, ...]
