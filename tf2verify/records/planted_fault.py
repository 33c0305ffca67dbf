"""A small fault in the port's graph."""

import dataclasses
import enum

from tf2verify.records.observation import SourceLine


class FaultKind(enum.Enum):
  """What was done to the graph."""

  ATTRIBUTE = 'attribute changed'
  SWAPPED_INPUTS = 'inputs swapped'
  CONSTANT = 'constant changed'
  BYPASS = 'operation left out'
  OTHER_OPERATION = 'operation exchanged'
  TRANSPOSED = 'variable transposed'
  SWAPPED_VARIABLES = 'variables swapped'


@dataclasses.dataclass(frozen=True)
class PlantedFault:
  """One fault."""

  kind: FaultKind  # what was done
  op: str  # the faulty operation, without the layer's own prefix; of several, the first
  op_type: str  # its type
  what: str  # which attribute, inputs, constant or variables
  before: str  # as it was, as text
  after: str  # as it is
  source: SourceLine | None = None  # the user's line that made the operation

  def __str__(self) -> str:
    if self.kind is FaultKind.BYPASS:
      return f'{self.op} ({self.op_type}): left out'
    if self.kind is FaultKind.OTHER_OPERATION:
      return f'{self.op} ({self.op_type}): {self.after} instead of it'
    if self.kind is FaultKind.SWAPPED_VARIABLES:
      return f'{self.op} ({self.op_type}): {self.after} read instead of {self.before}'
    if self.kind is FaultKind.TRANSPOSED:
      return f'{self.op} ({self.op_type}): {self.what} transposed'
    if self.kind is FaultKind.SWAPPED_INPUTS:
      return f'{self.op} ({self.op_type}): {self.what} swapped'
    return f'{self.op} ({self.op_type}): {self.what} {self.before} -> {self.after}'
