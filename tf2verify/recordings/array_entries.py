"""What a manifest says of arrays, tensors and nests."""

import dataclasses
import math
from typing import Any

from tf2verify.recordings.fields import (
  Malformed,
  Parser,
  count,
  digest,
  file_name,
  flag,
  inside,
  key,
  maybe,
  named,
  one_of,
  parsed,
  record,
  several,
  text,
)

_MOST_AXES = 32
_DEEPEST = 32
ITEMSIZES = {
  'bool': 1,
  'int8': 1,
  'int16': 2,
  'int32': 4,
  'int64': 8,
  'uint8': 1,
  'uint16': 2,
  'uint32': 4,
  'uint64': 8,
  'float16': 2,
  'bfloat16': 2,
  'float32': 4,
  'float64': 8,
  'complex64': 8,
  'complex128': 16,
  'string': 1,
}
_dtype = one_of(*ITEMSIZES)


def shape(value: object) -> tuple[int, ...]:
  """Takes the shape of an array."""
  found = several(count)(value)
  if len(found) > _MOST_AXES or math.prod(max(size, 1) for size in found) >= 2**62:
    raise Malformed('is not a shape that an array can have')
  return found


@dataclasses.dataclass(frozen=True)
class SampledEntry:
  """How an array was sampled.

  Attributes:
    shape: of the whole array.
    sha256: of the whole array.
    samples: number of single elements.
    block: elements of a signed mean: 64, or 0 for none.
  """

  shape: tuple[int, ...] = parsed(shape)
  sha256: str = parsed(digest)
  samples: int = parsed(count)
  block: int = parsed(count)


@dataclasses.dataclass(frozen=True)
class ArrayEntry:
  """An array of an .npz file.

  Attributes:
    file: name of the file.
    key: of the array in the file.
    dtype: what it stands for; numpy's name, or `string`.
    shape: of what is stored; of text that of the array of texts.
    sha256: of what is stored.
    encoding: `plain`, `bfloat16` (as uint16) or `string` (bytes, and their lengths).
    sampled: None for a whole array.
  """

  file: str = parsed(file_name)
  key: str = parsed(key)
  dtype: str = parsed(_dtype)
  shape: tuple[int, ...] = parsed(shape)
  sha256: str = parsed(digest)
  encoding: str = parsed(one_of('plain', 'bfloat16', 'string'))
  sampled: SampledEntry | None = parsed(maybe(record(SampledEntry)))

  @property
  def full_shape(self) -> tuple[int, ...]:
    """The shape of the array that it stands for."""
    return self.shape if self.sampled is None else self.sampled.shape


@dataclasses.dataclass(frozen=True)
class TensorEntry:
  """A tensor of a run.

  Attributes:
    value: id of its array.
    noise: id of the codes of its noise, see `reference.noise_codes`; None where nothing moved
      it, or where it was not measured.
    repeats: whether a second run that moved nothing gave it again, but for rounding.
  """

  value: str = parsed(key)
  noise: str | None = parsed(maybe(key))
  repeats: bool = parsed(flag)


tensor = record(TensorEntry)
Tensors = tuple[tuple[str, TensorEntry | None], ...]
tensors: Parser[Tensors] = named(maybe(tensor))


@dataclasses.dataclass(frozen=True)
class Nest:
  """Arrays in tuples, lists and dictionaries.

  Attributes:
    kind: `array`, `tuple`, `list`, `dict`, `namedtuple` or `none`.
    array: id of the array.
    name: of the class of a named tuple.
    children: label (of a dictionary or named tuple) and part.
  """

  kind: str
  array: str = ''
  name: str = ''
  children: tuple[tuple[str, 'Nest'], ...] = ()

  def arrays(self) -> tuple[str, ...]:
    """Returns the ids of its arrays, in order."""
    below = tuple(found for _, child in self.children for found in child.arrays())
    return (self.array, *below) if self.kind == 'array' else below


def nest(value: object) -> Nest:
  """Takes a nest."""
  return _nest(value, _DEEPEST)


def _nest(value: object, left: int) -> Nest:
  if not isinstance(value, dict) or not left:
    raise Malformed('is not a nest of arrays' if left else 'is nested too deeply')
  fields: dict[str, Any] = value
  if fields.keys() == {'array'}:
    return Nest('array', array=inside('.array', key, fields['array']))
  if fields.keys() == {'none'}:
    return Nest('none')

  def below(part: object) -> Nest:
    return _nest(part, left - 1)

  for kind in ('tuple', 'list'):
    if fields.keys() == {kind}:
      parts = inside(f'.{kind}', several(below), fields[kind])
      return Nest(kind, children=tuple(('', part) for part in parts))
  if fields.keys() == {'dict'} and isinstance(fields['dict'], dict):
    items = [[label, fields['dict'][label]] for label in fields['dict']]
    return Nest('dict', children=inside('.dict', named(below), items))
  if fields.keys() == {'namedtuple', 'fields'}:
    name = inside('.namedtuple', _identifier, fields['namedtuple'])
    children = inside('.fields', named(below), fields['fields'])
    for label, _ in children:
      inside('.fields', _identifier, label)
    return Nest('namedtuple', name=name, children=children)
  raise Malformed('is not a nest of arrays')


def _identifier(value: object) -> str:
  found = text(value)
  if not found.isidentifier() or found.startswith('_') or len(found) > 64:
    raise Malformed('is not a name of a class or field')
  return found
