"""How each variable counts in what both sides add to their losses: weight decay, mostly."""

import dataclasses

import numpy as np

from tf2verify.diagnosis.evidence.losses import Penalty, Term
from tf2verify.sides.fill import ScaledFill
from tf2verify.sides.graphs.run import GraphRun
from tf2verify.sides.side import RunSpec
from tf2verify.stages.losses.gradients_in_model import Gradients, losses_and_outputs, of_both
from tf2verify.stages.losses.losses_in_model import InModel
from tf2verify.stages.stage import CaseUnderTest, by_name

_TWICE = 2.0
# Of the greatest element of a gradient: float32 sums it in another order on each side.
_SAME = 1e-4
# A gradient of both loss and total is subtracted, so much of it is rounding.
_ROUNDING = 1e-5


def penalties(case: CaseUnderTest, model: InModel) -> tuple[Penalty, ...]:
  """Returns the variables that count differently; none where that cannot be told.

  What each side adds to its loss is differentiated by all variables at once, while the outputs of
  the model are held: what is left is what reads the variables themselves. The gradient of
  `c * sum(w**2)` is `2 * c * w` in every element, whatever the values are.
  """
  ones, others = (by_name(side.inventory()) for side in (case.tf1, case.tf2))
  here = of_both(case, model.runs, _gradients_of_added)
  if here is None:
    return ()
  differing: list[tuple[str, str, np.ndarray]] = []
  for tf1_name, tf2_name in case.alignment().pairs:
    known = ones.get(tf1_name)
    value = None if known is None else model.runs[0].value_for(known)
    if value is None or known is None or not known.trainable:
      continue
    pair = _pair(here, (tf1_name, tf2_name), value)
    if pair[0].shape != pair[1].shape:
      return ()
    if np.abs(pair[0] - pair[1]).max(initial=0.0) > _SAME * np.abs(pair).max(initial=0.0):
      differing.append((tf1_name, tf2_name, value))
  if not differing:
    return ()
  # At one point, a norm that is no square has a gradient of that kind, too.
  twice_as_large = _doubled(model.runs[0]), _doubled(model.runs[1])
  doubled = of_both(case, twice_as_large, _gradients_of_added)
  if doubled is None:
    return ()
  found = []
  for tf1_name, tf2_name, value in differing:
    tf1, tf2 = _pair(here, (tf1_name, tf2_name), value)
    twice = _pair(doubled, (tf1_name, tf2_name), value)
    source = others[tf2_name].source if tf2_name in others else None
    terms = _term(tf1, twice[0], value), _term(tf2, twice[1], value)
    found.append(Penalty(tf1_name, terms[0], terms[1], source))
  return tuple(found)


def _doubled(run: RunSpec) -> RunSpec:
  return dataclasses.replace(run, fill=ScaledFill(run.fill, _TWICE))


def _pair(
  found: tuple[Gradients, Gradients], names: tuple[str, str], value: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
  """Returns the gradients of both sides by a pair of variables, zeros where there are none."""
  none = np.zeros(value.shape)
  return found[0].get(names[0], none), found[1].get(names[1], none)


def _gradients_of_added(run: GraphRun) -> Gradients | None:
  """Returns the gradients of the total loss without those of the loss, by variable."""
  ends, held = losses_and_outputs(run)
  if ends is None:
    return None
  loss, total = ends
  found = run.gradients((total, loss), held)
  if found is None:
    return None
  totals, losses = found
  added = {}
  for name in totals.keys() | losses.keys():
    known = totals.get(name), losses.get(name)
    shape = next(one.shape for one in known if one is not None)
    ones, others = (np.zeros(shape) if one is None else one.astype(np.float64) for one in known)
    if not np.isfinite(ones).all() or not np.isfinite(others).all():
      return None
    rounding = _ROUNDING * min(np.abs(ones).max(initial=0.0), np.abs(others).max(initial=0.0))
    rest = ones - others
    added[name] = rest if np.abs(rest).max(initial=0.0) > rounding else np.zeros(shape)
  return added


def _term(gradient: np.ndarray, doubled: np.ndarray, value: np.ndarray) -> Term:
  """Returns what a side adds for a variable.

  Args:
    gradient: of what it adds, by the variable.
    doubled: the same where all variables are twice as large.
    value: of the variable.
  """
  of_values = value.astype(np.float64)
  growth = float(np.sum(gradient * of_values))
  if not gradient.any():
    return Term(0.0)
  bases = {
    'the square': (2.0 * of_values, _TWICE),
    'the absolute value': (np.sign(of_values), 1.0),
  }
  for what, (basis, times) in bases.items():
    factor = float(np.sum(gradient * basis) / max(np.sum(basis * basis), np.finfo(float).tiny))
    if _is_same(gradient, factor * basis) and _is_same(doubled, times * factor * basis):
      return Term(growth, what, factor)
  return Term(growth)


def _is_same(one: np.ndarray, other: np.ndarray) -> bool:
  return bool(np.abs(one - other).max() <= _SAME * np.abs(one).max())
