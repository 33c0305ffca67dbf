"""How a call of a port is made in one execution mode or another."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from tf2verify.errors import UserCodeError
from tf2verify.sides import side
from tf2verify.sides.modes import replicas
from tf2verify.sides.modes.computation import Computation
from tf2verify.sides.modes.embedding import embedded
from tf2verify.sides.tf2.layers.port import Port
from tf2verify.tensorflow_internals import autograph as internal_autograph


@dataclasses.dataclass(frozen=True, eq=False)
class Callee:
  """One mode of calling.

  Attributes:
    computation: what is computed.
    compute: takes what a call is fed with, returns tensors by replica.
    function: the `tf.function` behind it; None for a mode without.
  """

  computation: Computation
  compute: Callable[[list[tf.Tensor]], Sequence[Sequence[Any]]]
  function: Any = None


@dataclasses.dataclass(frozen=True, eq=False)
class ModeState:
  """A layer, and what its calls start from.

  Attributes:
    port: the layer, whose variables are there.
    values: of all its variables, before every call.
    traced: functions that were traced, by training mode.
  """

  port: Port
  values: list[Any]
  traced: dict[bool, Callee] = dataclasses.field(default_factory=dict)

  def reset(self, moved: Callable[[Any, Any], Any] | None = None) -> None:
    """Gives every variable its value, or what `moved` makes of variable and value."""
    for variable, value in zip(self.port.variables(), self.values, strict=True):
      variable.assign(value if moved is None else moved(variable, value))


_LOSSES = ('tf2_loss', 'tf2_total_loss')
# Prepares calls of a training mode, with autograph or without.
Maker = Callable[[ModeState, side.RunSpec, bool], Callee]


class Callees:
  """Makes what calls a port, mode by mode; each runs the user's code."""

  def __init__(self, declaration: side.Declaration, labels: Any) -> None:
    self._declaration = declaration
    self._labels = labels
    self._without_losses: set[bool] = set()  # training modes whose outputs they are not made for

  def _computation(
    self, state: ModeState, run: side.RunSpec, autograph: bool = False
  ) -> Computation:
    has_losses = self._declaration.declares('tf2_loss') and run.training not in self._without_losses
    return Computation(self._declaration, state.port, run, self._labels, autograph, has_losses)

  def leave_losses_out(self, run: side.RunSpec, error: UserCodeError) -> str:
    """Leaves losses out in the mode in which the port is not trained; returns what to say of it.

    Args:
      run: of a training mode.
      error: what computing them has raised; raised again where anything else has, or where the
        port is trained.
    """
    if run.gradients or error.hook not in _LOSSES:
      raise error
    self._without_losses.add(run.training)
    return (
      f'no losses in {side.training_name(run.training)}: {error.hook} raises {error.summary} for '
      'the outputs of this mode, in which the port is not trained'
    )

  def eager(self, state: ModeState, run: side.RunSpec) -> Callee:
    """Returns what calls the port eagerly."""
    computation = self._computation(state, run)
    return Callee(computation, lambda leaves: [computation(leaves)])

  def traced(self, state: ModeState, run: side.RunSpec, autograph: bool) -> Callee:
    """Returns what calls the port as a function, the one traced before if there is one."""
    if run.training not in state.traced or autograph:
      state.traced[run.training] = self._function(state, run, autograph, None)
    return state.traced[run.training]

  def compiled(self, state: ModeState, run: side.RunSpec, autograph: bool) -> Callee:
    """Returns what calls the port as a function that XLA compiles."""
    return self._function(state, run, autograph, True)

  def embedded(self, state: ModeState, run: side.RunSpec, autograph: bool) -> Callee:
    """Returns what calls the port as a part of a Keras functional model.

    Raises:
      NotEmbeddable: no functional model can take such inputs.
    """
    computation = self._computation(state, run, autograph)
    # Keras would rewrite every layer, which leaves a function to call at exit.
    with internal_autograph.switched(autograph):
      model = embedded(computation.call_port, state.port.layer, run.inputs)

    def call(inputs: Any) -> Any:
      return model(inputs, run.training)

    return Callee(computation, lambda leaves: [computation(leaves, call)])

  def replicated(self, strategy: Any) -> Maker:
    """Returns what makes functions that call the port on both replicas of a strategy."""

    def make(state: ModeState, run: side.RunSpec, autograph: bool) -> Callee:
      computation = self._computation(state, run, autograph)
      function = replicas.replicated(strategy, computation)

      def compute(leaves: list[tf.Tensor]) -> Sequence[Sequence[Any]]:
        return tuple(zip(*function(*leaves), strict=True))

      return Callee(computation, compute, function)

    return make

  def _function(
    self, state: ModeState, run: side.RunSpec, autograph: bool, jit_compile: bool | None
  ) -> Callee:
    computation = self._computation(state, run, autograph)

    def compute(*leaves: tf.Tensor) -> list[Any]:
      return computation(leaves)

    function = tf.function(compute, autograph=False, jit_compile=jit_compile)
    return Callee(computation, lambda leaves: [function(*leaves)], function)
