"""The port's calls as programs whose effects can be asked for."""

import dataclasses
from collections.abc import Collection
from typing import Any

import tensorflow as tf

from tf2verify.errors import Tf2VerifyError
from tf2verify.reference import nests
from tf2verify.reference.variables import variable_name
from tf2verify.sides import side
from tf2verify.sides.graphs.lines.user_sources import user_source
from tf2verify.sides.graphs.variables.effects import Effect, Program, effects, output_name
from tf2verify.sides.process import randomness
from tf2verify.sides.tf2.layers import layer_parts
from tf2verify.sides.tf2.layers.port import Port, flat_outputs, readable_outputs
from tf2verify.sides.tf2.optimization.step import losses_of
from tf2verify.sides.tf2.traces import tracing, ways_to_trace

_ADDED = 'a loss that the port adds, number'
_TOTAL = 'the total loss'


def port_effects(
  declaration: side.Declaration, port: Port, inputs: Any, labels: Any, variables: Collection[str]
) -> dict[str, Effect] | None:
  """Returns which of a port's variables a compared number depends on, in any training mode.

  Args:
    declaration: the case.
    port: a layer that has its variables.
    inputs: the nest of arrays to call it with.
    labels: likewise, of the losses; None without.
    variables: names of some of its variables, as they are shown.

  Returns:
    What has an effect, by name; None where the port does not run as a graph, so that
    nothing is known.
  """
  own = {name: shown for shown in variables for name in port.layouts.own_names(shown)}
  found: dict[str, Effect] = {}
  added: dict[str, Effect] = {}
  for training in declaration.training_modes:
    try:
      program = _program(declaration, port, inputs, labels, training)
    except tracing.NotTraceable:
      return None
    sinks = tuple(sink for sink in program.sinks if not sink[1].startswith((_ADDED, _TOTAL)))
    found = {**effects(dataclasses.replace(program, sinks=sinks), own), **found}
    added = {**effects(program, own), **added}
  for name in added.keys() - found.keys():
    found[name] = dataclasses.replace(added[name], is_of_added_loss=True)
  return {own[name]: effect for name, effect in reversed(found.items())}


def _program(
  declaration: side.Declaration, port: Port, inputs: Any, labels: Any, training: bool
) -> Program:
  def compute(fed: Any) -> dict[str, Any]:
    call = layer_parts.call_of(declaration, port.layer)
    outputs = readable_outputs(call(port.layer, fed, training))
    found = {
      output_name(path): leaf for path, leaf in flat_outputs(outputs).leaves if leaf is not None
    }
    for number, loss in enumerate(declaration.tf2_regularization_losses(port.layer)):
      found[f'{_ADDED} {number + 1}'] = loss
    if declaration.declares('tf2_loss'):
      found.update(_losses(outputs))
    return found

  def _losses(outputs: Any) -> dict[str, Any]:
    tensors = None
    if labels is not None:
      tensors = nests.map_leaves(lambda _, leaf: tf.constant(leaf), labels)
    try:
      found = losses_of(declaration, port, outputs, tensors)
    except Tf2VerifyError:  # what is wrong with them is the matter of the stage `loss`
      return {}
    return {'the loss': found.loss, _TOTAL: found.total}

  with randomness.seeded(randomness.CONSTANT):
    traced = ways_to_trace.trace(compute, inputs)
  names = {id(v.handle): variable_name(v) for v in port.variables() if hasattr(v, 'handle')}
  handles = {
    names[id(outer)]: inner.op.name for outer, inner in traced.graph.captures if id(outer) in names
  }
  sinks = tuple(
    (tensor.rpartition(':')[0], target.name)
    for target in traced.targets
    for tensor in target.tensors
  )
  ops = {op.name: op for op in traced.graph.get_operations()}
  return Program(
    f'port, {side.training_name(training)}',
    traced.graph.as_graph_def(),
    handles,
    sinks,
    traced.writes,
    lambda name: user_source(ops[name]) if name in ops else None,
  )
