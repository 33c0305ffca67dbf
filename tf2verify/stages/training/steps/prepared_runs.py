"""Training steps of both sides, made ready to be taken."""

import dataclasses
from collections.abc import Sequence

from tf2verify.errors import CaseDefinitionError, NotApplicable
from tf2verify.reference import inputs as case_inputs
from tf2verify.sides import side
from tf2verify.sides.side import RunSpec
from tf2verify.sides.tf1.reference_steps import PreparedSteps, ReferenceSteps
from tf2verify.stages.passes.training_fill import training_fill
from tf2verify.stages.stage import CaseUnderTest
from tf2verify.stages.training.steps.both_sides import BothSides

_TF1_HOOKS = ('make_tf1_optimizer', 'make_tf1_train_op')
_TF2_HOOKS = ('make_tf2_optimizer', 'tf2_train_step')


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
  count = _declared_count(case)
  training = True in case.declaration.training_modes
  inputs, replaced = case_inputs.varied_inputs(case.inputs)
  pairs, fill = case.alignment().pairs, training_fill(case)
  tf1_run = RunSpec(inputs, training, fill, {tf1: tf1 for tf1, _ in pairs}, gradients=True)
  tf2_run = RunSpec(inputs, training, fill, {tf2: tf1 for tf1, tf2 in pairs}, gradients=True)
  run_tf1 = case.tf1_training.prepare_steps(tf1_run, count)
  return PreparedRuns(case, count, replaced, tf1_run, tf2_run, run_tf1)


def _declared_count(case: CaseUnderTest) -> int:
  """Returns how many steps to take.

  Raises:
    NotApplicable: a side declares no training.
    CaseDefinitionError: the number is none.
  """
  declaration = case.declaration
  hooks = (_TF1_HOOKS, _TF2_HOOKS)
  missing = [
    (one, other)
    for one, other in hooks
    if not declaration.declares(one) and not declaration.declares(other)
  ]
  reasons = [reason for one, _ in missing if (reason := case.tf1_training.reason_without(one))]
  lacking = [f'{one} (or {other})' for one, other in missing[len(reasons) :]]
  if lacking:
    reasons.append(f'the case declares no {" and no ".join(lacking)}')
  if reasons:
    raise NotApplicable('; '.join(reasons), _half(declaration, missing) if lacking else '')
  count = declaration.training_steps_to_take
  if not isinstance(count, int) or isinstance(count, bool) or count < 1:
    raise CaseDefinitionError(
      f'training_steps_to_take is {count!r}; it must be a number of steps, 1 or more: 3 by '
      'default, more where a learning-rate schedule has a boundary to cross'
    )
  return count


def _half(declaration: side.Declaration, missing: list[tuple[str, str]]) -> str:
  """Returns that a case declares the training of one side only; '' where it declares none."""
  if len(missing) > 1:
    return ''
  one, other = missing[0]
  declared = [hook for hook in (*_TF1_HOOKS, *_TF2_HOOKS) if declaration.declares(hook)]
  return (
    f'the case declares {" and ".join(declared)}, but neither {one} nor {other}: no training step '
    f'is compared; declare {one} as well'
  )
