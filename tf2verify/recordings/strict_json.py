"""JSON that means one thing only: no key twice, no NaN, no number without end."""

import json
import math
from typing import NoReturn

from tf2verify.recordings.fields import Malformed

# No whole number of a manifest has more digits.
_MOST_DIGITS = 20


def loads(data: bytes) -> object:
  """Reads JSON.

  Raises:
    Malformed: it is not UTF-8, no JSON, or has a key twice, NaN, an infinity, a number that
      no float holds, or too deep a nest.
  """
  try:
    return json.loads(
      data.decode('utf-8'),
      object_pairs_hook=_object,
      parse_constant=_constant,
      parse_int=_integer,
      parse_float=_float,
    )
  except UnicodeDecodeError as error:
    raise Malformed(f'is not UTF-8 at byte {error.start}') from None
  except json.JSONDecodeError as error:
    raise Malformed(f'is not JSON at line {error.lineno}, column {error.colno}') from None
  except RecursionError:
    raise Malformed('is nested too deeply') from None


def canonical(value: object) -> bytes:
  """Returns what is hashed: sorted keys, no spaces, no escapes but those that JSON needs.

  Raises:
    Malformed: it is nested too deeply, or a text in it is none.
  """
  try:
    text = json.dumps(
      value, sort_keys=True, separators=(',', ':'), allow_nan=False, ensure_ascii=False
    )
    return text.encode('utf-8')
  except RecursionError:
    raise Malformed('is nested too deeply') from None
  except UnicodeEncodeError:
    raise Malformed('holds half a surrogate pair') from None


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
  found = dict(pairs)
  if len(found) < len(pairs):
    names = [name for name, _ in pairs]
    twice = next(name for n, name in enumerate(names) if name in names[:n])
    raise Malformed(f'has the key {ascii(twice)[:60]} twice in one object')
  return found


def _constant(name: str) -> NoReturn:
  raise Malformed(f'holds {name}, which is not JSON')


def _integer(digits: str) -> int:
  if len(digits) > _MOST_DIGITS:
    raise Malformed(f'holds a whole number of {len(digits)} digits')
  return int(digits)


def _float(digits: str) -> float:
  found = float(digits)
  if not math.isfinite(found):
    raise Malformed(f'holds the number {digits[:20]}, which no float holds')
  return found
