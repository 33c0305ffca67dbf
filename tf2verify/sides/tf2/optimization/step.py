"""One training step of the port: the framework's, or the case's own."""

import dataclasses
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tf2verify.errors import CaseDefinitionError, NotApplicable
from tf2verify.reference import nests
from tf2verify.reference.variables import variable_name
from tf2verify.sides import side
from tf2verify.sides.graphs.numbers_read import Number
from tf2verify.sides.hooks.user_code import user_code
from tf2verify.sides.losses import loss_parts
from tf2verify.sides.optimizers.parts import OptimizerParts, parts_of
from tf2verify.sides.optimizers.state import (
  class_name,
  is_keras,
  is_optimizer,
  is_optimizer_class,
)
from tf2verify.sides.seen import Seen
from tf2verify.sides.tf2.layers import layer_parts
from tf2verify.sides.tf2.layers.port import Port, array_of, readable_outputs
from tf2verify.sides.tf2.traces.ways_to_trace import Habit
from tf2verify.tensorflow_internals import autograph, keras3

v1 = tf.compat.v1
_HOOK = 'make_tf2_optimizer'

# Takes a step on given inputs and labels; returns what tells the loss that it minimized, if any.
Taken = Callable[[Any, Any], Any]


@dataclasses.dataclass(frozen=True, eq=False)
class Step:
  """A training step.

  Attributes:
    port: whose layer is trained.
    inputs: a nest of arrays.
    labels: a nest of tensors; None without.
    take: takes the step, on tensors of either kind.
    loss_parts: the places of the parts of the case's loss; none where it is one tensor.
    habit: how it was traced in other runs.
  """

  port: Port
  inputs: Any
  labels: Any
  take: Taken
  loss_parts: frozenset[str] = frozenset()
  habit: Habit = dataclasses.field(default_factory=Habit)

  def __call__(self) -> np.ndarray | None:
    """Takes it eagerly; returns the loss that it minimized, None where it does not tell."""
    fed = nests.map_leaves(lambda _, leaf: tf.constant(leaf), self.inputs)
    return _returned_loss(self._main_of(self.take(fed, self.labels)), self.port)

  def symbolic(self, inputs: Any, labels: Any) -> tf.Tensor | Number | None:
    """Takes it on symbolic tensors; returns the loss likewise, or as Python reads it."""
    returned = self._main_of(self.take(inputs, labels))
    returned = returned.get('loss') if isinstance(returned, Mapping) else returned
    is_number = isinstance(returned, (int, float, np.generic)) or (
      isinstance(returned, np.ndarray) and not returned.ndim
    )
    if is_number:
      return Number(returned)
    return returned if isinstance(returned, tf.Tensor) else None

  def _main_of(self, returned: Any) -> Any:
    """Returns what stands for a nest of the parts of the case's loss; all else as it is."""
    if not self.loss_parts or frozenset(loss_parts.parts_of(returned)) != self.loss_parts:
      return returned
    return loss_parts.main_of(returned, 'tf2_train_step')


@dataclasses.dataclass(frozen=True, eq=False)
class PortLosses:
  """What the port computes of a call's outputs.

  Attributes:
    loss: of the case.
    total: what training minimizes.
    parts: of the loss, by their place, where it is a nest.
  """

  loss: tf.Tensor
  total: tf.Tensor
  parts: Mapping[str, Any]


def losses_of(declaration: side.Declaration, port: Port, outputs: Any, labels: Any) -> PortLosses:
  """Returns the loss of a call's outputs, and what training minimizes.

  Args:
    declaration: the case.
    port: whose layer was called.
    outputs: of the call.
    labels: tensors; None without.

  Raises:
    NotApplicable: there is no loss.
    CaseDefinitionError: a hook returned no tensor.
    UserCodeError: a hook raised.
  """
  hook = 'tf2_loss' if declaration.declares('tf2_loss') else 'loss'
  slip = side.without_labels(declaration, labels)
  with user_code(side.TF2, hook, slip if hook == 'tf2_loss' else ''):
    if hook == 'tf2_loss':
      made = autograph.converted(declaration.tf2_loss, by_name=True)(outputs, labels)
    else:
      made = declaration.loss(outputs)
      if made is None:
        raise NotApplicable('no output is floating, so the default loss has nothing to sum')
  loss = _checked_loss(made, hook)
  parts = {place: _checked_loss(part, hook) for place, part in loss_parts.parts_of(made).items()}
  if declaration.declares('tf2_total_loss'):
    with user_code(side.TF2, 'tf2_total_loss', slip):
      total = declaration.tf2_total_loss(port.layer, outputs, labels)
    return PortLosses(loss, _checked_loss(total, 'tf2_total_loss'), parts)
  with user_code(side.TF2, 'tf2_regularization_losses'):
    regularization = list(declaration.tf2_regularization_losses(port.layer))
    return PortLosses(loss, loss_parts.plus(loss, regularization), parts)


def _checked_loss(loss: Any, hook: str) -> tf.Tensor:
  loss = loss_parts.main_of(loss, hook)
  if isinstance(loss, (tf.Variable, int, float, np.floating)):
    loss = tf.convert_to_tensor(loss)
  if not isinstance(loss, tf.Tensor):
    slip = 'usually a missing `return`' if loss is None else 'return the tensor to minimize'
    raise CaseDefinitionError(
      f'{hook} returned {loss!r:.80} on the tf2 side, which is not a tensor: {slip}'
    )
  return loss


def framework_step(
  declaration: side.Declaration, port: Port, run: side.RunSpec, labels: Any, optimizer: Any
) -> Step:
  """Returns the step of a plain loop: a tape around call and loss, then `apply_gradients`."""

  def take(fed: Any, labels: Any) -> Any:
    with tf.GradientTape() as tape:
      with user_code(side.TF2, 'call_tf2_layer'):
        call = layer_parts.call_of(declaration, port.layer)
        outputs = readable_outputs(call(port.layer, fed, run.training))
      total = losses_of(declaration, port, outputs, labels).total
    trainable = layer_parts.trainable_of(port.layer)
    with user_code(side.TF2, 'the gradient of the total loss'):
      gradients = tape.gradient(total, port.trainable_variables())
    if not keras3.is_optimizer(optimizer):  # any other one updates a `tf.Variable`
      trainable = port.trainable_variables()
    pairs = list(zip(gradients, trainable, strict=True))
    with user_code(side.TF2, f'apply_gradients of {class_name(optimizer)}'):
      if is_keras(optimizer):
        optimizer.apply_gradients(pairs)
      else:
        optimizer.apply_gradients(pairs, global_step=v1.train.get_global_step())
    return total

  return Step(port, run.inputs, labels, take)


def own_step(
  declaration: side.Declaration,
  port: Port,
  inputs: Any,
  labels: Any,
  optimizer: Any,
  parts: frozenset[str] = frozenset(),
) -> Step:
  """Returns the step of the case's `tf2_train_step`, which is called with what it takes.

  Args:
    declaration: the case.
    port: whose layer is trained.
    inputs: a nest of arrays.
    labels: a nest of tensors; None without.
    optimizer: of the case.
    parts: the places of the parts of the case's loss, which the step may return as well.
  """
  parameters = inspect.signature(declaration.tf2_train_step).parameters
  takes_all = any(p.kind is p.VAR_KEYWORD for p in parameters.values())

  def take(fed: Any, labels: Any) -> Any:
    given = {'labels': labels, 'optimizer': optimizer}
    given = {name: value for name, value in given.items() if takes_all or name in parameters}
    # A Keras model's own step returns the mean of the losses since its metrics were reset.
    reset = getattr(port.layer, 'reset_metrics', None)
    if callable(reset):
      reset()
    was_eager = tf.config.functions_run_eagerly()
    tf.config.run_functions_eagerly(True)
    try:
      with user_code(side.TF2, 'tf2_train_step'):
        # Where a trace has AutoGraph switched on; a case's methods are left out otherwise.
        own = autograph.converted(declaration.tf2_train_step, by_name=True)
        return own(port.layer, fed, **given)
    finally:
      tf.config.run_functions_eagerly(was_eager)

  return Step(port, inputs, labels, take, parts)


def _returned_loss(returned: Any, port: Port) -> np.ndarray | None:
  if isinstance(returned, Mapping):
    if 'loss' not in returned:
      names = ', '.join(map(str, returned)) or 'nothing'
      raise CaseDefinitionError(
        f"tf2_train_step returned a dictionary without 'loss' (it has {names}): return the loss "
        "that the step has minimized, a dictionary with it under 'loss', the parts of tf2_loss, or "
        'None'
      )
    returned = returned['loss']
  if returned is None:
    return None
  if not isinstance(returned, (tf.Tensor, tf.Variable, np.ndarray, np.generic, int, float)):
    raise CaseDefinitionError(
      f'tf2_train_step returned {returned!r:.80} of type {type(returned).__name__}: return the '
      "loss that the step has minimized, a dictionary with it under 'loss', or None"
    )
  if isinstance(returned, (int, float)) or _is_number_of_numpy(returned):
    # A number of Python, or of numpy's default type, as train_on_batch gives it: not the model's.
    dtypes = (variable.dtype for variable in port.variables() if variable.dtype.is_floating)
    return np.asarray(returned, next(dtypes, tf.float32).as_numpy_dtype)
  return array_of(returned)


def _is_number_of_numpy(value: Any) -> bool:
  is_array = isinstance(value, np.ndarray) and not value.ndim
  return (is_array or isinstance(value, np.generic)) and value.dtype == np.float64


def checked_optimizer(optimizer: Any, earlier: Seen, own_step: bool = False) -> OptimizerParts:
  """Returns what an optimizer is made of.

  Args:
    optimizer: what `make_tf2_optimizer` returned.
    earlier: the parts of what it has returned before.
    own_step: whether the case has a step of its own, which may use any object.

  Raises:
    CaseDefinitionError: it is not a fresh optimizer.
  """
  is_slip = optimizer is None or (isinstance(optimizer, type) and is_optimizer_class(optimizer))
  if not is_optimizer(optimizer) and (is_slip or not own_step):
    raise CaseDefinitionError(
      f'{_HOOK} returned {optimizer!r:.80} of type {type(optimizer).__name__}, which is not an '
      f'optimizer; {_likely_slip(optimizer)}'
    )
  parts = parts_of(optimizer)
  for part in parts.state:
    name = class_name(part) if is_optimizer(part) else f'variable {variable_name(part)}'
    if part in earlier:
      raise CaseDefinitionError(
        f'{_HOOK} returned the same {name} twice: its step count and slots leak from one run into '
        'the next; construct a fresh optimizer inside the hook'
      )
    if is_optimizer(part) and _used(part):
      raise CaseDefinitionError(
        f'{_HOOK} returned a {name} that has been used before: it is shared with the tf1 side or '
        'with another run; construct a fresh optimizer inside the hook'
      )
  return parts


def _used(optimizer: Any) -> int:
  return int(optimizer.iterations) if is_keras(optimizer) else len(optimizer.get_slot_names())


def check_not_used(optimizers: Sequence[Any], earlier: Seen) -> None:
  """Raises `CaseDefinitionError` for an optimizer of `tf2_train_step` that is none of this run's.

  Args:
    optimizers: that update in this run.
    earlier: that have updated in an earlier one, of another layer.
  """
  for optimizer in optimizers:
    if optimizer in earlier:
      raise CaseDefinitionError(
        f'tf2_train_step updates with the {class_name(optimizer)} of an earlier run: its step '
        'count and slots leak from one run into the next; make it in make_tf2_optimizer, and '
        'take it as the parameter `optimizer`'
      )


def _likely_slip(optimizer: Any) -> str:
  if optimizer is None:
    return 'usually a missing `return`'
  if isinstance(optimizer, type):
    return f'it is the class: return an instance, {optimizer.__name__}(...)'
  if isinstance(optimizer, str):
    return f'return tf.keras.optimizers.get({optimizer!r})'
  return (
    'return one of tf.keras.optimizers, tf.keras.optimizers.legacy, keras.optimizers or '
    'tf.compat.v1.train, or declare tf2_train_step for a loop of your own'
  )
