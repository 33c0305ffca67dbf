"""A port traced as one graph, of which every tensor can be asked for."""

from typing import Any

import numpy as np
import tensorflow as tf

from tf2verify.reference.variables import variable_name
from tf2verify.sides import side
from tf2verify.sides.graphs.dataflow import captured_variables_behind
from tf2verify.sides.graphs.reading import target_name
from tf2verify.sides.process import randomness
from tf2verify.sides.tf2 import tracing
from tf2verify.sides.tf2.port import Port, flat_outputs
from tf2verify.tensorflow_internals import autograph


def traced_port(
  declaration: side.Declaration, port: Port, run: side.FilledRun
) -> tracing.TracedPort:
  """Traces a port, to run it as it is or changed.

  Args:
    declaration: the case.
    port: a layer that has been called before, so that its variables are there.
    run: inputs, training mode and variable values.

  Raises:
    NotTraceable: the port does not run on symbolic tensors.
  """

  def compute(inputs: Any) -> dict[str, Any]:
    call = autograph.converted(declaration.call_tf2_layer)
    outputs = call(port.layer, inputs, run.training)
    found = {
      f'output {path}': leaf for path, leaf in flat_outputs(outputs).leaves if leaf is not None
    }
    wanted = _gradients if run.gradients else _losses
    return {**found, **wanted(declaration, port, run, outputs)}

  with randomness.seeded(randomness.CONSTANT):
    traced = tracing.trace(compute, run.inputs)
  variables = {
    run.tf1_names.get(record.name, record.name): (variable, record)
    for variable, record in zip(port.variables(), port.described(port.variables()), strict=True)
    if hasattr(variable, 'handle')
  }
  initial = {record.name: record.value for record in port.initial_values()}

  def value(name: str) -> np.ndarray:
    _, record = variables[name]
    given = run.value_for(record)
    wanted = np.asarray(initial[record.name] if given is None else given)
    return port.layouts.to_tf2(record.name, wanted)

  handles = {id(variable.handle): name for name, (variable, _) in variables.items()}
  by_name = {name: variable for name, (variable, _) in variables.items()}
  prefix = f'{port.layer.name}/'
  return tracing.TracedPort(traced, handles, value, by_name, prefix)


def _gradients(
  declaration: side.Declaration, port: Port, run: side.FilledRun, outputs: Any
) -> dict[str, Any]:
  trainable = {id(variable) for variable in port.layer.trainable_variables}
  watched = [variable for variable in port.variables() if id(variable) in trainable]
  # Not a tape: the operations of `tf.gradients` have the names that they have in tf1.
  gradients = tf.gradients(declaration.loss(outputs), watched)
  names = [run.tf1_names.get(variable_name(v), variable_name(v)) for v in watched]
  found = {}
  for name, record, gradient in zip(names, port.described(watched), gradients, strict=True):
    if isinstance(gradient, tf.Tensor) and tuple(gradient.shape) != record.shape:
      gradient = tf.reshape(gradient, record.shape)  # as tf1 has the variable
    if gradient is not None:
      found[f'gradient {name}'] = gradient
  return found


def _losses(
  declaration: side.Declaration, port: Port, run: side.FilledRun, outputs: Any
) -> dict[str, Any]:
  del outputs
  variables = [(v, variable_name(v)) for v in port.variables() if hasattr(v, 'handle')]
  handles = {id(variable.handle): name for variable, name in variables}
  found: dict[str, Any] = {}
  for number, loss in enumerate(declaration.tf2_regularization_losses(port.layer)):
    read = captured_variables_behind(loss, handles)
    names = tuple(sorted(run.tf1_names.get(name, name) for name in read))
    if names or number == 0:
      found[target_name('regularization loss', names, number, found)] = loss
  return found
