"""A port traced as one graph, of which every tensor can be asked for."""

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tf2verify.records.observation import TensorRecord
from tf2verify.reference import nests
from tf2verify.reference.variables import variable_name
from tf2verify.relation.layouts.variable_layouts import in_own_layout
from tf2verify.sides import side
from tf2verify.sides.graphs.reading import Target, regularization_target
from tf2verify.sides.graphs.variables.dataflow import captured_variables_behind
from tf2verify.sides.losses import loss_function
from tf2verify.sides.process import randomness
from tf2verify.sides.tf2.layers import layer_parts
from tf2verify.sides.tf2.layers.port import Port, flat_outputs, readable_outputs
from tf2verify.sides.tf2.layers.port_records import gradient_record
from tf2verify.sides.tf2.optimization.step import losses_of
from tf2verify.sides.tf2.traces import tracing, ways_to_trace
from tf2verify.sides.tf2.traces.derived_gradients import Derived

_INPUTS, _LABELS, _LOSS = 'inputs', 'labels', 'loss'
_OF_LABELS = f'[{_LABELS!r}]'


def traced_port(declaration: side.Declaration, port: Port, run: side.RunSpec) -> tracing.TracedPort:
  """Traces a port, to run it as it is or changed.

  Args:
    declaration: the case.
    port: a layer that has been called before, so that its variables are there.
    run: inputs, training mode and variable values.

  Raises:
    NotTraceable: the port does not run on symbolic tensors.
  """

  if run.derives:
    return _differentiable(declaration, port, run)

  def compute(inputs: Any) -> dict[str, Any]:
    call = layer_parts.call_of(declaration, port.layer)
    outputs = readable_outputs(call(port.layer, inputs, run.training))
    found = {
      f'output {path}': leaf for path, leaf in flat_outputs(outputs).leaves if leaf is not None
    }
    wanted = _gradients if run.gradients else _losses
    return {**found, **wanted(declaration, port, run, outputs)}

  with randomness.seeded(randomness.CONSTANT):
    traced = ways_to_trace.trace(compute, run.inputs, port.recorder.layers)
  return _with_variables(traced, port, run)


@dataclasses.dataclass(frozen=True, eq=False)
class TracedCall:
  """A call of a port, traced before it is known which of its variables are which of tf1's.

  Attributes:
    traced: the call; its targets are the outputs.
    losses: of every regularization loss, its tensor and its variables by the port's own names.
  """

  traced: tracing.Traced
  losses: tuple[tuple[str, tuple[str, ...]], ...]

  def named(self, port: Port, run: side.RunSpec) -> tracing.TracedPort:
    """Returns the call with the names of tf1.

    Args:
      port: what was called.
      run: whose names are used.
    """
    found: dict[str, str] = {}
    for number, (tensor, own) in enumerate(self.losses):
      names = tuple(sorted(run.tf1_names.get(name, name) for name in own))
      if names or number == 0:
        found[regularization_target(names, number, found)] = tensor
    losses = tuple(Target(name, (tensor,)) for name, tensor in found.items())
    targets = (*self.traced.targets, *losses)
    return _with_variables(dataclasses.replace(self.traced, targets=targets), port, run)


def traced_call(
  declaration: side.Declaration, port: Port, inputs: Any, training: bool
) -> TracedCall:
  """Traces a call of a layer, which may make its variables in it.

  Args:
    declaration: the case.
    port: the layer.
    inputs: a nest of arrays.
    training: the training mode.

  Raises:
    NotTraceable: the port does not run on symbolic tensors.
  """
  read: list[tuple[str, ...]] = []

  def compute(fed: Any) -> dict[str, Any]:
    call = layer_parts.call_of(declaration, port.layer)
    outputs = readable_outputs(call(port.layer, fed, training))
    found = {
      f'output {path}': leaf for path, leaf in flat_outputs(outputs).leaves if leaf is not None
    }
    known = {id(v.handle): variable_name(v) for v in port.variables() if hasattr(v, 'handle')}
    read.clear()
    for number, loss in enumerate(declaration.tf2_regularization_losses(port.layer)):
      read.append(tuple(captured_variables_behind(loss, known)))
      found[f'loss {number}'] = loss
    return found

  with randomness.seeded(randomness.CONSTANT):
    traced = ways_to_trace.trace(compute, inputs, port.recorder.layers)
  first = len(traced.targets) - len(read)
  tensors = [target.tensors[0] for target in traced.targets[first:]]
  outputs = dataclasses.replace(traced, targets=traced.targets[:first])
  return TracedCall(outputs, tuple(zip(tensors, read, strict=True)))


def traced_losses(
  declaration: side.Declaration,
  port: Port,
  run: side.RunSpec,
  labels: Any,
  outputs_too: bool = False,
) -> tracing.TracedPort:
  """Traces a port with its losses.

  Args:
    declaration: the case.
    port: as in `traced_port`.
    run: likewise.
    labels: a nest of arrays; None without.
    outputs_too: whether the outputs that the losses are of are targets as well.

  Raises:
    NotTraceable: layer or loss do not run on symbolic tensors.
  """

  def compute(fed: dict[str, Any]) -> dict[str, Any]:
    call = layer_parts.call_of(declaration, port.layer)
    outputs = readable_outputs(call(port.layer, fed[_INPUTS], run.training))
    losses = losses_of(declaration, port, outputs, fed.get(_LABELS))
    parts = {loss_function.part_name(place): part for place, part in losses.parts.items()}
    found = {'loss': losses.loss, loss_function.TOTAL: losses.total, **parts}
    leaves = flat_outputs(outputs).leaves if outputs_too else ()
    return {
      **{f'output {path}': leaf for path, leaf in leaves if leaf is not None},
      **{loss_function.target_in_model(what): loss for what, loss in found.items()},
      **_losses(declaration, port, run, outputs),
    }

  fed = {_INPUTS: run.inputs, **({} if labels is None else {_LABELS: labels})}
  with randomness.seeded(randomness.CONSTANT):
    traced = ways_to_trace.trace(compute, fed, port.recorder.layers)
  named = dataclasses.replace(
    traced, inputs={op: place_of(path) for op, path in traced.inputs.items()}
  )
  return _with_variables(named, port, run)


def place_of(path: str) -> str:
  """Returns what both sides call what is fed, by its path among inputs and labels."""
  if path.startswith(_OF_LABELS):
    return loss_function.label_name(path.removeprefix(_OF_LABELS))
  return path.removeprefix(f'[{_INPUTS!r}]')


def _with_variables(traced: tracing.Traced, port: Port, run: side.RunSpec) -> tracing.TracedPort:
  """Returns a traced port with what it takes to give its variables their values."""
  variables = {
    name_in_graph(port, record.name, run): (variable, record)
    for variable, record in zip(port.variables(), port.described(port.variables()), strict=True)
    if hasattr(variable, 'handle')
  }
  # Variables that never get a value can be traced, and not run.
  records = port.initial_values() if port.recorder.keeps_values else ()
  initial = {record.name: record.value for record in records}
  shown = {record.name: record for record in port.inventory()}

  def value(name: str) -> np.ndarray:
    own = variables[name][1].name
    wanted = {}
    # Of a group, all that the variable is made of.
    for part in port.layouts.neighbours(port.layouts.shown_names(own)[0]):
      given = run.value_for(shown[part])
      wanted[part] = np.asarray(initial[part] if given is None else given)
    return port.layouts.to_tf2(own, port.layouts.ungrouped(wanted)[own])

  def again(other: side.RunSpec) -> tracing.TracedPort:
    leaves = nests.leaves_by_path(other.inputs)
    feeds = {f'{op}:0': leaves[path] for op, path in traced.inputs.items()}
    return _with_variables(dataclasses.replace(traced, feeds=feeds), port, other)

  handles = {id(variable.handle): name for name, (variable, _) in variables.items()}
  by_name = {name: variable for name, (variable, _) in variables.items()}
  prefix = f'{getattr(port.layer, "name", "port")}/'
  joins = port.layouts.has_groups
  owners = {record.name: name for name, (_, record) in variables.items()}
  layouts = port.layouts.relayouts(
    {own: owners[own] for own in owners if port.is_relaid_state(own)}
  )
  return tracing.TracedPort(traced, handles, value, by_name, prefix, again, joins, layouts)


def name_in_graph(port: Port, own: str, run: side.RunSpec) -> str:
  """Returns the name of a variable in a traced graph: of tf1, where it holds the same tensor.

  Args:
    port: whose variable it is.
    own: its own name.
    run: whose names are used.
  """
  if port.layouts.lies_otherwise(own) and not port.is_relaid_state(own):
    return in_own_layout(own)
  return run.tf1_names.get(own, own)


def _gradients(
  declaration: side.Declaration, port: Port, run: side.RunSpec, outputs: Any
) -> dict[str, Any]:
  trainable = {id(variable) for variable in port.trainable_variables()}
  watched = [variable for variable in port.variables() if id(variable) in trainable]
  # Not a tape: the operations of `tf.gradients` have the names that they have in tf1.
  gradients = tf.gradients(declaration.loss(outputs), watched)
  names = [run.tf1_names.get(variable_name(v), variable_name(v)) for v in watched]
  found = {}
  for name, record, gradient in zip(names, port.described(watched), gradients, strict=True):
    if port.layouts.lies_otherwise(record.name):
      continue  # which elements are which of tf1's, the graph does not say
    if isinstance(gradient, tf.Tensor) and tuple(gradient.shape) != record.shape:
      gradient = tf.reshape(gradient, record.shape)  # as tf1 has the variable
    if gradient is not None:
      found[f'gradient {name}'] = gradient
  return found


def _differentiable(
  declaration: side.Declaration, port: Port, run: side.RunSpec
) -> tracing.TracedPort:
  """Traces a port without its gradients, which are formed once the graph is made.

  The loss reads each output by an operation of its own, so that only what it reads can be edited.
  """
  numbers = itertools.count()

  def own(_: str, leaf: Any) -> Any:
    is_tensor = isinstance(leaf, tf.Tensor)
    return tf.identity(leaf, f'tf2verify_output/{next(numbers)}') if is_tensor else leaf

  def compute(inputs: Any) -> dict[str, Any]:
    call = layer_parts.call_of(declaration, port.layer)
    outputs = readable_outputs(call(port.layer, inputs, run.training))
    outputs = nests.map_leaves(own, outputs)
    leaves = flat_outputs(outputs).leaves
    found = {f'output {path}': leaf for path, leaf in leaves if leaf is not None}
    return {**found, _LOSS: declaration.loss(outputs)}

  with randomness.seeded(randomness.CONSTANT):
    traced = ways_to_trace.trace(compute, run.inputs, port.recorder.layers)
  handles = {id(outer): inner.name for outer, inner in traced.graph.captures}
  trained = {variable_name(v): v for v in port.trainable_variables()}
  by = tuple(
    (_gradient_target(n), handles[id(v.handle)])
    for n, v in trained.items()
    if hasattr(v, 'handle') and id(v.handle) in handles
  )
  *targets, loss = traced.targets
  derived = Derived(loss.tensors[0], by)
  found = _with_variables(
    dataclasses.replace(traced, targets=tuple(targets), derived=derived), port, run
  )

  def shown(values: Mapping[str, Sequence[np.ndarray]]) -> tuple[TensorRecord, ...]:
    return port.gradients(
      gradient_record(port, v, _gradient(values.get(_gradient_target(n), ())))
      for n, v in trained.items()
    )

  return dataclasses.replace(found, shown_gradients=shown)


def _gradient_target(own: str) -> str:
  return f'gradient {in_own_layout(own)}'


def _gradient(values: Sequence[np.ndarray]) -> Any:
  """Returns a gradient of what a session yields of it: nothing, one array, rows and indices."""
  if len(values) == 2:
    return tf.IndexedSlices(*values)
  return values[0] if values else None


def _losses(
  declaration: side.Declaration, port: Port, run: side.RunSpec, outputs: Any
) -> dict[str, Any]:
  del outputs
  variables = [(v, variable_name(v)) for v in port.variables() if hasattr(v, 'handle')]
  handles = {id(variable.handle): name for variable, name in variables}
  found: dict[str, Any] = {}
  for number, loss in enumerate(declaration.tf2_regularization_losses(port.layer)):
    read = captured_variables_behind(loss, handles)
    names = tuple(sorted(run.tf1_names.get(name, name) for name in read))
    if names or number == 0:
      found[regularization_target(names, number, found)] = loss
  return found
