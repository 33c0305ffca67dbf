"""Which of two execution modes computes what tf1 computes."""

from collections.abc import Iterable, Sequence

import numpy as np

from tf2verify.errors import Tf2VerifyError
from tf2verify.records import execution_mode as words
from tf2verify.records.tensor_key import TensorKey
from tf2verify.sides.modes.execution_modes import PortModes
from tf2verify.sides.side import RunSpec, training_name
from tf2verify.stages.modes.comparison import Pair, tolerance_of
from tf2verify.stages.modes.evidence import agree
from tf2verify.stages.stage import CaseUnderTest

_BOTH, _EAGER, _OTHER, _NEITHER = 'both', 'eager', 'other', 'neither'


class Reference:
  """Runs tf1 for calls in which modes of the port differ, once for each call."""

  def __init__(self, case: CaseUnderTest, port: PortModes) -> None:
    self._case = case
    self._port = port
    self._values: dict[tuple[bool, int, bool], dict[TensorKey, np.ndarray | None]] = {}
    self._found: dict[tuple[TensorKey, bool, str], list[str]] = {}
    self._errors: dict[str, None] = {}

  def ask(self, pairs: Sequence[Pair]) -> None:
    """Compares what differs in one call of a mode with tf1."""
    first = pairs[0]
    try:
      values = self._of_tf1(first.training, first.number, pairs)
    except Tf2VerifyError as error:
      self._errors[f'which mode agrees with tf1 could not be determined: {error}'] = None
      return
    known = [pair for pair in pairs if pair.key in values]
    if known:
      pair = min(known, key=lambda pair: pair.rank)
      key = (pair.key, pair.training, self._verdict(pair, values[pair.key]))
      self._found.setdefault(key, []).append(pair.mode)

  def notes(self) -> tuple[str, ...]:
    """Returns what was found, for a report."""
    notes = []
    for (key, training, verdict), modes in self._found.items():
      others = ', '.join(dict.fromkeys(modes))
      what = f'{key}, {training_name(training)}: '
      if verdict == _EAGER:
        what += f'the port equals tf1 in eager mode, and differs from it in {others}'
      elif verdict == _OTHER:
        what += f'the port equals tf1 in {others}, and differs from it in eager mode'
      elif verdict == _NEITHER:
        what += f'the port differs from tf1 in eager mode and, differently, in {others}'
      else:
        what += f'eager mode and {others} are on either side of tf1, each within the tolerance'
      notes.append(what)
    return (*notes, *self._errors)

  def _verdict(self, pair: Pair, value: np.ndarray | None) -> str:
    tolerance = tolerance_of(self._case, pair.other.quantity)
    like_eager = agree(value, pair.eager.value, tolerance)
    like_other = agree(value, pair.other.value, tolerance)
    if like_eager:
      return _BOTH if like_other else _EAGER
    return _OTHER if like_other else _NEITHER

  def _of_tf1(
    self, training: bool, number: int, pairs: Iterable[Pair]
  ) -> dict[TensorKey, np.ndarray | None]:
    """Returns what tf1 computes, by the keys of the port's tensors."""
    quantities = {pair.other.quantity for pair in pairs}
    forward = bool(quantities & {words.OUTPUT, words.GRADIENT})
    key = (training, number, forward)
    if key not in self._values:
      run = self._port.run_of(training, number)
      names = {tf1: tf1 for tf1, _ in self._case.alignment().pairs}
      asked = RunSpec(run.inputs, training, run.fill, names, gradients=run.gradients)
      self._values[key] = self._run_forward(asked) if forward else self._run_losses(asked)
    return self._values[key]

  def _run_forward(self, run: RunSpec) -> dict[TensorKey, np.ndarray | None]:
    (observed,) = self._case.tf1.prepare_filled([run])()
    found = {TensorKey(words.OUTPUT, record.name): record.value for record in observed.outputs}
    gradients = {record.name: record.value for record in observed.gradients}
    for tf1_name, tf2_name in self._case.alignment().pairs:
      if tf1_name in gradients:
        found[TensorKey(words.GRADIENT, tf2_name)] = gradients[tf1_name]
    return found

  def _run_losses(self, run: RunSpec) -> dict[TensorKey, np.ndarray | None]:
    declaration = self._case.declaration
    trained = True in declaration.training_modes
    if not declaration.declares('tf1_loss') or run.training is not trained:
      return {}  # the graph with losses is there in one training mode only
    losses = self._case.tf1_training.observe_losses(run)
    return {
      TensorKey(words.LOSS, '(tf2_loss)'): losses.loss,
      TensorKey(words.TOTAL_LOSS, '(total)'): losses.total_loss,
    }
