"""Rung 7: the losses agree, on the outputs of the model and on extreme ones."""

import contextlib
import dataclasses

import numpy as np

from tf2verify.errors import CaseDefinitionError, NotApplicable
from tf2verify.numerics.error_summary import extents
from tf2verify.records.difference import Difference
from tf2verify.records.op_graph import CONSTANT, TARGET, VARIABLE
from tf2verify.reference import inputs as case_inputs
from tf2verify.sides.side import RunSpec
from tf2verify.sides.tf2.traces.tracing import NotTraceable
from tf2verify.stages.comparison import first_nan
from tf2verify.stages.comparison.comparing import Comparison
from tf2verify.stages.comparison.proof.proving import relate_losses
from tf2verify.stages.losses import loss_graphs
from tf2verify.stages.losses import losses_in_model as loss_in_model
from tf2verify.stages.losses.metrics_alone import MetricsAlone
from tf2verify.stages.losses.moved_losses import MovedPart, moved_part
from tf2verify.stages.losses.penalties import penalties
from tf2verify.stages.losses.results import GRADIENT, LOSS
from tf2verify.stages.losses.separate_losses import SeparateLosses
from tf2verify.stages.stage import CaseUnderTest, Findings, Stage

_LOSSES, _METRICS = ('tf1_loss', 'tf2_loss'), ('tf1_metrics', 'tf2_metrics')
_ADDED = 'regularization loss '
# A hook may call the layer on inputs that it has made itself: these are no penalties.
_OF_PENALTIES = frozenset((VARIABLE, CONSTANT, TARGET)).union(
  ('L2Loss', 'Square', 'Abs', 'Pow', 'Sqrt', 'Sum', 'Mean', 'Mul', 'RealDiv', 'AddV2', 'AddN'),
  ('Sub', 'Neg', 'Cast', 'Identity', 'Reshape', 'Squeeze'),
)


class Loss(Stage):
  """Runs both losses, alone and within the model, and the metrics."""

  name = 'loss'
  needs = ('zero_randomness',)
  tried_when_blocked = stands_alone = True
  proves = (
    'the losses agree, in value and gradient, on the outputs of the model and on extreme ones'
  )
  diagnosed = False

  def check_alone(self, case: CaseUnderTest) -> Findings:
    """Does the same for models that differ, where no part of a loss may be in the port's call."""
    findings, model = self._checked(case)
    if not loss_in_model.outputs_agree(case, model) and _may_have_moved(case, findings, model):
      raise NotApplicable('what the losses differ in may be a part that the port adds in its call')
    return findings

  def check(self, case: CaseUnderTest) -> Findings:
    """Compares the losses alone first: on the same arrays, what differs is the loss itself."""
    findings, _ = self._checked(case)
    return findings

  def _checked(self, case: CaseUnderTest) -> tuple[Findings, loss_in_model.InModel]:
    with_loss, with_metrics = _declares(case, _LOSSES), _declares(case, _METRICS)
    if not with_loss and not with_metrics:
      raise NotApplicable(
        case.tf1_training.reason_without('tf1_loss')
        or 'the case declares no losses: tf1_loss and tf2_loss'
      )
    inputs, replaced = case_inputs.varied_inputs(case.inputs)
    model = loss_in_model.observed(case, inputs)
    comparison = Comparison()
    # On other outputs the losses may be numbers, and those of the model are what training reads.
    comparison.telling.needs_numbers = (('model loss', loss_in_model.TOTAL),)
    alone = SeparateLosses(case, model.tf1, model.tf2, comparison)
    metrics = MetricsAlone(case, model.tf1, model.tf2, comparison)
    if with_loss:
      alone.compare()
      _compare_in_model(case, model, alone, comparison)
    if with_metrics:
      metrics.compare()
    first_nan.explain(comparison, lambda: case.tf1_training.inspectable_losses(model.runs[0]))

    def with_cause(difference: Difference) -> Difference:
      if (difference.quantity, difference.subject) == ('model loss', loss_in_model.TOTAL):
        cause = loss_in_model.cause_of_totals(model, lambda: penalties(case, model))
        return dataclasses.replace(difference, hint=cause or difference.hint)
      return metrics.with_cause(alone.with_cause(difference))

    notes = [*alone.notes, *metrics.notes]
    if replaced:
      notes.append(f'constant inputs were varied: {", ".join(replaced)}')
    proven = None
    if with_loss and not comparison.differences:
      graphs = loss_graphs.of_model(case, *model.runs).sides
      proven = relate_losses(case, comparison, graphs)
    findings = comparison.findings(notes)
    differences = tuple(map(with_cause, findings.differences))
    inspection = alone.inspection() if with_loss else None
    if inspection is None and any(d.quantity == 'model loss' for d in differences):
      inspection = loss_graphs.of_model(
        case, *model.runs, loss_in_model.edited(case, model, differences)
      )
    found = dataclasses.replace(
      findings,
      differences=differences,
      inspection=inspection,
      tables=tuple(alone.tables),
      causes=alone.causes,
      proven=proven,
      extents=extents(findings.deviations, findings.differences),
    )
    return found, model


def _may_have_moved(case: CaseUnderTest, findings: Findings, model: loss_in_model.InModel) -> bool:
  """Returns whether the port may add what its loss lacks within its call, as by add_loss.

  A penalty on variables changes no gradient by the outputs, and one side adds it elsewhere. Any
  other part is one only if the port adds something, and tf1 nothing.
  """
  totals = [model.tf1.regularization_total, model.tf2.regularization_total]
  added = [total is not None and bool(np.any(total)) for total in totals]
  quantities = {known.quantity for known in findings.differences}
  if LOSS in quantities and GRADIENT not in quantities:
    return any(added)
  may_be_moved = not quantities.isdisjoint((LOSS, GRADIENT)) and added[1] and not added[0]
  return may_be_moved and not _are_of_variables(case, model.runs[1])


def _declares(case: CaseUnderTest, hooks: tuple[str, str]) -> bool:
  """Returns whether a case declares both of two hooks.

  Raises:
    CaseDefinitionError: it declares one of them.
    NotApplicable: the reference is a recording without.
  """
  declared = [hook for hook in hooks if case.declaration.declares(hook)]
  if len(declared) == 1:
    missing = next(hook for hook in hooks if hook not in declared)
    reason = case.tf1_training.reason_without(missing)
    if reason:
      raise NotApplicable(reason)
    raise CaseDefinitionError(
      f'the case declares {declared[0]}, but not {missing}: there is nothing to compare it with; '
      f'declare {missing} as well'
    )
  return bool(declared)


def _compare_in_model(
  case: CaseUnderTest, model: loss_in_model.InModel, alone: SeparateLosses, comparison: Comparison
) -> None:
  if not loss_in_model.outputs_agree(case, model):
    alone.notes.append(
      'the outputs of the models differ in this run, if only by rounding, so the losses within the '
      'models were not compared'
    )
  elif not alone.differs_on_model():
    alone.notes += loss_in_model.compare(case, model, comparison)
  elif (moved := moved_part(case, model)) is not None:
    alone.withdraw()
    alone.notes += loss_in_model.compare(case, model, comparison, totals_only=True)
    moved.compare(case, model, comparison)
    if moved.explains_all:
      comparison.blind_spots.append(_blind_spot(moved))


def _blind_spot(moved: MovedPart) -> str:
  agree = (
    'the total losses agree, in value and in their gradients by the variables,'
    if moved.graded
    else 'the total losses agree in value, their gradients by the variables cannot be formed,'
  )
  return (
    f'the port adds a part of the loss of tf1 within its call, as by add_loss: {agree} and the '
    'losses of given outputs, extreme ones too, are not compared; to compare them, also return '
    'that part in tf2_loss, and only the other losses in tf2_regularization_losses'
  )


def _are_of_variables(case: CaseUnderTest, run: RunSpec) -> bool:
  """Returns whether the losses that the port adds are penalties on variables, whatever its inputs.

  Not where it cannot be traced as a graph.

  Args:
    case: the case.
    run: what the port was given.
  """
  try:
    side = case.inspectable_port(run)
  except NotTraceable:
    return False
  with contextlib.closing(side):
    graph = side.op_graph
    added = [n for name, n in graph.targets().items() if name.startswith(_ADDED)]
    kinds = {graph.ops[n].op_type for n in graph.ancestors(added)}
    return VARIABLE in kinds and kinds <= _OF_PENALTIES
