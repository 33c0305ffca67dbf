"""Regularization that only one side keeps as such: what counts is the total loss."""

import dataclasses

import numpy as np

from tf2verify.errors import Tf2VerifyError
from tf2verify.numerics.arrays import compare_arrays, total
from tf2verify.records.training import LossObservation
from tf2verify.reference import inputs as case_inputs
from tf2verify.sides.fill import Fill
from tf2verify.sides.losses import loss_function
from tf2verify.sides.side import RunSpec
from tf2verify.stages.comparison.comparing import Comparison
from tf2verify.stages.stage import CaseUnderTest

REGULARIZATION = 'regularization loss'
# With one of them, what is minimized is declared; without any, the sides may train anything.
_HOOKS = ('tf1_loss', 'tf2_loss', 'tf1_total_loss', 'tf2_total_loss')
_REMEMBERED = 'regularization in total'
# A loss far greater than its regularization hides it; one of larger weights less so.
_FACTORS = (1.0, 32.0, 1024.0)
# Of the greater loss: the rounding of a sum in float32, and what is well above it.
_ROUNDING = 8 * 2.0**-24
_WELL_ABOVE = 128.0
_RTOL = 1e-5
# The stage `loss` allows more than outputs have.
_TIMES_RTOL = 10.0


def settle(case: CaseUnderTest, comparison: Comparison, fill: Fill | None = None) -> None:
  """Takes differences of regularization losses back where the total losses hold them.

  TF1 may add its weight decay by hand to its loss, and the port have a
  `kernel_regularizer`, or the reverse. Where both sides declare a loss, the stage `loss`
  compares the totals; here it is only said that it does.

  Args:
    case: whose differences.
    comparison: holds them.
    fill: gives the variables the values at which the losses are computed; None to compute
      none: what is known of earlier runs counts.
  """
  if not any(known.quantity == REGULARIZATION for known in comparison.differences):
    return
  if _REMEMBERED not in case.remembered:
    if fill is None:
      return
    others = any(known.quantity != REGULARIZATION for known in comparison.differences)
    case.remembered[_REMEMBERED] = _said(case, fill, others)
  said = case.remembered[_REMEMBERED]
  if said:
    comparison.withdraw(lambda known: known.quantity == REGULARIZATION)
    if said not in comparison.blind_spots:
      comparison.blind_spots.append(said)


def _said(case: CaseUnderTest, fill: Fill, fails_anyway: bool) -> str:
  """Returns what to say in place of the differences; '' where they stand.

  Args:
    case: whose differences.
    fill: gives the variables the values at which the losses are computed.
    fails_anyway: whether the stage has other differences.
  """
  declares = case.declaration.declares
  if not any(declares(hook) for hook in _HOOKS):
    return ''
  later = declares('tf1_loss') and declares('tf2_loss')
  for factor in _FACTORS:
    try:
      added = _Added(*_losses(case, _Enlarged(fill, factor) if factor > 1.0 else fill))
    except Tf2VerifyError:  # the stage `loss` says what is wrong
      return ''
    if added.agrees():
      return (
        'regularization is compared as part of the total loss: the sides keep it in different '
        f'places, and add the same to their losses ({added.greatest:.6g} in training, '
        f'{fill.description})'
      )
    fails = fails_anyway or _fails_later(case, added)
    if later and factor == 1.0 and added.by_hand() and fails:
      return (
        'regularization is compared as part of the total loss, by the stage loss: the sides have '
        'it in different places, and one of them adds a term explicitly'
      )
    if added.is_telling():
      return ''
  return ''


class _Enlarged:
  """The values of another fill, multiplied."""

  def __init__(self, fill: Fill, factor: float) -> None:
    self._fill = fill
    self._factor = factor
    self.description = f'{fill.description} times {factor:g}'

  def __call__(self, name: str, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray | None:
    """Returns the value of one variable."""
    value = self._fill(name, shape, dtype)
    if value is None or value.dtype.kind != 'f':
      return value
    return np.asarray(value * self._factor, value.dtype)


def _losses(case: CaseUnderTest, fill: Fill) -> tuple[LossObservation, LossObservation]:
  training = True in case.declaration.training_modes
  pairs = case.alignment().pairs
  inputs, _ = case_inputs.varied_inputs(case.inputs)
  tf1 = RunSpec(inputs, training, fill, {tf1: tf1 for tf1, _ in pairs})
  tf2 = dataclasses.replace(tf1, tf1_names={tf2: tf1 for tf1, tf2 in pairs})
  return case.tf1_training.observe_losses(tf1), case.tf2_training.observe_losses(tf2)


@dataclasses.dataclass(frozen=True, eq=False)
class _Added:
  """What each side adds to its loss."""

  tf1: LossObservation  # the reference's losses
  tf2: LossObservation  # the port's, of the same values

  @property
  def greatest(self) -> float:
    """The greatest of what a side adds to its loss, and of what it keeps as regularization."""
    sides = (self.tf1, self.tf2)
    return max(abs(value) for found in sides for value in (_gap(found), _kept(found)))

  def agrees(self) -> bool:
    """Returns whether both sides end in the same, and that could not be by rounding."""
    if not self.is_telling():
      return False
    gaps = _gap(self.tf1), _gap(self.tf2)
    totals = total(self.tf1.total_loss), total(self.tf2.total_loss)
    same_total = abs(totals[0] - totals[1]) <= self._noise() + _RTOL * self._unmatched()
    same_added = abs(gaps[0] - gaps[1]) <= self._noise() + _RTOL * max(map(abs, gaps))
    return same_total or (same_added and any(gaps))

  def is_telling(self) -> bool:
    """Returns whether what is kept on one side only is well above the rounding of the losses."""
    noise = self._noise()
    return bool(np.isfinite(noise)) and self._unmatched() >= _WELL_ABOVE * noise

  def by_hand(self) -> bool:
    """Returns whether the side that keeps less as regularization adds something anyway."""
    less, more = sorted((self.tf1, self.tf2), key=lambda found: abs(_kept(found)))
    allowance = _WELL_ABOVE * self._noise()
    in_its_loss = abs(total(less.loss) - total(more.loss)) > allowance
    return in_its_loss or abs(_gap(less) - _kept(less)) > allowance

  def _unmatched(self) -> float:
    return abs(_kept(self.tf1) - _kept(self.tf2)) or self.greatest

  def _noise(self) -> float:
    sides = (self.tf1, self.tf2)
    losses = [total(value) for found in sides for value in (found.loss, found.total_loss)]
    return _ROUNDING * max(map(abs, losses)) if np.isfinite(losses).all() else float('inf')


def _fails_later(case: CaseUnderTest, added: _Added) -> bool:
  """Returns whether the stage `loss` is sure to fail: outputs agree, and the totals do not."""
  tf1, tf2 = added.tf1, added.tf2
  ones, others = loss_function.leaves_of(tf1.outputs), loss_function.leaves_of(tf2.outputs)
  same_outputs = ones.keys() == others.keys() and all(
    compare_arrays(array, others[path], case.tolerance.for_dtype(array.dtype)).aspect is None
    for path, array in ones.items()
  )
  totals = total(tf1.total_loss), total(tf2.total_loss)
  allowed = case.tolerance.for_dtype(tf1.total_loss.dtype)
  limit = allowed.atol + _TIMES_RTOL * allowed.rtol * abs(totals[0])
  return same_outputs and abs(totals[0] - totals[1]) > 2.0 * limit


def _gap(found: LossObservation) -> float:
  return total(found.total_loss) - total(found.loss)


def _kept(found: LossObservation) -> float:
  return 0.0 if found.regularization_total is None else float(found.regularization_total)
