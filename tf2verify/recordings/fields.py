"""Values of a manifest, taken from JSON strictly: no field more, none less, each of its type."""

import dataclasses
import math
import re
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias, TypeVar

_Parsed = TypeVar('_Parsed')
_First = TypeVar('_First')
_Second = TypeVar('_Second')

# Takes a value of JSON; raises `Malformed`.
Parser: TypeAlias = Callable[[object], _Parsed]

_PARSE = 'parse'
_MOST_SHOWN = 60
_DIGEST = re.compile(r'[0-9a-f]{64}')
_FILE = re.compile(r'[a-z0-9-]{1,64}\.npz')
_KEY = re.compile(r'[A-Za-z0-9_-]{1,64}')
# Half a surrogate pair, which cannot be encoded, and zero.
_NO_TEXT = re.compile('[\ud800-\udfff\0]')
# Of a dimension, and of any other whole number.
_GREATEST = 2**63 - 1
_DEEPEST = 32


class Malformed(Exception):
  """A value is not what the format says.

  Attributes:
    place: where it stands: `.runs[2].outputs`.
    problem: what is wrong.
  """

  def __init__(self, problem: str, place: str = '') -> None:
    super().__init__(problem)
    self.problem = problem
    self.place = place

  def inside(self, place: str) -> 'Malformed':
    """Returns the same, seen from one level further up."""
    return Malformed(self.problem, place + self.place)


def parsed(parser: Parser[_Parsed]) -> _Parsed:
  """Declares a field of a dataclass that `record` is to read with this parser."""
  found: _Parsed = dataclasses.field(metadata={_PARSE: parser})
  return found


def left_out_before(parser: Parser[_Parsed]) -> _Parsed | None:
  """Declares a field likewise, at the end, that earlier recorders have not written: None then."""
  found: _Parsed | None = dataclasses.field(default=None, metadata={_PARSE: parser})
  return found


def record(cls: type[_Parsed], **constants: Any) -> Parser[_Parsed]:
  """Returns the parser of a JSON object into a dataclass, all whose fields are `parsed`.

  Args:
    cls: the dataclass.
    **constants: fields that the JSON object does not have.
  """
  fields = dataclasses.fields(cls)  # type: ignore[arg-type]
  parsers = {f.name: f.metadata[_PARSE] for f in fields if f.name not in constants}
  required = {f.name for f in fields if f.default is dataclasses.MISSING} - constants.keys()

  def parse(value: object) -> _Parsed:
    if not isinstance(value, dict):
      raise Malformed(f'is {_shown(value)}, not an object')
    if not required <= value.keys() <= parsers.keys():
      raise Malformed(_other_fields(value.keys(), required, parsers.keys()))
    found = {n: inside(f'.{n}', parser, value[n]) for n, parser in parsers.items() if n in value}
    return cls(**found, **constants)

  return parse


def _other_fields(found: Iterable[str], required: Iterable[str], known: Iterable[str]) -> str:
  missing, unknown = sorted(set(required) - set(found)), sorted(set(found) - set(known))
  texts = [f'has no field {name}' for name in missing]
  texts += [f'has an unknown field {_shown(name)}' for name in unknown]
  return ' and '.join(texts[:3])


def inside(place: str, parser: Parser[_Parsed], value: object) -> _Parsed:
  """Parses a value that stands at a place of another one."""
  try:
    return parser(value)
  except Malformed as error:
    raise error.inside(place) from None


def several(parser: Parser[_Parsed]) -> Parser[tuple[_Parsed, ...]]:
  """Returns the parser of an array, each element by the given one."""

  def parse(value: object) -> tuple[_Parsed, ...]:
    if not isinstance(value, list):
      raise Malformed(f'is {_shown(value)}, not an array')
    return tuple(inside(f'[{n}]', parser, element) for n, element in enumerate(value))

  return parse


def pair(first: Parser[_First], second: Parser[_Second]) -> Parser[tuple[_First, _Second]]:
  """Returns the parser of an array of two."""

  def parse(value: object) -> tuple[_First, _Second]:
    if not isinstance(value, list) or len(value) != 2:
      raise Malformed(f'is {_shown(value)}, not an array of two')
    return inside('[0]', first, value[0]), inside('[1]', second, value[1])

  return parse


def named(parser: Parser[_Parsed]) -> Parser[tuple[tuple[str, _Parsed], ...]]:
  """Returns the parser of an array of pairs of a name and a value, no name twice."""
  pairs = several(pair(text, parser))

  def parse(value: object) -> tuple[tuple[str, _Parsed], ...]:
    found = pairs(value)
    names = [name for name, _ in found]
    if len(set(names)) < len(names):
      twice = next(name for n, name in enumerate(names) if name in names[:n])
      raise Malformed(f'has {_shown(twice)} twice')
    return found

  return parse


def by_key(parser: Parser[_Parsed]) -> Parser[dict[str, _Parsed]]:
  """Returns the parser of a JSON object with keys of any name."""

  def parse(value: object) -> dict[str, _Parsed]:
    if not isinstance(value, dict):
      raise Malformed(f'is {_shown(value)}, not an object')
    return {name: inside(f'.{name}', parser, element) for name, element in value.items()}

  return parse


def maybe(parser: Parser[_Parsed]) -> Parser[_Parsed | None]:
  """Returns the parser that takes null as well."""
  return lambda value: None if value is None else parser(value)


def either(first: Parser[_First], second: Parser[_Second]) -> Parser[_First | _Second]:
  """Returns the parser that takes what one of the two takes."""

  def parse(value: object) -> _First | _Second:
    try:
      return first(value)
    except Malformed:
      return second(value)

  return parse


def one_of(*allowed: str) -> Parser[str]:
  """Returns the parser of one of some words."""

  def parse(value: object) -> str:
    if not isinstance(value, str) or value not in allowed:
      raise Malformed(f'is {_shown(value)}, not one of {", ".join(allowed)}')
    return value

  return parse


def text(value: object) -> str:
  """Takes a text that can be encoded."""
  if not isinstance(value, str):
    raise Malformed(f'is {_shown(value)}, not a text')
  if _NO_TEXT.search(value):
    raise Malformed(f'is {_shown(value)}, which is not a valid text')
  return value


def _matching(pattern: re.Pattern[str], noun: str) -> Parser[str]:
  def parse(value: object) -> str:
    if not isinstance(value, str) or not pattern.fullmatch(value):
      raise Malformed(f'is {_shown(value)}, not {noun}')
    return value

  return parse


digest = _matching(_DIGEST, 'a SHA-256 in hexadecimal')
file_name = _matching(_FILE, 'the plain name of an .npz file in the folder itself')
key = _matching(_KEY, 'a key of letters, digits, _ and -')


def flag(value: object) -> bool:
  """Takes true or false."""
  if not isinstance(value, bool):
    raise Malformed(f'is {_shown(value)}, not true or false')
  return value


def count(value: object) -> int:
  """Takes a whole number from 0 on."""
  if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _GREATEST:
    raise Malformed(f'is {_shown(value)}, not a whole number from 0 on')
  return value


def number(value: object) -> float:
  """Takes a finite number."""
  if isinstance(value, bool) or not isinstance(value, (int, float)):
    raise Malformed(f'is {_shown(value)}, not a number')
  if abs(value) > 1e308 or not math.isfinite(value):
    raise Malformed(f'is {_shown(value)}, which is out of range')
  return float(value)


def anything(value: object) -> object:
  """Takes any value of JSON."""
  _check_depth(value, _DEEPEST)
  return value


def _check_depth(value: object, left: int) -> None:
  if isinstance(value, (list, dict)):
    if not left:
      raise Malformed('is nested too deeply')
    for element in value.values() if isinstance(value, dict) else value:
      _check_depth(element, left - 1)
  elif isinstance(value, str):
    text(value)


def _shown(value: object) -> str:
  """Returns a value for a message, short, and such that any terminal shows it."""
  if isinstance(value, dict):
    return 'an object'
  if isinstance(value, list):
    return f'an array of {len(value)}'
  if value is None:
    return 'null'
  shown = str(value).lower() if isinstance(value, bool) else ascii(value)
  return shown if len(shown) <= _MOST_SHOWN else shown[: _MOST_SHOWN - 1] + '…'
