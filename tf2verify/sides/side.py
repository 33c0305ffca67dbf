"""What both sides are told, and what they tell."""

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

import numpy as np
import tensorflow as tf

from tf2verify.errors import CaseDefinitionError
from tf2verify.records.observation import VariableCreation, VariableRecord
from tf2verify.reference import nests
from tf2verify.reference.perturbation import Perturber
from tf2verify.sides.fill import Fill
from tf2verify.sides.graphs.lines.traces import Trace

TF1 = 'tf1'
TF2 = 'tf2'

# Returns what an array of inputs or labels is in another batch.
Change = Callable[[np.ndarray], np.ndarray]
# What gradients are multiplied by: all, or each by the name of its variable.
Factor = float | Mapping[str, float]
Progress = Callable[[str], None]


class Declaration(Protocol):
  """What the sides need of a case; `EquivalenceCase` documents each member."""

  training_modes: tuple[bool, ...]

  def build_tf1_graph(self, inputs: Any, training: bool) -> Any: ...
  def make_tf2_layer(self) -> Any: ...
  def call_tf2_layer(self, layer: Any, inputs: Any, training: bool) -> Any: ...
  def loss(self, outputs: Any) -> Any: ...
  def tf2_regularization_losses(self, layer: Any) -> Iterable[Any]: ...
  def fill_values(
    self, name: str, shape: tuple[int, ...], dtype: np.dtype
  ) -> np.ndarray | None: ...

  other_sizes: Any
  relate_graphs: bool | None
  training_steps_to_take: int
  run_update_ops: bool
  modes_to_run: tuple[str, ...]
  slot_names: Any
  evaluate_with_ema: bool
  fresh_processes: int
  variable_map: Any
  tf1_only_variables: Mapping[str, str]
  tf2_only_variables: Mapping[str, str]

  def declares(self, hook: str) -> bool: ...
  def tf1_loss(self, outputs: Any, labels: Any) -> Any: ...
  def tf2_loss(self, outputs: Any, labels: Any) -> Any: ...
  def tf1_total_loss(self, outputs: Any, labels: Any) -> Any: ...
  def tf2_total_loss(self, layer: Any, outputs: Any, labels: Any) -> Any: ...
  def tf1_metrics(self, outputs: Any, labels: Any) -> Mapping[str, Any]: ...
  def tf2_metrics(self, outputs: Any, labels: Any) -> Mapping[str, Any]: ...
  def loss_examples(self) -> Iterable[tuple[str, Any, Any]]: ...
  def make_tf1_optimizer(self) -> Any: ...
  def make_tf1_train_op(self, loss: Any) -> Any: ...
  def make_tf2_optimizer(self) -> Any: ...
  def tf2_train_step(self, layer: Any, inputs: Any, labels: Any, optimizer: Any) -> Any: ...
  def tf1_checkpoint(self) -> str: ...
  def load_tf1_checkpoint(self, layer: Any, path: str) -> None: ...
  def save_tf2_checkpoint(self, layer: Any, path: str) -> str: ...
  def load_tf2_checkpoint(self, layer: Any, path: str) -> None: ...


def without_labels(declaration: Declaration, labels: Any) -> str:
  """Returns why a loss may have failed that was given None for labels; '' where it was not."""
  if labels is not None:
    return ''
  if declaration.declares('make_labels'):
    return 'it was given None for labels: make_labels returned None, usually a missing `return`'
  if getattr(declaration, 'tf1_recording', None) is None:
    return 'it was given None for labels: the case declares no make_labels'
  return (
    'it was given None for labels: the recording has none, and the case declares no make_labels; '
    'record with --loss and --labels'
  )


@dataclasses.dataclass(frozen=True)
class Inventory:
  """The variables of a side.

  Attributes:
    variables: of all training modes together, in the side's own order.
    untracked: tf2 only: variables that the calls created or read, but that
      `layer.variables` does not hold.
    variables_by_training: the names that each training mode has, tf1 only.
  """

  variables: tuple[VariableRecord, ...]
  untracked: tuple[VariableRecord, ...] = ()
  variables_by_training: tuple[tuple[bool, tuple[str, ...]], ...] = ()


@dataclasses.dataclass(frozen=True)
class CreationReport:
  """What repeated calls of the port created.

  Attributes:
    calls: what was called, in order: `call 1 (inference)`.
    first_call: the variables that the first call created.
    later: the variables that later calls created, or that the call tried to create
      which TensorFlow refused and which ended the report.
    retraced: functions traced in a call that repeats an earlier one, which had
      traced them already.
    of_placeholder: whether the port is what `python -m tf2verify new` has written in its place.
  """

  calls: tuple[str, ...]
  first_call: tuple[VariableCreation, ...]
  later: tuple[VariableCreation, ...]
  retraced: tuple[Trace, ...] = ()
  of_placeholder: bool = False


@dataclasses.dataclass(frozen=True, eq=False)
class RunSpec:
  """A run with given variable values.

  Attributes:
    inputs: the nest of arrays to feed.
    training: the training mode.
    fill: gives each variable its value.
    tf1_names: from the side's own variable names to tf1 names, the key of the fill.
    gradients: whether the gradients of the loss are wanted, instead of the
      regularization losses.
    perturber: perturbs inputs and values to measure rounding noise (tf1 only); None for
      unchanged ones.
    gradients_of: the variables, by name, whose gradients are wanted; None for all (in
      tf1, and in execution modes).
    size: what is said of inputs of another size than the case's; '' for those.
    derives: of a port that is traced, whether gradients are formed once its graph is made, so
      that they follow from edits of it.
    unrolls: whether the rounds of loops are to stand in the graph, where that can be, so that
      what a loop computes can be asked for.
    parts: whether each part of a tensor that is split in a round is to have an operation there.
  """

  inputs: Any
  training: bool
  fill: Fill
  tf1_names: dict[str, str]
  gradients: bool = False
  perturber: Perturber | None = None
  gradients_of: frozenset[str] | None = None
  size: str = ''
  derives: bool = False
  unrolls: bool = False
  parts: bool = False

  @property
  def description(self) -> str:
    """For reports."""
    size = f', {self.size}' if self.size else ''
    return f'{training_name(self.training)}, {self.fill.description}{size}'

  def wants_gradient_of(self, variable: str) -> bool:
    """Returns whether the gradient for a variable of this name is wanted."""
    return self.gradients_of is None or variable in self.gradients_of

  def value_for(self, variable: VariableRecord) -> np.ndarray | None:
    """Returns the value to assign to a variable of this side; None to keep its initial one.

    Raises:
      CaseDefinitionError: the case's own fill has another shape.
    """
    if None in variable.shape:
      return None
    shape = tuple(size for size in variable.shape if size is not None)
    dtype = np.dtype(tf.as_dtype(variable.dtype).as_numpy_dtype)
    value = self.fill(self.tf1_names.get(variable.name, variable.name), shape, dtype)
    if value is not None and value.shape != shape:
      raise CaseDefinitionError(
        f'fill_values gave {variable.name} an array of shape {value.shape}; the variable has '
        f'shape {shape}'
      )
    return value


def moved_inputs(inputs: Any, perturber: Perturber | None) -> Any:
  """Returns the nest with every input moved; the nest itself without a perturber."""
  return inputs if perturber is None else nests.map_leaves(perturber.input, inputs)


def training_name(training: bool) -> str:
  """Returns the training mode as reports write it."""
  return 'training' if training else 'inference'


def dense_gradient(values: np.ndarray, indices: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
  """Returns what `IndexedSlices` mean: rows added up at their indices, zero elsewhere."""
  dense = np.zeros(shape, values.dtype)
  np.add.at(dense, indices, values)
  return dense
