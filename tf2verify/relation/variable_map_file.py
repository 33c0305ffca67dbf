"""The text of a variable map, as it is kept under version control.

An entry is a line at the left margin, what is said of it is indented:

    # a comment
    vgg_16/fc6/weights -> fc1/kernel
      layout  h w i o -> (h w i) o
      sizes   h=7 w=7
      reason  read by the same operation
    rnn/bias -> lstm/bias
      layout  (i+c+f+o) -> (i+f+c+o)
      sizes   i=4 c=4 f=4
      add     f=1.0
    only tf1 global_step
      reason  counts the steps

Names with spaces, commas or quotes are in double quotes, as in JSON.
"""

import dataclasses
import difflib
import json
import math
import re
from collections.abc import Iterator, Sequence

from tf2verify.errors import VariableMapError
from tf2verify.relation.layouts.map_entry import MapEntry

Only = tuple[tuple[str, str], ...]
Parsed = tuple[tuple[MapEntry, ...], Only, Only]

_KEYWORDS = ('layout', 'sizes', 'add', 'reason')
_NAME = re.compile(r'\s*("(?:[^"\\]|\\.)*"|[^\s,"]+)\s*')
_PLAIN = re.compile(r'[^\s,"#][^\s,"]*\Z')
_TITLE = '# Variable map: the variables of TF1 on the left, those of the port on the right.'
_ARROWS = ('=>', '→', '<-', '<->', '=', ':')


class _Problem(ValueError):
  """What is wrong with a line."""


@dataclasses.dataclass
class _Section:
  """A line at the margin, and what is said below it."""

  line: int
  text: str
  said: dict[str, str] = dataclasses.field(default_factory=dict)


def read(path: str) -> Parsed:
  """Reads a map file: its entries, and what TF1 and the port have alone.

  Raises:
    VariableMapError: it cannot be read, or is none.
  """
  try:
    with open(path, encoding='utf-8') as file:
      text = file.read()
  except OSError as error:
    raise VariableMapError(
      f'the variable map {path} cannot be read: {error.strerror}; VariableMap.write makes one'
    ) from error
  except UnicodeDecodeError as error:
    raise VariableMapError(
      f'the variable map {path} is not a text in UTF-8 (byte {error.start}); '
      'VariableMap.write makes one'
    ) from error
  return parse(text, path)


def parse(text: str, path: str) -> Parsed:
  """Returns what the text of a map file says.

  Args:
    text: the whole text.
    path: for messages.

  Raises:
    VariableMapError: it is none.
  """
  entries: list[MapEntry] = []
  only: dict[str, dict[str, str]] = {'tf1': {}, 'tf2': {}}
  seen: dict[tuple[str, str], int] = {}
  for section in _sections(text, path):
    try:
      alone = _alone(section)
      if alone is not None:
        side, name = alone
        _note(seen, side, (name,), section.line)
        only[side][name] = section.said.get('reason', '')
      else:
        entry = _entry(section)
        _note(seen, 'tf1', entry.tf1, section.line)
        _note(seen, 'tf2', entry.tf2, section.line)
        entries.append(entry)
    except (_Problem, VariableMapError) as error:
      raise VariableMapError(f'{path}:{section.line}: {error}') from error
  if not entries and not any(only.values()):
    raise VariableMapError(
      f'{path}: the variable map is empty; an entry is a line such as a/weights -> b/kernel'
    )
  return tuple(entries), tuple(only['tf1'].items()), tuple(only['tf2'].items())


def _note(seen: dict[tuple[str, str], int], side: str, names: Sequence[str], line: int) -> None:
  for name in names:
    earlier = seen.setdefault((side, name), line)
    if earlier != line or names.count(name) > 1:
      raise _Problem(
        f'the {side} variable {name} is named in line {earlier} already; every variable belongs to '
        'one entry'
      )


def _sections(text: str, path: str) -> Iterator[_Section]:
  section: _Section | None = None
  for number, line in enumerate(text.splitlines(), 1):
    if not line.strip() or line.lstrip().startswith('#'):
      continue
    if not line[0].isspace():
      if section is not None:
        yield section
      section = _Section(number, line.strip())
      continue
    keyword, _, rest = line.strip().partition(' ')
    problem = ''
    if section is None:
      problem = 'an indented line says something of the entry above it, and there is none'
    elif keyword not in _KEYWORDS:
      closest = difflib.get_close_matches(keyword, _KEYWORDS, 1, 0.5)
      slip = f'; is {closest[0]} meant?' if closest else '; an entry itself is not indented'
      problem = f'{keyword!r} is none of {", ".join(_KEYWORDS)}{slip}'
    elif keyword in section.said:
      problem = f'{keyword} is given twice for {section.text}'
    elif not rest.strip():
      problem = f'nothing follows {keyword}'
    if problem or section is None:
      raise VariableMapError(f'{path}:{number}: {problem}')
    section.said[keyword] = rest.strip()
  if section is not None:
    yield section


def _alone(section: _Section) -> tuple[str, str] | None:
  """Returns side and name of a line of what one side has alone; None for another line."""
  words = section.text.split(None, 2)
  if words[0] != 'only' or '->' in words:
    return None
  if len(words) < 3 or words[1] not in ('tf1', 'tf2'):
    raise _Problem(f'{section.text!r} names no side and variable: only tf1 NAME, or only tf2 NAME')
  names, rest = _names(words[2])
  if len(names) != 1 or rest:
    raise _Problem(
      f'{section.text!r} names several variables; write a line for each, with its reason'
    )
  if set(section.said) != {'reason'}:
    raise _Problem(f'{names[0]} needs a reason, and nothing else: why does the other side lack it?')
  return words[1], names[0]


def _entry(section: _Section) -> MapEntry:
  left, rest = _names(section.text)
  if not rest.startswith('->'):
    wrong = next((arrow for arrow in _ARROWS if arrow in f'{left[-1:]} {rest}'), '')
    slip = f'; instead of {wrong}' if wrong else ''
    raise _Problem(f'{section.text!r} has no arrow; write TF1 -> PORT{slip}')
  right, rest = _names(rest[2:])
  if rest or not left or not right:
    raise _Problem(
      f'{section.text!r} is not an entry; write names with commas between them: a, b -> c'
    )
  said = section.said
  return MapEntry(
    left,
    right,
    said.get('layout', ''),
    tuple((axis, _whole(axis, size)) for axis, size in _given(said.get('sizes', ''), 'sizes')),
    tuple((axis, _number(axis, value)) for axis, value in _given(said.get('add', ''), 'add')),
    said.get('reason', ''),
  )


def _names(text: str) -> tuple[tuple[str, ...], str]:
  """Returns the names at the beginning of a text, and what follows them."""
  found: list[str] = []
  position = 0
  while True:
    match = _NAME.match(text, position)
    if match is None or match.group(1) == '->':
      return tuple(found), text[position:].strip()
    word = match.group(1)
    try:
      found.append(str(json.loads(word)) if word.startswith('"') else word)
    except ValueError as error:
      raise _Problem(f'{word} is not a name in quotes: {error}') from error
    position = match.end()
    if not text[position:].startswith(','):
      return tuple(found), text[position:].strip()
    position += 1


def _given(text: str, keyword: str) -> list[tuple[str, str]]:
  found: list[tuple[str, str]] = []
  for word in text.replace(',', ' ').split():
    axis, equals, value = word.partition('=')
    if not equals or not axis or not value:
      raise _Problem(
        f'{word!r} after {keyword} is not an axis=number, without spaces: {keyword} x=3 h=5'
      )
    if axis in dict(found):
      raise _Problem(f'{keyword} gives {axis} twice')
    found.append((axis, value))
  return found


def _whole(axis: str, text: str) -> int:
  if not text.isdigit():
    raise _Problem(f'the size of {axis} is {text!r}; it must be a whole number')
  return int(text)


def _number(axis: str, text: str) -> float:
  try:
    value = float(text)
  except ValueError:
    value = math.nan
  if not math.isfinite(value):
    raise _Problem(f'what is added to {axis} is {text!r}; it must be a number')
  return value


def to_text(entries: Sequence[MapEntry], tf1_only: Only, tf2_only: Only) -> str:
  """Returns the text of a map file, which `parse` takes."""
  lines = [_TITLE]
  for entry in entries:
    lines.append(f'{_written(entry.tf1)} -> {_written(entry.tf2)}')
    said = {
      'layout': entry.layout,
      'sizes': ' '.join(f'{axis}={size}' for axis, size in entry.sizes),
      'add': ' '.join(f'{axis}={value!r}' for axis, value in entry.added),
      'reason': ' '.join(entry.reason.split()),
    }
    lines += [f'  {keyword:<7} {text}' for keyword, text in said.items() if text]
  for side, only in (('tf1', tf1_only), ('tf2', tf2_only)):
    for name, reason in only:
      lines += [f'only {side} {_written((name,))}', f'  reason  {" ".join(reason.split())}']
  return '\n'.join(lines) + '\n'


def _written(names: Sequence[str]) -> str:
  # `only` at the margin has a meaning of its own.
  plain = (_PLAIN.match(name) and name not in ('->', 'only') for name in names)
  return ', '.join(
    name if is_plain else json.dumps(name) for name, is_plain in zip(names, plain, strict=True)
  )
