"""One port, run in several execution modes."""

import dataclasses
from collections.abc import Collection

import numpy as np

from tf2verify.records.observation import VariableCreation
from tf2verify.records.tensor_key import TensorKey

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

# The tensors that are asked for.
Wanted = frozenset[TensorKey]


@dataclasses.dataclass(frozen=True, eq=False)
class ModeTensor:
  """One tensor of a call."""

  quantity: str  # one of the words above
  name: str  # the path of an output, or a variable's name
  value: np.ndarray | None  # read-only; None where the port has None there
  replica: int = 0  # which of two replicas computed it; 0 elsewhere

  def __post_init__(self) -> None:
    if self.value is not None:
      self.value.flags.writeable = False

  @property
  def key(self) -> TensorKey:
    """What tells it from all others of a call of one replica."""
    return TensorKey(self.quantity, self.name)


@dataclasses.dataclass(frozen=True, eq=False)
class ModeCall:
  """What one call computed."""

  training: bool  # the training mode
  # 1 for the first call from the given values, 2 for a second one with other inputs of the same
  # shapes.
  number: int
  tensors: tuple[ModeTensor, ...]  # in the same order in every mode

  def values(self) -> dict[TensorKey, np.ndarray | None]:
    """Returns the values of its tensors."""
    return {tensor.key: tensor.value for tensor in self.tensors}

  def with_values_of(self, quantities: Collection[str]) -> 'ModeCall':
    """Returns the call without the values of other quantities, whose memory is not kept."""
    tensors = (
      tensor if tensor.quantity in quantities else dataclasses.replace(tensor, value=None)
      for tensor in self.tensors
    )
    return dataclasses.replace(self, tensors=tuple(tensors))

  def only(self, wanted: Wanted) -> 'ModeCall':
    """Returns the call with some of its tensors."""
    tensors = (tensor for tensor in self.tensors if tensor.key in wanted)
    return dataclasses.replace(self, tensors=tuple(tensors))


@dataclasses.dataclass(frozen=True, eq=False)
class ModeRun:
  """The calls of one mode."""

  mode: str  # its name
  calls: tuple[ModeCall, ...]  # in order; those up to an error where there was one
  not_run: str = ''  # why the calls that are missing could not be run; '' if none is missing
  raised: bool = False  # whether that was an error of the port's own code, or TensorFlow's at it
  created: tuple[VariableCreation, ...] = ()  # variables that the calls made, or tried to make
  # How often each traced function was traced, one per training mode; empty for a mode without
  # functions.
  traces: tuple[int, ...] = ()
  # Training modes in which the calls draw random numbers: as seen in eager mode, where a function
  # that was traced before hides them, or in the graph of a function.
  draws: frozenset[bool] = frozenset()
  # Those of them in which a random op stands in the body of a loop.
  draws_in_loops: frozenset[bool] = frozenset()
  remark: str = ''  # what a reader has to know of the mode although it was compared; '' without
