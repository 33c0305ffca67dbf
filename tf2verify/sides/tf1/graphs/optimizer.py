"""The train op that the framework makes of a case's TF1 optimizer, and checks of the case's own."""

import contextlib
from collections.abc import Iterator
from typing import Any
from unittest import mock

import tensorflow as tf

from tf2verify.errors import CaseDefinitionError
from tf2verify.sides import side
from tf2verify.sides.hooks.user_code import user_code
from tf2verify.sides.optimizers.state import V1_OPTIMIZER, class_name, is_keras
from tf2verify.tensorflow_internals import sessions

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
      "learning rate and slots belong to a different graph, or to the port's steps; construct a "
      'fresh '
      'optimizer inside the hook'
    )
  if optimizer is None:
    slip = 'usually a missing `return`'
  elif isinstance(optimizer, type) and issubclass(optimizer, V1_OPTIMIZER):
    slip = f'it is the class: return an instance, {optimizer.__name__}(...)'
  elif is_keras(optimizer):
    slip = 'a Keras optimizer belongs in make_tf2_optimizer'
  elif isinstance(optimizer, (tf.Operation, tf.Tensor)):
    slip = 'a train op is returned by make_tf1_train_op(self, loss)'
  else:
    slip = 'for anything else, declare make_tf1_train_op(self, loss)'
  raise CaseDefinitionError(
    f'{_HOOK} returned {optimizer!r:.80} of type {type(optimizer).__name__}, which is not a '
    f'tf.compat.v1.train.Optimizer; {slip}'
  )


def checked_train_op(train_op: Any, graph: tf.Graph) -> tf.Operation:
  """Returns the op that is to be run, given whatever `session.run` takes; several are grouped.

  Raises:
    CaseDefinitionError: a session of the graph could not run it.
  """
  try:
    # What a session itself makes of it: nests, names, and variables that an update returns.
    tensors, ops = sessions.fetched(graph, train_op)
  except (TypeError, ValueError, KeyError) as error:
    raise CaseDefinitionError(_no_train_op(train_op, graph, error)) from error
  if not tensors and not ops:
    raise CaseDefinitionError(_no_train_op(train_op, graph, None))
  if len(tensors) + len(ops) == 1:
    return ops[0] if ops else tensors[0].op
  return tf.group(*tensors, *ops)


def _no_train_op(train_op: Any, graph: tf.Graph, error: Exception | None) -> str:
  if train_op is None:
    slip = 'usually a missing `return`'
  elif isinstance(train_op, V1_OPTIMIZER) or is_keras(train_op):
    slip = 'an optimizer is returned by make_tf1_optimizer(self); here, return its minimize(loss)'
  elif isinstance(train_op, (tf.Operation, tf.Tensor)) and train_op.graph is not graph:
    slip = 'it belongs to a different graph: create it from the loss that is passed to the hook'
  else:
    reason = '' if error is None else f' (it says: {str(error).splitlines()[0]})'
    slip = f'return what the training loop would give to session.run{reason}'
  return (
    f'make_tf1_train_op returned {train_op!r:.80} of type {type(train_op).__name__}, which is not '
    f'an op of the graph; {slip}'
  )
