"""Where the parts of `tf.contrib` are now: for the imports and names of TF1 code."""

import ast
from collections.abc import Iterator, Mapping

from tf2verify.commands.tf1_code.syntax import last_word, one_of

RECORD = 'not in TensorFlow 2: rewrite it, or record the model under TensorFlow 1.x (recordings)'
HPARAMS = 'HParams: a dataclass or types.SimpleNamespace with the same attributes'
# Parts that are elsewhere as a whole: where, and what gives them under the same name.
_MODULES = {
  'slim': ('tf_slim', 'import tf_slim as {name}'),
  'layers': ('tf_slim', 'import tf_slim as {name}'),  # its tf_slim.layers has not all
  'rnn': ('tf.nn.rnn_cell', '{name} = tf.nn.rnn_cell, after import tensorflow.compat.v1 as tf'),
}
_SEE_BELOW = 'its names are in several places: see below'
# The modules of tf_slim, and where contrib had them.
FILES: Mapping[str, frozenset[str]] = {
  'tf_slim': frozenset(
    (
      'data', 'evaluation', 'layers', 'learning', 'losses', 'metrics', 'model_analyzer', 'nets',
      'nets.alexnet', 'nets.inception', 'nets.inception_v1', 'nets.inception_v2',
      'nets.inception_v3', 'nets.overfeat', 'nets.resnet_utils', 'nets.resnet_v1',
      'nets.resnet_v2', 'nets.vgg', 'queues', 'summaries', 'training',
    )
  ),
  'tf_slim.data': frozenset(
    (
      'data_decoder', 'data_provider', 'dataset', 'dataset_data_provider', 'parallel_reader',
      'prefetch_queue', 'tfexample_decoder',
    )
  ),
  'tf_slim.layers': frozenset(
    ('initializers', 'layers', 'normalization', 'optimizers', 'regularizers', 'summaries', 'utils')
  ),
  'tf_slim.ops': frozenset(('arg_scope', 'variables')),
}  # fmt: skip
_APART = ('tf_slim.nets',)  # what `import tf_slim` does not import
_FOLDERS = (
  (('slim',), 'tf_slim'),
  (('slim', 'python', 'slim'), 'tf_slim'),
  (('slim', 'python', 'slim', 'data'), 'tf_slim.data'),
  (('layers', 'python', 'layers'), 'tf_slim.layers'),
  (('framework', 'python', 'ops'), 'tf_slim.ops'),
)
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
    **dict.fromkeys(('core_rnn_cell', 'core_rnn_cell_impl'), 'tf.nn.rnn_cell'),
  },
  'training': {'HParams': HPARAMS},
}


def uses(tree: ast.Module) -> Iterator[tuple[ast.AST, str]]:
  """Yields what a module takes from `tf.contrib`, and what to write instead."""
  parts: dict[str, str] = {}
  seen: set[ast.AST] = set()
  for statement in ast.walk(tree):
    for node, words, name in _brought_in(statement):
      if not words:
        yield node, _SEE_BELOW
      elif words[-1] == '*':
        yield node, _of_star(tree, words[0])
      elif len(words) > 1:
        yield node, _of_import(words, name, isinstance(node, ast.Import))
      else:
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
      is_same = part in _MODULES and advice == f'{_MODULES[part][0]}.{node.attr}'
      if not is_same or advice in _APART:
        yield node, _with_import(advice)
    elif _is_part(node.value):
      assert isinstance(node.value, ast.Attribute)
      yield node, _with_import(_of_name(node.value.attr, node.attr))


def _with_import(place: str) -> str:
  if not place.startswith('tf_slim.'):
    return place
  return f'{place} (import {place if place in _APART else "tf_slim"})'


def _brought_in(node: ast.AST) -> Iterator[tuple[ast.AST, list[str], str]]:
  """Yields statement, words after `tf.contrib`, and name here, of what a statement brings in."""
  if isinstance(node, ast.Import):
    for alias in node.names:
      words = alias.name.split('.')
      if words[:2] == ['tensorflow', 'contrib']:
        yield node, words[2:], alias.asname or words[-1]
  elif isinstance(node, ast.ImportFrom) and not node.level:
    words = (node.module or '').split('.')
    for alias in node.names:
      full = [*words, alias.name]
      if full[:2] == ['tensorflow', 'contrib']:
        yield one_of(node, alias), full[2:], alias.asname or alias.name
  elif isinstance(node, ast.Assign) and _is_part(node.value):
    assert isinstance(node.value, ast.Attribute)
    for target in node.targets:
      if isinstance(target, ast.Name):
        yield node, [node.value.attr], target.id


def _is_part(node: ast.AST) -> bool:
  """Returns whether it is `tf.contrib.layers`, or `contrib.layers`."""
  return isinstance(node, ast.Attribute) and last_word(node.value) == 'contrib'


def _of_module(part: str, name: str) -> str:
  if part in _MODULES:
    return _MODULES[part][1].format(name=name)
  return _SEE_BELOW if part in PLACES else RECORD


def _of_name(part: str, name: str) -> str:
  if part == 'slim':
    return f'tf_slim.{name}'
  return PLACES.get(part, {}).get(name, RECORD).format(name=name)


def _of_import(words: list[str], name: str, is_whole: bool) -> str:
  """Returns the advice for something that is imported from a part.

  Args:
    words: after `tf.contrib`.
    name: what it is called in the module.
    is_whole: whether the statement is `import tensorflow.contrib.PART.MODULE`.
  """
  here = '' if name == words[-1] else f' as {name}'
  if place := _file_of(words):
    return f'import {place} as {name}' if is_whole else _from(place, here)
  if len(words) > 2 and (folder := _file_of(words[:-1])):
    return f'from {folder} import {words[-1]}{here}'
  if words[1] == 'python':  # where contrib itself kept what its parts are made of
    words = [words[0], words[-1]]
  if len(words) > 2:
    return RECORD
  place = _of_name(words[0], words[1])
  if place.startswith('tf_slim.'):
    return _from(place, here)
  return f'{name} = {place}' if place.startswith('tf.') else place


def _from(place: str, here: str) -> str:
  folder, _, last = place.rpartition('.')
  return f'from {folder} import {last}{here}'


def _file_of(words: list[str]) -> str:
  """Returns the module of tf_slim that a module within a part has become; '' for none."""
  for start, folder in _FOLDERS:
    rest = '.'.join(words[len(start) :])
    if tuple(words[: len(start)]) == start and rest in FILES[folder]:
      return f'{folder}.{rest}'
  return ''


def _of_star(tree: ast.Module, part: str) -> str:
  """Returns the advice for `from tensorflow.contrib.part import *`: the names that are used."""
  if part == 'slim':
    return 'from tf_slim import *'
  used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
  found = [name for name in PLACES.get(part, {}) if name in used]
  in_slim = [name for name in found if _of_name(part, name) == f'tf_slim.{name}']
  others = [_of_import([part, name], name, False) for name in found if name not in in_slim]
  advice = [f'from tf_slim import {", ".join(sorted(in_slim))}'] * bool(in_slim) + others
  if advice:
    return f'{"; ".join(advice)} (the names that are used here)'
  if part not in PLACES:
    return RECORD
  return f'{_of_module(part, part)}; name what is used'
