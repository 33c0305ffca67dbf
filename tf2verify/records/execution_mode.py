"""One port, run in several execution modes."""

import dataclasses
from collections.abc import Collection

import numpy as np

from tf2verify.records.observation import VariableCreation

EAGER = 'eager'
FUNCTION = 'tf.function'
JIT = 'jit_compile'
FUNCTIONAL = 'keras functional model'
NO_ARITHMETIC = 'no arithmetic optimization'
REPLICAS = 'two replicas'
MODES = (FUNCTION, JIT, FUNCTIONAL, NO_ARITHMETIC, REPLICAS)

# What is computed in a mode, as reports call it.
OUTPUT = 'output'
REGULARIZATION = 'regularization loss'
LOSS = 'loss'
TOTAL_LOSS = 'total loss'
GRADIENT = 'gradient'
TOTAL_GRADIENT = 'gradient of the total loss'
STATE = 'state after the call'

# Quantities and names of the tensors that are asked for.
Wanted = frozenset[tuple[str, str]]


@dataclasses.dataclass(frozen=True, eq=False)
class ModeTensor:
  """One tensor of a call.

  Attributes:
    quantity: one of the words above.
    name: the path of an output, or a variable's name.
    value: read-only; None where the port has None there.
    replica: which of two replicas computed it; 0 elsewhere.
  """

  quantity: str
  name: str
  value: np.ndarray | None
  replica: int = 0

  def __post_init__(self) -> None:
    if self.value is not None:
      self.value.flags.writeable = False


@dataclasses.dataclass(frozen=True, eq=False)
class ModeCall:
  """What one call computed.

  Attributes:
    training: the training mode.
    number: 1 for the first call from the given values, 2 for a second one with other
      inputs of the same shapes.
    structure: the nest of the outputs, as text.
    tensors: in the same order in every mode.
  """

  training: bool
  number: int
  structure: str
  tensors: tuple[ModeTensor, ...]

  def with_values_of(self, quantities: Collection[str]) -> 'ModeCall':
    """Returns the call without the values of other quantities, whose memory is not kept."""
    tensors = (
      tensor if tensor.quantity in quantities else dataclasses.replace(tensor, value=None)
      for tensor in self.tensors
    )
    return dataclasses.replace(self, tensors=tuple(tensors))

  def only(self, wanted: Wanted) -> 'ModeCall':
    """Returns the call with some of its tensors."""
    tensors = (tensor for tensor in self.tensors if (tensor.quantity, tensor.name) in wanted)
    return dataclasses.replace(self, tensors=tuple(tensors))


@dataclasses.dataclass(frozen=True, eq=False)
class ModeRun:
  """The calls of one mode.

  Attributes:
    mode: its name.
    calls: in order; those up to an error where there was one.
    not_run: why the calls that are missing could not be run; '' if none is missing.
    raised: whether that was an error of the port's own code, or TensorFlow's at it.
    created: variables that the calls made, or tried to make.
    traces: how often each traced function was traced, one per training mode; empty for a
      mode without functions.
    draws: training modes in which the calls draw random numbers: as seen in eager mode,
      where a function that was traced before hides them, or in the graph of a function.
    draws_in_loops: those of them in which a random op stands in the body of a loop.
    remark: what a reader has to know of the mode although it was compared; '' without.
  """

  mode: str
  calls: tuple[ModeCall, ...]
  not_run: str = ''
  raised: bool = False
  created: tuple[VariableCreation, ...] = ()
  traces: tuple[int, ...] = ()
  draws: frozenset[bool] = frozenset()
  draws_in_loops: frozenset[bool] = frozenset()
  remark: str = ''
