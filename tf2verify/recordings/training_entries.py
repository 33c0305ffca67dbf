"""What a manifest says of losses, training steps and a checkpoint."""

import dataclasses

from tf2verify.recordings.array_entries import (
  Nest,
  TensorEntry,
  Tensors,
  nest,
  shape,
  tensor,
  tensors,
)
from tf2verify.recordings.fields import (
  Malformed,
  count,
  digest,
  either,
  flag,
  inside,
  key,
  left_out_before,
  maybe,
  named,
  number,
  one_of,
  parsed,
  record,
  several,
  text,
)
from tf2verify.recordings.graph_entries import (
  DrawEntry,
  GradientEntry,
  GraphEntry,
  VariableEntry,
  graph,
)


@dataclasses.dataclass(frozen=True)
class LossValues:
  """The losses of a model in training mode; see `records.training.LossObservation`."""

  loss: TensorEntry = parsed(tensor)
  total_loss: TensorEntry = parsed(tensor)
  regularization_total: TensorEntry | None = parsed(maybe(tensor))


@dataclasses.dataclass(frozen=True)
class AloneGradient:
  """The gradient with respect to an output: tensor names, of `IndexedSlices` two."""

  path: str
  values: str
  indices: str | None


def _alone_gradient(value: object) -> AloneGradient:
  if not isinstance(value, list) or len(value) != 3:
    raise Malformed('is not an array of path, values and indices')
  path, values, indices = value
  return AloneGradient(
    inside('[0]', text, path), inside('[1]', text, values), inside('[2]', maybe(text), indices)
  )


@dataclasses.dataclass(frozen=True)
class AloneEntry:
  """A graph of the loss without the model: from placeholders to loss and gradients.

  Attributes:
    graph_def: id of the bytes of the GraphDef.
    outputs: path and placeholder of every output.
    labels: path and placeholder of the labels.
    initializers: ops to run first.
    loss: tensor name.
    gradients: with respect to the outputs.
    value: the loss at the model's outputs; None where it was not taken.
    gradient_values: likewise.
  """

  graph_def: str = parsed(key)
  outputs: tuple[tuple[str, str], ...] = parsed(named(text))
  labels: tuple[tuple[str, str], ...] = parsed(named(text))
  initializers: tuple[str, ...] = parsed(several(text))
  loss: str = parsed(text)
  gradients: tuple[AloneGradient, ...] = parsed(several(_alone_gradient))
  value: TensorEntry | None = parsed(maybe(tensor))
  gradient_values: Tensors = parsed(tensors)


@dataclasses.dataclass(frozen=True)
class LossesEntry:
  """The losses in the model, and alone.

  Attributes:
    run: for reports.
    training: the training mode.
    graph: in mode `constant`, with model, losses and, where there is one, train op.
    label_placeholders: path and tensor.
    loss: tensor name.
    total_loss: tensor name.
    own_loss: whether a loss was declared; else the default loss is there for the steps.
    own_total_loss: whether a total loss was declared.
    output_nest: the model's outputs.
    observation: the values.
    alone: the loss without the model; None where that could not be made.
    alone_error: why not; '' where it could.
    alone_one: the same for a batch of one.
    noise_runs: how many perturbed runs the noise is of.
  """

  run: str = parsed(text)
  training: bool = parsed(flag)
  graph: GraphEntry = parsed(graph)
  label_placeholders: tuple[tuple[str, str], ...] = parsed(named(text))
  loss: str = parsed(text)
  total_loss: str = parsed(text)
  own_loss: bool = parsed(flag)
  own_total_loss: bool = parsed(flag)
  output_nest: Nest = parsed(nest)
  observation: LossValues = parsed(record(LossValues))
  alone: AloneEntry | None = parsed(maybe(record(AloneEntry)))
  alone_error: str = parsed(text)
  alone_one: AloneEntry | None = parsed(maybe(record(AloneEntry)))
  noise_runs: int = parsed(count)


@dataclasses.dataclass(frozen=True)
class OptimizerEntry:
  """An optimizer; see `records.training.OptimizerRecord`."""

  name: str = parsed(text)
  settings: tuple[tuple[str, float], ...] = parsed(named(number))
  rule: str = parsed(text)


@dataclasses.dataclass(frozen=True)
class SlotEntry:
  """A slot; see `records.training.Slot`."""

  role: str = parsed(text)
  variable: str = parsed(text)
  name: str = parsed(text)
  value: TensorEntry = parsed(tensor)


_slots = several(record(SlotEntry))
_rate = maybe(number)  # a step has a field of that name


@dataclasses.dataclass(frozen=True)
class StepEntry:
  """A step; see `records.training.TrainingStep`."""

  number: int = parsed(count)
  loss: TensorEntry | None = parsed(maybe(tensor))
  learning_rate: float | None = parsed(_rate)
  global_step: int | None = parsed(maybe(count))
  gradients: Tensors = parsed(tensors)
  applied_gradients: Tensors = parsed(tensors)
  variables: Tensors = parsed(tensors)
  slots: tuple[SlotEntry, ...] = parsed(_slots)


@dataclasses.dataclass(frozen=True)
class StepsEntry:
  """Training steps; see `records.training.TrainingRun` and `tf1.graphs.train_graph.TrainGraph`.

  The noise of `variables`, and of slots of role `shadow`, is that of their change since
  `values_before`.

  Attributes:
    run: for reports.
    training: the training mode.
    made_by: `optimizer` or `train_op`: what was declared.
    run_update_ops: whether the step runs UPDATE_OPS; None for a declared train op.
    train_op: name of the op.
    learning_rate: name of the tensor, or the number; None where it cannot be told.
    global_step: name of the variable; None without one.
    added: the variables that losses and train op have added.
    gradients: as differentiated, by tensor name.
    applied_gradients: as given to the updates, by tensor name.
    trained: the variables that the train op moves by gradients; None where an earlier recorder has
      not told.
    noise_runs: how many perturbed runs the noise is of.
  """

  run: str = parsed(text)
  training: bool = parsed(flag)
  made_by: str = parsed(one_of('optimizer', 'train_op'))
  run_update_ops: bool | None = parsed(maybe(flag))
  train_op: str = parsed(text)
  learning_rate: str | float | None = parsed(maybe(either(text, number)))
  global_step: str | None = parsed(maybe(text))
  added: tuple[VariableEntry, ...] = parsed(several(record(VariableEntry)))
  gradients: tuple[GradientEntry, ...] = parsed(several(record(GradientEntry)))
  applied_gradients: tuple[GradientEntry, ...] = parsed(several(record(GradientEntry)))
  optimizers: tuple[OptimizerEntry, ...] = parsed(several(record(OptimizerEntry)))
  values_before: Tensors = parsed(tensors)
  slots_before: tuple[SlotEntry, ...] = parsed(_slots)
  steps: tuple[StepEntry, ...] = parsed(several(record(StepEntry)))
  updates_left_out: tuple[str, ...] = parsed(several(text))
  regularization_total: TensorEntry | None = parsed(maybe(tensor))
  random_draws: tuple[DrawEntry, ...] = parsed(several(record(DrawEntry)))
  noise_runs: int = parsed(count)
  trained: tuple[str, ...] | None = left_out_before(several(text))


@dataclasses.dataclass(frozen=True)
class KeyEntry:
  """A tensor of a checkpoint.

  Attributes:
    sha256: see `compare.digest`.
  """

  name: str = parsed(text)
  shape: tuple[int, ...] = parsed(shape)
  dtype: str = parsed(text)
  sha256: str = parsed(digest)


@dataclasses.dataclass(frozen=True)
class CheckpointEntry:
  """A checkpoint, by reference.

  Attributes:
    path: its prefix where it was recorded.
    keys: what it held.
  """

  path: str = parsed(text)
  keys: tuple[KeyEntry, ...] = parsed(several(record(KeyEntry)))


losses = record(LossesEntry)
steps = record(StepsEntry)
checkpoint = record(CheckpointEntry)
