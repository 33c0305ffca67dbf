"""Text that every terminal, file and database can take: the one place that makes it so.

What a case yields may hold anything: half a surrogate pair (a file name that is not UTF-8),
control characters that move a terminal's cursor, characters that turn the direction of
what follows, megabytes. Every writer of reports goes through these functions.
"""

import codecs
import dataclasses
import functools
import io
import re
import sys
from collections.abc import Mapping
from typing import Any, Protocol, TypeVar

# Of one text of a record: the beginning and the end of a longer one are kept.
LONGEST_TEXT = 20_000
_KEPT_END = 0.4
_TEXT_OF_BYTES = range(0xDC80, 0xDD00)  # how Python keeps a byte that is not UTF-8
# Besides tab and line feed: control characters; marks, embeddings, overrides and isolates of
# direction; separators of lines; what has no width, but for the two joiners that scripts
# need; surrogates; what is no character (and XML cannot hold); tags.
_UNSAFE_RANGES = (
  '\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f'
  '\ud800-\udfff\ufdd0-\ufdef\ufeff\ufff9-\ufffb\ufffe\uffff\U000e0000-\U000e007f'
  + ''.join(
    f'{chr(plane + 0xFFFE)}{chr(plane + 0xFFFF)}' for plane in range(0x10000, 0x110000, 0x10000)
  )
)
_UNSAFE = re.compile(f'[{_UNSAFE_RANGES}]')
# Colours and bold type, which Keras and others put into what they raise: no part of the text. What
# else begins so would move a cursor, and is shown.
_STYLE = re.compile(r'\x1b\[[0-9;]{0,20}m')
_UNSAFE_IN_LINE = re.compile(f'[\t\n{_UNSAFE_RANGES}]')
# Of the characters that reports themselves use.
_PLAIN = {'…': '...', '·': '*', '→': '->', '×': 'x', '−': '-', '–': '-', '≥': '>=', '≤': '<='}
_ON_ERROR = 'tf2verify-plain'

_Value = TypeVar('_Value')


class Stream(Protocol):
  """What text is printed to."""

  def write(self, text: str, /) -> Any: ...
  def flush(self) -> Any: ...


def safe(text: str, longest: int | None = LONGEST_TEXT) -> str:
  """Returns a text of which every character is shown, on as many lines as it has.

  Safe text comes back as it is, so that it does no harm to ask twice.

  Args:
    text: any.
    longest: how many characters to keep; None for all.

  Returns:
    The text without the colours of terminals, with what is not shown escaped as Python would
    (`\\x1b`, `\\u202e`; a byte of a name that is not UTF-8: `\\xe9`), and what is too long cut in
    its middle.
  """
  if text.isprintable() and (longest is None or len(text) <= longest):
    return text
  text = _shortened(_STYLE.sub('', str.__str__(text)), longest)
  return _shortened(_UNSAFE.sub(_escaped, text.replace('\r\n', '\n')), longest)


def safe_line(text: str, longest: int | None = LONGEST_TEXT) -> str:
  """Returns a text as `safe` does, on one line: a name, a tag, a key of a database."""
  if text.isprintable() and (longest is None or len(text) <= longest):
    return text
  text = _shortened(_STYLE.sub('', str.__str__(text)), longest, '…')
  return _shortened(_UNSAFE_IN_LINE.sub(_escaped, text), longest, '…')


def safe_values(value: _Value) -> _Value:
  """Returns a record with every text in it safe; itself where all are.

  Args:
    value: a dataclass, tuple, list, mapping, text or anything else, in any nest.
  """
  found: Any = value
  if isinstance(value, str):
    found = safe(value)
  elif isinstance(value, tuple):
    if _NO_TEXT.issuperset(map(type, value)):
      return value
    items = [item if type(item) in _NO_TEXT else safe_values(item) for item in value]
    if any(map(_is_other, items, value)):
      found = type(value)(*items) if hasattr(value, '_fields') else tuple(items)
  elif isinstance(value, list):
    items = list(map(safe_values, value))
    found = items if any(map(_is_other, items, value)) else value
  elif isinstance(value, Mapping):
    pairs = {safe_values(key): safe_values(item) for key, item in value.items()}
    same = len(pairs) == len(value) and not any(map(_is_other, pairs.values(), value.values()))
    found = value if same and not any(map(_is_other, pairs, value)) else pairs
  elif dataclasses.is_dataclass(value) and not isinstance(value, type):
    names = _names_of_fields(type(value))
    olds = [getattr(value, name) for name in names]
    changed = {
      name: new
      for name, old in zip(names, olds, strict=True)
      if type(old) not in _NO_TEXT
      and not (type(old) is str and old.isprintable() and len(old) <= LONGEST_TEXT)
      and (new := safe_values(old)) is not old
    }
    found = dataclasses.replace(value, **changed) if changed else value
  result: _Value = found
  return result


_NO_TEXT = frozenset((float, int, bool, type(None)))


@functools.cache
def _names_of_fields(cls: Any) -> tuple[str, ...]:
  return tuple(field.name for field in dataclasses.fields(cls))


def _is_other(one: object, other: object) -> bool:
  return one is not other


def message_of(error: BaseException) -> str:
  """Returns the message of an exception, whose own `__str__` may raise."""
  try:
    return safe(str(error))
  except Exception as second:  # noqa: BLE001 - it is the user's, and is asked for its text only
    return f'(no message: its __str__ raised {type(second).__name__})'


def say(text: str, stream: Stream | None = None, end: str = '\n') -> None:
  """Prints a text at once, safe, with what the stream's encoding lacks replaced.

  Args:
    text: any.
    stream: standard output by default.
    end: what stands after it; not made safe.
  """
  write(safe(text, longest=None) + end, sys.stdout if stream is None else stream)


def write(text: str, stream: Stream | None) -> None:
  """Writes safe text at once, with what the stream's encoding lacks replaced.

  Nothing where nobody reads: without an output Python has None, and code of a user may close it.
  """
  if stream is None or getattr(stream, 'closed', False):
    return
  encoding = getattr(stream, 'encoding', None) or 'utf-8'
  stream.write(text.encode(encoding, _ON_ERROR).decode(encoding))
  stream.flush()


def make_streams_safe() -> None:
  """Lets all that this process prints be printed, whatever the encoding of its output.

  For a program that owns its process: also TensorFlow, argparse and cases print.
  """
  for stream in (sys.stdout, sys.stderr):
    if isinstance(stream, io.TextIOWrapper):
      stream.reconfigure(errors=_ON_ERROR)


def _shortened(text: str, longest: int | None, mark: str = '') -> str:
  if longest is None or len(text) <= longest:
    return text
  left_out = len(text) - longest
  said = mark or f'\n… {left_out:,} characters left out …\n'
  end = int(longest * _KEPT_END)
  start = max(0, longest - end - len(said) - 8)  # the number may have grown when asked again
  return f'{text[:start]}{said}{text[-end:]}'


def _escaped(found: re.Match[str]) -> str:
  code = ord(found[0])
  if code in _TEXT_OF_BYTES:
    code -= 0xDC00
  if code < 0x100:
    return f'\\x{code:02x}'
  return f'\\u{code:04x}' if code < 0x10000 else f'\\U{code:08x}'


def _plain(error: UnicodeError) -> tuple[str, int]:
  if not isinstance(error, UnicodeEncodeError):
    raise error
  found = error.object[error.start : error.end]
  plain = ''.join(_PLAIN.get(one) or _escaped_character(one) for one in found)
  return plain, error.end


def _escaped_character(character: str) -> str:
  match = re.match('.', character, re.DOTALL)
  return '?' if match is None else _escaped(match)


codecs.register_error(_ON_ERROR, _plain)
