"""The updates of both sides on the same gradients: what a step does besides differentiating.

Where the models, or their losses, are known to differ, so do their gradients. The port is given
those of tf1 then, so that clipping, learning rates, optimizers and averages can be compared.
"""

import dataclasses
from collections.abc import Sequence

import numpy as np

from tf2verify.diagnosis.causes import causes_of
from tf2verify.diagnosis.evidence.training import training_evidence
from tf2verify.errors import NotApplicable
from tf2verify.records.diagnosis import Cause
from tf2verify.records.tensor_key import TensorKey
from tf2verify.records.training import TrainingRun, TrainingStep
from tf2verify.reference import inputs as case_inputs
from tf2verify.sides.side import RunSpec
from tf2verify.stages.comparison.comparing import Comparison
from tf2verify.stages.passes.training_fill import training_fill
from tf2verify.stages.stage import CaseUnderTest, Findings
from tf2verify.stages.training import step_quantities as quantities
from tf2verify.stages.training.both_sides import BothSides
from tf2verify.stages.training.declared_steps import declared_count
from tf2verify.stages.training.perturbed_runs import PerturbedRuns
from tf2verify.stages.training.step_quantities import Steps, step_name, tolerance_for

_COMPARED = frozenset(
  (
    quantities.LEARNING_RATE,
    quantities.APPLIED,
    quantities.SLOT,
    quantities.UPDATE,
    quantities.SHADOW,
    quantities.GLOBAL_STEP,
  )
)
# Each is seen in numbers of the update alone.
_RULES = frozenset(
  (
    'amsgrad',
    'centering',
    'clipping',
    'count_of_steps',
    'learning_rate',
    'moving_average',
    'optimizer_epsilon',
    'pruned',
    'slot_starts',
    'update_rule',
  )
)
_DECAY = 'weight_decay'
_CLOSE = 1e-5


def compare_updates(case: CaseUnderTest) -> Findings:
  """Compares steps on gradients of tf1, up to the first one that differs.

  Raises:
    NotApplicable: that cannot be done, or what differs is not known to be in the update.
  """
  count = declared_count(case)
  inputs, _ = case_inputs.varied_inputs(case.inputs)
  pairs, fill = case.alignment().pairs, training_fill(case)
  training = True in case.declaration.training_modes
  tf1_run = RunSpec(inputs, training, fill, {tf1: tf1 for tf1, _ in pairs}, gradients=True)
  tf2_run = RunSpec(inputs, training, fill, {tf2: tf1 for tf1, tf2 in pairs}, gradients=True)
  run_tf1 = case.tf1_training.prepare_steps(tf1_run, count)
  trainable = frozenset(v.name for v in case.tf1.inventory().variables if v.trainable)
  port = case.tf2_training.begin_steps(tf2_run, count)
  with run_tf1.begin(None) as reference:
    both = BothSides(reference, port, pairs, trainable, case.declaration.slot_names)
    given, again = both.give_gradients(), PerturbedRuns(run_tf1, count)
    for number in range(1, count + 1):
      steps = both.take_next()
      if not given.were_all_taken:
        raise NotApplicable('the step of the port asks for other gradients than that of tf1')
      _check_alike(steps)
      found = _compared(case, steps, number, again)
      if found.differences:
        causes = tuple(_causes(both, steps, number))
        return _findings(found, causes, number)
  return Comparison().findings()


def _check_alike(steps: Steps) -> None:
  """Raises NotApplicable where a right port may make another thing of the same gradients."""
  known = [(_total(run), any(o.setting(_DECAY) for o in run.optimizers)) for run in _runs(steps)]
  if not np.isclose(known[0][0], known[1][0], rtol=_CLOSE) or known[0][1] != known[1][1]:
    raise NotApplicable('the sides regularize differently, which may be a part of their gradients')
  if _scale(steps.tf1.steps[-1]) > 1.0 + _CLOSE:
    raise NotApplicable('tf1 scales its loss')


def _runs(steps: Steps) -> tuple[TrainingRun, TrainingRun]:
  return steps.tf1, steps.tf2


def _total(run: TrainingRun) -> float:
  return 0.0 if run.regularization_total is None else float(run.regularization_total)


def _scale(step: TrainingStep) -> float:
  """Returns how many times as large all gradients are as what is applied, if they are alike."""
  applied = {record.name: record.value for record in step.applied_gradients}
  found = []
  for record in step.gradients:
    one, other = record.value, applied.get(record.name)
    if one is not None and other is not None and one.shape == other.shape and np.any(other):
      found.append(float(np.linalg.norm(one)) / float(np.linalg.norm(other)))
  # A scale of losses is a power of two; norms that clip gradients are not.
  scale = found[0] if found else 1.0
  is_power = scale > 0 and float(np.log2(scale)).is_integer()
  return scale if is_power and np.allclose(found, scale, rtol=_CLOSE) else 1.0


def _compared(case: CaseUnderTest, steps: Steps, number: int, again: PerturbedRuns) -> Comparison:
  comparison = Comparison()
  given = {r.name for r in steps.tf1.steps[number - 1].gradients if r.value is not None}
  for pair in steps.pairs(number):
    if pair.quantity in _COMPARED and (not pair.variable or pair.variable in given):
      key = TensorKey(pair.quantity, pair.subject, step_name(number))
      comparison.tensors(key, pair.tf1, pair.tf2, tolerance_for(pair, case.training_tolerance))
  comparison.excuse_rounding(steps.tf1, again.rerun(number), again.here(number))
  return comparison


def _causes(both: BothSides, steps: Steps, number: int) -> list[Cause]:
  evidence = training_evidence(
    steps.tf1,
    steps.tf2,
    steps.names,
    number,
    clip_beyond=both.clip_beyond,
    rates=both.rates_if_known(),
  )
  return list(causes_of(evidence, _RULES))


def _findings(found: Comparison, causes: Sequence[Cause], number: int) -> Findings:
  """Returns the findings where the update is known to be why.

  Raises:
    NotApplicable: no rule says why.
  """
  if not causes:
    raise NotApplicable('what differs is not known to be in the update')
  findings = found.findings(
    [
      f'step {number} of both sides was taken with the gradients of tf1, since those of the port '
      'differ by what the stages before show'
    ]
  )
  differences = [
    dataclasses.replace(one, hint=_hint(one.quantity, causes)) for one in findings.differences
  ]
  return dataclasses.replace(findings, differences=tuple(differences), causes=tuple(causes))


def _hint(quantity: str, causes: Sequence[Cause]) -> str:
  about = quantities.ABOUT[quantity]
  return next((c.text for c in causes if not c.explains or about in c.explains), '')
