"""The forget bias of an LSTM."""

from tf2verify.diagnosis.evidence.failed_stage import FailedStage
from tf2verify.diagnosis.lstm_cells import single_cells
from tf2verify.records.diagnosis import Cause


def lstm_forget_bias(evidence: FailedStage) -> Cause | None:
  """Cells of TF1 add it at every step; Keras has it in the initial value of the bias.

  Looks for LSTM cells that add another constant to the forget gate.
  """
  cells = single_cells(evidence)
  if cells is None or cells[0].forget_bias == cells[1].forget_bias:
    return None
  tf1, tf2 = (cell.forget_bias for cell in cells)
  return Cause(
    f'tf1 adds {tf1} to the forget gate at every step and the port {tf2}: cells of TF1 have '
    "forget_bias=1.0 beside the bias, Keras' unit_forget_bias only sets its initial value; add "
    f'{tf1 - tf2} in the cell, or to the forget block of the bias when it is copied',
    f'constant before the forget gate: {tf1} (tf1), {tf2} (tf2)',
  )
