"""How a port draws its initial values."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from tf2verify.errors import UserCodeError
from tf2verify.numerics.distributions import ValueRange, distribution_behind, points
from tf2verify.reference.variables import variable_name
from tf2verify.sides import side
from tf2verify.sides.graphs.initial_draws import CODE, InitialDraw, TracedValue, family_of
from tf2verify.sides.tf2.port import Port, array_of
from tf2verify.sides.tf2.redrawn import Redrawn
from tf2verify.sides.user_code import user_code


def drawn_initial_value(port: Port, variable: str, redrawn: Redrawn) -> InitialDraw:
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
