"""Inputs for a TF1 function, guessed from its code."""

import ast
import dataclasses
import re
from collections.abc import Iterator, Sequence

from tf2verify.commands.tf1_code.operations import (
  CLASSES,
  FILTER,
  IDS,
  IMAGE,
  LENGTHS,
  ROWS,
  SEQUENCE,
  Kind,
  filter_shape,
  is_unchanged,
  kind_in,
  reshaped,
)
from tf2verify.commands.tf1_code.shapes import placeholders, rows_of_table
from tf2verify.commands.tf1_code.source import Parameter, Tf1Source
from tf2verify.commands.tf1_code.syntax import (
  called,
  inner_function,
  passed,
  plain_parameters,
  text_of,
  with_key,
)

_WORDS_OF_IMAGES = ('image', 'images', 'pixels', 'img', 'imgs')
_WORDS_OF_IDS = ('ids', 'tokens', 'words', 'tags', 'indices', 'chars')
_WORDS_OF_LENGTHS = ('length', 'lengths', 'len', 'lens')
_WORDS_OF_MASKS = ('mask', 'masks')
_WORDS_OF_BIASES = ('bias', 'biases')
_BY_KEYS = 'by the keys that the function reads'
_TWO_CLASSES = 'np.array([1, 0], np.int32)'  # which fit any number of classes
_ID_TEXT = 'np.random.default_rng({seed}).integers(0, {end}, {shape}, dtype=np.int32)'
_SMALL = 8  # of ids whose table is not seen
_NO_NEWS = 'nothing in the code shows its shape: a guess'
_DEEPEST = 3
_LARGEST_SIZE = 64
_LONGEST_ENTRY = 70


@dataclasses.dataclass(frozen=True)
class Input:
  """An input of a first case.

  Attributes:
    name: of the parameter.
    text: the expression that makes it.
    reason: what it was guessed from.
    is_seen: whether that is an operation on it.
  """

  name: str
  text: str
  reason: str
  is_seen: bool = False


def inputs_of(source: Tf1Source) -> list[Input]:
  """Returns an input for each parameter that takes tensors."""
  known = placeholders(source)
  found: list[Input] = []
  seed = 0
  for parameter in (one for one in source.taken if one.role == 'input'):
    if parameter.parts:
      parts = [
        _guess(source, [(source.function, name)], seed + n)
        for n, name in enumerate(parameter.parts)
      ]
      items = ', '.join(part.text for part in parts)
      reasons = '; '.join(f'{part.name}: {part.reason}' for part in parts)
      found.append(Input(parameter.name, f'({items})', reasons))
    elif parameter.by_key:
      found.append(_by_keys(source, parameter, seed))
    elif parameter.name in known:
      found.append(_of_placeholder(parameter.name, known[parameter.name], seed))
    else:
      found.append(_guess(source, source.uses_of(parameter.name), seed))
    # Arrays of the same seed and shape are equal: exchanging them would not be noticed.
    seed += len(parameter.parts) or len(parameter.fields if parameter.by_key else ()) or 1
  return found


def _by_keys(source: Tf1Source, parameter: Parameter, seed: int) -> Input:
  """Returns an input that is read by key: an entry for each."""
  places = source.uses_of(parameter.name)
  parts = [
    (key, _guess(source, [(function, with_key(text, key)) for function, text in places], seed + n))
    for n, key in enumerate(parameter.fields)
  ]
  items = [f'{key!r}: {part.text}' for key, part in parts]
  text = f'{{{", ".join(items)}}}'
  if len(text) > _LONGEST_ENTRY:
    text = '\n'.join(['{', *(f'  {item},' for item in items), '}'])
  said = [f'{key}: {part.reason}' for key, part in parts if part.is_seen]
  return Input(parameter.name, text, '; '.join(said) or _BY_KEYS)


def _guess(source: Tf1Source, places: Sequence[tuple[ast.FunctionDef, str]], seed: int) -> Input:
  """Returns an input by the first operation on it, or by its name; that of its first place."""
  function, name = places[0]
  uses = (use for one, text in places for use in _uses(source, one, text, 0))
  used = next(uses, None)
  if used is None:
    return _by_name(name, seed)
  call, _ = used
  text = _of_operation(source, function, name, used, seed)
  return Input(name, text, f'from line {call.lineno}: {_short(call)}', True)


def _normal(shape: tuple[int, ...], seed: int) -> str:
  seeded = f', seed={seed}' if seed else ''
  return f'tf2verify.normal_inputs({shape}{seeded})'


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


def _of_operation(
  source: Tf1Source,
  function: ast.FunctionDef,
  name: str,
  use: tuple[ast.Call, Kind],
  seed: int,
) -> str:
  """Returns an input that an operation takes."""
  call, kind = use
  if kind == IDS:
    end = rows_of_table(source.tree, call) or _SMALL
    return _ID_TEXT.format(seed=seed, shape=(2, 7), end=end)
  if kind == LENGTHS:
    return 'np.array([7, 4], np.int32)'
  if kind == CLASSES:
    return _TWO_CLASSES
  if kind == FILTER:
    return _normal(filter_shape(call, function, name), seed)
  return _normal(reshaped(call) if isinstance(kind, str) else kind, seed)


def _by_name(name: str, seed: int) -> Input:
  *_, own = texts = [word for word in re.split(r"[\[\]']+", name.lower()) if word]
  # Of what is read by key, the key tells more than the name of the mapping.
  for words in (set(own.split('_')), {word for text in texts for word in text.split('_')}):
    if words & set(_WORDS_OF_LENGTHS):
      return Input(name, 'np.array([7, 4], np.int32)', 'by its name')
    if words & set(_WORDS_OF_MASKS):
      rows = [[1] * 7, [1] * 4 + [0] * 3]
      return Input(name, f'np.array({rows}, np.float32)', 'by its name')
    if words & set(_WORDS_OF_IDS):
      return Input(name, _ID_TEXT.format(seed=seed, shape=(2, 7), end=_SMALL), 'by its name')
    if words & set(_WORDS_OF_IMAGES):
      return Input(name, _normal(IMAGE, seed), 'by its name')
    if words & set(_WORDS_OF_BIASES):
      return Input(name, _normal((8,), seed), 'by its name')
  return Input(name, _normal(ROWS, seed), _NO_NEWS)


def _uses(
  source: Tf1Source, function: ast.FunctionDef, name: str, depth: int
) -> Iterator[tuple[ast.Call, Kind]]:
  """Yields the calls that say something of a parameter, and what they say, in order."""
  names, sequences = {name}, set[str]()
  for statement in _in_order(function):
    for call in (node for node in ast.walk(statement) if isinstance(node, ast.Call)):
      if _is_joined(call, names, sequences):
        yield call, SEQUENCE
      inner = inner_function(call, source.functions)
      if inner is not None and depth < _DEEPEST:
        for there in _names_in(inner, call, names):
          yield from _uses(source, inner, there, depth + 1)
      elif kind := kind_in(call, names):
        yield call, kind
    if isinstance(statement, ast.Assign) and (target := text_of(statement.targets[0])):
      value = statement.value
      if isinstance(value, ast.Call) and called(value) == 'embedding_lookup':
        sequences.add(target)
      if is_unchanged(value, names):
        names.add(target)
      elif target in names:
        names.discard(target)


def _names_in(inner: ast.FunctionDef, call: ast.Call, names: set[str]) -> Iterator[str]:
  """Yields what a function calls some names that a call passes, or whose mapping it passes."""
  for parameter, value in passed(call, plain_parameters(inner)):
    text = text_of(value)
    if text in names:
      yield parameter
    elif text:
      yield from (parameter + name[len(text) :] for name in names if name.startswith(f'{text}['))


def _in_order(function: ast.FunctionDef) -> Iterator[ast.stmt]:
  """Yields the simple statements of a function as they are written."""
  nodes = [n for n in ast.walk(function) if isinstance(n, ast.stmt) and not hasattr(n, 'body')]
  yield from sorted(nodes, key=lambda node: (node.lineno, node.col_offset))


def _is_joined(call: ast.Call, names: set[str], sequences: set[str]) -> bool:
  """Returns whether a call joins one of some names to the vectors of words."""
  if called(call) != 'concat':
    return False
  parts = {text_of(one) for value in call.args for one in getattr(value, 'elts', ())}
  return bool(parts & names) and bool(parts & sequences)


def _short(node: ast.AST) -> str:
  text = ' '.join(ast.unparse(node).split())
  return text if len(text) <= _LARGEST_SIZE else text[: _LARGEST_SIZE - 1] + '…'
