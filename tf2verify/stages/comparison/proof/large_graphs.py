"""Graphs too large to make a layer for the proof alone: related with one that has been used."""

import time
from collections.abc import Callable

from tf2verify.records.op_graph import OpGraph
from tf2verify.records.proven import Proven
from tf2verify.sides.fill import ConstantFill
from tf2verify.sides.side import RunSpec, training_name
from tf2verify.sides.tf2.graphs.port_tracing import traced_port
from tf2verify.sides.tf2.layers.port import Port
from tf2verify.stages.comparison.comparing import Comparison
from tf2verify.stages.comparison.proof.proving import (
  TOO_LARGE,
  Related,
  add_blind_spots,
  attempted,
  compared,
  paired_variables,
  reference_graph,
)
from tf2verify.stages.stage import CaseUnderTest


class LargeGraphs:
  """Relates the graphs that earlier stages left out, in one training mode.

  A port is traced with a layer of its own, since a trace may leave symbolic tensors in it. To
  make the variables of a large one takes most of that time; the layers of a seeded run have
  theirs, and nothing else uses them. Training is related where the case has it: its graph has
  the operations of inference, and more.
  """

  def __init__(self, case: CaseUnderTest) -> None:
    """Takes the case, whose earlier stages have run."""
    self._case = case
    self._training = True in case.declaration.training_modes
    self._port: OpGraph | Exception | None = None
    self._start = 0.0

  def reader(self, training: bool) -> Callable[[Port], None] | None:
    """Returns what traces a layer after its run in a training mode; None if that is not needed."""
    if TOO_LARGE not in self._case.remembered or training is not self._training:
      return None
    return self._read

  def _run(self) -> RunSpec:
    names = {other: one for one, other in self._case.alignment().pairs}
    return RunSpec(self._case.inputs, self._training, ConstantFill(), names)

  def _read(self, port: Port) -> None:
    self._start = time.perf_counter()
    try:
      self._port = traced_port(self._case.declaration, port, self._run()).op_graph()
    except Exception as error:  # noqa: BLE001 - `relate` says what it was
      self._port = error

  def relate(self, comparison: Comparison) -> Proven | None:
    """Relates what was traced; None where nothing was to be.

    Args:
      comparison: of the stage, which found no difference; differences of the graphs without an
        effect become blind spots of it.
    """
    case, port, name, start = self._case, self._port, training_name(self._training), self._start
    if port is None:
      return None

    def related() -> Related:
      if isinstance(port, Exception):
        raise port
      graph = reference_graph(case.tf1, self._run(), case.alignment().pairs)
      return compared(graph, port, paired_variables(case), name, start)

    found = attempted(name, start, related)
    add_blind_spots(comparison, found)
    return found.record()
