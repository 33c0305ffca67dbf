"""The same elements in another shape, axes of length 1, flattened or transposed, or negated."""

import dataclasses
import itertools
import math
from collections.abc import Iterable
from typing import TypeVar

import numpy as np

from tf2verify.numerics.agreement import Agreement, agreement

# Orders of more axes are not tried.
_Size = TypeVar('_Size', int, int | None)
_MOST_AXES = 5
# Elements that tell an order.
_FEWEST = 4


@dataclasses.dataclass(frozen=True)
class Relayout:
  """How one side holds the elements of the other side's tensor."""

  tf1_shape: tuple[int, ...]  # the shape on the tf1 side
  # Of the axes longer than 1, on the tf2 side; None where they keep their order.
  order: tuple[int, ...] | None
  tf2_shape: tuple[int, ...]  # the shape on the tf2 side
  # Whether each of them is multiplied by -1: a log-likelihood where tf1 has its negative.
  negated: bool = False
  # Where each element of tf2 is in tf1, both flat, in another order than one of axes: of gates.
  elements: np.ndarray | None = dataclasses.field(default=None, compare=False)

  def to_tf2(self, value: np.ndarray) -> np.ndarray:
    """Returns a value of tf1 as the port holds it; one of another shape as it is."""
    if value.shape != self.tf1_shape:
      return value
    if self.order is not None:
      value = value.reshape(without_ones(self.tf1_shape)).transpose(self.order)
    if self.elements is not None:
      value = value.reshape(-1)[self.elements]
    return self._signed(value.reshape(self.tf2_shape))

  def steps_to_tf2(self) -> list[tuple[str, tuple[int, ...]]]:
    """Returns the same as operations: `Reshape` with a shape, `Transpose` with an order, `Neg`.

    A shape has -1 for its first axis, so that it holds for another batch. `GatherV2` has positions
    along the first axis.
    """
    sign: list[tuple[str, tuple[int, ...]]] = [('Neg', ())] if self.negated else []
    if self.elements is not None:
      taken = ('GatherV2', tuple(self.elements.tolist()))
      return [*sign, ('Reshape', (-1,)), taken, ('Reshape', self.tf2_shape)]
    if self.order is None:
      same = self.negated and self.tf1_shape == self.tf2_shape
      return sign if same else [*sign, ('Reshape', _open(self.tf2_shape))]
    flat = _open(without_ones(self.tf1_shape))
    shaped = [('Reshape', flat), ('Transpose', self.order), ('Reshape', _open(self.tf2_shape))]
    return [*sign, *shaped]

  def negative(self) -> 'Relayout':
    """Returns the same with the other sign."""
    return dataclasses.replace(self, negated=not self.negated)

  def inverse(self) -> 'Relayout':
    """Returns how tf1 holds the elements of the port's tensor."""
    order = self.order
    if order is not None:
      order = tuple(int(axis) for axis in np.argsort(order))
    elements = None if self.elements is None else np.argsort(self.elements)
    return Relayout(self.tf2_shape, order, self.tf1_shape, self.negated, elements)

  def to_tf1(self, value: np.ndarray) -> np.ndarray:
    """Returns a value of the port as tf1 holds it; one of another shape as it is."""
    if value.shape != self.tf2_shape:
      return value
    if self.order is not None:
      back = tuple(int(axis) for axis in np.argsort(self.order))
      value = value.reshape(without_ones(self.tf2_shape)).transpose(back)
    if self.elements is not None:
      value = value.reshape(-1)[np.argsort(self.elements)]
    return self._signed(value.reshape(self.tf1_shape))

  def _signed(self, value: np.ndarray) -> np.ndarray:
    return np.negative(value) if self.negated else value


def relayout(tf1: np.ndarray, tf2: np.ndarray) -> Relayout | None:
  """Returns how tf2 holds the elements of tf1; None for one shape, or where it does not.

  Shapes that differ by axes of length 1, or by axes that are one on the other side, are
  taken for one order of elements, whatever the values; any other order is found by the
  values, and only where these agree.
  """
  if tf1.shape == tf2.shape or tf1.size != tf2.size or tf1.dtype != tf2.dtype or not tf1.size:
    return None
  flat = Relayout(tf1.shape, None, tf2.shape)
  axes = without_ones(tf1.shape)
  if _are_merged(axes, without_ones(tf2.shape)) or alike(flat.to_tf2(tf1), tf2):
    return flat
  if sorted(axes) != sorted(without_ones(tf2.shape)) or len(axes) > _MOST_AXES:
    return None
  orders = (
    Relayout(tf1.shape, order, tf2.shape)
    for order in itertools.permutations(range(len(axes)))
    if tuple(axes[axis] for axis in order) == without_ones(tf2.shape)
  )
  return next((one for one in orders if alike(one.to_tf2(tf1), tf2)), None)


def relayout_of_shapes(
  tf1: tuple[int | None, ...] | None, tf2: tuple[int | None, ...] | None
) -> Relayout | None:
  """Returns how tf2 holds what tf1 has, by their shapes alone; None for one shape.

  Raises:
    ValueError: the shapes do not say it.
  """
  if tf1 == tf2 or tf1 is None or tf2 is None:
    return None
  ones, others = [n for n in tf1 if n is not None], [n for n in tf2 if n is not None]
  if len(ones) < len(tf1) or len(others) < len(tf2):
    raise ValueError('a size is not known')
  found = Relayout(tuple(ones), None, tuple(others))
  same = math.prod(ones) == math.prod(others)
  if not same or not _are_merged(without_ones(found.tf1_shape), without_ones(found.tf2_shape)):
    raise ValueError('they may hold their elements in different orders')
  return found


def agreement_as_held(tf1: np.ndarray, tf2: np.ndarray) -> tuple[Agreement, Relayout | None]:
  """Compares two arrays that may hold the same elements in other shapes.

  Returns:
    The agreement, element by element, and how tf2 holds the elements of tf1; None for
    the latter where the shapes are the same, or no such way is found.
  """
  layout = relayout(tf1, tf2)
  return agreement(tf1 if layout is None else layout.to_tf2(tf1), tf2), layout


def agreement_but_for_sign(tf1: np.ndarray, tf2: np.ndarray) -> tuple[Agreement, Relayout | None]:
  """Returns the same, also where the port holds each element with the other sign."""
  found, layout = agreement_as_held(tf1, tf2)
  if found.is_rounding or tf1.dtype.kind != 'f' or tf1.dtype != tf2.dtype or not tf1.any():
    return found, layout
  if layout is None and tf1.shape != tf2.shape:
    return found, layout
  turned = (layout or Relayout(tf1.shape, None, tf2.shape)).negative()
  held = turned.to_tf2(tf1)
  return (agreement(held, tf2), turned) if alike(held, tf2) else (found, layout)


def are_reordered(tf1: np.ndarray, tf2: np.ndarray) -> bool:
  """Returns whether two arrays of one shape have the same elements in another order."""
  same_kind = tf1.shape == tf2.shape and tf1.dtype == tf2.dtype and tf1.dtype.kind == 'f'
  if not same_kind or tf1.size < _FEWEST or alike(tf1, tf2):
    return False
  return not is_constant(tf1) and alike(np.sort(tf1, axis=None), np.sort(tf2, axis=None))


def alike(tf1: np.ndarray, tf2: np.ndarray) -> bool:
  """Returns whether arrays of one shape agree up to rounding in each of their elements."""
  found = agreement(tf1, tf2)
  return found.is_rounding and not found.is_doubtful


def alike_as_held(tf1: np.ndarray, tf2: np.ndarray) -> bool:
  """Returns the same of arrays that may hold their elements in other shapes."""
  found, _ = agreement_as_held(tf1, tf2)
  return found.is_rounding and not found.is_doubtful


def without_ones(shape: Iterable[_Size]) -> tuple[_Size, ...]:
  """Returns the axes of a shape that are longer than 1, or of unknown length."""
  return tuple(size for size in shape if size != 1)


def _open(shape: tuple[int, ...]) -> tuple[int, ...]:
  return (-1, *shape[1:]) if shape else ()


def _are_merged(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
  """Returns whether the axes of one are those of the other, some of them taken together."""
  ends, others = (set(itertools.accumulate(axes, int.__mul__)) for axes in (one, other))
  return ends <= others or others <= ends


def is_constant(array: np.ndarray) -> bool:
  """Returns whether all elements are the same; so of less than two, and of NaN."""
  if array.size < 2:
    return True
  first = array.flat[0]
  if array.dtype.kind == 'f' and math.isnan(first):
    return bool(np.isnan(array).all())
  return bool((array == first).all())
