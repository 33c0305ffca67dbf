"""What optimizers are given."""

import contextlib
import sys
from typing import (
  Any,
  Callable,
  Dict,
  Iterable,
  Iterator,
  List,
  NamedTuple,
  Optional,
  Sequence,
  Set,
  Tuple,
)
from unittest import mock

import tensorflow as tf

from .graph_ops import reached
from .private_tensorflow import gradients_util, tf_nest, v1
from .sequences import pairs
from .variables import variable_name

_KERAS_OPTIMIZERS = (
  'tensorflow.python.keras.optimizer_v2.optimizer_v2',
  'tf_keras.src.optimizers.legacy.optimizer_v2',
)

# In the place of a position: the first argument is a list of gradients, the second of variables.
TWO_LISTS = -1
# A class, the method that is given the gradients after clipping, and the position of the pairs
# among its arguments.
Family = Tuple[Any, str, int]


class Update(NamedTuple):
  """One update by one optimizer.

  Attributes:
    optimizer: whose.
    pairs: gradient (None where there is none) and variable.
    learning_rate: at this update, where that is asked for; None in a graph, and where it
      cannot be told.
  """

  optimizer: Any
  pairs: Tuple[Tuple[Any, Any], ...]
  learning_rate: Optional[float]


class Updates:
  """What optimizers are given while a train op is built or a step is taken.

  Where an optimizer wraps another one, it is the inner one's update that counts.

  Attributes:
    updates: in order.
    begun: the optimizers of them, and of an update that failed.
    differentiated: gradient by variable name, of all variables that were differentiated for
      once; None for one without gradient.
    losses: what was differentiated by a variable in a graph, by its name.
    formed: what was differentiated by in a graph, a variable or another tensor, with its gradient.
    counter: the name of the variable that an optimizer of TF1 counts its updates in, as it was told
      to; None where it was told none.
  """

  def __init__(
    self,
    families: Optional[Sequence[Family]] = None,
    rate_of: Callable[[Any], Optional[float]] = lambda _: None,
    changed: Optional[Callable[[str, Any], Any]] = None,
    applied: Optional[Callable[[str, Any], Any]] = None,
  ) -> None:
    """Takes what to look at.

    Args:
      families: of optimizers; None for those that there are in TF1.
      rate_of: gives the learning rate of an optimizer, just before its update.
      changed: returns what is made of a gradient of a tape, given that and the variable's
        name, before anybody sees it; None leaves them all.
      applied: the same of what an optimizer is given for a variable, after any clipping.
    """
    self.updates: List[Update] = []
    self.begun: List[Any] = []
    self.differentiated: Dict[str, Any] = {}
    self.losses: Dict[str, Any] = {}
    self.formed: List[Tuple[Any, Any]] = []
    self.counter: Optional[str] = None
    self._families = _tf1_families() if families is None else families
    self._rate_of = rate_of
    self._changed = changed
    self._to_apply = applied
    self._twice: Set[str] = set()
    # One entry for each update that is going on: whether it holds another one.
    self._open: List[bool] = []
    self._differentiating = False

  @property
  def optimizers(self) -> List[Any]:
    """The optimizers that have updated something, in order."""
    return list({id(update.optimizer): update.optimizer for update in self.updates}.values())

  @property
  def applied(self) -> Dict[str, Any]:
    """The gradients as given to the updates, by variable name; of the last update of each."""
    return {variable_name(v): gradient for known in self.updates for gradient, v in known.pairs}

  @contextlib.contextmanager
  def recording(self) -> Iterator[None]:
    """Records until exit."""
    with contextlib.ExitStack() as stack:
      for family, method, position in self._families:
        for cls in overriding(family, method):
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
      if position == TWO_LISTS:
        variables = [_held(variable) for variable in given[1]]
        paired = self._with_applied(pairs(given[0], variables))
        given[:2] = [gradient for gradient, _ in paired], list(given[1])
      elif position < len(given):
        paired = given[position] = self._with_applied(given[position])
      else:
        paired = keywords['grads_and_vars'] = self._with_applied(keywords['grads_and_vars'])
      self._see_counter(optimizer, given, keywords)
      self.begun.append(optimizer)
      rate = self._rate_of(optimizer)
      if self._open:
        self._open[-1] = True
      self._open.append(False)
      try:
        result = known(optimizer, *given, **keywords)
      finally:
        holds_another = self._open.pop()
      if not holds_another:
        self.updates.append(Update(optimizer, paired, rate))
      return result

    return update

  def _see_counter(self, optimizer: Any, given: Sequence[Any], keywords: Dict[str, Any]) -> None:
    if isinstance(optimizer, v1.train.Optimizer):
      counter = keywords.get('global_step', given[1] if len(given) > 1 else None)
      if counter is not None and hasattr(counter, 'initializer'):
        self.counter = variable_name(counter)

  def _with_applied(self, paired: Iterable[Tuple[Any, Any]]) -> Tuple[Tuple[Any, Any], ...]:
    if self._to_apply is None:
      return tuple(paired)
    to_apply = self._to_apply
    return tuple((g if g is None else to_apply(variable_name(v), g), v) for g, v in paired)

  def _gradients(self, known: Callable[..., Any]) -> Callable[..., Any]:
    def gradients(ys: Any, xs: Any, *arguments: Any, **keywords: Any) -> Any:
      with self._outermost() as outermost:
        results = known(ys, xs, *arguments, **keywords)
      if outermost:
        sources = tf_nest.flatten(xs)
        self._keep(sources, tf_nest.flatten(results))
        if any(differentiated_variable(source) for source in sources):
          self.losses.update({y.name: y for y in tf_nest.flatten(ys) if isinstance(y, tf.Tensor)})
      return results

    return gradients

  def _tape_gradient(self, known: Callable[..., Any]) -> Callable[..., Any]:
    def gradient(tape: Any, target: Any, sources: Any, *arguments: Any, **keywords: Any) -> Any:
      with self._outermost() as outermost:
        results = known(tape, target, sources, *arguments, **keywords)
      if not outermost:
        return results
      listed, found = tf_nest.flatten(sources), tf_nest.flatten(results)
      if self._changed is not None:
        found = [self._change(source, result) for source, result in pairs(listed, found)]
        results = tf_nest.pack_sequence_as(results, found)
      self._keep(listed, found)
      return results

    return gradient

  def _change(self, source: Any, gradient: Any) -> Any:
    name = differentiated_variable(source)
    if self._changed is None or gradient is None or name is None:
      return gradient
    return self._changed(name, gradient)

  @contextlib.contextmanager
  def _outermost(self) -> Iterator[bool]:
    """Yields whether no other differentiation is going on: TensorFlow's calls itself."""
    before, self._differentiating = self._differentiating, True
    try:
      yield not before
    finally:
      self._differentiating = before

  def _keep(self, sources: List[Any], gradients: List[Any]) -> None:
    for source, gradient in pairs(sources, gradients):
      if hasattr(gradient, 'graph'):
        self.formed.append((source, gradient))
      name = differentiated_variable(source)
      if name is None or name in self._twice:
        continue
      if name in self.differentiated:  # parts of a gradient, that the user's code puts together
        del self.differentiated[name]
        self._twice.add(name)
      else:
        self.differentiated[name] = gradient


def _tf1_families() -> List[Family]:
  loaded = [sys.modules[name] for name in _KERAS_OPTIMIZERS if name in sys.modules]
  of_keras = [(module.OptimizerV2, '_distributed_apply', 1) for module in loaded]
  return [(v1.train.Optimizer, 'apply_gradients', 0), *of_keras]


def overriding(family: Any, method: str) -> List[Any]:
  """Returns the classes of a family that define a method, the family's own among them."""
  return [cls for cls in reached([family], type.__subclasses__) if method in vars(cls)]


def _held(variable: Any) -> Any:
  """Returns the `tf.Variable` that a variable of Keras 3 holds; any other variable itself."""
  inner = None if isinstance(variable, tf.Variable) else getattr(variable, 'value', None)
  return inner if isinstance(inner, tf.Variable) else variable


def differentiated_variable(source: Any) -> Optional[str]:
  """Returns the variable that is differentiated for; None for another tensor."""
  source = _held(source)
  if isinstance(source, tf.Variable):
    return variable_name(source)
  op = getattr(source, 'op', None) if hasattr(source, 'graph') else None
  if op is not None and op.type in ('VarHandleOp', 'VariableV2', 'Variable'):
    return str(op.name)
  return None
