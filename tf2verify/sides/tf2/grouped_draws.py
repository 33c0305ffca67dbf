"""How the elements of several of the port's variables are drawn that one of TF1's holds."""

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

from tf2verify.records.observation import TensorRecord
from tf2verify.relation.layouts import Layouts
from tf2verify.sides.graphs.initial_draws import InitialDraw
from tf2verify.sides.tf2.initial_draws import drawn_initial_value
from tf2verify.sides.tf2.port import Port
from tf2verify.sides.tf2.redrawn import Redrawn


def drawn_elements(
  layouts: Layouts, port: Port, shown: str, redrawn: Redrawn
) -> tuple[InitialDraw, ...]:
  """Returns how the elements are drawn that are shown under a name; see `with_elements_of`."""
  own = layouts.own_names(shown)
  draws = {name: drawn_initial_value(port, name, redrawn) for name in own}
  return with_elements_of(layouts, shown, draws, port.own_initial_values(own))


def with_elements_of(
  layouts: Layouts, shown: str, draws: Mapping[str, InitialDraw], values: Mapping[str, np.ndarray]
) -> tuple[InitialDraw, ...]:
  """Returns how what is shown under a name is drawn.

  Where every element of a variable is known to be drawn from one distribution, that holds for the
  elements that are shown too. Any other variable may draw some of its elements from one and some
  from another, as an initializer of all gates of a cell does: of these, what is shown is drawn as
  a whole.

  Args:
    layouts: of the port's variables.
    shown: the name.
    draws: of the variables that are shown under it, by their own names.
    values: that they start with, likewise.
  """
  own = list(draws)
  if own == [shown]:
    return tuple(draws.values())
  named = {name: dataclasses.replace(draw, of=name) for name, draw in draws.items()}
  alike = [draw for draw in named.values() if draw.distribution is not None]
  others = [draw for draw in named.values() if draw.distribution is None]
  if not any(draw.op_types for draw in others):
    return tuple(named.values())

  def repeat(times: int) -> list[np.ndarray]:
    # Each variable has random numbers of its own: those of a repetition that no other has.
    parts = [
      _repeated(draws[name], values[name], times, (k, len(own))) for k, name in enumerate(own)
    ]
    found = []
    for together in zip(*parts, strict=False):
      if any(part.shape != values[name].shape for name, part in zip(own, together, strict=True)):
        return []  # of a large variable a part is known
      records = [TensorRecord(name, part) for name, part in zip(own, together, strict=True)]
      found += [
        r.value for r in layouts.grouped(records) if r.name == shown and r.value is not None
      ]
    return found

  op_types = tuple(kind for draw in others for kind in draw.op_types)
  together = ' and '.join(draw.of for draw in others)
  return (*alike, InitialDraw(op_types, (None,) * len(op_types), None, repeat, together))


def _repeated(
  draw: InitialDraw, value: np.ndarray, times: int, place: tuple[int, int]
) -> Sequence[np.ndarray]:
  """Returns values of a variable, every n-th of more from the k-th on, for the place k of n."""
  if draw.repeat is None:
    return [value] * times
  first, step = place
  return draw.repeat(times * step)[first::step]
