"""Learning rates that part: constant ones, and schedules."""

import itertools
from collections.abc import Sequence

import numpy as np

from tf2verify.diagnosis.evidence.training import TrainingEvidence
from tf2verify.diagnosis.rules.updates.later_rates import COUNTS, later_rates, told
from tf2verify.diagnosis.rules.updates.rate_bounds import bound_text
from tf2verify.records.accepted import Change, Changed
from tf2verify.records.diagnosis import About, Cause
from tf2verify.records.wording import number_text

_EXPLAINS = (About.LEARNING_RATE, About.UPDATE, About.SHADOWS)
_CLOSE = 1e-5
# Of the rates at every second step, say, in as many steps as that needs.
_LEAST_KNOWN = 3
_SHOWN = 4
# Steps beyond a bound.
_LEAST_BEYOND = 2
# Of the optimizers of Keras; TF1 has a default for Adam (0.001) and Adadelta alone.
_DEFAULT_OF_SGD, _DEFAULT = 0.01, 0.001


def same(ones: Sequence[float], others: Sequence[float]) -> bool:
  """Returns whether learning rates are the same, but for rounding to float32."""
  return len(ones) == len(others) and bool(np.allclose(ones, others, rtol=_CLOSE, atol=0.0))


def learning_rate(evidence: TrainingEvidence) -> Cause | None:
  """Names what makes the learning rates of all steps differ."""
  rates = evidence.learning_rates()
  if rates is None or not rates[0] or same(*rates):
    return None
  tf1, tf2 = rates
  known = _everywhere(tf1, tf2, evidence)
  argument = '' if known else _argument(tf1, tf2, evidence)
  text = (
    known
    or argument
    or _frozen(tf1, tf2, evidence)
    or _steps_of_change(tf1, tf2)
    or _factors(tf1, tf2)
    or _staircase(tf1, tf2)
    or _shifted(tf1, tf2)
    or _pace(tf1, tf2)
    or _late_warmup(tf1, tf2)
    or _constant(tf1, tf2, evidence)
    or _bounded(tf1, tf2)
    or _parted(tf1, tf2)
  )
  change = None
  numbers = 'the learning rates at all counts of steps' if argument and text == argument else ''
  ratios = [b / a if a else np.inf for a, b in zip(tf1, tf2, strict=True)]
  if len(evidence.tf1.optimizers) == 1 and np.isfinite(ratios[0]) and _is_constant(ratios):
    change = Change(Changed.LEARNING_RATE, 1.0, ratios[0])
  return Cause(text, explains=_EXPLAINS, change=change, numbers=numbers) if text else None


def _everywhere(tf1: Sequence[float], tf2: Sequence[float], evidence: TrainingEvidence) -> str:
  """What the schedules themselves tell, at any count of steps."""
  if evidence.rates is None or _has_one_factor(tf1, tf2, evidence):
    return ''
  return later_rates(evidence.rates)


def _has_one_factor(tf1: Sequence[float], tf2: Sequence[float], evidence: TrainingEvidence) -> bool:
  """Returns whether the port's rate is that of TF1 times a number, as far as both are known."""
  further = ([], []) if evidence.rates is None else told(*evidence.rates(COUNTS))
  pairs = zip([*tf1, *further[0]], [*tf2, *further[1]], strict=True)
  ratios = [other / one if one else np.inf for one, other in pairs if one or other]
  return bool(ratios) and bool(np.isfinite(ratios).all()) and _is_constant(ratios)


def _argument(tf1: Sequence[float], tf2: Sequence[float], evidence: TrainingEvidence) -> str:
  """Names the arguments of the port's schedule of which each alone would make it that of TF1."""
  is_factor = evidence.rates is None or _has_one_factor(tf1, tf2, evidence)
  found = () if is_factor else evidence.fitting_arguments()
  if not found:
    return ''
  name, own, _ = found[0]
  others = ' or '.join(f'{name}={_value_text(value)}' for name, _, value in found[:_SHOWN])
  return (
    f'{name} of the schedule of the port is {_value_text(own)}; with {others} its learning rates '
    f'are those of TF1 at all step counts that were compared, up to {COUNTS[-1]:,}: pass that'
  )


def _value_text(value: float) -> str:
  return str(value) if isinstance(value, (bool, int)) else number_text(value)


def _frozen(tf1: Sequence[float], tf2: Sequence[float], evidence: TrainingEvidence) -> str:
  still, moving, side, other = tf2, tf1, 'in the port', 'TF1'
  if not _is_constant(tf2):
    still, moving, side, other = tf1, tf2, 'in TF1', 'the port'
  if not _is_constant(still) or _is_constant(moving) or not same(still[:1], moving[:1]):
    return ''
  step = next(n for n, rate in enumerate(moving, 1) if not same([rate], moving[:1]))
  text = (
    f'the learning rate stays at {number_text(still[0])} {side}, the value of its first step; that '
    f'of {other} is {number_text(moving[step - 1])} at step {step}'
  )
  if side == 'in TF1':
    return f'{text}{_without_schedule(evidence)}'
  return f'{text}: ' + (
    _uncounted(moving, evidence)
    or 'the optimizer has no schedule, one that was evaluated once, when it was made, one of a '
    f'count that nothing advances, or one that changes after step {len(still)} only; give it a '
    'tf.keras.optimizers.schedules object, which is evaluated at each step, with the settings of '
    'TF1'
  )


def _uncounted(rates: Sequence[float], evidence: TrainingEvidence) -> str:
  """Says that a schedule is that of TF1, and what it reads counts no step of the port."""
  counts = [step.global_step for step in evidence.tf1.steps[:-1]]
  known = [count for count in counts if count is not None]
  if not known or len(known) < len(counts):
    return ''
  for name, value, others in evidence.rates_by_count(known):
    if same(rates[1:], others):
      return (
        f'the schedule reads {name}, which is {value} after {len(rates)} steps of the port; with '
        "it at the counts of TF1's global_step its rates are those of TF1: pass it to "
        f'apply_gradients or minimize (global_step={name}), or add 1 to it in each step'
      )
  return ''


def _without_schedule(evidence: TrainingEvidence) -> str:
  """Says why only the port's learning rate changes."""
  if not any(step.global_step for step in evidence.tf1.steps):
    return (
      ': the train op of TF1 counts no global_step (it was not passed to minimize), so any '
      "schedule that reads it stays there: give the port's optimizer a number"
    )
  record = evidence.tf2.optimizers[0] if evidence.tf2.optimizers else None
  decay = record.setting('decay') if record else None
  if record and decay:
    return f': pass no decay to {record.name} (it is {number_text(decay)})'
  return ": give the port's optimizer a number in place of a schedule"


def _levels(rates: Sequence[float]) -> list[tuple[int, float]]:
  """Returns the different rates in order, each with the number of its first step, from 0."""
  found: list[tuple[int, float]] = []
  for number, rate in enumerate(rates):
    if not found or not same([rate], [found[-1][1]]):
      found.append((number, rate))
  return found


def _changes_always(rates: Sequence[float]) -> bool:
  return len(_levels(rates)) == len(rates)


def _steps_of_change(tf1: Sequence[float], tf2: Sequence[float]) -> str:
  """The same rates one after the other, each for another number of steps."""
  ones, others = _levels(tf1), _levels(tf2)
  known = min(len(ones), len(others))
  if known < 2 or _changes_always(tf1) or _changes_always(tf2):
    return ''
  if not same([rate for _, rate in ones[:known]], [rate for _, rate in others[:known]]):
    return ''
  changes = [[number + 1 for number, _ in levels[1:]] for levels in (ones, others)]
  if changes[0][: known - 1] == changes[1][: known - 1]:
    return ''
  text = (
    'both learning rates take the same values in the same order, each kept until a different step: '
    f'they change at {_steps_text(changes[0])} in TF1 and at {_steps_text(changes[1])} in the port'
  )
  every = [_interval(levels, len(tf1)) for levels in (ones, others)]
  if every[0] and every[1] and every[0] != every[1]:
    return (
      f'{text}, every {every[0]} steps and every {every[1]}: pass the decay_steps (or boundaries) '
      f'of TF1, {every[0]}'
    )
  return f'{text}: pass the boundaries of TF1'


def _steps_text(numbers: Sequence[int]) -> str:
  shown = ', '.join(map(str, numbers[:4]))
  return f'step{"s" if len(numbers) > 1 else ""} {shown}{", …" if len(numbers) > 4 else ""}'


def _interval(levels: Sequence[tuple[int, float]], count: int) -> int:
  """Returns after how many steps a rate changes each time; 0 where that is not regular."""
  starts = [number for number, _ in levels]
  every = starts[1] - starts[0]
  regular = all(b - a == every for a, b in itertools.pairwise(starts))
  return every if regular and count - starts[-1] <= every else 0


def _factors(tf1: Sequence[float], tf2: Sequence[float]) -> str:
  """Both fall by a factor of their own, at the same steps."""
  ones, others = _levels(tf1), _levels(tf2)
  starts = [number for number, _ in ones]
  if len(ones) < 3 or starts != [n for n, _ in others] or not same(tf1[:1], tf2[:1]):
    return ''
  ratios = [
    [b / a if a else np.inf for (_, a), (_, b) in itertools.pairwise(levels)]
    for levels in (ones, others)
  ]
  every = _interval(ones, len(tf1))
  if not every or not all(map(_is_constant, ratios)) or not np.isfinite(ratios).all():
    return ''
  (one, *_), (other, *_) = ratios
  often = 'at each step' if every == 1 else f'every {every} steps'
  text = (
    f'the learning rate changes {often} by a factor of {number_text(one)} in TF1 and '
    f'{number_text(other)} in the port, from the same first value: '
  )
  if every > 1:
    return f'{text}decay_rate (or the values at the boundaries) differs: pass that of TF1'
  times = np.log(one) / np.log(other) if 0 < one != 1 and 0 < other != 1 else 0.0
  if times > 0 and min(abs(times - round(times)), abs(1 / times - round(1 / times))) < 1e-3:
    return (
      f'{text}with one decay_rate, the decay_steps of the port are {number_text(float(times))} '
      'times those of TF1: pass decay_rate and decay_steps of TF1'
    )
  return f'{text}decay_rate or decay_steps differs: pass those of TF1'


def _staircase(tf1: Sequence[float], tf2: Sequence[float]) -> str:
  for steps in range(2, len(tf1)):
    floors = [steps * (number // steps) for number in range(len(tf1))]
    for stairs, smooth, words in ((tf1, tf2, _STAIRS_OF_TF1), (tf2, tf1, _STAIRS_OF_PORT)):
      sampled = [smooth[floor] for floor in floors]
      # The other side moves at each step: its stairs may be others.
      if _changes_always(smooth) and not _is_constant(sampled) and same(stairs, sampled):
        return words.format(steps)
  return ''


_STAIRS_OF_TF1 = (
  "TF1's learning rate at step t is the port's at {0}·floor((t - 1)/{0}) + 1: it is a staircase "
  'decay: pass staircase=True to the schedule of the port'
)
_STAIRS_OF_PORT = (
  "the port's learning rate at step t is TF1's at {0}·floor((t - 1)/{0}) + 1: it is a staircase "
  'decay, that of TF1 is not: pass staircase=False to the schedule of the port'
)


def _pace(tf1: Sequence[float], tf2: Sequence[float]) -> str:
  for pace in range(2, len(tf1)):
    known = (len(tf1) - 1) // pace + 1
    if known < 2 or (known < _LEAST_KNOWN and len(tf1) > _LEAST_KNOWN + 1):
      break  # so few may agree by chance
    for slow, fast, words in ((tf2, tf1, ("TF1's", "the port's")), (tf1, tf2, _REVERSED)):
      if _is_constant(fast[:known]) or not same(fast[:known], slow[::pace][:known]):
        continue
      moved = next(n for n, rate in enumerate(fast) if not same([rate], fast[:1]))
      if same([slow[moved]], [fast[moved]]):
        continue  # both have moved at once: what follows agrees as a plateau does
      return (
        f'{words[0]} learning rate at step t is {words[1]} at step {pace}·(t - 1) + 1: the two '
        f'schedules differ by a factor of {pace} in what they count: decay_steps or boundaries '
        'differ, or they are in different units; one step is one call of the train op on either '
        'side '
        '(not an epoch, and not one for each optimizer)'
      )
  return ''


_REVERSED = ("the port's", "TF1's")


def _shifted(tf1: Sequence[float], tf2: Sequence[float]) -> str:
  if len(tf1) < 3 or _is_constant(tf1) or _is_constant(tf2):
    return ''
  if same(tf1[1:], tf2[:-1]):
    return _SHIFTED.format('ahead of', "TF1's")
  if same(tf1[:-1], tf2[1:]):
    return _SHIFTED.format('behind', "TF1's")
  return ''


_SHIFTED = (
  "the port's schedule is one step {} {}: it is read after the step is counted on one side, before "
  'it on the other, or its boundaries are off by one; tf.keras.optimizers count from 0, as the '
  'global step of TF1'
)


def _late_warmup(tf1: Sequence[float], tf2: Sequence[float]) -> str:
  """One side rises a step later than the other, from zero, and they agree once it has risen."""
  apart = [not same([one], [other]) for one, other in zip(tf1, tf2, strict=True)]
  length = apart.index(False) if False in apart else 0
  if length < 2 or any(apart[length:]):
    return ''
  for early, late, sides in ((tf1, tf2, ('TF1', 'the port')), (tf2, tf1, ('the port', 'TF1'))):
    rises = all(a < b for a, b in itertools.pairwise(early[:length]))
    if late[0] == 0 and rises and same(early[: length - 1], late[1:length]):
      step = 'step + 1' if sides[0] == 'TF1' else 'step'
      return (
        f'the learning rate warms up from zero in {sides[1]}, where its first {length} values are '
        f'those of {sides[0]} one step late, and agrees from step {length + 1} on: the warm-up of '
        f'{sides[0]} counts its first step as 1, that of {sides[1]} as 0; write {step} in the '
        'warm-up of the port, where the step counts from 0'
      )
  return ''


def _constant(tf1: Sequence[float], tf2: Sequence[float], evidence: TrainingEvidence) -> str:
  ratios = [b / a if a else np.inf for a, b in zip(tf1, tf2, strict=True)]
  if not _has_one_factor(tf1, tf2, evidence):
    return ''
  part = 'times' if ratios[0] > 1 else 'of'
  text = (
    f"the port's learning rate is {number_text(ratios[0])} {part} TF1's at every step: "
    f'{number_text(tf2[0])} in place of {number_text(tf1[0])}'
  )
  record = evidence.tf2.optimizers[0] if evidence.tf2.optimizers else None
  default = _DEFAULT_OF_SGD if record and record.name.endswith('SGD') else _DEFAULT
  if record and record.name.startswith(('tf.keras', 'keras.')) and same([default], tf2[:1]):
    text += f' ({number_text(default)} is the default of {record.name})'
  if not _is_constant(tf1):
    return f'{text}; multiply the schedule by {number_text(1.0 / ratios[0])}'
  return f'{text}; pass learning_rate={number_text(tf1[0])}'


def _bounded(tf1: Sequence[float], tf2: Sequence[float]) -> str:
  """Both fall, or rise, alike until one of them stays where it is, or at a bound just before."""
  first = _first_apart(tf1, tf2)
  for bounded, free in ((tf1, tf2), (tf2, tf1)):
    levels = _levels(free)
    beyond = [b - a for a, b in zip(bounded[first:], free[first:], strict=True)]
    is_one_way = all(one < 0 for one in beyond) or all(one > 0 for one in beyond)
    if not first or len(levels) < 3 or not is_one_way or not _is_constant(bounded[first:]):
      continue
    if len(beyond) < _LEAST_BEYOND and not same(bounded[first - 1 : first], bounded[first:]):
      continue  # a single rate stays nowhere
    if _is_constant(free[first:]) and not _is_regular(levels):
      continue  # which of the two goes on as before is not seen
    is_least, where = beyond[0] < 0, f'step {first + 1}'
    return bound_text(is_least, bounded[first], bounded is tf1, free[first], where)
  return ''


def _is_regular(levels: Sequence[tuple[int, float]]) -> bool:
  """Returns whether rates change by one factor, or by one difference, and equally often."""
  starts, rates = zip(*levels, strict=True)
  every = {b - a for a, b in itertools.pairwise(starts)}
  by_factor = _is_constant([b / a if a else np.inf for a, b in itertools.pairwise(rates)])
  by_step = _is_constant([b - a for a, b in itertools.pairwise(rates)])
  return len(every) == 1 and (by_factor or by_step)


def _parted(tf1: Sequence[float], tf2: Sequence[float]) -> str:
  """What is seen of schedules that no rule relates."""
  first = _first_apart(tf1, tf2)
  if first == 1:  # what all schedules of one initial rate have in common
    return (
      f'the learning rates start the same and differ from step 2 on: {number_text(tf1[1])} in TF1 '
      f'and {number_text(tf2[1])} in the port there: compare the formulas of the schedules and '
      'their settings, such as the rate, the power, the steps and the staircase of a decay'
    )
  if first:
    return (
      f'the learning rates are the same up to step {first} and differ from there on: '
      f'{number_text(tf1[first])} in TF1 and {number_text(tf2[first])} in the port at step '
      f'{first + 1}: the schedules differ in what begins there (a boundary, a bound, the end of '
      'a warm-up or of a decay): compare their formulas and settings'
    )
  rates = (', '.join(number_text(rate) for rate in known[:_SHOWN]) for known in (tf1, tf2))
  return (
    'the learning rates differ from the first step on, and not by one factor: '
    f'{" in TF1, ".join(rates)} in the port, step by step: compare the formulas of the schedules '
    'and their settings'
  )


def _first_apart(tf1: Sequence[float], tf2: Sequence[float]) -> int:
  """Returns the first step whose rates differ, from 0."""
  pairs = enumerate(zip(tf1, tf2, strict=True))
  return next(n for n, (one, other) in pairs if not same([one], [other]))


def _is_constant(rates: Sequence[float]) -> bool:
  return same(rates, [rates[0]] * len(rates))
