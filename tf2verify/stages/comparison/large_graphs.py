"""Graphs too large to make a layer for the proof alone: related with one that has been used."""

import time
from collections.abc import Callable

from tf2verify.errors import NotApplicable
from tf2verify.records.op_graph import OpGraph
from tf2verify.records.proven import Proven
from tf2verify.sides.fill import ConstantFill
from tf2verify.sides.side import RunSpec, training_name
from tf2verify.sides.tf2.port import Port
from tf2verify.sides.tf2.port_tracing import traced_port
from tf2verify.sides.tf2.tracing import NotTraceable
from tf2verify.stages.comparison.comparing import Comparison
from tf2verify.stages.comparison.proving import (
  TOO_LARGE,
  add_blind_spots,
  compared,
  not_related,
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
    self._traced: OpGraph | None = None
    self._problem = ''
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
      self._traced = traced_port(self._case.declaration, port, self._run()).op_graph()
    except NotTraceable as error:
      self._problem = str(error)
    except Exception as error:  # noqa: BLE001 - a fault in here must not cost the stage
      self._problem = f'{type(error).__name__}: {error}'

  def relate(self, comparison: Comparison) -> Proven | None:
    """Relates what was traced; None where nothing was to be.

    Args:
      comparison: of the stage, which found no difference; differences of the graphs without an
        effect become blind spots of it.
    """
    name = training_name(self._training)
    if self._traced is None:
      return not_related(name, self._problem, self._start).record() if self._problem else None
    case = self._case
    try:
      graph = reference_graph(case.tf1, self._run(), case.alignment().pairs)
      found = compared(graph, self._traced, paired_variables(case), name, self._start)
    except NotApplicable as error:
      found = not_related(name, str(error), self._start)
    except Exception as error:  # noqa: BLE001 - as above
      found = not_related(name, f'{type(error).__name__}: {error}', self._start)
    add_blind_spots(comparison, found)
    return found.record()
