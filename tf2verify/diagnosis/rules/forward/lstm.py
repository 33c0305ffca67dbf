"""The gates of an LSTM: their order, and the forget bias."""

from tf2verify.diagnosis.evidence.failed_stage import FailedStage
from tf2verify.diagnosis.patterns.operations.lstm_cells import single_cells
from tf2verify.records.accepted import Change, Changed
from tf2verify.records.diagnosis import Cause

_NAMES = {'i': 'input', 'f': 'forget', 'c': 'candidate', 'o': 'output'}


def lstm_gate_order(evidence: FailedStage) -> Cause | None:
  """One kernel, whose blocks of columns the two sides take for other gates.

  Looks for LSTM cells of one order of blocks on each side, and not the same.
  """
  cells = single_cells(evidence)
  if cells is None or cells[0].order == cells[1].order:
    return None
  tf1, tf2 = (', '.join(_NAMES[gate] for gate in cell.order) for cell in cells)
  places = ', '.join(str(cells[0].order.index(gate)) for gate in cells[1].order)
  return Cause(
    f'the order of the gates differs: the columns of kernel and bias are ({tf1}) in tf1 and '
    f'({tf2}) in the port (cells of TF1: i, c, f, o; Keras: i, f, c, o): split them in the order '
    f'of tf1, or put the blocks in the order [{places}] when the variables are copied',
    f'blocks {cells[0].order} (tf1), {cells[1].order} (tf2), identified by what each is used for',
  )


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
    "forget_bias=1.0 in addition to the bias, Keras' unit_forget_bias only sets its initial value; "
    'add '
    f'{tf1 - tf2} in the cell, or to the forget block of the bias when it is copied',
    f'constant before the forget gate: {tf1} (tf1), {tf2} (tf2)',
    change=Change(Changed.FORGET_BIAS, float(tf1), float(tf2)),
  )
