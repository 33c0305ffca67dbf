"""Learning rates that part: constant ones, and schedules."""

from collections.abc import Sequence

import numpy as np

from tf2verify.stages.training.causes.cause import About, Cause, number_text
from tf2verify.stages.training.causes.evidence import Evidence

_EXPLAINS = frozenset({About.LEARNING_RATE, About.UPDATE, About.SHADOWS})
_CLOSE = 1e-5
# Of the optimizers of Keras; TF1 has a default for Adam (0.001) and Adadelta alone.
_DEFAULT_OF_SGD, _DEFAULT = 0.01, 0.001


def same(ones: Sequence[float], others: Sequence[float]) -> bool:
  """Tells whether learning rates are the same, but for rounding to float32."""
  return len(ones) == len(others) and bool(np.allclose(ones, others, rtol=_CLOSE, atol=0.0))


def learning_rate(evidence: Evidence) -> Cause | None:
  """Names what makes the learning rates of all steps differ."""
  rates = evidence.learning_rates()
  if rates is None or not rates[0] or same(*rates):
    return None
  tf1, tf2 = rates
  text = (
    _frozen(tf1, tf2, evidence)
    or _staircase(tf1, tf2)
    or _pace(tf1, tf2)
    or _shifted(tf1, tf2)
    or _constant(tf1, tf2, evidence)
  )
  return Cause(text, _EXPLAINS) if text else None


def _frozen(tf1: Sequence[float], tf2: Sequence[float], evidence: Evidence) -> str:
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
  return (
    f'{text}: the schedule was evaluated once, when the optimizer was made; give the optimizer a '
    'tf.keras.optimizers.schedules object, which is evaluated at each step'
  )


def _without_schedule(evidence: Evidence) -> str:
  """Says why only the port's learning rate changes."""
  if not any(step.global_step for step in evidence.tf1.steps):
    return (
      ': the train op of TF1 counts no global_step (it was not given to minimize), which its '
      'schedule reads'
    )
  record = evidence.tf2.optimizers[0] if evidence.tf2.optimizers else None
  decay = record.setting('decay') if record else None
  if record and decay:
    return f': pass no decay to {record.name} (it is {number_text(decay)})'
  return ": give the port's optimizer a number in place of a schedule"


def _staircase(tf1: Sequence[float], tf2: Sequence[float]) -> str:
  for steps in range(2, len(tf1)):
    floors = [steps * (number // steps) for number in range(len(tf1))]
    if not _is_constant([tf2[f] for f in floors]) and same(tf1, [tf2[f] for f in floors]):
      return (
        f"TF1's learning rate at step t is the port's at {steps}·floor((t - 1)/{steps}) + 1: it "
        'falls in stairs: pass staircase=True to the schedule of the port'
      )
    if not _is_constant([tf1[f] for f in floors]) and same(tf2, [tf1[f] for f in floors]):
      return (
        f"the port's learning rate at step t is TF1's at {steps}·floor((t - 1)/{steps}) + 1: it "
        'falls in stairs, that of TF1 does not: pass staircase=False to the schedule of the port'
      )
  return ''


def _pace(tf1: Sequence[float], tf2: Sequence[float]) -> str:
  for pace in range(2, len(tf1)):
    known = (len(tf1) - 1) // pace + 1
    for slow, fast, words in ((tf2, tf1, ("TF1's", "the port's")), (tf1, tf2, _REVERSED)):
      if _is_constant(fast[:known]) or not same(fast[:known], slow[::pace][:known]):
        continue
      return (
        f'{words[0]} learning rate at step t is {words[1]} at step {pace}·(t - 1) + 1: the two '
        f'schedules differ by a factor of {pace} in what they count: decay_steps or boundaries are '
        'others, or they are in other units; one step is one call of the train op on either side '
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
  'it on the other; tf.keras.optimizers count from 0, as the global step of TF1'
)


def _constant(tf1: Sequence[float], tf2: Sequence[float], evidence: Evidence) -> str:
  ratios = [b / a if a else np.inf for a, b in zip(tf1, tf2, strict=True)]
  if not _is_constant(ratios):
    return ''
  text = (
    f"the port's learning rate is {number_text(ratios[0])} of TF1's at every step: "
    f'{number_text(tf2[0])} in place of {number_text(tf1[0])}'
  )
  record = evidence.tf2.optimizers[0] if evidence.tf2.optimizers else None
  default = _DEFAULT_OF_SGD if record and record.name.endswith('SGD') else _DEFAULT
  if record and record.name.startswith('tf.keras') and same([default], tf2[:1]):
    text += f' ({number_text(default)} is the default of {record.name})'
  return f'{text}; pass learning_rate={number_text(tf1[0])}'


def _is_constant(rates: Sequence[float]) -> bool:
  return same(rates, [rates[0]] * len(rates))
