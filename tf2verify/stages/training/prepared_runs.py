"""Training steps of both sides, made ready to be taken."""

import dataclasses
from collections.abc import Sequence

from tf2verify.reference import inputs as case_inputs
from tf2verify.sides.side import RunSpec
from tf2verify.sides.tf1.reference_steps import PreparedSteps, ReferenceSteps
from tf2verify.stages.passes.training_fill import training_fill
from tf2verify.stages.stage import CaseUnderTest
from tf2verify.stages.training.both_sides import BothSides
from tf2verify.stages.training.declared_steps import declared_count


@dataclasses.dataclass(frozen=True, eq=False)
class PreparedRuns:
  """Steps of both sides from distinct values, in training if the case has that."""

  case: CaseUnderTest
  count: int  # how many steps the case declares
  replaced: Sequence[str]  # constant inputs that were varied
  tf1_run: RunSpec
  tf2_run: RunSpec
  run_tf1: PreparedSteps

  def both_sides(self, reference: ReferenceSteps) -> BothSides:
    """Returns both sides before their first step, that of tf1 opened.

    The port is not held here, to be let go of.
    """
    case = self.case
    trainable = frozenset(v.name for v in case.tf1.inventory().variables if v.trainable)
    port = case.tf2_training.begin_steps(self.tf2_run, self.count)
    slot_names = case.declaration.slot_names
    return BothSides(reference, port, case.alignment().pairs, trainable, slot_names)


def prepared_runs(case: CaseUnderTest) -> PreparedRuns:
  """Returns the steps that a case declares.

  Raises:
    NotApplicable: a side declares no training.
    CaseDefinitionError: the number of steps is none.
  """
  count = declared_count(case)
  training = True in case.declaration.training_modes
  inputs, replaced = case_inputs.varied_inputs(case.inputs)
  pairs, fill = case.alignment().pairs, training_fill(case)
  tf1_run = RunSpec(inputs, training, fill, {tf1: tf1 for tf1, _ in pairs}, gradients=True)
  tf2_run = RunSpec(inputs, training, fill, {tf2: tf1 for tf1, tf2 in pairs}, gradients=True)
  run_tf1 = case.tf1_training.prepare_steps(tf1_run, count)
  return PreparedRuns(case, count, replaced, tf1_run, tf2_run, run_tf1)
