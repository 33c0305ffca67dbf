"""The train op that the framework makes of a case's TF1 optimizer, and checks of the case's own."""

import contextlib
from collections.abc import Iterator
from typing import Any
from unittest import mock

import tensorflow as tf

from tf2verify.errors import CaseDefinitionError
from tf2verify.sides import side
from tf2verify.sides.optimizer_state import V1_OPTIMIZER, class_name, is_keras
from tf2verify.sides.user_code import user_code

v1 = tf.compat.v1
_HOOK = 'make_tf1_optimizer'


@contextlib.contextmanager
def _optimizers_made() -> Iterator[list[Any]]:
  """Yields a list of the TF1 optimizers that are made until exit."""
  made: list[Any] = []
  known = V1_OPTIMIZER.__init__

  def init(optimizer: Any, *arguments: Any, **keywords: Any) -> None:
    made.append(optimizer)
    known(optimizer, *arguments, **keywords)

  with mock.patch.object(V1_OPTIMIZER, '__init__', init):
    yield made


def framework_train_op(declaration: side.Declaration, total_loss: tf.Tensor) -> tf.Operation:
  """Returns the op of one step with the case's optimizer, in the default graph.

  As TF1 code does it: `minimize` with the graph's global step, after its UPDATE_OPS
  where the case says so.
  """
  step = v1.train.get_or_create_global_step()
  with _optimizers_made() as made, user_code(side.TF1, _HOOK):
    optimizer = declaration.make_tf1_optimizer()
  _check_optimizer(optimizer, made)
  updates = v1.get_collection(v1.GraphKeys.UPDATE_OPS) if declaration.run_update_ops else []
  with (
    user_code(side.TF1, f'minimize of {class_name(optimizer)}'),
    tf.control_dependencies([tf.group(*updates)] if updates else []),
  ):
    train_op = optimizer.minimize(total_loss, global_step=step)
  return checked_train_op(train_op, v1.get_default_graph())


def _check_optimizer(optimizer: Any, made: list[Any]) -> None:
  if isinstance(optimizer, V1_OPTIMIZER):
    if any(optimizer is known for known in made):
      return
    raise CaseDefinitionError(
      f'{_HOOK} returned a {class_name(optimizer)} that was made before the hook was called: its '
      "learning rate and slots belong to another graph, or to the port's steps; construct a fresh "
      'optimizer inside the hook'
    )
  if optimizer is None:
    slip = 'usually a missing `return`'
  elif isinstance(optimizer, type) and issubclass(optimizer, V1_OPTIMIZER):
    slip = f'it is the class: return an instance, {optimizer.__name__}(...)'
  elif is_keras(optimizer):
    slip = 'a Keras optimizer belongs into make_tf2_optimizer'
  elif isinstance(optimizer, (tf.Operation, tf.Tensor)):
    slip = 'a train op is returned by make_tf1_train_op(self, loss)'
  else:
    slip = 'for anything else, declare make_tf1_train_op(self, loss)'
  raise CaseDefinitionError(
    f'{_HOOK} returned {optimizer!r:.80} of type {type(optimizer).__name__}, which is no '
    f'tf.compat.v1.train.Optimizer; {slip}'
  )


def checked_train_op(train_op: Any, graph: tf.Graph) -> tf.Operation:
  """Returns the op that is to be run; several, or tensors, are grouped."""
  hook = 'make_tf1_train_op'
  if isinstance(train_op, (list, tuple)) and train_op:
    flat = tf.nest.flatten(train_op)
    if all(_is_of(item, graph) for item in flat):
      return tf.group(*flat)
  if _is_of(train_op, graph):
    return train_op.op if isinstance(train_op, tf.Tensor) else train_op
  if train_op is None:
    slip = 'usually a missing `return`'
  elif isinstance(train_op, V1_OPTIMIZER) or is_keras(train_op):
    slip = 'an optimizer is returned by make_tf1_optimizer(self); here, return its minimize(loss)'
  elif isinstance(train_op, (tf.Operation, tf.Tensor)):
    slip = 'it is of another graph: make it of the loss that the hook is given'
  else:
    slip = 'return what the training loop would give to session.run'
  raise CaseDefinitionError(
    f'{hook} returned {train_op!r:.80} of type {type(train_op).__name__}, which is no op of the '
    f'graph; {slip}'
  )


def _is_of(item: Any, graph: tf.Graph) -> bool:
  return isinstance(item, (tf.Operation, tf.Tensor)) and getattr(item, 'graph', None) is graph
