"""What of two graphs is proven to compute the same, and what is only tested."""

import dataclasses

from tf2verify.records.observation import SourceLine

_WORDS = {'constant': 'the constant', 'operation': 'the operation'}


@dataclasses.dataclass(frozen=True)
class TestedRegion:
  """Operations that no rule relates: what they yield is compared for this run's inputs only.

  Attributes:
    tf1: the reference's, the first ones: name, type and line.
    tf2: the port's, likewise.
    targets: what is computed from them: `output ['logits']`.
  """

  tf1: tuple[str, ...] = ()
  tf2: tuple[str, ...] = ()
  targets: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class GraphDifference:
  """An operation that does something else on the other side with the same values.

  Attributes:
    what: what is not the same: `constant`, `operation`, or the name of an attribute; `missing` or
      `extra`: the operation, in the port.
    operation: the type of the port's operation.
    tf1: what tf1 has.
    tf2: what the port has.
    tf1_source: the user's line of it in tf1, where that is known.
    tf2_source: likewise in the port.
    count: at how many operations it is so.
  """

  what: str
  operation: str
  tf1: str
  tf2: str
  tf1_source: SourceLine | None = None
  tf2_source: SourceLine | None = None
  count: int = 1

  def to_text(self) -> str:
    """Returns both values and both lines."""
    of = '' if self.what == 'operation' else f' of {self.operation}'
    one, other = (f' at {at}' if at else '' for at in (self.tf1_source, self.tf2_source))
    more = f', and likewise at {self.count - 1} more' if self.count > 1 else ''
    if self.what == 'missing':
      return f'tf1 computes {self.tf1}{one}, which the port does not{other}{more}'
    if self.what == 'extra':
      return f'the port computes {self.tf2}{other}, which tf1 does not{one}{more}'
    return (
      f'{_WORDS.get(self.what, self.what)}{of} is {self.tf1} in tf1{one}, and {self.tf2} in the '
      f'port{other}{more}'
    )


@dataclasses.dataclass(frozen=True)
class Proven:
  """How much of what a stage compares is proven, for all inputs of the shapes that it ran with.

  Attributes:
    run: what was related: `inference`.
    tf1_operations: how many operations of the reference the compared tensors depend on.
    tf1_proven: how many of them are proven.
    tf2_operations: the same of the port.
    tf2_proven: likewise.
    targets: how many outputs, losses and updates of variables were related.
    targets_proven: how many of them are proven.
    regions: what is only tested; empty where all is proven.
    reason: why nothing was related; '' where something was.
    seconds: how long it took to trace the port and to relate the graphs.
    differences: where the graphs differ and the numbers of the stage do not show it.
  """

  run: str
  tf1_operations: int = 0
  tf1_proven: int = 0
  tf2_operations: int = 0
  tf2_proven: int = 0
  targets: int = 0
  targets_proven: int = 0
  regions: tuple[TestedRegion, ...] = ()
  reason: str = ''
  seconds: float = 0.0
  differences: tuple[GraphDifference, ...] = ()

  @property
  def is_whole(self) -> bool:
    """Whether everything that was to be related is proven, and there was something."""
    return bool(self.targets) and self.targets_proven == self.targets

  def to_text(self) -> str:
    """Returns the counts on one line: `831 of 831 operations proven for all inputs`."""
    if self.reason:
      return ''
    told = f'{self.tf2_proven:,} of {self.tf2_operations:,} operations'
    # What the port leaves out shows in the reference alone, what is exchanged in neither.
    if self.tf1_operations - self.tf1_proven > self.tf2_operations - self.tf2_proven:
      told = f"{self.tf1_proven:,} of {self.tf1_operations:,} of tf1's operations"
    if self.targets_proven < self.targets and self.tf2_proven == self.tf2_operations:
      told += f' and {self.targets_proven} of {self.targets} results'
    return f'{told} proven for all inputs'
