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


@dataclasses.dataclass(frozen=True)
class OtherVersion:
  """A recorded graph that differs from its recording, run here, as the port does."""

  recorded_by: str  # the TensorFlow that recorded it
  run_by: str  # that which runs it here
  tensor: str  # the one that differs most
  here: float  # how far the graph run here is from what was recorded, by the size of that
  between: float  # how far it is from the port
  first: str  # the operation that differs first; '' where it is not known
