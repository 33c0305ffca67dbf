"""How the elements of several arrays lie: axes that are named, merged, and put end to end.

The notation is that of einops, with `+` for what lies end to end along an axis: `(x+h) (i+f)`
is a matrix of four blocks, `x i`, `x f`, `h i` and `h f`. `1` is an axis of length 1, and `[]` an
array without axes.
"""

import dataclasses
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

_TOKEN = re.compile(r'\s*([A-Za-z_][A-Za-z_0-9]*|\d+|\[\]|[()+])')


class PatternError(ValueError):
  """A pattern is none, or does not fit; the message says why."""


@dataclasses.dataclass(frozen=True)
class Sum:
  """An axis that is made of others: products of axes, end to end; `1` is the empty product."""

  terms: tuple[tuple['Axis', ...], ...]

  def __str__(self) -> str:
    if self.terms == ((),):
      return '1'
    return f'({"+".join(" ".join(map(str, term)) or "1" for term in self.terms)})'


Axis = str | Sum
# The names of the axes of a part that is not divided any further.
Block = frozenset[str]


@dataclasses.dataclass(frozen=True)
class Pattern:
  """How the elements of one array lie."""

  axes: tuple[Axis, ...]  # in the order of the array

  def __str__(self) -> str:
    return ' '.join(map(str, self.axes)) or '[]'

  def blocks(self) -> tuple[Block, ...]:
    """Returns the parts that the array is made of, in order.

    Raises:
      PatternError: an axis occurs twice in one of them.
    """
    found = []
    for names in _products(self.axes):
      if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise PatternError(
          f'the axis {twice} occurs twice in a part of {self}; give each axis a name of its own'
        )
      found.append(frozenset(names))
    return tuple(found)

  def orders(self) -> tuple[tuple[str, ...], ...]:
    """Returns the names of the axes of every part, slowest first."""
    return tuple(_products(self.axes))

  def shape(self, sizes: Mapping[str, int]) -> tuple[int, ...]:
    """Returns the shape of the array, whose sizes are all known."""
    return tuple(_size(axis, sizes) for axis in self.axes)

  def divide(self, array: Any, sizes: Mapping[str, int]) -> dict[Block, Any]:
    """Returns the parts of an array, their axes in the order of their names.

    Args:
      array: of numpy, or what is sliced, reshaped and transposed like one.
      sizes: of all axes.
    """
    found: dict[Block, Any] = {}
    _divide(array, self.axes, sizes, found)
    return found

  def join(
    self,
    parts: Mapping[Block, Any],
    sizes: Mapping[str, int],
    concatenate: Callable[..., Any] = np.concatenate,
  ) -> Any:
    """Returns the array of parts whose axes are in the order of their names.

    Args:
      parts: as `divide` returns them.
      sizes: of all axes.
      concatenate: puts such arrays end to end, along `axis`.
    """
    return _join(self.axes, parts, sizes, concatenate)


def _products(axes: Sequence[Axis]) -> Iterator[tuple[str, ...]]:
  """Yields the names of the axes of every part."""
  if not axes:
    yield ()
    return
  first = axes[0]
  terms: Sequence[Sequence[Axis]] = [(first,)] if isinstance(first, str) else first.terms
  for term in terms:
    heads = [(first,)] if isinstance(first, str) else list(_products(term))
    for head in heads:
      for rest in _products(axes[1:]):
        yield (*head, *rest)


def _size(axis: Axis, sizes: Mapping[str, int]) -> int:
  if isinstance(axis, str):
    return sizes[axis]
  return sum(math.prod(_size(inner, sizes) for inner in term) for term in axis.terms)


def _replaced(axes: Sequence[Axis], position: int, by: Sequence[Axis]) -> tuple[Axis, ...]:
  return (*axes[:position], *by, *axes[position + 1 :])


def _first_made(axes: Sequence[Axis]) -> tuple[int, Sum] | None:
  return next(((n, axis) for n, axis in enumerate(axes) if isinstance(axis, Sum)), None)


def _divide(
  array: Any, axes: Sequence[Axis], sizes: Mapping[str, int], found: dict[Block, Any]
) -> None:
  made = _first_made(axes)
  if made is None:
    names = [str(axis) for axis in axes]
    found[frozenset(names)] = array.transpose([names.index(name) for name in sorted(names)])
    return
  position, axis = made
  start = 0
  for term in axis.terms:
    lengths = [_size(inner, sizes) for inner in term]
    end = start + math.prod(lengths)
    part = array[(slice(None),) * position + (slice(start, end),)]
    shape = (*array.shape[:position], *lengths, *array.shape[position + 1 :])
    _divide(part.reshape(shape), _replaced(axes, position, term), sizes, found)
    start = end


def _join(
  axes: Sequence[Axis],
  parts: Mapping[Block, Any],
  sizes: Mapping[str, int],
  concatenate: Callable[..., Any],
) -> Any:
  made = _first_made(axes)
  if made is None:
    names = [str(axis) for axis in axes]
    known = sorted(names)
    order = [known.index(name) for name in names]
    return parts[frozenset(names)].transpose(order)
  position, axis = made
  joined: list[Any] = []
  for term in axis.terms:
    part = _join(_replaced(axes, position, term), parts, sizes, concatenate)
    end = position + len(term)
    length = math.prod(part.shape[position:end])
    joined.append(part.reshape((*part.shape[:position], length, *part.shape[end:])))
  if len(joined) == 1:
    return joined[0]
  return concatenate(joined, axis=position)


def parse_patterns(text: str) -> tuple[Pattern, ...]:
  """Returns the patterns of several arrays, which commas part.

  Raises:
    PatternError: the text is none.
  """
  return tuple(_Parser(part).pattern() for part in text.split(','))


class _Parser:
  """Reads the pattern of one array."""

  def __init__(self, text: str) -> None:
    self._text = text.strip()
    self._tokens: list[str] = []
    position = 0
    while position < len(self._text):
      found = _TOKEN.match(self._text, position)
      if found is None:
        rest = self._text[position:].strip()
        raise PatternError(
          f'{rest[:1]!r} in the pattern {self._text!r}: a pattern has names of axes, 1, and '
          'parentheses with + in them, as in (x+h) (i+f)'
        )
      self._tokens.append(found.group(1))
      position = found.end()
    self._next = 0

  def pattern(self) -> Pattern:
    """Returns the pattern."""
    if not self._tokens:
      raise PatternError('a pattern is missing: write [] for a variable without axes')
    if self._tokens == ['[]']:
      return Pattern(())
    axes = self._product()
    if self._next < len(self._tokens):
      token = self._tokens[self._next]
      slip = ': + belongs within parentheses' if token == '+' else ''
      raise PatternError(f'{token!r} is unexpected in the pattern {self._text!r}{slip}')
    return Pattern(axes)

  def _peek(self) -> str:
    return self._tokens[self._next] if self._next < len(self._tokens) else ''

  def _product(self) -> tuple[Axis, ...]:
    axes: list[Axis] = []
    while self._peek() not in ('', ')', '+'):
      token = self._peek()
      self._next += 1
      if token == '(':
        axes.append(self._sum())
      elif token == '1':
        axes.append(Sum(((),)))
      elif token.isdigit() or token == '[]':
        raise PatternError(
          f'{token} in the pattern {self._text!r}: name the axis, and give its size under sizes'
        )
      else:
        axes.append(token)
    return tuple(axes)

  def _sum(self) -> Sum:
    terms = [self._product()]
    while self._peek() == '+':
      self._next += 1
      terms.append(self._product())
    if self._peek() != ')':
      raise PatternError(f'a ) is missing in the pattern {self._text!r}')
    self._next += 1
    if not all(terms):
      raise PatternError(
        f'an operand is missing beside a + or within () in the pattern {self._text!r}'
      )
    # `1` alone is the empty product.
    return Sum(tuple(() if term == (Sum(((),)),) else term for term in terms))


def solved_sizes(
  patterns: Sequence[tuple[Pattern, tuple[int, ...] | None]], sizes: Mapping[str, int]
) -> dict[str, int]:
  """Returns the sizes of the axes of patterns, as far as shapes tell them.

  Args:
    patterns: with the shape of the array; None where it is not known.
    sizes: of axes, that are known.

  Raises:
    PatternError: a shape does not fit its pattern.
  """
  known = dict(sizes)
  wanted = []
  for pattern, shape in patterns:
    if shape is None:
      continue
    if len(shape) != len(pattern.axes):
      raise PatternError(
        f'the pattern {pattern} has {len(pattern.axes)} axes, and the variable has the shape '
        f'{shape}'
      )
    wanted += [(axis, size, pattern, shape) for axis, size in zip(pattern.axes, shape, strict=True)]
  while True:
    before = len(known)
    for axis, size, pattern, shape in wanted:
      _solve(axis, size, known, f'the pattern {pattern} does not fit the shape {shape}')
    if len(known) == before:
      return known


def _solve(axis: Axis, size: int, known: dict[str, int], problem: str) -> None:
  """Finds the size of the one axis that is not known yet."""
  if isinstance(axis, str):
    if known.setdefault(axis, size) != size:
      raise PatternError(f'{problem}: {axis} is {known[axis]} and {size}')
    return
  left, unknown = size, []
  for term in axis.terms:
    if all(name in known for inner in term for name in _names(inner)):
      left -= math.prod(_size(inner, known) for inner in term)
    else:
      unknown.append(term)
  if not unknown and left:
    raise PatternError(f'{problem}: {axis} has {size - left} elements, the shape {size}')
  if len(unknown) != 1:
    return
  open_axes = [inner for inner in unknown[0] if any(n not in known for n in _names(inner))]
  if len(open_axes) != 1:
    return
  others = math.prod(_size(inner, known) for inner in unknown[0] if inner is not open_axes[0])
  if left <= 0 or not others or left % others:
    raise PatternError(f'{problem}: {left} elements are left for {open_axes[0]} in {axis}')
  _solve(open_axes[0], left // others, known, problem)


def _names(axis: Axis) -> Iterator[str]:
  if isinstance(axis, str):
    yield axis
    return
  for term in axis.terms:
    for inner in term:
      yield from _names(inner)


def axis_names(patterns: Sequence[Pattern]) -> tuple[str, ...]:
  """Returns the names of all axes, in order, each once."""
  return tuple(
    dict.fromkeys(n for pattern in patterns for axis in pattern.axes for n in _names(axis))
  )
