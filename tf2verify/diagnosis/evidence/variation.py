"""What is not the same bit by bit when it runs again."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class VaryingOperation:
  """The first operation that gives other bits from the same bits.

  Attributes:
    op_type: TensorFlow's; `variable` for one that is read.
  """

  op_type: str


@dataclasses.dataclass(frozen=True)
class OtherProcesses:
  """Two more processes, where one has given other bits than this one.

  Attributes:
    repeats: whether one with the same PYTHONHASHSEED agrees with it; None where it failed.
    hash_seed_counts: whether one with another PYTHONHASHSEED differs from it.
  """

  repeats: bool | None
  hash_seed_counts: bool
