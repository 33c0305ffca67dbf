"""Initial values of a recording, those that it holds in part drawn again."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from tf2verify.records.sampled import SampledArray

Redraw = Callable[[Sequence[str]], Mapping[str, np.ndarray]]


class RedrawnFill:
  """Initial values of which large ones are stored in part: those are drawn again, if asked for."""

  def __init__(
    self, description: str, values: Mapping[str, np.ndarray | None], redraw: Redraw
  ) -> None:
    """Takes the values, whole and sampled.

    Args:
      description: for reports.
      values: by variable.
      redraw: returns the initial values of variables by running their initializers.
    """
    self.description = description
    self._values = values
    self._redraw = redraw
    self._drawn: dict[str, np.ndarray] = {}

  def __call__(self, name: str, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray | None:
    """Returns the value of a variable, by tf1 name."""
    value = self._values.get(name)
    if not isinstance(value, SampledArray):
      return value
    if not self._drawn:
      sampled = [key for key, found in self._values.items() if isinstance(found, SampledArray)]
      self._drawn.update(self._redraw(sampled))
    return self._drawn.get(name)
