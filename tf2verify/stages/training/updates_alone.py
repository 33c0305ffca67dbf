"""The updates of both sides on the same gradients: what a step does besides differentiating.

Where the models, or their losses, are known to differ, so do their gradients. The port is given
those of tf1 then, so that clipping, learning rates, optimizers and averages can be compared.
"""

import dataclasses
from collections.abc import Iterator

import numpy as np

from tf2verify.diagnosis.causes import causes_of
from tf2verify.diagnosis.evidence.training import training_evidence
from tf2verify.errors import NotApplicable
from tf2verify.records.diagnosis import Cause
from tf2verify.records.tensor_key import TensorKey
from tf2verify.records.training import OptimizerRecord, TrainingRun, TrainingStep
from tf2verify.stages.comparison.comparing import Comparison
from tf2verify.stages.stage import CaseUnderTest, Findings
from tf2verify.stages.training import step_quantities as quantities
from tf2verify.stages.training.both_sides import BothSides
from tf2verify.stages.training.perturbed_runs import PerturbedRuns
from tf2verify.stages.training.prepared_runs import prepared_runs
from tf2verify.stages.training.step_quantities import Steps, step_name, tolerance_for

_OF_OPTIMIZERS = frozenset(
  (
    quantities.LEARNING_RATE,
    quantities.SLOT,
    quantities.UPDATE,
    quantities.SHADOW,
    quantities.GLOBAL_STEP,
  )
)
_COMPARED = _OF_OPTIMIZERS | {quantities.APPLIED}
_RATE = 'learning_rate'
_CLIPPING = frozenset(('clipping', 'own_clipping'))
# Each is seen in numbers of the update alone.
_RULES = frozenset(
  (
    *_CLIPPING,
    _RATE,
    'amsgrad',
    'centering',
    'count_of_steps',
    'moving_average',
    'optimizer_epsilon',
    'pruned',
    'slot_starts',
    'update_rule',
  )
)
_DECAY = 'weight_decay'
# In which a decay of weights adds what an L2 loss would.
_LINEAR = ('sgd', 'momentum')
_CLOSE = 1e-5


@dataclasses.dataclass(frozen=True, eq=False)
class _Looked:
  """What some steps have shown.

  Attributes:
    comparison: of the first one that differs.
    causes: of that one, and of what differs in the learning rate later.
    number: of the first one that differs, from 1; 0 where none does.
  """

  comparison: Comparison
  causes: tuple[Cause, ...] = ()
  number: int = 0

  @property
  def is_of_clipping(self) -> bool:
    """Whether the gradients are clipped differently, which hides how they are applied."""
    return any(cause.rule in _CLIPPING for cause in self.causes)


def compare_updates(case: CaseUnderTest) -> Findings:
  """Compares steps on gradients of tf1, up to the first one that differs.

  Raises:
    NotApplicable: that cannot be done, or what differs is not known to be in the update.
  """
  if case.alignment().only_tf2:
    raise NotApplicable('a variable has no counterpart, so not all gradients are those of tf1')
  found = _looked(case, applied=False)
  if found.number and not found.causes:
    first = found.comparison.differences[0]
    raise NotApplicable(
      f'given the gradients of tf1, {first.quantity} {first.subject} differs as well, and no cause '
      'is known: the update may have a mistake of its own, or regularize what the loss of tf1 does'
    )
  causes = list(found.causes)
  if found.is_of_clipping:
    told = {cause.text for cause in causes}
    causes += [one for one in _looked(case, applied=True).causes if one.text not in told]
  note = (
    f'step {found.number} of both sides was taken with the gradients of tf1, since those of the '
    'port differ by what the stages before show'
  )
  findings = found.comparison.findings([note] if found.number else [])
  return dataclasses.replace(findings, causes=tuple(causes))


def _looked(case: CaseUnderTest, applied: bool) -> _Looked:
  """Takes steps on gradients of tf1, or on what tf1 applies."""
  runs = prepared_runs(case)
  count, run_tf1 = runs.count, runs.run_tf1
  with run_tf1.begin(None) as reference:
    both = runs.both_sides(reference)
    given, again = both.give_gradients(applied), PerturbedRuns(run_tf1, count)
    for number in range(1, count + 1):
      steps = both.take_next()
      if not given.were_all_taken:
        raise NotApplicable('the step of the port asks for other gradients than that of tf1')
      _check_alike(steps)
      if case.alignment().only_tf1:
        _check_unclipped(steps.tf1.steps[-1])
      found = _compared(case, steps, number, _OF_OPTIMIZERS if applied else _COMPARED)
      found.excuse_rounding(steps.tf1, again.rerun(number), again.here(number))
      if found.differences:
        causes = (*_causes(both, steps, number), *_later_rates(both, number, count))
        known = {cause.text: cause for cause in causes}
        return _Looked(found, tuple(known.values()), number)
  return _Looked(Comparison())


def _check_alike(steps: Steps) -> None:
  """Raises NotApplicable where a right port may make another thing of the same gradients."""
  runs = steps.tf1, steps.tf2
  losses, decays = (
    [_regularizes(run) for run in runs],
    [any(map(_decays, r.optimizers)) for r in runs],
  )
  if losses[0] != losses[1] or decays[0] != decays[1]:
    raise NotApplicable('the sides regularize differently, which may be a part of their gradients')
  if _scale(steps.tf1.steps[-1]) > 1.0 + _CLOSE:
    raise NotApplicable('tf1 scales its loss')


def _check_unclipped(step: TrainingStep) -> None:
  """Raises NotApplicable where tf1 clips: by a norm of gradients that the port does not have."""
  applied = {record.name: record.value for record in step.applied_gradients}
  for record in step.gradients:
    one, other = record.value, applied.get(record.name)
    if one is not None and (other is None or not np.array_equal(one, other)):
      raise NotApplicable('a variable has no counterpart, and tf1 clips by the gradients of all')


def _regularizes(run: TrainingRun) -> bool:
  return run.regularization_total is not None and bool(run.regularization_total)


def _decays(optimizer: OptimizerRecord) -> bool:
  """Returns whether it has a weight decay that may as well stand in the loss."""
  return bool(optimizer.setting(_DECAY)) and optimizer.rule in _LINEAR


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


def _compared(case: CaseUnderTest, steps: Steps, number: int, wanted: frozenset[str]) -> Comparison:
  comparison = Comparison()
  given = {r.name for r in steps.tf1.steps[number - 1].gradients if r.value is not None}
  for pair in steps.pairs(number):
    if pair.quantity in wanted and (not pair.variable or pair.variable in given):
      key = TensorKey(pair.quantity, pair.subject, step_name(number))
      comparison.tensors(key, pair.tf1, pair.tf2, tolerance_for(pair, case.training_tolerance))
  return comparison


def _later_rates(both: BothSides, number: int, count: int) -> Iterator[Cause]:
  """Yields why the learning rates of later steps differ."""
  for later in range(number + 1, count + 1):
    yield from _causes(both, both.take_next(), later, frozenset((_RATE,)))


def _causes(
  both: BothSides, steps: Steps, number: int, rules: frozenset[str] = _RULES
) -> Iterator[Cause]:
  evidence = training_evidence(
    steps.tf1,
    steps.tf2,
    steps.names,
    number,
    clip_beyond=both.clip_beyond,
    rates=both.rates_if_known(),
  )
  yield from causes_of(evidence, rules)
