"""Losses and train ops next to a TF1 function: the hooks of a first case that call them."""

import ast
import re

from tf2verify.commands.tf1_source import Tf1Source

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
#   loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
#   return loss(labels, outputs)
#
"""
_OPTIMIZER = """
# def make_tf1_optimizer(self):
#   return tf.compat.v1.train.AdamOptimizer(1e-3)
#
"""
_TRAIN_OP = """
# def make_tf1_train_op(self, loss):
#   return {train_op}
#
"""
_END = """
# def make_tf2_optimizer(self):
#   return tf.keras.optimizers.Adam(1e-3, epsilon=1e-8)
#
# def tf1_checkpoint(self):
#   return 'model.ckpt-1000'
"""
_DEFAULT_LOSS = 'tf.compat.v1.losses.sparse_softmax_cross_entropy(labels, outputs)'


def optional_hooks_of(source: Tf1Source) -> str:
  """Returns the hooks for losses and training as comments.

  They call the loss and the train op of the module, where it has functions that look like them.
  """
  loss, train_op = _calls(source)
  parts = (_START, _LOSSES.format(tf1_loss=loss or _DEFAULT_LOSS))
  training = _TRAIN_OP.format(train_op=train_op) if train_op else _OPTIMIZER
  return ''.join(part.lstrip('\n') for part in (*parts, training, _END))


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
