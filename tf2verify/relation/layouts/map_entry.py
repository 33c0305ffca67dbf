"""Some variables of TF1, and those of the port that hold the same elements."""

import dataclasses
import functools
from collections.abc import Iterable, Sequence

import numpy as np

from tf2verify.errors import VariableMapError
from tf2verify.relation.layouts.axis_patterns import (
  Block,
  Pattern,
  PatternError,
  axis_names,
  parse_patterns,
  solved_sizes,
)


@dataclasses.dataclass(frozen=True)
class MapEntry:
  """Some variables of TF1, and those of the port that hold the same elements.

  Attributes:
    tf1: names, without `:0`.
    tf2: likewise; of a Keras variable its path.
    layout: how the elements lie, `h w i o -> (h w i) o`: a pattern for each variable, with
      commas between them. '' where one variable holds the elements of one in the same shape.
    sizes: of axes of the layout, which shapes alone may not tell.
    added: numbers that the port's variables have added to all elements of an axis: `f` and
      1.0 for a forget bias that TF1 adds in every step.
    reason: why this is believed; for the reader.
  """

  tf1: tuple[str, ...]
  tf2: tuple[str, ...]
  layout: str = ''
  sizes: tuple[tuple[str, int], ...] = ()
  added: tuple[tuple[str, float], ...] = ()
  reason: str = ''

  def __post_init__(self) -> None:
    for side in ('tf1', 'tf2'):
      names = getattr(self, side)
      if isinstance(names, str):
        raise VariableMapError(
          f'{side} is {names!r} in a MapEntry; it must be a tuple: ({names!r},)'
        )
      object.__setattr__(self, side, tuple(name.removesuffix(':0') for name in names))
    for field in ('sizes', 'added'):
      value = getattr(self, field)
      object.__setattr__(self, field, tuple(dict(value).items()))
    if not (self.tf1 and self.tf2):
      raise VariableMapError(f'{self} has no variable on one side: use tf1_only or tf2_only')
    self.patterns  # noqa: B018 - raises for a layout that is none

  def __str__(self) -> str:
    return f'{", ".join(self.tf1)} -> {", ".join(self.tf2)}'

  @property
  def is_rename(self) -> bool:
    """Whether it only renames a variable."""
    return not self.layout and not self.added

  @property
  def keeps_order(self) -> bool:
    """Whether it pairs one variable with one whose elements have the same order.

    The axes may be joined or split: `1 x i o -> (x i) o`.
    """
    if self.patterns is None:
      return True
    ones, others = self.patterns
    if self.added or len(ones) > 1 or len(others) > 1:
      return False
    orders = ones[0].orders(), others[0].orders()
    return ones == others or (len(orders[0]) == 1 and orders[0] == orders[1])

  def simplified(self) -> 'MapEntry':
    """Returns the entry without a layout that says nothing: `i o -> i o`."""
    if self.patterns is None or self.patterns[0] != self.patterns[1] or not self.keeps_order:
      return self
    return dataclasses.replace(self, layout='', sizes=())

  @functools.cached_property
  def patterns(self) -> tuple[tuple[Pattern, ...], tuple[Pattern, ...]] | None:
    """The layout of both sides; None where it is the same.

    Raises:
      VariableMapError: the layout is none, or does not have the same elements on both sides.
    """
    if not self.layout:
      if len(self.tf1) > 1 or len(self.tf2) > 1:
        raise VariableMapError(
          f'{self}: several variables need a layout, such as d (q+k) -> d q, d k'
        )
      if self.sizes or self.added:
        raise VariableMapError(f'{self}: sizes and add name axes, so a layout is needed')
      return None
    left, arrow, right = self.layout.partition('->')
    if not arrow or '->' in right:
      raise VariableMapError(
        f'{self}: the layout {self.layout!r} needs one arrow: h w i o -> (h w i) o'
      )
    try:
      found = parse_patterns(left), parse_patterns(right)
      one, other = (_parts(patterns) for patterns in found)
    except PatternError as error:
      raise VariableMapError(f'{self}: {error}') from error
    for names, patterns, side in zip((self.tf1, self.tf2), found, ('left', 'right'), strict=True):
      if len(names) != len(patterns):
        raise VariableMapError(
          f'{self}: {len(names)} variables on the {side}, but {len(patterns)} patterns in the '
          f'layout {self.layout!r}: one pattern for each, with commas between them'
        )
    for mine, its, where in ((one, other, 'left'), (other, one, 'right')):
      alone = next((block for block in mine if block not in its), None)
      if alone is not None:
        raise VariableMapError(
          f'{self}: the {where} side of {self.layout!r} has the part {_text(alone)!r}, which the '
          'other side does not have: both sides must have the same elements'
        )
    named = axis_names(found[0])
    for name in (*dict(self.sizes), *dict(self.added)):
      if name not in named:
        raise VariableMapError(
          f'{self}: {name} is not an axis of the layout {self.layout!r}, which has '
          f'{", ".join(named)}'
        )
    return found

  def to_tf2(self, values: Sequence[np.ndarray], constants: bool = True) -> list[np.ndarray]:
    """Returns the port's arrays of TF1's, in order.

    Args:
      values: in the order of `tf1`.
      constants: whether what is added is added: not to a gradient.
    """
    return self._moved(values, 0, 1.0 if constants else 0.0)

  def to_tf1(self, values: Sequence[np.ndarray], constants: bool = True) -> list[np.ndarray]:
    """Returns TF1's arrays of the port's; the inverse of `to_tf2`."""
    return self._moved(values, 1, -1.0 if constants else 0.0)

  def _moved(self, values: Sequence[np.ndarray], side: int, sign: float) -> list[np.ndarray]:
    names = (self.tf1, self.tf2)[side]
    if len(values) != len(names):
      raise VariableMapError(f'{self}: {len(names)} arrays are needed, got {len(values)}')
    if self.patterns is None:
      return list(values)
    shapes = tuple(np.shape(value) for value in values)
    sizes = self._sizes(*((shapes, None) if side == 0 else (None, shapes)))
    parts: dict[Block, np.ndarray] = {}
    for pattern, value in zip(self.patterns[side], values, strict=True):
      parts.update(pattern.divide(np.asarray(value), sizes))
    if sign:
      parts = {block: self._shifted(block, part, sign) for block, part in parts.items()}
    return [pattern.join(parts, sizes) for pattern in self.patterns[1 - side]]

  def _shifted(self, block: Block, part: np.ndarray, sign: float) -> np.ndarray:
    shift = sum(amount for axis, amount in self.added if axis in block)
    return (part + np.asarray(sign * shift, part.dtype)).astype(part.dtype) if shift else part

  def _sizes(
    self, tf1: Sequence[tuple[int, ...]] | None, tf2: Sequence[tuple[int, ...]] | None
  ) -> dict[str, int]:
    assert self.patterns is not None
    ones, others = self.patterns
    shapes: list[tuple[Pattern, tuple[int, ...] | None]] = []
    for patterns, known in ((ones, tf1), (others, tf2)):
      shapes += zip(patterns, [None] * len(patterns) if known is None else known, strict=True)
    try:
      found = solved_sizes(shapes, dict(self.sizes))
    except PatternError as error:
      raise VariableMapError(f'{self}: {error}') from error
    lacking = [name for name in axis_names(ones) if name not in found]
    if lacking:
      raise VariableMapError(
        f'{self}: the shapes do not tell how long the axis {lacking[0]} is; add its size '
        f'(sizes {lacking[0]}=...)'
      )
    return found

  def bound(self, tf1: Sequence[tuple[int, ...]], tf2: Sequence[tuple[int, ...]]) -> 'MapEntry':
    """Returns the entry with all sizes, for variables of these shapes.

    Raises:
      VariableMapError: the shapes do not fit.
    """
    if self.patterns is None:
      if tf1[0] == tf2[0]:
        return self
      one, other = ([size for size in shape if size != 1] for shape in (tf1[0], tf2[0]))
      if one != other:
        raise VariableMapError(
          f'{self}: the shapes are {tf1[0]} and {tf2[0]}; add a layout that describes the order of '
          'the elements'
        )
      ones, others = (_with_ones(shape) for shape in (tf1[0], tf2[0]))
      return dataclasses.replace(self, layout=f'{ones} -> {others}')
    sizes = self._sizes(tf1, tf2)
    return dataclasses.replace(self, sizes=tuple(sizes.items()))


def _with_ones(shape: Sequence[int]) -> Pattern:
  """Returns a pattern that names the axes that are longer than 1."""
  names = iter('abcdefghijklmnopqrstuvwxyz')
  text = ' '.join('1' if size == 1 else next(names) for size in shape)
  return parse_patterns(text or '[]')[0]


def _parts(patterns: Iterable[Pattern]) -> list[Block]:
  found: list[Block] = []
  for pattern in patterns:
    for block in pattern.blocks():
      if block in found:
        raise PatternError(
          f'the part {_text(block)!r} occurs twice; give the axes of one of them names of their own'
        )
      found.append(block)
  return found


def _text(block: Block) -> str:
  return ' '.join(sorted(block)) or '1'
