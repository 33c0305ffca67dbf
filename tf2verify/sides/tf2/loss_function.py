"""The port's loss alone: on arrays, eagerly and as a `tf.function`."""

import contextlib
import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import tensorflow as tf
import tf_keras

from tf2verify.errors import UserCodeError
from tf2verify.records.loss_values import LossExample, LossProgram, LossValue, MetricValue
from tf2verify.records.observation import TensorRecord
from tf2verify.reference.graph_ops import ops_behind
from tf2verify.sides import side
from tf2verify.sides.graphs.lines.user_sources import user_source_behind
from tf2verify.sides.graphs.run import GraphRun
from tf2verify.sides.hooks.user_code import user_code
from tf2verify.sides.losses import loss_function
from tf2verify.sides.optimizers.state import told
from tf2verify.sides.process import randomness
from tf2verify.sides.process import state as process_state
from tf2verify.sides.tf2.layers.port import array_of
from tf2verify.sides.tf2.traces import tracing, ways_to_trace
from tf2verify.sides.tf2.traces.derived_gradients import Derived
from tf2verify.tensorflow_internals import autograph, keras3, op_callbacks

_LOSS, _METRICS = 'tf2_loss', 'tf2_metrics'


class Tf2LossFunction:
  """Runs `tf2_loss`, and `tf2_metrics`, on arrays; one trace per set of shapes."""

  def __init__(self, declaration: side.Declaration, outputs: Any, labels: Any) -> None:
    """Takes the nests of arrays that give the structure."""
    self._declaration = declaration
    self._outputs = outputs
    self._labels = labels
    self._traces: dict[loss_function.Signature, Any] = {}
    self._editable: dict[loss_function.Signature, tracing.TracedPort] = {}

  def value(self, example: LossExample) -> LossValue:
    """Runs the loss and its gradients eagerly."""
    outputs = {path: tf.constant(array) for path, array in example.outputs.items()}
    labels = {path: tf.constant(array) for path, array in example.labels.items()}
    with randomness.seeded(randomness.CONSTANT):
      loss, gradients = self._differentiated(outputs, labels)
    return _loss_value(loss, gradients, example)

  def traced_value(self, example: LossExample) -> LossValue:
    """Runs the loss and its gradients as a `tf.function`.

    Raises:
      UserCodeError: the loss does not run on symbolic tensors.
    """
    trace = self._traced(example)
    arrays = [*example.outputs.values(), *example.labels.values()]
    with _as_traced(), user_code(side.TF2, f'running {_LOSS} as a tf.function'):
      loss, gradients = trace(*map(tf.constant, arrays))
    return _loss_value(loss, gradients, example)

  def inspectable(self, example: LossExample) -> GraphRun:
    """Returns a run, traced as one graph, of which every tensor can be asked for.

    Raises:
      NotTraceable: the loss does not run on symbolic tensors, or reads a variable.
    """

    return self.editable(example).run()

  def editable(self, example: LossExample) -> tracing.TracedPort:
    """Returns the loss as a graph that may be edited: its gradients are formed after that.

    Raises:
      NotTraceable: the loss does not run on symbolic tensors, or reads a variable.
    """
    key = loss_function.signature(example)
    if key not in self._editable:
      self._editable[key] = self._traced_to_edit(example)
    known = self._editable[key]
    arrays = [*example.outputs.values(), *example.labels.values()]
    feeds = dict(zip(known.traced.feeds, arrays, strict=True))
    return dataclasses.replace(known, traced=dataclasses.replace(known.traced, feeds=feeds))

  def _traced_to_edit(self, example: LossExample) -> tracing.TracedPort:
    def compute(tensors: list[Any]) -> dict[str, Any]:
      outputs = dict(zip(example.outputs, tensors, strict=False))
      labels = dict(zip(example.labels, tensors[len(outputs) :], strict=True))
      return {loss_function.VALUE_TARGET: self._loss(outputs, labels)}

    with randomness.seeded(randomness.CONSTANT):
      traced = ways_to_trace.trace(compute, [*example.outputs.values(), *example.labels.values()])
    names = [loss_function.output_name(path) for path in example.outputs]
    names += [loss_function.label_name(path) for path in example.labels]
    fed = dict(zip(example.outputs, traced.feeds, strict=False))
    # Not a tape: the operations of `tf.gradients` have the names that they have in tf1.
    floating = loss_function.floating_paths(example.outputs)
    by = [(loss_function.gradient_target(p), fed[p]) for p in floating]
    derived = Derived(traced.targets[0].tensors[0], tuple(by))
    places = dict(zip(traced.inputs, names, strict=True))
    traced = dataclasses.replace(traced, inputs=places, derived=derived)
    nothing: dict[str, np.ndarray] = {}
    return tracing.TracedPort(traced, {}, nothing.__getitem__, {}, '')

  def program(self, example: LossExample) -> LossProgram:
    """Returns what the traced loss reads and computes."""
    graph = self._traced(example).graph
    inputs = dict(zip(example.outputs, graph.inputs, strict=False))
    loss, gradients = graph.structured_outputs
    behind_loss = ops_behind([loss])
    reads = frozenset(path for path, tensor in inputs.items() if tensor.op.name in behind_loss)
    names = ops_behind([loss, *gradients.values()])
    sizes = {path: example.outputs[path].size for path in reads}
    ops = [graph.get_operation_by_name(name) for name in names]
    kept = loss_function.count_of_size(ops, sizes)
    return LossProgram(reads, kept, user_source_behind(loss))

  def computed_eagerly(self, example: LossExample, paths: frozenset[str]) -> dict[str, int]:
    """Counts the tensors of each output's size that an eager run computes."""
    sizes = {path: example.outputs[path].size for path in paths}
    found = dict.fromkeys(paths, 0)

    def count(op: op_callbacks.Operation) -> None:
      if not loss_function.counts_as_kept(op.kind):
        return
      made = {int(np.prod(t.shape)) for t in op.outputs or () if t.dtype.is_floating}
      for path, size in sizes.items():
        found[path] += size in made

    with op_callbacks.called(count):
      self.value(example)
    return found

  def metrics(self, example: LossExample) -> tuple[MetricValue, ...]:
    """Returns the metrics, each made and updated by the hook."""
    outputs = loss_function.filled(self._outputs, _constants(example.outputs))
    labels = loss_function.filled(self._labels, _constants(example.labels))
    process_state.reset_names()
    with randomness.seeded(randomness.CONSTANT), user_code(side.TF2, _METRICS):
      made = self._declaration.tf2_metrics(loss_function.sparse(outputs), labels)
      checked = loss_function.checked_metrics(made, _METRICS)
      return tuple(_metric_value(name, metric) for name, metric in checked.items())

  def _traced(self, example: LossExample) -> Any:
    key = loss_function.signature(example)
    if key not in self._traces:
      self._traces[key] = self._trace(example)
    return self._traces[key]

  def _trace(self, example: LossExample) -> Any:
    def compute(*tensors: Any) -> Any:
      outputs = dict(zip(example.outputs, tensors, strict=False))
      labels = dict(zip(example.labels, tensors[len(outputs) :], strict=True))
      return self._differentiated(outputs, labels)

    def compute_by_autograph(*tensors: Any) -> Any:
      # Python's `if` and `for` over tensors, which autograph rewrites.
      with autograph.switched():
        return compute(*tensors)

    arrays = [*example.outputs.values(), *example.labels.values()]
    specs = [tf.TensorSpec(array.shape, tf.constant(array).dtype) for array in arrays]
    try:
      return _concrete(compute, specs)
    except UserCodeError as error:
      first = error
    try:
      return _concrete(compute_by_autograph, specs)
    except UserCodeError:
      raise first from first.__cause__

  def _differentiated(
    self, outputs: Mapping[str, Any], labels: Mapping[str, Any]
  ) -> tuple[Any, dict[str, Any]]:
    floating = [path for path, tensor in outputs.items() if tensor.dtype.is_floating]
    with tf.GradientTape() as tape:
      for path in floating:
        tape.watch(outputs[path])
      loss = self._loss(outputs, labels)
    with user_code(side.TF2, f'the gradient of {_LOSS}'):
      found = tape.gradient(loss, [outputs[path] for path in floating])
    pairs = zip(floating, found, strict=True)
    return loss, {
      path: tf.convert_to_tensor(gradient) for path, gradient in pairs if gradient is not None
    }

  def _loss(self, outputs: Mapping[str, Any], labels: Mapping[str, Any]) -> Any:
    with user_code(side.TF2, _LOSS):
      # By name: AutoGraph leaves methods of a TestCase, as a case is one, alone.
      loss = autograph.converted(self._declaration.tf2_loss, by_name=True)(
        loss_function.sparse(loss_function.filled(self._outputs, outputs)),
        loss_function.filled(self._labels, labels),
      )
    return loss_function.checked_loss(loss, _LOSS)


def _constants(leaves: Mapping[str, np.ndarray]) -> dict[str, Any]:
  return {path: tf.constant(array) for path, array in leaves.items()}


def _loss_value(loss: Any, gradients: Mapping[str, Any], example: LossExample) -> LossValue:
  return LossValue(
    array_of(loss),
    tuple(
      TensorRecord(path, array_of(gradients[path]) if path in gradients else None)
      for path in loss_function.floating_paths(example.outputs)
    ),
  )


@contextlib.contextmanager
def _as_traced() -> Iterator[None]:
  """Runs functions op by op as they were traced, as the sessions of the tf1 side do.

  Grappler computes 1 - p + 1e-7 as (1 + 1e-7) - p, which is something else for p = 1.
  """
  before = tf.config.optimizer.get_experimental_options()
  tf.config.optimizer.set_experimental_options({'disable_meta_optimizer': True})
  try:
    yield
  finally:
    tf.config.optimizer.set_experimental_options({'disable_meta_optimizer': False, **before})


def _concrete(compute: Any, specs: list[tf.TensorSpec]) -> Any:
  with randomness.seeded(randomness.CONSTANT):
    return tf.function(compute, autograph=False).get_concrete_function(*specs)


_COUNTS = ('true_positives', 'true_negatives', 'false_positives', 'false_negatives')


def _metric_value(name: str, metric: Any) -> MetricValue:
  if not isinstance(metric, tf_keras.metrics.Metric) and not keras3.is_metric(metric):
    return MetricValue(name, array_of(metric))
  config = told(lambda: dict(metric.get_config())) or {}
  settings = tuple((key, value) for key, value in config.items() if isinstance(value, (str, float)))
  counts = tuple(
    (count, array_of(getattr(metric, count)))
    for count in _COUNTS
    if isinstance(keras3.held(getattr(metric, count, None)), tf.Variable)
  )
  return MetricValue(name, array_of(metric.result()), settings, counts)
