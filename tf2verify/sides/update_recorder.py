"""What an optimizer is given while a training step is built or run."""

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from unittest import mock

import tensorflow as tf

from tf2verify.reference.variables import variable_name
from tf2verify.sides.optimizer_state import (
  V1_OPTIMIZER,
  eager_learning_rate,
)
from tf2verify.tensorflow_internals import gradients, keras

# The method of each family that is given the gradients after clipping, and the
# position of the pairs among its arguments.
_UPDATES = (
  (V1_OPTIMIZER, 'apply_gradients', 0),
  (keras.OPTIMIZER, '_internal_apply_gradients', 0),
  (keras.LEGACY_OPTIMIZER, '_distributed_apply', 1),
)


@dataclasses.dataclass(frozen=True, eq=False)
class Update:
  """One update by one optimizer.

  Attributes:
    optimizer: whose.
    pairs: gradient (None where there is none) and variable.
    learning_rate: at this update; None in a graph, and where it cannot be told.
  """

  optimizer: Any
  pairs: tuple[tuple[Any, Any], ...]
  learning_rate: float | None


class UpdateRecorder:
  """Records gradients and updates while `recording`.

  Where an optimizer wraps another one, it is the inner one's update that counts.

  Args:
    factor: multiplies every gradient for a variable, before anybody sees it; one by variable
      name, or one for all.

  Attributes:
    updates: in order.
    begun: the optimizers of them, and of an update that failed.
    differentiated: gradient by variable name, of all variables that were
      differentiated for once; None for one without gradient.
  """

  def __init__(self, factor: float | Mapping[str, float] = 1.0) -> None:
    self._factor = factor
    self.updates: list[Update] = []
    self.begun: list[Any] = []
    self.differentiated: dict[str, Any] = {}
    self._twice: set[str] = set()
    # One entry for each update that is going on: whether it holds another one.
    self._open: list[bool] = []
    self._differentiating = False

  @property
  def optimizers(self) -> tuple[Any, ...]:
    """The optimizers that have updated something, in order."""
    return tuple({id(update.optimizer): update.optimizer for update in self.updates}.values())

  @property
  def applied(self) -> dict[str, Any]:
    """The gradients as given to the updates, by variable name; of the last update of each."""
    return {
      variable_name(variable): gradient
      for update in self.updates
      for gradient, variable in update.pairs
    }

  @property
  def changes_gradients(self) -> bool:
    """Whether an update was given another tensor than was differentiated, as clipping makes one."""
    applied = self.applied
    return any(
      name in applied and applied[name] is not gradient
      for name, gradient in self.differentiated.items()
    )

  @contextlib.contextmanager
  def recording(self) -> Iterator[None]:
    """Records until exit."""
    with contextlib.ExitStack() as stack:
      for family, method, position in _UPDATES:
        for cls in _overriding(family, method):
          known = vars(cls)[method]
          stack.enter_context(
            mock.patch.object(cls, method, self._recorded_update(known, position))
          )
      for function, recorded in (
        (gradients.OF_GRAPHS, self._recorded_helper),
        (gradients.OF_TAPES, self._recorded_tape),
      ):
        stack.enter_context(mock.patch.object(*function, recorded(getattr(*function))))
      yield

  def _recorded_update(self, known: Callable[..., Any], position: int) -> Callable[..., Any]:
    def update(optimizer: Any, *arguments: Any, **keywords: Any) -> Any:
      given = list(arguments)
      if position < len(given):
        pairs = given[position] = tuple(given[position])
      else:
        pairs = keywords['grads_and_vars'] = tuple(keywords['grads_and_vars'])
      self.begun.append(optimizer)
      rate = eager_learning_rate(optimizer) if tf.executing_eagerly() else None
      if self._open:
        self._open[-1] = True
      self._open.append(False)
      try:
        result = known(optimizer, *given, **keywords)
      finally:
        holds_another = self._open.pop()
      if not holds_another:
        self.updates.append(Update(optimizer, pairs, rate))
      return result

    return update

  def _recorded_helper(self, known: Callable[..., Any]) -> Callable[..., Any]:
    def gradients(ys: Any, xs: Any, *arguments: Any, **keywords: Any) -> Any:
      with self._outermost() as outermost:
        results = known(ys, xs, *arguments, **keywords)
      if outermost:
        self._keep(tf.nest.flatten(xs), tf.nest.flatten(results))
      return results

    return gradients

  def _recorded_tape(self, known: Callable[..., Any]) -> Callable[..., Any]:
    def gradient(tape: Any, target: Any, sources: Any, *arguments: Any, **keywords: Any) -> Any:
      with self._outermost() as outermost:
        results = known(tape, target, sources, *arguments, **keywords)
      if outermost:
        listed = tf.nest.flatten(sources)
        flat = [self._scaled(s, r) for s, r in zip(listed, tf.nest.flatten(results), strict=True)]
        self._keep(listed, flat)
        return results if self._factor == 1.0 else tf.nest.pack_sequence_as(results, flat)
      return results

    return gradient

  def _scaled(self, source: Any, gradient: Any) -> Any:
    name = _variable_of(source)
    if self._factor == 1.0 or gradient is None or name is None:
      return gradient
    if isinstance(gradient, tf.IndexedSlices):
      values = self._scaled(source, gradient.values)
      return tf.IndexedSlices(values, gradient.indices, gradient.dense_shape)
    factor = self._factor.get(name, 1.0) if isinstance(self._factor, Mapping) else self._factor
    return gradient * tf.cast(factor, gradient.dtype)

  @contextlib.contextmanager
  def _outermost(self) -> Iterator[bool]:
    """Yields whether no other differentiation is going on: TensorFlow's calls itself."""
    before, self._differentiating = self._differentiating, True
    try:
      yield not before
    finally:
      self._differentiating = before

  def _keep(self, sources: list[Any], gradients: list[Any]) -> None:
    for source, gradient in zip(sources, gradients, strict=False):
      name = _variable_of(source)
      if name is None or name in self._twice:
        continue
      if name in self.differentiated:  # parts of a gradient, that the user's code puts together
        del self.differentiated[name]
        self._twice.add(name)
      else:
        self.differentiated[name] = gradient


def _overriding(family: Any, method: str) -> Iterator[Any]:
  """Yields the classes of a family that define a method, the family's own among them."""
  pending, seen = [family], set()
  while pending:
    cls = pending.pop()
    if cls not in seen:
      seen.add(cls)
      pending += cls.__subclasses__()
      if method in vars(cls):
        yield cls


def _variable_of(source: Any) -> str | None:
  """Returns the name of the variable that is differentiated for; None for another tensor."""
  if isinstance(source, tf.Variable):
    return variable_name(source)
  op = getattr(source, 'op', None) if hasattr(source, 'graph') else None
  if op is not None and op.type in ('VarHandleOp', 'VariableV2', 'Variable'):
    return str(op.name)
  return None
