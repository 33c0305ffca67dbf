"""Tables as a page holds them: by column, compressed, drawn only when they are looked at."""

import base64
import dataclasses
import functools
import gzip
import json
import math
import string
from collections.abc import Mapping, Sequence
from typing import Any

# Digits of a number in the page; the JSON report has all.
_DIGITS = 3
# A letter per count, see `_letters`; page.js knows it as well.
_EXACT, _STEP = 16, 1.2
_LETTERS = string.digits + string.ascii_lowercase + string.ascii_uppercase

Cell = str | float | int | tuple[int, ...] | None


@dataclasses.dataclass(frozen=True)
class Column:
  """A column of a table."""

  head: str  # its name
  # `text`; `code` (text in a fixed width); `number`; `ulps` (a histogram); `mark` (text that sets
  # the row apart where it is not empty).
  kind: str = 'text'
  choose: bool = False  # whether a reader may choose rows by its values


@dataclasses.dataclass(frozen=True)
class PackedTable:
  """A table for the page's script."""

  caption: str  # what it shows
  columns: tuple[Column, ...]  # of each row
  rows: tuple[tuple[Cell, ...], ...]  # one value per column each
  # The column that it is sorted by at first, the greatest value on top; -1 for the order as given.
  order: int = -1


def packed(tables: Mapping[str, PackedTable]) -> str:
  """Returns tables as base64 of gzip of JSON, which needs no escaping in HTML.

  A column that is empty throughout is left out, and one of the same text throughout is
  said once. Texts are numbers of a list of all texts, since names come again and again.
  The same tables give the same text: gzip's time stamp is 0.
  """
  words: dict[str, int] = {}
  plain: dict[str, object] = {name: _plain(table, words) for name, table in tables.items()}
  plain[''] = list(words)
  text = json.dumps(plain, ensure_ascii=False, allow_nan=False, separators=(',', ':'))
  return base64.b64encode(gzip.compress(text.encode('utf-8'), 6, mtime=0)).decode('ascii')


def _plain(table: PackedTable, words: dict[str, int]) -> dict[str, object]:
  by_column = list(zip(table.columns, zip(*table.rows, strict=True), strict=True))
  same = [(column, values[0]) for column, values in by_column if _is_same(column, values)]
  once = [column for column, _ in same]
  shown = [(column, values) for column, values in by_column if column not in once]
  heads = [column.head for column, _ in shown]
  order = table.columns[table.order].head if table.order >= 0 else ''
  return {
    'caption': table.caption,
    'order': heads.index(order) if order in heads else -1,
    'rows': len(table.rows),
    'same': [[column.head, _text(value)] for column, value in same if value not in ('', None, ())],
    'columns': [
      {
        'head': column.head,
        'kind': column.kind,
        'choose': column.choose,
        'values': _values(column.kind, values, words),
      }
      for column, values in shown
    ],
  }


def _is_same(column: Column, values: Sequence[Cell]) -> bool:
  """Returns whether a column says nothing, or the same text in each of several rows."""
  empty = values[0] in ('', None, ())
  several = len(values) > 1 and column.kind in ('text', 'code')
  return (empty or several) and len(set(values)) == 1


def _values(kind: str, values: Sequence[Cell], words: dict[str, int]) -> list[Any]:
  if kind == 'number':
    return [_number(value) for value in values]
  if kind == 'ulps':
    return [''.join(map(_letter, v)) if isinstance(v, tuple) else '' for v in values]
  return [words.setdefault(_text(value), len(words)) for value in values]


def _text(value: Cell) -> str:
  return '' if value is None else str(value)


@functools.lru_cache(maxsize=4096)
def _letter(count: int) -> str:
  """Returns the letter of a count of a histogram: exact up to 16, to a tenth of itself beyond."""
  level = count if count <= _EXACT else _EXACT + round(math.log(count / _EXACT, _STEP))
  return _LETTERS[min(level, len(_LETTERS) - 1)]


def _number(value: Cell) -> float | int | str | None:
  if value is None or isinstance(value, (str, tuple)):
    return None if not isinstance(value, str) else value
  if not math.isfinite(value):
    return repr(float(value))
  rounded = float(f'{value:.{_DIGITS}g}')
  return int(rounded) if rounded.is_integer() and abs(rounded) < 1e15 else rounded
