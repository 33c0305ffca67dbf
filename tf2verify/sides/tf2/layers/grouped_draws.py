"""How a port draws initial values: of a variable, and of the elements of several of its own."""

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tf2verify.errors import UserCodeError
from tf2verify.numerics.distributions import ValueRange, distribution_behind, points
from tf2verify.records.observation import TensorRecord
from tf2verify.reference.variables import variable_name
from tf2verify.relation.layouts.variable_layouts import Layouts
from tf2verify.sides import side
from tf2verify.sides.graphs.initial_draws import CODE, InitialDraw, TracedValue, family_of
from tf2verify.sides.hooks.user_code import user_code
from tf2verify.sides.tf2.layers.port import Port, array_of
from tf2verify.sides.tf2.layers.redrawn import Redrawn


def drawn_elements(
  layouts: Layouts, port: Port, shown: str, redrawn: Redrawn
) -> tuple[InitialDraw, ...]:
  """Returns how the elements are drawn that are shown under a name; see `with_elements_of`."""
  own = layouts.own_names(shown)
  draws = {name: _drawn_initial_value(port, name, redrawn) for name in own}
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


def _drawn_initial_value(port: Port, variable: str, redrawn: Redrawn) -> InitialDraw:
  """Returns how the initial value of a variable is drawn, by its name.

  What a variable is made with is traced as a graph. Where that is a tensor, it is looked for
  among the numbers that were drawn before, and if it is none of them, layers of other seeds
  show what else it may be.
  """
  created = (c for c in port.recorder.creations if c.variable is not None)
  creation = next((c for c in created if variable_name(c.variable) == variable), None)
  if creation is None:
    return InitialDraw()
  if creation.make_value is not None:
    traced = _traced(creation.make_value, variable)
    if traced is not None:
      return traced
  if creation.initial_value is None:
    return InitialDraw((CODE,), (None,))
  value = array_of(creation.initial_value)
  found = _among_eager_draws(port, value)
  if found is not None:
    return found
  if creation.make_value is not None:
    return InitialDraw((CODE,), (None,))
  return _of_other_seeds(port, variable, value, redrawn)


def _traced(make_value: Callable[[], Any], variable: str) -> InitialDraw | None:
  """Returns how a function draws; None where it does not run on symbolic tensors."""
  try:
    with user_code(side.TF2, f'the initializer of {variable}'):
      traced = TracedValue.of(make_value)
    return traced.draw()
  except (UserCodeError, tf.errors.OpError):
    return None


def _among_eager_draws(port: Port, value: np.ndarray) -> InitialDraw | None:
  """Returns the draw that a value is, scaled and shifted; None where it is none."""
  for drawn in port.recorder.eager_draws():
    family = family_of(drawn.op_type)
    if drawn.size != value.size or family is None or value.dtype.kind not in 'fV':
      continue
    extents = drawn.extent, ValueRange.of(value)
    distribution = distribution_behind(family, drawn.points, points(value), extents)
    if distribution is not None:
      return InitialDraw((drawn.op_type,), ((family, drawn.size),), distribution)
  return None


def _of_other_seeds(port: Port, variable: str, value: np.ndarray, redrawn: Redrawn) -> InitialDraw:
  """Returns what layers of other seeds show of a value that is not a function's."""
  just_before = port.recorder.draws_just_before(variable)
  # A seed that the port gives itself makes the same numbers every time.
  fitting = [drawn.op_type for drawn in just_before if drawn.size == value.size]
  if redrawn.repeats(variable, value) is not False:
    return InitialDraw(tuple(fitting), (None,) * len(fitting))
  op_types = tuple(dict.fromkeys(drawn.op_type for drawn in just_before)) or (CODE,)
  repeat = functools.partial(redrawn.values, variable)
  return InitialDraw(op_types, (None,) * len(op_types), None, repeat)
