"""What a report says of training steps besides their differences."""

import dataclasses
import math
from collections.abc import Mapping, Sequence

import numpy as np

from tf2verify.diagnosis.formulas.forms import READ, forms, passable
from tf2verify.diagnosis.formulas.update_rules import Form
from tf2verify.diagnosis.rules.training.losses import added_again
from tf2verify.numerics.error_summary import extent
from tf2verify.numerics.noise import FACTOR
from tf2verify.records.difference import Difference, ErrorSummary
from tf2verify.records.proven import Proven
from tf2verify.records.side_by_side import Curve
from tf2verify.records.table import Table
from tf2verify.records.training import OptimizerRecord, TrainingStep
from tf2verify.records.wording import listed, number_text
from tf2verify.stages.comparison.comparing import Comparison
from tf2verify.stages.training.steps import quantities
from tf2verify.stages.training.steps.quantities import Steps, greatest, step_name
from tf2verify.stages.training.steps.told_losses import Told

# An update of fewer units in the last place of its variable cannot be told from its
# neighbours.
_LEAST_SHARE = 0.1
UNMOVED = (
  'no step moves a variable by more than the tolerance, on either side, so an optimizer with '
  'twice the rate, or none, would also pass: take more steps (training_steps_to_take), a larger '
  'learning rate, or a smaller training_tolerance'
)
# Settings are float32 on either side.
_SETTING = 1e-5
# No square root of squared gradients is changed by less.
_NO_EPSILON = 1e-20


@dataclasses.dataclass(frozen=True)
class IdleUpdates:
  """State that the reference never updates, since its train op leaves UPDATE_OPS out."""

  variables: frozenset[str] = frozenset()  # tf1 names, of those that the port does update
  reason: str = ''  # why nothing can be told of them; '' without any


def idle_updates(steps: Steps) -> IdleUpdates:
  """Returns which differences are the reference's own, not the port's."""
  left_out = steps.tf1.updates_left_out
  if not left_out:
    return IdleUpdates()
  last = len(steps.tf1.steps)
  idle = frozenset(
    pair.variable
    for pair in steps.pairs(last)
    if pair.quantity == quantities.STATE
    and pair.tf1 is not None
    and pair.tf2 is not None
    and not np.any(pair.tf1)
    and np.any(pair.tf2)
  )
  if not idle:
    return IdleUpdates()
  names = listed(sorted(idle))
  return IdleUpdates(
    idle,
    f'the reference never runs {len(left_out)} of its UPDATE_OPS ({listed(list(left_out))}), so '
    f'that {names} stay at their initial values, while the port updates them: the reference '
    'itself is at fault. Run them with each step (tf.control_dependencies, or run_update_ops = '
    'True), or leave them out of the port if the model in production was trained without them',
  )


def blind_spots(steps: Steps, of_later_rates: str) -> list[str]:
  """Returns notes on what could not be looked at.

  Args:
    steps: the steps that were taken.
    of_later_rates: what else is said of the learning rate if one side never tells it, or ''.
  """
  notes = []
  for text, tell, remedy in _TOLD:
    silent = [
      run.side for run in (steps.tf1, steps.tf2) if not any(tell(step) for step in run.steps)
    ]
    if silent:
      where = f'on the {" and ".join(silent)} side{"s" * (len(silent) > 1)}'
      notes.append(f'{text} is not known {where}, so not compared{remedy}')
      notes[-1] += of_later_rates if tell is _has_rate else ''
  notes += _ends_in_nan(steps)
  still = [
    pair.subject
    for pair in steps.pairs(len(steps.tf1.steps))
    if pair.quantity == quantities.UPDATE
    and pair.tf1 is not None
    and 0 < greatest(pair.tf1) * _LEAST_SHARE < pair.extra_atol
  ]
  for kept in sorted(set(steps.doubtful_shadows.values())):
    names = [name for name, its in steps.doubtful_shadows.items() if its == kept]
    notes.append(
      f'the moving averages of {listed(names)} cannot be matched: tf2 keeps {kept}, which may hold '
      'them; declare it with slot_names, or keep a variable of the same shape for each'
    )
  if still:
    notes.append(
      f'{listed(still)}: changed by little more than the rounding of its own value; take more '
      'steps, or a larger learning rate, unless its gradient is zero, as that of a bias before a '
      'batch norm'
    )
  return notes


def settings_apart(steps: Steps, proven: Proven | None) -> list[str]:
  """Returns settings of the optimizers that differ, where neither numbers nor graphs say so.

  Args:
    steps: that agree.
    proven: what is proven of a step.
  """
  if proven is not None and (proven.is_whole or proven.differences):
    return []
  records = [run.optimizers for run in (steps.tf1, steps.tf2)]
  if any(len(side) != 1 or not side[0].rule or side[0].own_update for side in records):
    return []
  one, other = (next(forms(side[0], None)) for side in records)
  if one.rule != other.rule:
    return []
  apart = [
    name
    for name in READ[one.rule]
    if not math.isclose(
      one.setting(name), other.setting(name), rel_tol=_SETTING, abs_tol=_NO_EPSILON
    )
  ]
  if not apart:
    return []
  told = [
    f'{name} is {number_text(one.setting(name))} in tf1 and {number_text(other.setting(name))} in '
    'the port'
    for name in apart
  ]
  return [
    f'the optimizers differ in a way that these steps do not show: {"; ".join(told)}: pass the '
    f'settings of tf1{_replaced(apart, one, records[1][0])}, which matter for smaller gradients, '
    'or for more steps'
  ]


def _replaced(apart: Sequence[str], tf1: Form, port: OptimizerRecord) -> str:
  """Returns what to pass for an epsilon of tf1 that the port's optimizer does not take, or ''."""
  if 'epsilon' not in apart:
    return ''
  wanted = tf1.setting('epsilon')
  passed = passable(port, 'epsilon', wanted)
  if passed == wanted:
    return ''
  return (
    f' ({port.name} replaces an epsilon of {number_text(wanted)} by its default: pass '
    f'{number_text(passed)})'
  )


def _ends_in_nan(steps: Steps) -> list[str]:
  """Returns a note where training is lost on the way: what comes later is compared with nothing."""
  told = [
    (step.number, np.isnan(loss).all())
    for step in steps.tf1.steps
    if (loss := step.loss) is not None
  ]
  lost = [number for number, nan in told if nan]
  if not lost or len(lost) == len(told) or not told[-1][1]:
    return []
  return [
    f'the loss is NaN on both sides from step {lost[0]} on, so nothing of later steps was '
    'compared: declare a smaller learning rate, or other inputs'
  ]


def has_rates(steps: Steps) -> bool:
  """Returns whether both sides tell their learning rates."""
  return all(_has_rate(step) for run in (steps.tf1, steps.tf2) for step in run.steps)


def _has_loss(step: TrainingStep) -> bool:
  return step.loss is not None


def _has_rate(step: TrainingStep) -> bool:
  return step.learning_rate is not None


def _has_gradients(step: TrainingStep) -> bool:
  return bool(step.gradients or step.applied_gradients)


_TOLD = (
  (
    'the learning rate',
    _has_rate,
    ', except through its effect on the updates: optimizers of tf.compat.v1.train and Keras expose '
    'it, '
    'your own train op or optimizer does not, and no hook declares it',
  ),
  ('the loss', _has_loss, ''),
  ('the gradient of a step', _has_gradients, ''),
)


def step_notes(steps: Steps, parted: int, total: int) -> list[str]:
  """Returns notes for a reader of the verdict.

  Args:
    steps: both runs, to the last step that was looked at.
    parted: the first step that differs; 0 without.
    total: the number of steps taken.
  """
  notes = [f'{total} steps: {_names(steps, "tf1")} (tf1), {_names(steps, "tf2")} (tf2)']
  if parted and parted < total:
    more = f'steps {parted + 1} to {total}' if parted + 1 < total else f'step {total}'
    verb = 'continue' if parted + 1 < total else 'continues'
    notes.append(f'{more} {verb} from the difference of step {parted}')
  left_out = steps.tf1.updates_left_out
  if left_out:
    notes.append(
      f'the train op of the reference does not run {len(left_out)} of the UPDATE_OPS: '
      f'{listed(list(left_out))}'
    )
  if steps.tf1.regularized_again is not None:
    notes.append(added_again(steps.tf1.regularized_again))
  if steps.counts and steps.port_count(len(steps.tf2.steps)) is None:
    notes.append('no step count is known on the tf2 side: global_step is not compared')
  if steps.told is Told.UNREGULARIZED:
    notes.append(
      "the port's step returns the loss without the regularization losses, which it differentiates "
      'as tf1 does: its loss was compared without them, at step 1'
    )
  if steps.loss_scale != 1.0:
    larger, times = (
      ('tf1', steps.loss_scale) if steps.loss_scale > 1 else ('the port', 1 / steps.loss_scale)
    )
    notes.append(
      f'{larger} computes its gradients {times:g} times as large and divides them again (a scaled '
      'loss): they were compared at the same scale'
    )
  if not steps.counts and steps.tf1.steps[0].global_step is not None:
    notes.append('the train op of the reference does not count its steps: global_step stays at 0')
  return notes


def _names(steps: Steps, side: str) -> str:
  run = steps.tf1 if side == 'tf1' else steps.tf2
  return ', '.join(optimizer.name for optimizer in run.optimizers) or 'no known optimizer'


def step_table(steps: Steps, differing: Mapping[int, int]) -> Table:
  """Returns losses and learning rates step by step.

  Args:
    steps: both runs.
    differing: number of tensors that differ, by step; empty where none does.
  """
  columns = ['step', 'loss tf1', 'loss tf2', 'learning rate tf1', 'learning rate tf2']
  rows = []
  for one, other in zip(steps.tf1.steps, steps.tf2.steps, strict=True):
    row = [str(one.number), _loss(one), _loss(other), _rate(one), _rate(other)]
    rows.append((*row, str(differing[one.number])) if differing else tuple(row))
  if differing:
    columns.append('tensors that differ')
  return Table('training, step by step', tuple(columns), tuple(rows))


def step_curves(steps: Steps) -> tuple[Curve, ...]:
  """Returns the same numbers as `step_table`; without what neither side tells."""
  numbers = tuple(step.number for step in steps.tf1.steps)
  curves = []
  for quantity, tell in (('loss', _loss_value), ('learning rate', _rate_value)):
    ones, others = (tuple(map(tell, run.steps)) for run in (steps.tf1, steps.tf2))
    if any(value is not None for value in ones + others):
      curves.append(Curve(quantity, numbers, ones, others))
  return tuple(curves)


def _loss_value(step: TrainingStep) -> float | None:
  return None if step.loss is None else float(np.sum(step.loss))


def _rate_value(step: TrainingStep) -> float | None:
  return None if step.learning_rate is None else float(step.learning_rate)


def _loss(step: TrainingStep) -> str:
  if step.loss is None:
    return 'not told'
  if step.loss.size == 1:
    return f'{float(step.loss.reshape(-1)[0]):.8g}'
  return f'{float(np.sum(step.loss)):.8g} (sum of {step.loss.size})'


def _rate(step: TrainingStep) -> str:
  return 'not known' if step.learning_rate is None else f'{step.learning_rate:.7g}'


def is_within_noise(difference: Difference) -> bool:
  """Returns whether a difference is no larger than the noise that was measured for it."""
  array = difference.array
  if array is None or array.noise is None:
    return False
  return array.greatest_absolute <= FACTOR * array.noise


def step_extent(comparison: Comparison, number: int) -> ErrorSummary:
  """Returns how far both sides are apart in what was compared of a step."""
  found = comparison.findings()
  return extent(step_name(number), found.deviations, found.differences)
