"""Values given to the variables of a session."""

from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple

import numpy as np

from .arrays import Array
from .perturbation import Perturber
from .sequences import pairs, size_of
from .sessions import fetch
from .variables import GraphVariable

_PORTION = 256 * 2**20  # bytes of variables that are fed at once


def _portions(variables: Sequence[GraphVariable]) -> Iterator[List[GraphVariable]]:
  """Splits variables into portions, to bound memory."""
  portion: List[GraphVariable] = []
  size = 0
  for variable in variables:
    portion.append(variable)
    size += size_of(n or 1 for n in variable.shape) * max(variable.dtype.size, 1)
    if size > _PORTION:
      yield portion
      portion, size = [], 0
  if portion:
    yield portion


def write(session: Any, values: Sequence[Tuple[GraphVariable, Array]]) -> None:
  """Initializes variables with values of their own, in one run as far as that is possible."""
  together = [(variable, value) for variable, value in values if not variable.shares_value]
  feeds = {variable.value: value for variable, value in together}
  fetch(session, [variable.initializer for variable, _ in together], feeds)
  for variable, value in values:
    if variable.shares_value:
      fetch(session, [variable.initializer], {variable.value: value})


# The values of variables by name; None stands for a variable's own initial value.
Values = Dict[str, Optional[Array]]


def assign(
  session: Any,
  variables: Sequence[GraphVariable],
  values: Values,
  perturber: Optional[Perturber] = None,
) -> None:
  """Gives every variable its value, moved if there is a perturber (but for a metric's counters)."""

  def moved(variable: GraphVariable, value: Array) -> Array:
    still = perturber is None or variable.local
    return value if still or perturber is None else perturber.variable(variable.name, value)

  given = [variable for variable in variables if values[variable.name] is not None]
  for portion in _portions(given):
    taken = [(variable, np.asarray(values[variable.name])) for variable in portion]
    write(session, [(variable, moved(variable, value)) for variable, value in taken])
  others = [variable for variable in variables if values[variable.name] is None]
  fetch(session, [variable.initializer for variable in others])
  if perturber is not None:
    initial = fetch(session, [variable.read for variable in others])
    both = [(v, value, moved(v, np.asarray(value))) for v, value in pairs(others, initial)]
    write(session, [(variable, new) for variable, value, new in both if new is not value])
