"""Rung 8: training goes the same way."""

import dataclasses
from collections.abc import Sequence

import numpy as np

from tf2verify.compare.moving import Mover
from tf2verify.errors import CaseDefinitionError, NotApplicable
from tf2verify.records.difference import Difference
from tf2verify.records.training import TrainingRun
from tf2verify.records.verdict import Table
from tf2verify.sides import inputs as case_inputs
from tf2verify.sides.side import Declaration, FilledRun
from tf2verify.sides.tf1_training import PreparedSteps
from tf2verify.stages import step_quantities as quantities
from tf2verify.stages import training_causes
from tf2verify.stages.comparing import Comparison, side_by_side
from tf2verify.stages.rounding import Rerun, Suspect
from tf2verify.stages.stage import CaseUnderTest, Findings, Stage
from tf2verify.stages.step_quantities import QuantityPair, Steps, tolerance_for
from tf2verify.stages.training_causes.cause import About
from tf2verify.stages.training_remarks import blind_spots, idle_updates, remarks, step_table
from tf2verify.stages.zero_randomness import CaseFill

_ABOUT = {
  quantities.LEARNING_RATE: About.LEARNING_RATE,
  quantities.LOSS: About.LOSS,
  quantities.GRADIENT: About.GRADIENTS,
  quantities.APPLIED: About.GRADIENTS,
  quantities.SLOT: About.UPDATE,
  quantities.UPDATE: About.UPDATE,
  quantities.STATE: About.UPDATE,
  quantities.SHADOW: About.SHADOWS,
  quantities.GLOBAL_STEP: About.COUNT,
}
# Moved runs are kept for the steps to come up to this size.
_KEPT_BYTES = 256 * 2**20


class TrainingSteps(Stage):
  """Takes training steps on both sides."""

  name = 'training_steps'
  needs = ('gradients', 'loss')
  proves = (
    'after each of several training steps, losses, variables and the state of the optimizers agree'
  )
  diagnosed = False

  def check(self, case: CaseUnderTest) -> Findings:
    """Compares step by step, at distinct variable values and with aligned random ops.

    Stops at the first step that differs: what follows are consequences. Of a variable
    its change since the start is compared, which is small beside its value.
    """
    count = _count(case.declaration)
    training = True in case.declaration.training_modes
    inputs, replaced = case_inputs.varied_inputs(case.inputs)
    pairs = case.alignment().pairs
    fill = CaseFill(case.declaration)
    tf1_run = FilledRun(inputs, training, fill, {tf1: tf1 for tf1, _ in pairs}, gradients=True)
    tf2_run = FilledRun(inputs, training, fill, {tf2: tf1 for tf1, tf2 in pairs}, gradients=True)
    run_tf1 = case.tf1_training.prepare_steps(tf1_run, count)
    tf1, tf2 = side_by_side(
      lambda: run_tf1(None), lambda: case.tf2_training.observe_steps(tf2_run, count)
    )
    trainable = frozenset(v.name for v in case.tf1.inventory().variables if v.trainable)
    return _Judge(case, Steps(tf1, tf2, pairs, trainable), run_tf1).findings(count, replaced)


def _count(declaration: Declaration) -> int:
  """Returns how many steps to take.

  Raises:
    NotApplicable: a side declares no training.
    CaseDefinitionError: the number is none.
  """
  hooks = (('make_tf1_optimizer', 'make_tf1_train_op'), ('make_tf2_optimizer', 'tf2_train_step'))
  missing = [
    f'{one} (or {other})'
    for one, other in hooks
    if not declaration.declares(one) and not declaration.declares(other)
  ]
  if missing:
    raise NotApplicable(f'the case declares no {" and no ".join(missing)}')
  count = declaration.training_steps_to_take
  if not isinstance(count, int) or isinstance(count, bool) or count < 1:
    raise CaseDefinitionError(
      f'training_steps_to_take is {count!r}; it is a number of steps, 1 or more: 3 by default, '
      'more where a learning-rate schedule has a boundary to cross'
    )
  return count


class _Judge:
  """Compares two runs step by step."""

  def __init__(self, case: CaseUnderTest, steps: Steps, run_tf1: PreparedSteps) -> None:
    self._case = case
    self._steps = steps
    self._moved = _MovedRuns(run_tf1)
    self._names = dict(steps.names)
    self._idle = idle_updates(steps)
    self._variables: dict[tuple[str, str], str] = {}

  def findings(self, count: int, replaced: Sequence[str]) -> Findings:
    """Returns what the stage found."""
    comparison = Comparison()
    parted = 0
    with comparison.unless_drawn_in_a_loop(self._steps.tf1) as part:
      for number in range(1, count + 1):
        self._compare(part, number)
        part.sort_out_rounding(self._steps.tf1, self._moved.rerun(number))
        if part.differences:
          parted = number
          break
    comparison.blind_spots += blind_spots(self._steps)
    notes = list(remarks(self._steps, parted))
    if replaced:
      notes.append(f'constant inputs were varied: {", ".join(replaced)}')
    findings = comparison.findings(notes)
    explained = self._explained(findings.differences, parted)
    reason = self._idle.reason if self._idle.variables else findings.inconclusive
    return dataclasses.replace(
      findings, differences=explained, inconclusive=reason, tables=(self._table(parted),)
    )

  def _compare(self, comparison: Comparison, number: int) -> None:
    for pair in self._steps.pairs(number):
      if pair.variable in self._idle.variables:
        continue
      subject = self._subject(pair)
      self._variables[pair.quantity, subject] = pair.variable
      allowed = tolerance_for(pair, self._case.training_tolerance)
      comparison.tensors(pair.quantity, subject, pair.tf1, pair.tf2, allowed, f'step {number}')

  def _subject(self, pair: QuantityPair) -> str:
    port = self._names.get(pair.variable, pair.variable)
    return pair.subject if port == pair.variable else f'{pair.subject} (tf2: {port})'

  def _explained(self, found: Sequence[Difference], parted: int) -> tuple[Difference, ...]:
    """Sorts differences by cause and effect, and names the causes that the numbers show."""
    if not parted:
      return tuple(found)
    order = quantities.CAUSAL_ORDER
    ordered = sorted(found, key=lambda known: order.index(known.quantity))
    steps = self._steps
    causes = training_causes.causes(steps.tf1, steps.tf2, steps.names, parted)
    return tuple(
      training_causes.explained(
        known,
        _ABOUT[known.quantity],
        self._variables.get((known.quantity, known.subject), ''),
        causes,
      )
      for known in ordered
    )

  def _table(self, parted: int) -> Table:
    """Returns losses and learning rates; with differences, how many tensors differ."""
    differing: dict[int, int] = {}
    for number in range(1, len(self._steps.tf1.steps) + 1 if parted else 0):
      part = Comparison()
      self._compare(part, number)
      differing[number] = len(part.differences)
    return step_table(self._steps, differing)


class _StepValues:
  """What a moved run of the reference computed in one step."""

  def __init__(self, run: TrainingRun, number: int) -> None:
    self._values = quantities.of_reference(run, number)

  def of(self, suspect: Suspect) -> np.ndarray | None:
    """Returns the tensor that the suspect's is to be compared with; None if there is none."""
    return self._values.get((suspect.difference.quantity, suspect.tf1_subject))


class _MovedRuns:
  """Runs of the reference with moved values, each made once where memory allows it."""

  def __init__(self, run_tf1: PreparedSteps) -> None:
    self._run = run_tf1
    self._known: dict[Mover | None, TrainingRun] = {}
    self._bytes = 0

  def rerun(self, number: int) -> Rerun:
    """Returns what runs the reference again, to look at one step."""

    def again(mover: Mover | None, _: frozenset[str]) -> _StepValues:
      return _StepValues(self._of(mover), number)

    return again

  def _of(self, mover: Mover | None) -> TrainingRun:
    if mover is None or mover not in self._known:
      run = self._run(mover)
      self._bytes += _size(run)
      if mover is None or self._bytes > _KEPT_BYTES:
        return run
      self._known[mover] = run
    return self._known[mover]


def _size(run: TrainingRun) -> int:
  arrays = [record.value for step in run.steps for record in (*step.variables, *step.gradients)]
  return sum(array.nbytes for array in arrays if array is not None)
