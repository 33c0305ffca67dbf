"""How the value of one variable lies on either side."""

import dataclasses
from collections.abc import Iterable, Mapping

import numpy as np

from tf2verify.records.observation import VariableRecord


@dataclasses.dataclass(frozen=True)
class VariableLayout:
  """A pair whose sides hold the same elements in other shapes.

  Shapes that differ in axes of length 1 alone, so that the elements have one order.
  """

  tf1: str  # the variable's name on the tf1 side
  tf2: str  # likewise
  tf1_shape: tuple[int, ...]  # its shape on the tf1 side
  tf2_shape: tuple[int, ...]  # likewise

  def to_tf1(self, value: np.ndarray) -> np.ndarray:
    """Returns a value of the port as tf1 would hold it; any other array as it is."""
    return value.reshape(self.tf1_shape) if value.shape == self.tf2_shape else value

  def to_tf2(self, value: np.ndarray) -> np.ndarray:
    """Returns a value of the reference as the port holds it; any other array as it is."""
    return value.reshape(self.tf2_shape) if value.shape == self.tf1_shape else value


class Layouts:
  """The layouts of a port's variables; what has none lies on both sides alike."""

  def __init__(self, layouts: Iterable[VariableLayout] = ()) -> None:
    """Takes one layout at most for each of the port's variables."""
    self._by_tf2: Mapping[str, VariableLayout] = {layout.tf2: layout for layout in layouts}

  def to_tf1(self, name: str, value: np.ndarray) -> np.ndarray:
    """Returns what a variable of the port, by its tf2 name, is as a value of tf1."""
    layout = self._by_tf2.get(name)
    return value if layout is None else layout.to_tf1(value)

  def to_tf2(self, name: str, value: np.ndarray) -> np.ndarray:
    """Returns what a value of tf1 is for a variable of the port, by its tf2 name."""
    layout = self._by_tf2.get(name)
    return value if layout is None else layout.to_tf2(value)

  def shape_of(self, name: str, shape: tuple[int | None, ...]) -> tuple[int | None, ...]:
    """Returns the shape in tf1 of a variable of the port that has a shape."""
    layout = self._by_tf2.get(name)
    return shape if layout is None else layout.tf1_shape


def without_ones(shape: tuple[int | None, ...]) -> tuple[int | None, ...]:
  """Returns the axes of a shape that are longer than 1, or of unknown length."""
  return tuple(size for size in shape if size != 1)


def layout_of(tf1: VariableRecord, tf2: VariableRecord) -> VariableLayout | None:
  """Returns the layout of a pair; None where it needs none, or where there is none."""
  ones = tuple(size for size in tf1.shape if size is not None)
  others = tuple(size for size in tf2.shape if size is not None)
  known = len(ones) == len(tf1.shape) and len(others) == len(tf2.shape)
  if not known or tf1.dtype != tf2.dtype or ones == others:
    return None
  if without_ones(ones) != without_ones(others):
    return None
  return VariableLayout(tf1.name, tf2.name, ones, others)
