"""Where the parts of `tf.contrib` are now: for the imports and names of TF1 code."""

import ast
from collections.abc import Iterator, Mapping

RECORD = 'not in TensorFlow 2: rewrite it, or record the model under TensorFlow 1.x (recordings)'
HPARAMS = 'HParams: a dataclass or types.SimpleNamespace with the same attributes'
# Parts that are elsewhere as a whole: where, and what gives them under the same name.
_MODULES = {
  'slim': ('tf_slim', 'import tf_slim as {name}'),
  'layers': ('tf_slim', 'import tf_slim as {name}'),  # its tf_slim.layers has not all
  'rnn': ('tf.nn.rnn_cell', '{name} = tf.nn.rnn_cell, after import tensorflow.compat.v1 as tf'),
}
_SLIM = (
  'arg_scope add_arg_scope arg_scoped_arguments has_arg_scope add_model_variable '
  'assign_from_checkpoint assign_from_checkpoint_fn assign_from_values assign_from_values_fn '
  'filter_variables get_local_variables get_model_variables get_trainable_variables '
  'get_unique_variable get_variables get_variables_by_name get_variables_by_suffix '
  'get_variables_to_restore local_variable model_variable variable'
)
_CELLS = (
  'BasicLSTMCell BasicRNNCell DeviceWrapper DropoutWrapper GRUCell LSTMCell LSTMStateTuple '
  'MultiRNNCell RNNCell ResidualWrapper'
)
_LAYERS = (
  'avg_pool2d avg_pool3d batch_norm bias_add conv1d conv2d conv2d_in_plane conv2d_transpose conv3d '
  'conv3d_transpose convolution convolution1d convolution2d convolution2d_transpose convolution3d '
  'dropout elu flatten fully_connected group_norm instance_norm layer_norm linear max_pool2d '
  'max_pool3d maxout one_hot_encoding pool relu relu6 repeat separable_conv2d '
  'separable_convolution2d softmax spatial_softmax stack unit_norm apply_regularization '
  'l1_l2_regularizer l1_regularizer l2_regularizer sum_regularizer variance_scaling_initializer '
  'xavier_initializer xavier_initializer_conv2d optimize_loss summarize_activation '
  'summarize_activations summarize_collection summarize_tensor summarize_tensors'
)
_CHECKPOINTS = (
  'get_global_step get_or_create_global_step init_from_checkpoint list_variables load_checkpoint '
  'load_variable'
)
_STATIC = 'static_bidirectional_rnn static_rnn static_state_saving_rnn'
# Where names are; tf is tensorflow.compat.v1.
PLACES: Mapping[str, Mapping[str, str]] = {
  'framework': {
    **dict.fromkeys(_SLIM.split(), 'tf_slim.{name}'),
    **dict.fromkeys(_CHECKPOINTS.split(), 'tf.train.{name}'),
    **dict.fromkeys(('argsort', 'is_tensor', 'nest', 'sort'), 'tf.{name}'),
  },
  'layers': dict.fromkeys(_LAYERS.split(), 'tf_slim.{name}'),
  'rnn': {
    **dict.fromkeys(_CELLS.split(), 'tf.nn.rnn_cell.{name}'),
    **dict.fromkeys(_STATIC.split(), 'tf.nn.{name}'),
  },
  'training': {'HParams': HPARAMS},
}


def uses(tree: ast.Module) -> Iterator[tuple[ast.AST, str]]:
  """Yields what a module takes from `tf.contrib`, and what to write instead."""
  parts: dict[str, str] = {}
  seen: set[ast.AST] = set()
  for node in ast.walk(tree):
    for words, name in _brought_in(node):
      if len(words) > 1:
        yield node, _of_import(words[0], words[-1])
        continue
      parts[name] = words[0]
      seen.add(node.value if isinstance(node, ast.Assign) else node)
      yield node, _of_module(words[0], name)
  for node in ast.walk(tree):
    if not isinstance(node, ast.Attribute) or node in seen:
      continue
    if isinstance(node.value, ast.Name) and node.value.id in parts:
      part = parts[node.value.id]
      advice = _of_name(part, node.attr)
      # The module that takes the part's place has it under the same name.
      if part not in _MODULES or advice != f'{_MODULES[part][0]}.{node.attr}':
        yield node, _with_import(advice)
    elif _is_part(node.value):
      assert isinstance(node.value, ast.Attribute)
      yield node, _with_import(_of_name(node.value.attr, node.attr))


def _with_import(advice: str) -> str:
  return f'{advice} (import tf_slim)' if advice.startswith('tf_slim.') else advice


def _brought_in(node: ast.AST) -> Iterator[tuple[list[str], str]]:
  """Yields the words after `tf.contrib` of what a statement brings in, and its name here."""
  if isinstance(node, ast.Import):
    for alias in node.names:
      words = alias.name.split('.')
      if words[:2] == ['tensorflow', 'contrib'] and len(words) > 2:
        yield words[2:3], alias.asname or words[-1]
  elif isinstance(node, ast.ImportFrom):
    words = (node.module or '').split('.')
    if words[:2] == ['tensorflow', 'contrib']:
      for alias in node.names:
        yield [*words[2:], alias.name], alias.asname or alias.name
  elif isinstance(node, ast.Assign) and _is_part(node.value):
    assert isinstance(node.value, ast.Attribute)
    for target in node.targets:
      if isinstance(target, ast.Name):
        yield [node.value.attr], target.id


def _is_part(node: ast.AST) -> bool:
  """Says whether it is `tf.contrib.layers`."""
  return (
    isinstance(node, ast.Attribute)
    and isinstance(node.value, ast.Attribute)
    and node.value.attr == 'contrib'
  )


def _of_module(part: str, name: str) -> str:
  if part in _MODULES:
    return _MODULES[part][1].format(name=name)
  return 'its names are in several places: see below' if part in PLACES else RECORD


def _of_name(part: str, name: str) -> str:
  if part == 'slim':
    return f'tf_slim.{name}'
  return PLACES.get(part, {}).get(name, RECORD).format(name=name)


def _of_import(part: str, name: str) -> str:
  """Returns the advice for `from tensorflow.contrib.part import name`."""
  place, _, last = _of_name(part, name).rpartition('.')
  if last != name:
    return _of_name(part, name)
  return f'from {place} import {name}' if 'slim' in place else f'{name} = {place}.{name}'
