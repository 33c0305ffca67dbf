"""What is not the same bit by bit when it runs again."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class VaryingOperation:
  """The first operation that gives other bits from the same bits."""

  op_type: str  # TensorFlow's; `variable` for one that is read


@dataclasses.dataclass(frozen=True)
class OtherProcesses:
  """Two more processes, where one has given other bits than this one."""

  # Whether one with the same PYTHONHASHSEED agrees with it; None where it failed.
  repeats: bool | None
  hash_seed_counts: bool  # whether one with another PYTHONHASHSEED differs from it
