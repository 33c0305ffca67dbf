"""The tf1 side: the reference's graph, run in fresh sessions."""

from collections.abc import Callable, Collection, Sequence
from typing import Any, final

import numpy as np

from tf2verify.records.observation import RandomDraw, TensorRecord
from tf2verify.sides import side
from tf2verify.sides.fill import Fill, RecordedFill
from tf2verify.sides.graphs.graph_defs.inlining import operation
from tf2verify.sides.graphs.initial_draws import InitialDraw
from tf2verify.sides.graphs.lines.user_sources import user_source
from tf2verify.sides.graphs.run import GraphRun
from tf2verify.sides.graphs.variables.effects import Effect, effects_in_any
from tf2verify.sides.hooks.other_sizes import shapes_of
from tf2verify.sides.tf1.graphs.build import BuiltGraph, inventory_of
from tf2verify.sides.tf1.graphs.effects import program_of
from tf2verify.sides.tf1.graphs.influence import WithoutInfluence, inputs_read, without_influence
from tf2verify.sides.tf1.graphs.live_graphs import Keeper, LiveGraphs
from tf2verify.sides.tf1.graphs.racing import Racing
from tf2verify.sides.tf1.reference import PreparedRuns, RecordedReference, SeededRun
from tf2verify.sides.tf1.session_runs import SessionRuns
from tf2verify.sides.tf1.sessions import starts
from tf2verify.sides.tf1.sessions.reference_run import graph_run_of


@final
class Tf1Graph:
  """Builds each training mode's graph once; every run has a session of its own.

  Attributes:
    racing: in which order operations run that the graph does not order.
  """

  def __init__(
    self,
    declaration: side.Declaration,
    inputs: Any,
    progress: side.Progress,
    port_is_of_keras3: Callable[[], bool],
    racing: Racing | None = None,
    keeper: Keeper | None = None,
    holds_sizes: bool = False,
  ) -> None:
    """Takes what to build.

    Args:
      declaration: the case.
      inputs: the checked nest of arrays.
      progress: called with one line of text before every long step.
      port_is_of_keras3: as of `LiveGraphs`.
      racing: of the graphs of another size, which have that of the first.
      keeper: as of `LiveGraphs`.
      holds_sizes: whether graphs of other sizes stay until this one is closed.
    """
    self._declaration = declaration
    self._inputs = inputs
    self._progress = progress
    self._port_is_of_keras3 = port_is_of_keras3
    self.racing = racing or Racing()
    self._keeper = keeper
    self._graphs = LiveGraphs(declaration, inputs, progress, port_is_of_keras3, keeper)
    self._runs = SessionRuns(self._graphs, inputs, self.racing, progress)
    self._inventory: side.Inventory | None = None
    self._drawn_starts: dict[str, np.ndarray | None] = {}
    self._holds_sizes = holds_sizes
    self._other_sizes: dict[str, Tf1Graph] = {}

  def built(self, training: bool) -> BuiltGraph:
    """Returns the graph of a training mode, in which random ops are numbered."""
    return self._graphs.built(training)

  @property
  def fixed_draws(self) -> tuple[RandomDraw, ...]:
    """What fixed numbers stand for in the graphs that are built, see `loop_draws`."""
    return self._graphs.fixed_draws()

  @property
  def fixed_size(self) -> str:
    """Why the graph takes inputs of no other size; '' where it can be built for others."""
    return ''

  def at(self, inputs: Any) -> 'Tf1Graph':
    """Returns the side whose graphs are those of inputs of this size: itself, or another.

    Another one is kept until it is asked for a third size, or released, if they are not held.

    Args:
      inputs: a nest of arrays, in the structure of the case's.
    """
    wanted = shapes_of(inputs)
    if wanted == shapes_of(self._inputs):
      return self
    if repr(wanted) not in self._other_sizes:
      self.release_other_size()
      self._other_sizes[repr(wanted)] = Tf1Graph(
        self._declaration,
        inputs,
        self._progress,
        self._port_is_of_keras3,
        self.racing,
        self._keeper,
      )
    return self._other_sizes[repr(wanted)]

  def release_other_size(self) -> None:
    """Lets go of the graphs of another size, where they are not held."""
    if not self._holds_sizes:
      self._other_sizes.clear()

  def inventory(self) -> side.Inventory:
    """Returns the variables of all training modes' graphs."""
    if self._inventory is None:
      self._inventory = inventory_of(
        (training, self.built(training).variables) for training in self._declaration.training_modes
      )
    return self._inventory

  def prepare_seeded(self, mode: str, training: bool) -> SeededRun:
    """Builds what a seeded run needs and returns the run itself.

    Building turns process globals, so it happens here and now; the run turns
    none and may go on in a thread of its own, and be repeated.
    """
    return self._runs.seeded(mode, training)

  def prepare_filled(self, runs: Sequence[side.RunSpec]) -> PreparedRuns:
    """Builds what filled runs need and returns the runs themselves, as `prepare_seeded` does."""
    return self._runs.filled(runs)

  def initial_draw(self, variable: str, training: bool) -> InitialDraw:
    """Returns how the initial value of a variable is drawn, by its name.

    Raises:
      NotApplicable: its initializer is not run here.
    """
    return starts.draw_of(self.built(training), variable)

  def drawn_start(self, variable: str) -> np.ndarray | None:
    """Returns a value that a variable starts with by chance, the same each time; None for others.

    The port is given it where nothing else fills the variable: it draws other numbers itself.
    """
    if variable not in self._drawn_starts:
      graphs = (self.built(training) for training in self._declaration.training_modes)
      known = ((b, v) for b in graphs for v in b.variables if v.record.name == variable)
      found = next(known, None)
      self._drawn_starts[variable] = None if found is None else starts.drawn_value(*found)
    return self._drawn_starts[variable]

  def inspectable(self, run: side.RunSpec) -> GraphRun:
    """Returns a run of which every tensor can be asked for."""
    if (other := self.at(run.inputs)) is not self:
      return other.inspectable(run)
    built, gradients = self._runs.graph_for(run)
    # A rewritten graph does not know who made its operations.
    made = self.built(run.training).graph
    return graph_run_of(
      run, built, gradients, lambda op: user_source(operation(made, op.name) or op)
    )

  def initial_fill(self, mode: str, training: bool, initial: Sequence[TensorRecord]) -> Fill:
    """Returns the fill that gives variables the initial values of a seeded run.

    Args:
      mode: of the run.
      training: of the run.
      initial: what the run has shown of them.
    """
    del training
    return RecordedFill(mode, {record.name: record.value for record in initial})

  def without_influence(self, outputs_only: bool = False) -> WithoutInfluence:
    """Returns what of the graphs no compared number, or no output, depends on."""
    graphs = [self.built(mode) for mode in self._declaration.training_modes]
    return without_influence(graphs, outputs_only)

  def effects_of(self, variables: Collection[str]) -> dict[str, Effect]:
    """Returns which of some variables a compared number depends on, in any training mode."""
    modes = self._declaration.training_modes
    return effects_in_any((program_of(self.built(training)) for training in modes), variables)

  def inputs_read(self, training: bool) -> tuple[str, ...]:
    """Returns the paths of the inputs that outputs or regularization losses depend on."""
    return inputs_read(self.built(training))

  def recorded(self) -> RecordedReference | None:
    """Returns what was recorded: nothing, it is run here."""
    return None

  def pending_notes(self) -> tuple[str, ...]:
    """Returns what readers have to know of the runs since this was last asked for."""
    return ()

  def close(self) -> None:
    """Lets go of the graphs."""
    self._graphs.close()
    self._other_sizes.clear()
