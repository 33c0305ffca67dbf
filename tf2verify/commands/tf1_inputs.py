"""Inputs for a TF1 function, guessed from its code."""

import ast
import dataclasses
from collections.abc import Iterator, Sequence

from tf2verify.commands.tf1_shapes import placeholders, rows_of_table
from tf2verify.commands.tf1_source import Tf1Source, called, text_of

_IMAGE, _SERIES, _VOLUME, _ROWS, _SEQUENCE = (
  (2, 32, 32, 3),
  (2, 16, 8),
  (2, 8, 16, 16, 3),
  (2, 8),
  (2, 7, 8),
)
# What the first operation on an input says of its shape: the position of the input among the
# arguments, and a shape.
_OPERATIONS = {
  **dict.fromkeys(
    ('conv2d', 'convolution2d', 'separable_conv2d', 'depthwise_conv2d', 'max_pool', 'max_pool2d'),
    (0, _IMAGE),
  ),
  **dict.fromkeys(
    ('avg_pool', 'avg_pool2d', 'max_pooling2d', 'average_pooling2d', 'conv2d_transpose'),
    (0, _IMAGE),
  ),
  **dict.fromkeys(('resize_bilinear', 'resize_nearest_neighbor', 'flatten'), (0, _IMAGE)),
  **dict.fromkeys(('conv1d', 'max_pooling1d', 'separable_conv1d'), (0, _SERIES)),
  **dict.fromkeys(('conv3d', 'max_pool3d', 'max_pooling3d'), (0, _VOLUME)),
  **dict.fromkeys(('dense', 'fully_connected', 'matmul', 'xw_plus_b', 'linear'), (0, _ROWS)),
  'dynamic_rnn': (1, _SEQUENCE),
  'bidirectional_dynamic_rnn': (2, _SEQUENCE),
}
# Operations on whole numbers.
_IDS = {'embedding_lookup': 1, 'gather': 1, 'one_hot': 0}
_LENGTHS = {'sequence_mask': 0}
# Operations that leave a shape as it is.
_UNCHANGED = ('identity', 'cast', 'to_float', 'convert_to_tensor', 'dropout', 'relu', 'batch_norm')
_WORDS_OF_IMAGES = ('image', 'images', 'pixels', 'img', 'imgs')
_WORDS_OF_IDS = ('ids', 'tokens', 'words', 'tags', 'indices', 'chars')
_WORDS_OF_LENGTHS = ('length', 'lengths', 'len', 'lens')
_WORDS_OF_MASKS = ('mask', 'masks')
_ID_TEXT = 'np.random.default_rng({seed}).integers(0, {end}, {shape}, dtype=np.int32)'
_SMALL = 8  # of ids whose table is not seen
_NO_NEWS = 'nothing in the code shows its shape: a guess'
_DEEPEST = 3
# In the place of a position: among the parts of a concatenation.
_JOINED = -1
_LARGEST_SIZE = 64


@dataclasses.dataclass(frozen=True)
class Input:
  """An input of a first case.

  Attributes:
    name: of the parameter.
    text: the expression that makes it.
    reason: what it was guessed from.
  """

  name: str
  text: str
  reason: str


def inputs_of(source: Tf1Source) -> list[Input]:
  """Returns an input for each parameter that takes tensors."""
  known = placeholders(source)
  found: list[Input] = []
  for parameter in (one for one in source.taken if one.role == 'input'):
    seed = len(found)
    if parameter.parts:
      parts = [
        _guess(source, [(source.function, name)], seed + n)
        for n, name in enumerate(parameter.parts)
      ]
      items = ', '.join(part.text for part in parts)
      reasons = '; '.join(f'{part.name}: {part.reason}' for part in parts)
      found.append(Input(parameter.name, f'({items})', reasons))
    elif parameter.by_key:
      parts = [_by_name(key, seed + n) for n, key in enumerate(parameter.fields)]
      items = ', '.join(f'{one.name!r}: {one.text}' for one in parts)
      found.append(Input(parameter.name, f'{{{items}}}', 'by the keys that the function reads'))
    elif parameter.name in known:
      found.append(_of_placeholder(parameter.name, known[parameter.name], seed))
    else:
      found.append(_guess(source, source.uses_of(parameter.name), seed))
  return found


def _guess(source: Tf1Source, places: Sequence[tuple[ast.FunctionDef, str]], seed: int) -> Input:
  """Returns an input by the first operation on it, or by its name; that of its first place."""
  name = places[0][1]
  uses = (use for function, one in places for use in _uses(source, function, one, 0))
  used = next(uses, None)
  return _by_name(name, seed) if used is None else _of_operation(source, name, used, seed)


def _normal(shape: tuple[int, ...], seed: int) -> str:
  return f'tf2verify.normal_inputs({shape}, seed={seed})' if seed else _plain(shape)


def _plain(shape: tuple[int, ...]) -> str:
  return f'tf2verify.normal_inputs({shape})'


def _of_placeholder(
  name: str, made: tuple[str, tuple[int | None, ...] | None, int], seed: int
) -> Input:
  dtype, sizes, line = made
  shape = tuple(size if size is not None else 2 + n for n, size in enumerate(sizes or (None, 8)))
  said = 'its shape' if sizes else 'its dtype'
  if 'int' in dtype:
    text = _ID_TEXT.format(seed=seed, shape=shape, end=_SMALL).replace('int32', dtype)
  elif dtype == 'bool':
    text = f'np.random.default_rng({seed}).random({shape}) < 0.5'
  elif dtype == 'string':
    text = f"np.full({shape}, b'text')"
  else:
    text = _normal(shape, seed)
  return Input(name, text, f'{said} is that of the placeholder in line {line}')


def _of_operation(source: Tf1Source, name: str, use: tuple[ast.Call, int], seed: int) -> Input:
  call, position = use
  operation, reason = called(call), f'from line {call.lineno}: {_short(call)}'
  if position == _JOINED:
    return Input(name, _normal(_SEQUENCE, seed), reason)
  if operation in _OPERATIONS and _OPERATIONS[operation][0] == position:
    return Input(name, _normal(_OPERATIONS[operation][1], seed), reason)
  if operation in _IDS:
    end = rows_of_table(source.tree, call) or _SMALL
    return Input(name, _ID_TEXT.format(seed=seed, shape=(2, 7), end=end), reason)
  if operation in _LENGTHS:
    return Input(name, 'np.array([7, 4], np.int32)', reason)
  shape = _reshaped(call)
  return Input(name, _normal(shape, seed), reason)


def _by_name(name: str, seed: int) -> Input:
  words = set(name.lower().split('_'))
  if words & set(_WORDS_OF_LENGTHS):
    return Input(name, 'np.array([7, 4], np.int32)', 'by its name')
  if words & set(_WORDS_OF_MASKS):
    rows = [[1] * 7, [1] * 4 + [0] * 3]
    return Input(name, f'np.array({rows}, np.float32)', 'by its name')
  if words & set(_WORDS_OF_IDS):
    return Input(name, _ID_TEXT.format(seed=seed, shape=(2, 7), end=_SMALL), 'by its name')
  if words & set(_WORDS_OF_IMAGES):
    return Input(name, _normal(_IMAGE, seed), 'by its name')
  return Input(name, _normal(_ROWS, seed), _NO_NEWS)


def _uses(
  source: Tf1Source, function: ast.FunctionDef, name: str, depth: int
) -> Iterator[tuple[ast.Call, int]]:
  """Yields the calls that say something of a parameter, and its position in them, in order."""
  own = source.functions
  names, sequences = {name}, set[str]()
  for statement in _in_order(function):
    for call in (node for node in ast.walk(statement) if isinstance(node, ast.Call)):
      if _is_joined(call, names, sequences):
        yield call, _JOINED
      position = _position(call, names)
      if position is None:
        continue
      if called(call) in own and depth < _DEEPEST:
        inner = own[called(call)]
        arguments = [*inner.args.posonlyargs, *inner.args.args]
        if position < len(arguments):
          yield from _uses(source, inner, arguments[position].arg, depth + 1)
      elif _says_something(call, position):
        yield call, position
    if isinstance(statement, ast.Assign) and (target := text_of(statement.targets[0])):
      value = statement.value
      is_same = text_of(value) in names
      if isinstance(value, ast.Call) and called(value) == 'embedding_lookup':
        sequences.add(target)
      is_cast = isinstance(value, ast.Call) and called(value) in _UNCHANGED
      if is_same or (is_cast and _position(value, names) == 0):  # type: ignore[arg-type]
        names.add(target)
      elif target in names:
        names.discard(target)


def _in_order(function: ast.FunctionDef) -> Iterator[ast.stmt]:
  """Yields the simple statements of a function as they are written."""
  nodes = [n for n in ast.walk(function) if isinstance(n, ast.stmt) and not hasattr(n, 'body')]
  yield from sorted(nodes, key=lambda node: (node.lineno, node.col_offset))


def _position(call: ast.Call, names: set[str]) -> int | None:
  """Returns where a call takes one of some names: its position; None if nowhere."""
  for position, value in enumerate(call.args):
    if text_of(value) in names:
      return position
  for word in call.keywords:
    if text_of(word.value) in names:
      if word.arg in ('ids', 'indices'):
        return 1
      if word.arg in ('inputs', 'input', 'x', 'value', 'tensor', 'images', 'lengths'):
        operation = _OPERATIONS.get(called(call))
        return operation[0] if operation else 0
  return None


def _is_joined(call: ast.Call, names: set[str], sequences: set[str]) -> bool:
  """Says whether a call joins one of some names to the vectors of words."""
  if called(call) != 'concat':
    return False
  parts = {text_of(one) for value in call.args for one in getattr(value, 'elts', ())}
  return bool(parts & names) and bool(parts & sequences)


def _says_something(call: ast.Call, position: int) -> bool:
  operation = called(call)
  if operation in _OPERATIONS:
    return _OPERATIONS[operation][0] == position
  for table in (_IDS, _LENGTHS):
    if operation in table:
      return table[operation] == position
  return operation == 'reshape' and position == 0 and bool(_reshaped(call))


def _reshaped(call: ast.Call) -> tuple[int, ...]:
  """Returns what `tf.reshape(x, [-1, 28, 28, 1])` takes: (2, 784); () where it cannot be told."""
  if called(call) != 'reshape' or len(call.args) < 2:
    return ()
  sizes = call.args[1]
  if not isinstance(sizes, (ast.List, ast.Tuple)):
    return ()
  count = 1
  for one in sizes.elts[1:]:
    if not (isinstance(one, ast.Constant) and isinstance(one.value, int)):
      return ()
    count *= one.value
  return (2, count) if count > 0 else ()


def _short(node: ast.AST) -> str:
  text = ' '.join(ast.unparse(node).split())
  return text if len(text) <= _LARGEST_SIZE else text[: _LARGEST_SIZE - 1] + '…'
