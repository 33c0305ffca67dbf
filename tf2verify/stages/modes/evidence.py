"""What may show why a port computes one thing in one execution mode and another in the next."""

from collections.abc import Sequence

import numpy as np

from tf2verify.diagnosis.evidence.modes import ModeEvidence
from tf2verify.numerics.arrays import compare_arrays
from tf2verify.numerics.tolerance import ToleranceTable
from tf2verify.records import execution_mode as words
from tf2verify.records.execution_mode import ModeCall, ModeRun
from tf2verify.sides.modes.execution_modes import PortModes
from tf2verify.stages.modes.comparison import Pair, tolerance_of
from tf2verify.stages.stage import CaseUnderTest


def agree(one: np.ndarray | None, other: np.ndarray | None, tolerance: ToleranceTable) -> bool:
  """Returns whether two tensors agree within the tolerance, or are absent both."""
  if one is None or other is None:
    return one is other
  return compare_arrays(one, other, tolerance.for_dtype(one.dtype)).aspect is None


def calls_agree(case: CaseUnderTest, one: ModeCall, other: ModeCall) -> bool:
  """Returns whether two calls computed the same."""
  others = other.values()
  return all(
    agree(tensor.value, others.get(tensor.key), tolerance_of(case, tensor.quantity))
    for tensor in one.tensors
  )


def mode_evidence(
  case: CaseUnderTest, port: PortModes, eager: ModeRun, pairs: Sequence[Pair]
) -> ModeEvidence:
  """Returns what may show why one call of a mode computes something else.

  Args:
    case: the case.
    port: the port, to be run again.
    eager: what eager mode computed.
    pairs: all pairs of the call.
  """
  wrong = [pair for pair in pairs if pair.difference is not None]
  mode, training = wrong[0].mode, wrong[0].training
  quantities = {pair.other.quantity for pair in wrong}
  is_loss = words.LOSS in quantities and not quantities & {words.OUTPUT, words.REGULARIZATION}

  def loss_of_constants_agrees() -> bool:
    loss = next(pair for pair in wrong if pair.other.quantity == words.LOSS)
    return agree(port.loss_alone(training, wrong[0].number), loss.eager.value, case.tolerance)

  return ModeEvidence(
    computes_inference=mode == words.FUNCTIONAL and training and _is_inference(case, eager, pairs),
    is_loss_alone=is_loss,
    loss_of_constants_agrees=loss_of_constants_agrees,
    factor=_common_factor(wrong) if mode == words.REPLICAS else None,
  )


def _is_inference(case: CaseUnderTest, eager: ModeRun, pairs: Sequence[Pair]) -> bool:
  number = pairs[0].number
  inference = [c for c in eager.calls if not c.training and c.number == number]
  outputs = [pair for pair in pairs if pair.other.quantity == words.OUTPUT]
  if not inference or all(pair.difference is None for pair in outputs):
    return False
  values = inference[0].values()
  return all(agree(values.get(p.key), p.other.value, case.tolerance) for p in outputs)


def _common_factor(wrong: Sequence[Pair]) -> float | None:
  """Returns 2 or 1/2 where all tensors differ by that factor; None elsewhere."""
  for factor in (2.0, 0.5):
    if all(_is_multiple(pair.eager.value, pair.other.value, factor) for pair in wrong):
      return factor
  return None


def _is_multiple(one: np.ndarray | None, other: np.ndarray | None, factor: float) -> bool:
  if one is None or other is None or one.shape != other.shape or one.dtype.kind != 'f':
    return False
  # What is scaled within a sum rounds differently.
  close = np.abs(other - factor * one) <= 1e-5 * np.abs(factor * one) + 1e-30
  return bool(np.any(one)) and bool(close.all())
