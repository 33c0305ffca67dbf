"""Losses and train ops next to a TF1 function: the hooks of a first case that call them."""

import ast
import re

from tf2verify.commands.tf1_code.equivalents import loss_like, optimizer_like
from tf2verify.commands.tf1_code.source import Tf1Source

_LABELS = re.compile(r'(^|_)(labels?|targets?|y_true|truth)(_|\d*$)')
_OUTPUTS = re.compile(r'(^|_)(logits?|outputs?|predictions?|preds?|scores?)(_|\d*$)')
_LOSS = re.compile(r'(^|_)(loss|losses|cost)(_|$)')
_TRAIN = re.compile(r'(^|_)(train|training|optimize|optimizer|minimize)(_|$)')
_START = """
# To compare losses and training as well, take what applies (all hooks: docs/writing_a_case.md):
#
# def make_labels(self):
#   return np.array([1, 0], np.int32)
#
"""
_LOSSES = """
# def tf1_loss(self, outputs, labels):
#   return {tf1_loss}
#
# def tf2_loss(self, outputs, labels):
#   loss = {tf2_loss}
#   return loss(labels, outputs)
#
"""
_OPTIMIZER = """
# def make_tf1_optimizer(self):
#   return {tf1_optimizer}
#
"""
_TRAIN_OP = """
# def make_tf1_train_op(self, loss):
#   return {train_op}
#
"""
_END = """
# def make_tf2_optimizer(self):
#   return {tf2_optimizer}
#
# def tf1_checkpoint(self):
#   return 'model.ckpt-1000'
"""
_DEFAULT_LOSSES = (
  'tf.compat.v1.losses.sparse_softmax_cross_entropy(labels, outputs)',
  'tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)',
)
_DEFAULT_OPTIMIZERS = (
  'tf.compat.v1.train.AdamOptimizer(1e-3)',
  'tf.keras.optimizers.Adam(1e-3, epsilon=1e-8)',
)


def optional_hooks_of(source: Tf1Source) -> str:
  """Returns the hooks for losses and training as comments.

  They call the loss and the train op of the module, where it has functions that look like them.
  """
  loss, train_op = _calls(source)
  # Of the whole module, if the function that is called has none: it may call another one.
  like = loss_like(_function(source, loss)) or loss_like(source.tree)
  tf1, tf2 = optimizer_like(_function(source, train_op))
  if not tf1:
    tf1, tf2 = optimizer_like(source.tree)
  if not tf1:
    tf1, tf2 = _DEFAULT_OPTIMIZERS
  losses = _LOSSES.format(
    tf1_loss=loss or _DEFAULT_LOSSES[0], tf2_loss=(loss and like) or _DEFAULT_LOSSES[1]
  )
  training = (
    _TRAIN_OP.format(train_op=train_op) if train_op else _OPTIMIZER.format(tf1_optimizer=tf1)
  )
  parts = _START, losses, training, _END.format(tf2_optimizer=tf2)
  return ''.join(part.lstrip('\n') for part in parts)


def _function(source: Tf1Source, call: str) -> ast.AST:
  """Returns the function that a call is of; of '' an empty module."""
  name = call.partition('(')[0]
  found = (node for node in source.tree.body if getattr(node, 'name', None) == name and name)
  return next(found, ast.Module([], []))


def called_by_hooks(source: Tf1Source) -> list[str]:
  """Returns the names of the functions of the module that these hooks call."""
  return [call.partition('(')[0] for call in _calls(source) if call]


def _calls(source: Tf1Source) -> tuple[str, str]:
  """Returns the calls of loss and train op of the module; '' for one that it does not have."""
  functions = [node for node in source.tree.body if isinstance(node, ast.FunctionDef)]
  others = [one for one in functions if one.name != source.function.name]
  loss = next((made for one in others if (made := _loss(one))), '')
  return loss, next((made for one in others if (made := _train_op(one))), '')


def _parameters(function: ast.FunctionDef) -> list[str] | None:
  """Returns the names of what has to be passed; None where some has to be passed by name."""
  given = function.args
  if len(given.kw_defaults) != sum(one is not None for one in given.kw_defaults):
    return None
  plain = [one.arg for one in (*given.posonlyargs, *given.args)]
  return plain[: len(plain) - len(given.defaults)]


def _loss(function: ast.FunctionDef) -> str:
  """Returns the call of a function of outputs and labels; '' for another one."""
  names = _parameters(function)
  if names is None or len(names) != 2 or not _LOSS.search(function.name):
    return ''
  values = [
    'labels' if _LABELS.search(name) else 'outputs' if _OUTPUTS.search(name) else ''
    for name in names
  ]
  return f'{function.name}({", ".join(values)})' if sorted(values) == ['labels', 'outputs'] else ''


def _train_op(function: ast.FunctionDef) -> str:
  """Returns the call of a function that makes a train op of a loss; '' for another one."""
  names = _parameters(function)
  if names is None or len(names) != 1 or not _TRAIN.search(function.name):
    return ''
  return f'{function.name}(loss)' if _LOSS.search(names[0]) else ''
