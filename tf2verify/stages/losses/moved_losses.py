"""Whether losses differ by a part that the port adds within its call, and by nothing else."""

import dataclasses

import numpy as np

from tf2verify.numerics.arrays import compare_arrays, total
from tf2verify.records.observation import SourceLine
from tf2verify.records.tensor_key import TensorKey
from tf2verify.relation.proof.differences.stopped_gradients import lines_of_stops
from tf2verify.sides.graphs.run import GraphRun
from tf2verify.sides.losses import loss_function
from tf2verify.stages.comparison.comparing import Comparison
from tf2verify.stages.losses.gradients_in_model import Gradients, losses_and_outputs, of_both
from tf2verify.stages.losses.losses_in_model import InModel
from tf2verify.stages.losses.results import comparable, gradient_tolerance, loss_tolerance
from tf2verify.stages.stage import CaseUnderTest

GRADIENT_OF_TOTAL = 'gradient of the total loss in the model'
# What differs of a loss is a part that has moved where so much less of it is left in the total.
_MOVED = 10.0
# How far gradients of totals are apart that are the same but for rounding: of the gradient of the
# loss by the same variable, of that by any variable, and of that of the total.
_SAME, _OF_GREATEST, _ROUNDING = 1e-3, 1e-5, 1e-6
# A graph gives other totals than were observed where its random numbers are others.
_REPEATED = 1e-4
_SHOWN = 3


@dataclasses.dataclass(frozen=True, eq=False)
class _Pair:
  """The gradients of both sides by a pair of variables: of their losses, and of the totals."""

  names: tuple[str, str]
  losses: tuple[np.ndarray, np.ndarray]
  totals: tuple[np.ndarray, np.ndarray]


@dataclasses.dataclass(frozen=True, eq=False)
class MovedPart:
  """A part of tf1's loss that the port adds within its call.

  Attributes:
    graded: whether gradients by the variables could be formed.
    apart: pairs of variables by which the gradients of the total losses differ.
    stops: the lines at which each side stops a gradient.
  """

  graded: bool
  apart: tuple[_Pair, ...] = ()
  stops: tuple[tuple[SourceLine, ...], tuple[SourceLine, ...]] = ((), ())

  @property
  def explains_all(self) -> bool:
    """Whether nothing but the moved part differs, as far as that can be told."""
    return not self.apart

  def compare(self, case: CaseUnderTest, model: InModel, comparison: Comparison) -> None:
    """Adds the gradients of the total losses that differ."""
    for pair in self.apart:
      key = TensorKey(GRADIENT_OF_TOTAL, pair.names[0], model.tf1.run, pair.names[1])
      allowed = gradient_tolerance(case.gradient_tolerance, pair.totals[0])
      comparison.tensors(
        key, *pair.totals, allowed, lambda d: dataclasses.replace(d, hint=self.cause())
      )

  def cause(self) -> str:
    """Returns what is known of why gradients differ."""
    shown = [
      f'{side} stops gradients at {", ".join(map(str, lines[:_SHOWN])) if lines else "no place"}'
      for side, lines in zip(('tf1', 'the port'), self.stops, strict=True)
    ]
    stops = f': {"; ".join(shown)}' if any(self.stops) else ''
    return (
      'the port adds a part of the loss of tf1 within its call, and the total losses agree, but '
      f'their gradients do not{stops}'
    )


def moved_part(case: CaseUnderTest, model: InModel) -> MovedPart | None:
  """Returns the part of tf1's loss that the port adds within its call; None where none has moved.

  Nothing has moved where the losses have the same values and differ in gradients as much as the
  totals do: what the port adds in its call is then in tf1's total as well, as weight decay is.

  Args:
    case: the case.
    model: both sides' losses within the model, which differ.
  """
  kept = model.tf2.regularization_total
  if kept is None or not np.any(kept) or model.tf1.parts or model.tf2.parts:
    return None
  totals = comparable(model.tf1.total_loss, model.tf2.total_loss)
  tolerance = loss_tolerance(case.tolerance).for_dtype(totals[0].dtype)
  if not np.isfinite(totals[0]).all() or compare_arrays(*totals, tolerance).aspect is not None:
    return None
  least = float(np.finfo(totals[0].dtype).eps) * abs(total(totals[0]))
  apart = max(least, abs(total(totals[0]) - total(totals[1])))
  gap = abs(total(model.tf1.loss) - total(model.tf2.loss))
  has_moved = bool(gap > _MOVED * apart)
  stops: list[tuple[SourceLine, ...]] = []
  found = _pairs(case, model, stops)
  if found is None:
    same = comparable(model.tf1.loss, model.tf2.loss)
    allowed = loss_tolerance(case.tolerance).for_dtype(same[0].dtype)
    differs = compare_arrays(*same, allowed).aspect is not None
    return MovedPart(graded=False) if has_moved and differs else None
  if not _has_moved(case, model, found, has_moved):
    return None
  return MovedPart(True, tuple(_apart(found)), (stops[0], stops[1]))


def _has_moved(case: CaseUnderTest, model: InModel, found: list[_Pair], by_value: bool) -> bool:
  """Returns whether the losses differ by what the totals do not, in value or in gradient."""
  losses = comparable(model.tf1.loss, model.tf2.loss)
  allowed = loss_tolerance(case.tolerance).for_dtype(losses[0].dtype)
  if compare_arrays(*losses, allowed).aspect is not None:
    return by_value
  # A small part beside a large loss changes its gradient alone by what can be seen.
  of_losses = np.sqrt(sum(_distance(pair.losses) ** 2 for pair in found))
  of_totals = np.sqrt(sum(_distance(pair.totals) ** 2 for pair in found))
  return bool(by_value and of_losses > 0.0 and of_losses >= _MOVED * of_totals)


def _pairs(
  case: CaseUnderTest, model: InModel, stops: list[tuple[SourceLine, ...]]
) -> list[_Pair] | None:
  """Returns the gradients by all pairs of variables; None where they cannot be formed."""

  def form(run: GraphRun, which: int) -> Gradients | None:
    ends, _ = losses_and_outputs(run)
    if ends is None:
      return None
    observed = model.tf1 if run.op_graph.side == model.tf1.side else model.tf2
    repeated = run.fetch([ends[1]])[0]
    if not np.isclose(total(repeated), total(observed.total_loss), _REPEATED):
      return None
    stops.append(lines_of_stops(run.op_graph, loss_function.target_in_model(loss_function.TOTAL)))
    found = run.gradients((ends[which],), ())
    return None if found is None else found[0]

  totals = of_both(case, model.runs, lambda run: form(run, 1))
  losses = None if totals is None else of_both(case, model.runs, lambda run: form(run, 0))
  if totals is None or losses is None:
    return None
  trainable = {v.name for v in case.tf1.inventory().variables if v.trainable}
  pairs = []
  for names in case.alignment().pairs:
    known = [
      side.get(name) for both in (losses, totals) for side, name in zip(both, names, strict=True)
    ]
    shape = next((one.shape for one in known if one is not None), None)
    if names[0] not in trainable - case.rightly_frozen or shape is None:
      continue
    arrays = [np.zeros(shape, np.float32) if one is None else one for one in known]
    if any(one.shape != shape or not np.isfinite(one).all() for one in arrays):
      return None
    pairs.append(_Pair(names, (arrays[0], arrays[1]), (arrays[2], arrays[3])))
  return pairs


def _apart(found: list[_Pair]) -> list[_Pair]:
  """Returns the pairs by which the gradients of the totals are not the same."""
  greatest = max((_size(one) for pair in found for one in pair.losses), default=0.0)
  return [
    pair
    for pair in found
    if _distance(pair.totals)
    > _SAME * max(map(_size, pair.losses))
    + _ROUNDING * max(map(_size, pair.totals))
    + _OF_GREATEST * greatest
  ]


def _distance(pair: tuple[np.ndarray, np.ndarray]) -> float:
  return float(np.linalg.norm(pair[0].astype(np.float64) - pair[1]))


def _size(value: np.ndarray) -> float:
  return float(np.linalg.norm(value.astype(np.float64)))
