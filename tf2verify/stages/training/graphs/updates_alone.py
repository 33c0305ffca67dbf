"""The updates of both sides on the same gradients: what a step does besides differentiating.

Where the models, or their losses, are known to differ, so do their gradients. The port is given
those of tf1 then, so that clipping, learning rates, optimizers and averages can be compared.
"""

import dataclasses
from collections.abc import Iterator, Sequence

import numpy as np

from tf2verify.diagnosis.causes import causes_of
from tf2verify.diagnosis.evidence.training import training_evidence
from tf2verify.errors import NotApplicable
from tf2verify.records.diagnosis import Cause
from tf2verify.records.difference import Difference
from tf2verify.records.tensor_key import TensorKey
from tf2verify.records.training import OptimizerRecord, TrainingRun, TrainingStep
from tf2verify.sides.graphs.rewriting.without_state import WrittenOtherwise
from tf2verify.sides.tf2.traces.tracing import NotTraceable
from tf2verify.stages.comparison.comparing import Comparison
from tf2verify.stages.stage import CaseUnderTest, Findings, Inspection
from tf2verify.stages.training.graphs.edited_steps import StepJudge
from tf2verify.stages.training.graphs.regular_updates import (
  moved_by_updates,
  penalized_alike,
  penalty_cause,
)
from tf2verify.stages.training.graphs.step_graphs import COMPARED, StepGraphs, of_step
from tf2verify.stages.training.rounding.perturbed_runs import PerturbedRuns
from tf2verify.stages.training.steps import quantities
from tf2verify.stages.training.steps.both_sides import BothSides
from tf2verify.stages.training.steps.prepared_runs import PreparedRuns, prepared_runs
from tf2verify.stages.training.steps.quantities import (
  QuantityPair,
  Steps,
  step_name,
  tolerance_for,
)

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
_MOVED = (quantities.STATE, quantities.UPDATE)
_RATE = 'learning_rate'
_CLIPPING = frozenset(('clipping', 'clipping_in_slots', 'own_clipping'))
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
    'own_nesterov',
    'own_velocity',
    'pruned',
    'slot_starts',
    'update_rule',
  )
)
_DECAY = 'weight_decay'
# In which a decay of weights adds what an L2 loss would.
_LINEAR = ('sgd', 'momentum')
_CLOSE = 1e-5
_APART = 'the sides regularize differently, which may be a part of their gradients'


@dataclasses.dataclass(frozen=True, eq=False)
class _Looked:
  """What some steps have shown.

  Attributes:
    comparison: of the first one that differs.
    causes: of that one, and of what differs in the learning rate later.
    number: of the first one that differs, from 1; 0 where none does.
    inspection: how that one is looked into.
  """

  comparison: Comparison
  causes: tuple[Cause, ...] = ()
  number: int = 0
  inspection: Inspection | None = None

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
  reason = ''
  if found.number and not found.causes:
    first = found.comparison.differences[0]
    reason = (
      f'given the gradients of tf1, {first.quantity} {first.subject} differs as well, and no cause '
      'is known: the update may have a mistake of its own, or regularize what the loss of tf1 does'
    )
    if found.inspection is None:
      raise NotApplicable(reason)
  causes = list(found.causes)
  if found.is_of_clipping:
    told = {cause.text for cause in causes}
    causes += [one for one in _looked(case, applied=True).causes if one.text not in told]
  note = (
    f'step {found.number} of both sides was taken with the gradients of tf1, since those of the '
    'port differ by what the stages before show'
  )
  findings = found.comparison.findings([note] if found.number else [])
  inspection = found.inspection and dataclasses.replace(found.inspection, unless_proven=reason)
  return dataclasses.replace(findings, causes=tuple(causes), inspection=inspection)


def _looked(case: CaseUnderTest, applied: bool) -> _Looked:
  """Takes steps on gradients of tf1, or on what tf1 applies."""
  runs = prepared_runs(case)
  count, run_tf1 = runs.count, runs.run_tf1
  with run_tf1.begin(None) as reference:
    both = runs.both_sides(reference)
    given, again = both.give_gradients(applied), PerturbedRuns(run_tf1, count)
    of_tf1: list[TrainingStep] = []
    penalties: tuple[Cause, ...] = ()
    moved = frozenset[str]()
    for number in range(1, count + 1):
      steps = both.take_next()
      of_tf1.append(_gradients_of(steps))
      if not given.were_all_taken:
        raise NotApplicable('the step of the port asks for other gradients than that of tf1')
      _check_alike(steps)
      if number == 1 and not applied:
        penalties = _penalties(runs, steps)
      moved = moved_by_updates(runs, steps) if number == 1 else moved
      if case.alignment().only_tf1:
        _check_unclipped(steps.tf1.steps[-1])
      wanted = _OF_OPTIMIZERS if applied else _COMPARED
      found = _comparison(case, _pairs(steps, number, wanted, moved), number)
      found.excuse_rounding(steps.tf1, again.rerun(number), again.here(number))
      if found.differences:
        # Before the causes: a clipping is tried in a further step of the port, which counts there.
        later = [both.take_next() for _ in range(number, count)]
        of_tf1 += map(_gradients_of, later)
        causes = [*_causes(both, steps, number)]
        for further, other in enumerate(later, number + 1):
          causes += _causes(both, other, further, frozenset((_RATE,)))
        # More steps tell more of one schedule.
        known = {_RATE if cause.rule == _RATE else cause.text: cause for cause in causes}
        looked = None if applied else _inspection(runs, both, again, steps, (of_tf1, moved))
        return _Looked(found, (*penalties, *known.values()), number, looked)
  return _Looked(Comparison())


def _gradients_of(steps: Steps) -> TrainingStep:
  """Returns the last step of tf1 with its gradients alone."""
  return dataclasses.replace(steps.tf1.steps[-1], applied_gradients=(), variables=(), slots=())


def _inspection(
  runs: PreparedRuns,
  both: BothSides,
  again: PerturbedRuns,
  steps: Steps,
  known_of_tf1: tuple[Sequence[TrainingStep], frozenset[str]],
) -> Inspection | None:
  """Returns how the last one of some steps is looked into; None where the graphs are too large."""
  of_tf1, moved = known_of_tf1
  case, number = runs.case, len(steps.tf2.steps)
  keeps = again.are_kept(steps.tf1)
  made = StepGraphs(case, (runs.tf1_run, runs.tf2_run), steps, number, keeps, given=of_tf1)
  if made.are_left_out or not keeps:
    return None

  def beside(port: TrainingRun, last: int) -> Steps:
    first = [dataclasses.replace(run, steps=run.steps[:last]) for run in (again.taken(), port)]
    return both.beside(first[0], first[1])

  def pairs(port: TrainingRun, at: int) -> Sequence[QuantityPair]:
    found = _pairs(beside(port, at), at, _COMPARED, moved)
    return [pair for pair in found if pair.quantity in COMPARED]

  def compare(port: TrainingRun, at: int) -> Sequence[Difference]:
    part = _comparison(case, pairs(port, at), at)
    part.excuse_rounding(again.taken(), again.rerun(at), again.here(at))
    return part.differences

  def explain(port: TrainingRun) -> Sequence[Cause]:
    return tuple(_causes(both, beside(port, number), number))

  known = both.so_far().tf2
  port = dataclasses.replace(
    known, steps=tuple(steps.tf2.steps[-1] if s.number == number else s for s in known.steps)
  )
  judge = StepJudge(pairs, compare, explain)
  looked_at = of_step(made.guessing(steps), port, judge, {})
  return dataclasses.replace(looked_at, sides=lambda: penalized_alike(looked_at.sides()))


def _check_alike(steps: Steps) -> None:
  """Raises NotApplicable where a right port may make another thing of the same gradients."""
  decays = {any(map(_decays, run.optimizers)) for run in (steps.tf1, steps.tf2)}
  if len(decays) > 1:
    raise NotApplicable(_APART)
  if _scale(steps.tf1.steps[-1]) > 1.0 + _CLOSE:
    raise NotApplicable('tf1 scales its loss')


def _penalties(runs: PreparedRuns, steps: Steps) -> tuple[Cause, ...]:
  """Returns what differs in the penalties that both sides minimize.

  Raises:
    NotApplicable: it is not seen that both do, or neither: one may declare it, and the other one
      add it to its loss itself.
  """
  regularize = [bool(run.regularization_total) for run in (steps.tf1, steps.tf2)]
  if not any(regularize):
    return ()
  made = StepGraphs(runs.case, (runs.tf1_run, runs.tf2_run), steps, 1)
  try:
    sides = None if made.are_left_out else made.sides()
  except (NotTraceable, WrittenOtherwise) as error:
    if all(regularize):
      return ()
    raise NotApplicable(_APART) from error
  if sides is None and not all(regularize):
    raise NotApplicable(_APART)
  if sides is None:
    return ()
  found = penalty_cause(sides if all(regularize) else penalized_alike(sides))
  return () if found is None else (found,)


def _check_unclipped(step: TrainingStep) -> None:
  """Raises NotApplicable where tf1 clips: by a norm of gradients that the port does not have."""
  applied = {record.name: record.value for record in step.applied_gradients}
  for record in step.gradients:
    one, other = record.value, applied.get(record.name)
    if one is not None and (other is None or not np.array_equal(one, other)):
      raise NotApplicable('a variable has no counterpart, and tf1 clips by the gradients of all')


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


def _pairs(
  steps: Steps, number: int, wanted: frozenset[str], moved: frozenset[str]
) -> list[QuantityPair]:
  """Returns what is compared of a step: of what has a gradient, and of what is moved without."""
  given = {r.name for r in steps.tf1.steps[number - 1].gradients if r.value is not None}
  return [
    pair
    for pair in steps.pairs(number)
    if (pair.quantity in wanted and (not pair.variable or pair.variable in given))
    or (pair.variable in moved and pair.quantity in _MOVED)
  ]


def _comparison(case: CaseUnderTest, pairs: Sequence[QuantityPair], number: int) -> Comparison:
  comparison = Comparison()
  for pair in pairs:
    key = TensorKey(pair.quantity, pair.subject, step_name(number))
    comparison.tensors(key, pair.tf1, pair.tf2, tolerance_for(pair, case.training_tolerance))
  return comparison


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
