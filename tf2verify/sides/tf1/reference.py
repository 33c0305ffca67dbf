"""What the rest asks of a reference, whether it is run here or was recorded."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from tf2verify.recordings.graph_entries import GraphEntry
from tf2verify.recordings.recording import Recording
from tf2verify.records.loss_values import LossExample, LossProgram, LossValue
from tf2verify.records.observation import Observation, RandomDraw, TensorRecord
from tf2verify.records.recorded_on_current_tf import RecordedGraphHere
from tf2verify.records.training import LossObservation
from tf2verify.reference.perturbation import Perturber
from tf2verify.sides import side
from tf2verify.sides.fill import Fill
from tf2verify.sides.graphs.initial_draws import InitialDraw
from tf2verify.sides.graphs.run import GraphRun
from tf2verify.sides.graphs.step_run import StepGraph
from tf2verify.sides.graphs.variables.effects import Effect, Program
from tf2verify.sides.tf1.graphs.build import BuiltGraph
from tf2verify.sides.tf1.graphs.influence import WithoutInfluence
from tf2verify.sides.tf1.graphs.racing import Racing
from tf2verify.sides.tf1.reference_steps import PreparedSteps


class SeededRun(Protocol):
  """A run from seeded initial values."""

  def __call__(self, perturber: Perturber | None = None, again: bool = False) -> Observation:
    """Runs it in a fresh session; with a perturber, from moved initial values and inputs.

    Args:
      perturber: moves values and inputs; None leaves them.
      again: whether the run is to show if it repeats itself.
    """


class PreparedRuns(Protocol):
  """Runs with given variable values."""

  def __call__(self, others: Sequence[side.RunSpec] | None = None) -> tuple[Observation, ...]:
    """Runs what was prepared; or, in fresh sessions, others of the same training mode.

    Others that are those which were prepared show if these repeat themselves.
    """


# Runs a recorded graph here, with the gradients for these variables.
GraphHere = Callable[[frozenset[str]], Observation]


class ReferenceGraph(Protocol):
  """The forward pass of a reference, its gradients and its variables.

  Attributes:
    racing: in which order operations run that the graph does not order.
  """

  racing: Racing

  @property
  def fixed_size(self) -> str:
    """Why the graph takes inputs of no other size; '' where it can be built for others."""

  @property
  def fixed_draws(self) -> tuple[RandomDraw, ...]:
    """What fixed numbers stand for in the graphs that are built, see `loop_draws`."""

  def at(self, inputs: Any) -> 'ReferenceGraph':
    """Returns the reference whose graphs are those of inputs of this size: itself, or another."""

  def release_other_size(self) -> None:
    """Lets go of the graphs of another size."""

  def inventory(self) -> side.Inventory:
    """Returns the variables of all training modes' graphs."""

  def built(self, training: bool) -> BuiltGraph:
    """Returns the graph of a training mode, in which random ops are numbered."""

  def prepare_seeded(self, mode: str, training: bool) -> SeededRun:
    """Prepares what a seeded run needs and returns the run itself."""

  def prepare_filled(self, runs: Sequence[side.RunSpec]) -> PreparedRuns:
    """Prepares what filled runs need and returns the runs themselves."""

  def initial_draw(self, variable: str, training: bool) -> InitialDraw:
    """Returns how the initial value of a variable is drawn, by its name.

    Raises:
      NotApplicable: its initializer is not run here.
    """

  def drawn_start(self, variable: str) -> np.ndarray | None:
    """Returns a value that a variable starts with by chance; None where the port needs none."""

  def initial_fill(self, mode: str, training: bool, initial: Sequence[TensorRecord]) -> Fill:
    """Returns the fill that gives variables the initial values of a seeded run.

    Args:
      mode: of the run.
      training: of the run.
      initial: what the run has shown of them.
    """

  def inspectable(self, run: side.RunSpec) -> GraphRun:
    """Returns a run, here, of which every tensor can be asked for."""

  def without_influence(self, outputs_only: bool = False) -> WithoutInfluence:
    """Returns what of the graphs no compared number, or no output, depends on."""

  def effects_of(self, variables: Collection[str]) -> dict[str, Effect]:
    """Returns which of some variables a compared number depends on, in any training mode."""

  def inputs_read(self, training: bool) -> tuple[str, ...]:
    """Returns the paths of the inputs that outputs or regularization losses depend on."""

  def recorded(self) -> 'RecordedReference | None':
    """Returns what was recorded; None where the reference is run here."""

  def pending_notes(self) -> tuple[str, ...]:
    """Returns what readers have to know of the runs since this was last asked for."""

  def close(self) -> None:
    """Lets go of the graphs."""


class ReferenceLoss(Protocol):
  """The loss of a reference, without its model."""

  def value(self, example: LossExample, perturber: Perturber | None = None) -> LossValue:
    """Runs the loss and its gradients in a fresh session; with a perturber, on moved outputs.

    Raises:
      NotApplicable: it was not recorded for such shapes.
      UserCodeError: it raised, or was not recorded.
    """

  def program(self, example: LossExample) -> LossProgram:
    """Returns what the loss reads and computes; raises as `value` does."""

  def inspectable(self, example: LossExample, unrolls: bool = False) -> GraphRun:
    """Returns a run of which every tensor can be asked for; raises as `value` does.

    Args:
      example: outputs and labels.
      unrolls: whether the rounds of loops are to stand in the graph, where that can be.
    """


class ReferenceTraining(Protocol):
  """Losses, training steps and checkpoints of a reference.

  Attributes:
    racing: in which order operations run that the graph does not order.
  """

  racing: Racing

  def reason_without(self, hook: str) -> str:
    """Returns why the reference has nothing of a hook, where a case cannot declare it; ''."""

  def observe_losses(self, run: side.RunSpec, again: bool = False) -> LossObservation:
    """Returns model and losses from given values.

    Args:
      run: inputs and values, and what moves them.
      again: whether the run is to show if it repeats itself.
    """

  def inspectable_losses(self, run: side.RunSpec) -> GraphRun:
    """Returns a run of model and losses, here, of which every tensor can be asked for.

    Raises:
      NotApplicable: a recorded graph of them is not looked into.
    """

  def loss_function(self, outputs: Any, labels: Any) -> ReferenceLoss:
    """Returns what runs the loss on arrays, given the nests that they are of."""

  def computed_from_slots(self) -> frozenset[str]:
    """Returns variables that an update computes from slots alone, where another start can be had.

    Ftrl's are a function of its sums of gradients and of their squares.
    """

  def trained_variables(self) -> frozenset[str] | None:
    """Returns the model's variables that the train op moves by gradients; None if not known."""

  def prepare_steps(self, run: side.RunSpec, count: int) -> PreparedSteps:
    """Prepares training steps and returns what takes them."""

  def inspectable_step(self, run: side.RunSpec, number: int, names: Mapping[str, str]) -> StepGraph:
    """Takes the steps before one, here, and returns that one as a graph.

    Args:
      run: inputs and values.
      number: of the step, from 1.
      names: what both sides call a slot, by its own name.

    Raises:
      NotApplicable: a recorded graph is not run here.
    """

  def save(self, run: side.RunSpec, count: int, prefix: str) -> str:
    """Takes training steps and saves a name-based checkpoint, whose prefix it returns."""

  def program(self) -> Program | None:
    """Returns the graph of losses and training, to be looked into; None where none is declared."""

  def close(self) -> None:
    """Lets go of the graph."""


class RecordedReference(Protocol):
  """What was recorded of a reference.

  Attributes:
    recording: verified.
  """

  recording: Recording

  def entry(self, training: bool) -> GraphEntry:
    """Returns what the recording says of the graph of a training mode."""

  def check_fill(self, run: side.RunSpec) -> None:
    """Raises `RecordingError` where a fill gives other values than were recorded."""

  def on_current_tf(self, run: side.RunSpec) -> RecordedGraphHere | None:
    """Returns what the recorded graph yields for a run here; None where it is not run here."""

  def seeded_on_current_tf(self, mode: str, training: bool) -> GraphHere | None:
    """Returns what runs the graph here as a seeded run; None if that was not recorded."""

  def filled_on_current_tf(self, run: side.RunSpec) -> GraphHere | None:
    """Returns what runs the graph here as a filled run; None if that was not recorded."""

  def remark(self, text: str) -> None:
    """Keeps what the reader of a report has to know, for the stage that is running."""
