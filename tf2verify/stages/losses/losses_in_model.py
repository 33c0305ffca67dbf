"""The losses within the model: what training minimizes, with regularization."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tf2verify.diagnosis.causes import first_cause
from tf2verify.diagnosis.evidence.losses import Penalty, TotalLossEvidence
from tf2verify.errors import CaseDefinitionError, UserCodeError
from tf2verify.numerics.arrays import compare_arrays, total
from tf2verify.records.diagnosis import Cause
from tf2verify.records.difference import Difference
from tf2verify.records.tensor_key import Run, TensorKey
from tf2verify.records.training import LossObservation
from tf2verify.reference.perturbation import Perturber
from tf2verify.sides.graphs.run import GraphRun
from tf2verify.sides.losses import loss_function
from tf2verify.sides.side import RunSpec
from tf2verify.stages.comparison.comparing import Comparison
from tf2verify.stages.comparison.noise.double_precision import explained
from tf2verify.stages.losses import loss_graphs
from tf2verify.stages.losses.edited_model import QUANTITY, EditedModel
from tf2verify.stages.losses.results import comparable, loss_tolerance, summed
from tf2verify.stages.passes.zero_randomness import case_fill
from tf2verify.stages.stage import CaseUnderTest, EditedRuns

TOTAL = loss_function.TOTAL


@dataclasses.dataclass(frozen=True, eq=False)
class InModel:
  """Both sides' losses within the model."""

  tf1: LossObservation  # the reference's
  tf2: LossObservation  # the port's
  rerun: Callable[[Perturber | None], LossObservation]  # runs the reference again, moved
  runs: tuple[RunSpec, RunSpec]  # what both sides were given


def observed(case: CaseUnderTest, inputs: Any) -> InModel:
  """Runs both models and their losses, in training mode at distinct values.

  Raises:
    UserCodeError: a loss raised; the message tells where labels do not fit.
  """
  training = True in case.declaration.training_modes
  pairs = case.alignment().pairs
  fill = case_fill(case)
  tf1_run = RunSpec(inputs, training, fill, {tf1: tf1 for tf1, _ in pairs})
  tf2_run = RunSpec(inputs, training, fill, {tf2: tf1 for tf1, tf2 in pairs})
  try:
    tf1 = case.tf1_training.observe_losses(tf1_run)
    tf2 = case.tf2_training.observe_losses(tf2_run)
  except UserCodeError as error:
    slip = _slip_of_labels(case)
    if not slip or 'loss' not in error.hook:
      raise
    summary, text = f'{error.summary}; {slip}', error.traceback_text
    raise UserCodeError(error.side, error.hook, summary, text) from error.__cause__

  _check_parts(tf1, tf2)

  def rerun(perturber: Perturber | None) -> LossObservation:
    again = dataclasses.replace(tf1_run, perturber=perturber)
    return case.tf1_training.observe_losses(again, again=True)

  return InModel(tf1, tf2, rerun, (tf1_run, tf2_run))


def _check_parts(tf1: LossObservation, tf2: LossObservation) -> None:
  """Raises `CaseDefinitionError` for losses whose parts cannot be paired by their places."""
  if tf1.parts is None or tf2.parts is None:
    return
  ones, others = ([part.name for part in found.parts or ()] for found in (tf1, tf2))
  if set(ones) == set(others):
    return
  shown = [', '.join(names) if names else 'one tensor' for names in (ones, others)]
  raise CaseDefinitionError(
    f'tf1_loss returned {shown[0]} and tf2_loss {shown[1]}: the parts of a loss are compared by '
    'their names, so both return the same: a tensor, or a dictionary, tuple or list of as many '
    'parts under the same keys'
  )


def _slip_of_labels(case: CaseUnderTest) -> str:
  labels = loss_function.leaves_of(case.labels)
  if not labels:  # of None, whoever calls the loss says so
    return '' if case.labels is None else 'make_labels returned no array'
  inputs = loss_function.leaves_of(case.inputs)
  sizes = [
    {array.shape[0] for array in leaves.values() if array.ndim} for leaves in (inputs, labels)
  ]
  if not all(sizes) or sizes[0] & sizes[1]:
    return ''
  shown = [', '.join(map(str, sorted(found))) for found in sizes]
  return (
    f'make_labels gives arrays of leading size {shown[1]}, make_inputs of {shown[0]}: labels of a '
    'different batch size; make_labels must give one label per example of make_inputs'
  )


def outputs_agree(case: CaseUnderTest, model: InModel) -> bool:
  """Returns whether the models' outputs agree, so that what differs is the losses' own."""
  tf1 = loss_function.leaves_of(model.tf1.outputs)
  tf2 = loss_function.leaves_of(model.tf2.outputs)
  return tf1.keys() == tf2.keys() and all(
    compare_arrays(tf1[path], tf2[path], case.tolerance.for_dtype(tf1[path].dtype)).aspect is None
    for path in tf1
  )


def compare(
  case: CaseUnderTest, model: InModel, comparison: Comparison, totals_only: bool = False
) -> list[str]:
  """Compares the model's losses, and what training minimizes.

  Args:
    case: the case.
    model: both sides' losses.
    comparison: gets what is found.
    totals_only: whether the losses themselves are known to be other parts of the same total.

  Returns:
    Notes.
  """
  tolerance, run = loss_tolerance(case.tolerance), model.tf1.run

  loss = comparable(model.tf1.loss, model.tf2.loss)
  total = comparable(model.tf1.total_loss, model.tf2.total_loss)

  parts = {
    loss_function.part_name(one.name): comparable(one.value, other.value)
    for one in model.tf1.parts or ()
    for other in model.tf2.parts or ()
    if one.name == other.name and one.value is not None and other.value is not None
  }

  pairs = {'loss': loss, TOTAL: total, **parts}

  def rerun(perturber: Perturber | None, wanted: frozenset[TensorKey]) -> Run:
    found = model.rerun(perturber)
    values = {'loss': found.loss, TOTAL: found.total_loss}
    values |= {
      loss_function.part_name(p.name): p.value for p in found.parts or () if p.value is not None
    }
    return {
      key: value if pairs[key.name][0].shape == value.shape else summed(value)
      for key in wanted
      if (value := values.get(key.name)) is not None
    }

  notes = _notes_on_parts(model)
  side = _with_regularization(model)
  if totals_only:
    del pairs['loss']
  elif side:
    notes.append(f'the loss of {side} includes its regularization already, so totals were compared')
    del pairs['loss']
  for name, pair in pairs.items():
    comparison.tensors(TensorKey(QUANTITY, name, run), *pair, tolerance)
  graphs = loss_graphs.of_model(case, *model.runs).sides
  comparison.excuse_rounding(
    None, rerun, further=lambda suspects, known: explained(suspects, known, graphs)
  )
  return notes


def _notes_on_parts(model: InModel) -> list[str]:
  if model.tf2.parts and model.tf1.parts is None:
    return [
      'tf2_loss returns parts, and only the total loss of the reference is known: its parts were '
      'not compared'
    ]
  if not model.tf1.parts:
    return []
  return [
    f'{len(model.tf1.parts)} parts of the loss were compared by name on the outputs of the model, '
    'and the loss that represents them on further outputs'
  ]


def _with_regularization(model: InModel) -> str:
  """Returns the one side whose loss is its total loss, regularization and all; '' elsewhere."""
  tf1, tf2 = model.tf1, model.tf2
  complete = {
    found.side
    for found in (tf1, tf2)
    if found.regularization_total is not None
    and np.any(found.regularization_total)
    and np.array_equal(found.loss, found.total_loss)
  }
  gap = total(tf1.loss) - total(tf2.loss)
  for found, sign in ((tf1, 1.0), (tf2, -1.0)):
    if complete == {found.side} and found.regularization_total is not None:
      expected = sign * float(found.regularization_total) * found.loss.size
      return found.side if np.isclose(gap, expected, 1e-3, 1e-6) else ''
  # One side adds it up by hand in its loss, the other one to its loss.
  added = {found.side: total(found.total_loss) - total(found.loss) for found in (tf1, tf2)}
  for found, other, sign in ((tf1, tf2, 1.0), (tf2, tf1, -1.0)):
    if not added[found.side] and found.loss.size == other.loss.size == 1 and added[other.side]:
      return found.side if np.isclose(gap, sign * added[other.side], 1e-3, 1e-6) else ''
  return ''


def cause_of_totals(model: InModel, penalties: Callable[[], Sequence[Penalty]]) -> str:
  """Returns why what training minimizes differs; '' where no known cause is seen.

  Args:
    model: both sides' losses.
    penalties: returns the variables that count differently in it, see `penalties`.
  """
  one, other = comparable(model.tf1.total_loss, model.tf2.total_loss)
  if one.shape != other.shape:
    return ''
  gap = total(one) - total(other)
  return first_cause(TotalLossEvidence(model.tf1, model.tf2, gap, penalties))


def edited(
  case: CaseUnderTest, model: InModel, differences: Sequence[Difference]
) -> EditedRuns | None:
  """Returns how causes of losses that differ within the model are tried out.

  Args:
    case: the case.
    model: both sides' losses.
    differences: what the stage has found.

  Returns:
    None where something else than values of losses differs as well.
  """
  failed = frozenset(d.subject for d in differences if d.quantity == QUANTITY)
  if any(d.quantity != QUANTITY for d in differences):
    return None
  hints = sorted({d.hint for d in differences if d.hint})

  def make(tf1: GraphRun) -> EditedModel:
    return EditedModel(
      tf1,
      lambda: loss_graphs.traced_model(case, model.runs[1]),
      (model.tf1, model.tf2),
      failed,
      loss_tolerance(case.tolerance),
      lambda: [Cause(hint) for hint in hints],
    )

  return EditedRuns(make, (QUANTITY,))
