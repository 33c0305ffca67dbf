"""What optimizers are given."""

import contextlib
import sys
from typing import Any, Callable, Dict, Iterator, List, Optional, Set, Tuple
from unittest import mock

import tensorflow as tf

from .private_tensorflow import gradients_util, tf_nest, v1
from .sequences import pairs
from .variables import variable_name

_KERAS_OPTIMIZERS = (
  'tensorflow.python.keras.optimizer_v2.optimizer_v2',
  'tf_keras.src.optimizers.legacy.optimizer_v2',
)


class Updates:
  """What optimizers are given while a train op is built, and what was differentiated.

  Attributes:
    pairs: optimizer, and its pairs of gradient and variable, update by update; of
      optimizers that wrap another one the inner one's.
    differentiated: gradient by variable name, of all that were differentiated for once.
  """

  def __init__(self) -> None:
    self.pairs: List[Tuple[Any, List[Tuple[Any, Any]]]] = []
    self.differentiated: Dict[str, Any] = {}
    self._twice: Set[str] = set()
    self._open: List[bool] = []
    self._differentiating = False

  @property
  def optimizers(self) -> List[Any]:
    """The optimizers that have updated something, in order."""
    found: List[Any] = []
    for optimizer, _ in self.pairs:
      if not any(optimizer is known for known in found):
        found.append(optimizer)
    return found

  @property
  def applied(self) -> Dict[str, Any]:
    """The gradients as given to the updates, by variable name; of the last update of each."""
    return {variable_name(v): gradient for _, given in self.pairs for gradient, v in given}

  @contextlib.contextmanager
  def recording(self) -> Iterator[None]:
    """Records until exit."""
    families = [(v1.train.Optimizer, 'apply_gradients', 0)]
    loaded = [sys.modules[name] for name in _KERAS_OPTIMIZERS if name in sys.modules]
    families += [(module.OptimizerV2, '_distributed_apply', 1) for module in loaded]
    with contextlib.ExitStack() as stack:
      for family, method, position in families:
        for cls in _overriding(family, method):
          patched = self._update(vars(cls)[method], position)
          stack.enter_context(mock.patch.object(cls, method, patched))
      helper = self._gradients(gradients_util._GradientsHelper)
      stack.enter_context(mock.patch.object(gradients_util, '_GradientsHelper', helper))
      taped = self._tape_gradient(tf.GradientTape.gradient)
      stack.enter_context(mock.patch.object(tf.GradientTape, 'gradient', taped))
      yield

  def _update(self, known: Callable[..., Any], position: int) -> Callable[..., Any]:
    def update(optimizer: Any, *arguments: Any, **keywords: Any) -> Any:
      given = list(arguments)
      if position < len(given):
        pairs = given[position] = list(given[position])
      else:
        pairs = keywords['grads_and_vars'] = list(keywords['grads_and_vars'])
      if self._open:
        self._open[-1] = True
      self._open.append(False)
      try:
        result = known(optimizer, *given, **keywords)
      finally:
        holds_another = self._open.pop()
      if not holds_another:
        self.pairs.append((optimizer, pairs))
      return result

    return update

  def _gradients(self, known: Callable[..., Any]) -> Callable[..., Any]:
    def gradients(ys: Any, xs: Any, *arguments: Any, **keywords: Any) -> Any:
      with self._outermost() as outermost:
        results = known(ys, xs, *arguments, **keywords)
      if outermost:
        self._keep(xs, results)
      return results

    return gradients

  def _tape_gradient(self, known: Callable[..., Any]) -> Callable[..., Any]:
    def gradient(tape: Any, target: Any, sources: Any, *arguments: Any, **keywords: Any) -> Any:
      with self._outermost() as outermost:
        results = known(tape, target, sources, *arguments, **keywords)
      if outermost:
        self._keep(sources, results)
      return results

    return gradient

  @contextlib.contextmanager
  def _outermost(self) -> Iterator[bool]:
    """Yields whether no other differentiation is going on: TensorFlow's calls itself."""
    before, self._differentiating = self._differentiating, True
    try:
      yield not before
    finally:
      self._differentiating = before

  def _keep(self, sources: Any, gradients: Any) -> None:
    for source, gradient in pairs(tf_nest.flatten(sources), tf_nest.flatten(gradients)):
      name = _differentiated_variable(source)
      if name is None or name in self._twice:
        continue
      if name in self.differentiated:  # parts of a gradient, that the user's code puts together
        del self.differentiated[name]
        self._twice.add(name)
      else:
        self.differentiated[name] = gradient


def _overriding(family: Any, method: str) -> List[Any]:
  """Returns the classes of a family that define a method, the family's own among them."""
  pending: List[Any] = [family]
  seen: List[Any] = []
  while pending:
    cls = pending.pop()
    if cls not in seen:
      seen.append(cls)
      pending += cls.__subclasses__()
  return [cls for cls in seen if method in vars(cls)]


def _differentiated_variable(source: Any) -> Optional[str]:
  """Returns the variable that is differentiated for; None for another tensor."""
  if isinstance(source, tf.Variable):
    return variable_name(source)
  op = getattr(source, 'op', None) if hasattr(source, 'graph') else None
  if op is not None and op.type in ('VarHandleOp', 'VariableV2', 'Variable'):
    return str(op.name)
  return None
