"""Steps that are counted differently."""

import itertools

from tf2verify.diagnosis.evidence.training import TrainingEvidence
from tf2verify.diagnosis.rules.training.resting_averages import values_after
from tf2verify.records.diagnosis import About, Cause
from tf2verify.records.training import TrainingRun
from tf2verify.records.wording import number_text

RESTING = (
  ': minimize and apply_gradients of TF1 count only the global_step that they are given; '
  'what reads it (a schedule) stays at its first value'
)


def count_of_steps(evidence: TrainingEvidence) -> Cause | None:
  """Names counters that advance by other amounts at each step."""
  tf1, tf2 = _paces(evidence.tf1), _paces(evidence.tf2)
  if len(tf1) != 1 or len(tf2) != 1 or tf1 == tf2:
    return None
  (one,), (other,) = tf1, tf2
  rates = evidence.learning_rates()
  if rates and (_stands_still(one, rates[0]) or _stands_still(other, rates[1])):
    return None  # a schedule moves, so that the steps are counted elsewhere
  text = f'global_step advances by {one} a step in TF1, iterations by {other} a step in the port'
  if one > other > 0 and one > max(1, len(evidence.tf1.optimizers)):
    text += (
      ': what TF1 counts is not steps but examples or frames, say; give the schedule of the port a '
      f'count that advances alike, or multiply its iterations by {number_text(one / other)}'
    )
  elif one > other > 0:
    text += (
      f': {one} optimizers of TF1 count the same global_step, whereas each optimizer of Keras '
      'counts its own iterations; use one optimizer (its apply_gradients once for each part), '
      'or give the schedules a counter of their own'
    )
  elif one == 0:
    text += RESTING
  else:
    text += ': call apply_gradients of an optimizer once for each train op of TF1'
  explains = [About.COUNT]
  if rates is None or len(set(rates[0])) > 1 or len(set(rates[1])) > 1:
    explains += [About.LEARNING_RATE, About.UPDATE]
  return Cause(text, explains=tuple(explains))


def counted_state(evidence: TrainingEvidence) -> Cause | None:
  """Names a variable of the model that counts, to which the port adds another number."""
  for tf1, tf2 in evidence.pairs:
    one, other = _added(evidence.tf1, evidence, tf1), _added(evidence.tf2, evidence, tf2)
    if one is None or other is None or one == other:
      continue
    if not other:
      text = (
        f'each step of TF1 adds {one} to {tf1}, and that of the port leaves {tf2} as it is: add '
        f'{one} to it in each step as well (assign_add)'
      )
    elif not one:
      text = (
        f'each step of the port adds {other} to {tf2}, and that of TF1 leaves {tf1} as it is: do '
        'not count there, or find what counts in TF1'
      )
    else:
      text = f'a step adds {one} to {tf1} in TF1, and {other} to {tf2} in the port: count alike'
    return Cause(text, explains=(About.UPDATE,), variables=(tf1,))
  return None


def _added(run: TrainingRun, evidence: TrainingEvidence, name: str) -> int | None:
  """Returns what the step adds to a whole number; None for any other variable."""
  before, after = (values_after(run, evidence.number - back).get(name) for back in (1, 0))
  if before is None or after is None or before.dtype.kind not in 'iu' or before.size != 1:
    return None
  return int(after.reshape(())) - int(before.reshape(()))


def _stands_still(pace: int, rates: list[float]) -> bool:
  return pace == 0 and len(set(rates)) > 1


def _paces(run: TrainingRun) -> set[int]:
  """Returns by how much the counter advances, as a set of one where that is told."""
  counts = [step.global_step for step in run.steps]
  known = [count for count in counts if count is not None]
  if len(known) != len(counts) or not known:
    return set()
  return {b - a for a, b in itertools.pairwise(known)} or {known[0]}
