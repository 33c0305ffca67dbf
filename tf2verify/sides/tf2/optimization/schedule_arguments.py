"""Arguments of a port's learning-rate schedule with which it would be that of the reference."""

import math
from collections.abc import Callable, Iterator, Sequence

from tf2verify.errors import UserCodeError
from tf2verify.sides.tf2.optimization.schedules import Number, Schedule

# Of steps of the secant method.
_MOST_STEPS = 12
_FIRST_STEP = 0.1
_MOST_DIGITS = 6
_FACTORS = (2.0, 0.5, 10.0, 0.1, 100.0, 0.01)
_CLOSE = 1e-3
Same = Callable[[Sequence[float], Sequence[float]], Sequence[bool]]


def fitting_arguments(
  schedule: Schedule, counts: Sequence[int], wanted: Sequence[float], same: Same
) -> Iterator[tuple[str, Number, Number]]:
  """Yields arguments of a schedule, with its value and another one with which all rates fit.

  Args:
    schedule: of the port.
    counts: of steps of the port.
    wanted: the rates of the reference at these.
    same: returns where two lists of rates are the same, but for rounding.
  """
  rates = schedule.rates(counts)
  apart = [abs(one - other) for one, other in zip(rates, wanted, strict=True)]
  telling = apart.index(max(apart))
  for name, own in schedule.numbers().items():

    def rate(value: Number, name: str = name) -> float:
      return schedule.with_number(name, value).rates([counts[telling]])[0]

    for value in _candidates(own, rate, wanted, telling):
      try:
        if not math.isclose(rate(value), wanted[telling], rel_tol=_CLOSE, abs_tol=max(apart) / 10):
          continue
        fits = all(same(wanted, schedule.with_number(name, value).rates(counts)))
      except UserCodeError:  # for a value that is none for it
        continue
      if fits:
        yield name, own, value
        break


def _candidates(
  own: Number, rate: Callable[[Number], float], wanted: Sequence[float], telling: int
) -> Iterator[Number]:
  if isinstance(own, bool):
    yield not own
    return
  first, last = wanted[0], wanted[-1]
  found = [0.0, 1.0, own + 1, own - 1, *(own * factor for factor in _FACTORS), first, last]
  found += [last / first] if first else []
  root = _root(rate, float(own), wanted[telling])
  if root is not None and math.isfinite(root):
    found += [float(f'{root:.{digits}g}') for digits in range(1, _MOST_DIGITS + 1)]
  seen: set[Number] = {own}
  for value in found:
    number = type(own)(round(value) if isinstance(own, int) else value)
    if number not in seen:
      seen.add(number)
      yield number


def _root(rate: Callable[[Number], float], start: float, wanted: float) -> float | None:
  """Returns the value for which a rate is the wanted one, by the secant method; None without."""
  one, other = start, start * (1.0 + _FIRST_STEP) or _FIRST_STEP
  try:
    at_one, at_other = rate(one) - wanted, rate(other) - wanted
    for _ in range(_MOST_STEPS):
      if at_one == at_other or not math.isfinite(at_other):
        return None if at_other else other
      one, other, at_one = other, other - at_other * (other - one) / (at_other - at_one), at_other
      at_other = rate(other) - wanted
      if abs(at_other) <= 1e-6 * abs(wanted):
        return other
  except UserCodeError:
    return None
  return None
