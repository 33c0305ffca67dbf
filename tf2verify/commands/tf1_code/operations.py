"""What operations of TF1 code say of their arguments: which shape and dtype these have."""

import ast
from collections.abc import Mapping

from tf2verify.commands.tf1_code.syntax import called, dotted, text_of

IMAGE, SERIES, VOLUME, ROWS, SEQUENCE = (
  (2, 32, 32, 3),
  (2, 16, 8),
  (2, 8, 16, 16, 3),
  (2, 8),
  (2, 7, 8),
)
# What an argument is where no fixed shape says it.
IDS, LENGTHS, CLASSES, FILTER, RESHAPED = 'ids', 'lengths', 'classes', 'filter', 'reshaped'
Kind = tuple[int, ...] | str
_Argument = tuple[int | None, tuple[str, ...], Kind]
_FIRST = ('inputs', 'input', 'x', 'value', 'tensor', 'images', 'a')
_FILTER: _Argument = (1, ('filter', 'filters'), FILTER)
_BIAS = ('bias', 'biases')


def _first(shape: tuple[int, ...]) -> tuple[_Argument, ...]:
  return ((0, _FIRST, shape),)


# Operation to its arguments: position (None where it is passed by name), names, and what it is.
_ARGUMENTS: Mapping[str, tuple[_Argument, ...]] = {
  **dict.fromkeys(('max_pool', 'max_pool2d', 'avg_pool', 'avg_pool2d'), _first(IMAGE)),
  **dict.fromkeys(('max_pooling2d', 'average_pooling2d', 'conv2d_transpose'), _first(IMAGE)),
  **dict.fromkeys(('resize_bilinear', 'resize_nearest_neighbor', 'flatten'), _first(IMAGE)),
  **dict.fromkeys(('convolution2d', 'separable_conv2d'), _first(IMAGE)),
  **dict.fromkeys(('conv2d', 'depthwise_conv2d'), (*_first(IMAGE), _FILTER)),
  **dict.fromkeys(('max_pooling1d', 'separable_conv1d'), _first(SERIES)),
  'conv1d': (*_first(SERIES), _FILTER),
  **dict.fromkeys(('max_pool3d', 'max_pooling3d'), _first(VOLUME)),
  'conv3d': (*_first(VOLUME), _FILTER),
  **dict.fromkeys(('dense', 'fully_connected', 'linear'), _first(ROWS)),
  'matmul': (*_first(ROWS), (1, ('b',), (8, 8))),
  'xw_plus_b': (*_first(ROWS), (1, ('weights',), (8, 8)), (2, _BIAS, (8,))),
  'bias_add': ((1, _BIAS, (8,)),),
  'dynamic_rnn': ((1, _FIRST, SEQUENCE), (2, ('sequence_length',), LENGTHS)),
  'bidirectional_dynamic_rnn': ((2, _FIRST, SEQUENCE), (3, ('sequence_length',), LENGTHS)),
  'sequence_mask': ((0, ('lengths',), LENGTHS),),
  **dict.fromkeys(('embedding_lookup', 'gather'), ((1, ('ids', 'indices'), IDS),)),
  'one_hot': ((0, ('indices',), IDS),),
  'reshape': ((0, _FIRST, RESHAPED),),
  'sparse_softmax_cross_entropy': ((0, ('labels',), CLASSES),),
  # Early versions of TF1 took the logits first.
  'sparse_softmax_cross_entropy_with_logits': ((None, ('labels',), CLASSES),),
  'in_top_k': ((1, ('targets',), CLASSES),),
}
# Operations that leave a shape as it is.
_UNCHANGED = ('identity', 'cast', 'to_float', 'convert_to_tensor', 'dropout', 'relu', 'batch_norm')
# The sizes of a filter before its channels.
_FILTERS = {'conv1d': (3,), 'conv3d': (3, 3, 3)}


def kind_in(call: ast.Call, names: set[str]) -> Kind | None:
  """Returns what a call says of the argument that is one of some names; None for nothing."""
  for position, words, kind in _ARGUMENTS.get(called(call), ()):
    given = [word.value for word in call.keywords if word.arg in words]
    if position is not None:
      given += call.args[position : position + 1]
    if any(text_of(value) in names for value in given):
      # The second argument of tf.layers.conv2d is a number.
      is_said = kind != FILTER or 'nn' in dotted(call.func).split('.')
      return kind if is_said and (kind != RESHAPED or reshaped(call)) else None
  return None


def is_unchanged(node: ast.expr, names: set[str]) -> bool:
  """Returns whether it is one of some names, or one of the same shape made of it."""
  if isinstance(node, ast.Call) and called(node) in _UNCHANGED:
    given = [*node.args[:1], *(word.value for word in node.keywords if word.arg in _FIRST)]
    return any(text_of(value) in names for value in given)
  return text_of(node) in names


def reshaped(call: ast.Call) -> tuple[int, ...]:
  """Returns what `tf.reshape(x, [-1, 28, 28, 1])` takes: (2, 784); () where it cannot be told."""
  sizes = sizes_of(call)
  count = 1
  for size in sizes[1:]:
    count *= size or 0
  return (2, count) if len(sizes) > 1 and count > 0 else ()


def sizes_of(node: ast.AST) -> list[int | None]:
  """Returns the sizes that a reshape is given, None for one that is not written; [] of others."""
  if not (isinstance(node, ast.Call) and called(node) == 'reshape'):
    return []
  given = [*node.args[1:2], *(word.value for word in node.keywords if word.arg == 'shape')]
  sizes = given[0].elts if given and isinstance(given[0], (ast.List, ast.Tuple)) else []
  values = [one.value if isinstance(one, ast.Constant) else None for one in sizes]
  return [value if isinstance(value, int) else None for value in values]


def filter_shape(call: ast.Call, function: ast.FunctionDef, name: str) -> tuple[int, ...]:
  """Returns the shape of a filter: 8 channels out, and as many in as what it is applied to has.

  Args:
    call: the convolution.
    function: which has the filter, and passes it, maybe by other functions.
    name: of the filter in it.
  """
  nodes = [node for node in ast.walk(function) if isinstance(node, (ast.Call, ast.Assign))]
  takes = next(
    (one for one in nodes if isinstance(one, ast.Call) and name in map(text_of, one.args[1:])), call
  )
  data = takes.args[0] if takes.args else None
  made = [
    node.value
    for node in nodes
    if isinstance(node, ast.Assign)
    and node.lineno < takes.lineno
    and data is not None
    and text_of(node.targets[0]) == text_of(data) != ''
  ]
  last = max(made, key=lambda node: node.lineno) if made else data
  sizes = sizes_of(last) if last is not None else []
  first = IMAGE[-1] if called(call) != 'conv1d' else SERIES[-1]
  channels = (sizes[-1] or 8) if sizes else 8 if made else first
  kernel = _FILTERS.get(called(call), (3, 3))
  return (*kernel, channels, 1 if called(call) == 'depthwise_conv2d' else 8)
