"""The model's runs, recorded."""

from typing import Any, Dict, List, Tuple

import tensorflow as tf

from .built_graph import BuiltGraph
from .constant_mode import constant_obstacle, random_nodes
from .fill_values import CONSTANT_VALUES, DISTINCT_VALUES
from .gradients import add_gradients
from .graph_entry import graph_entry
from .graph_ops import is_in_loop, ops_behind
from .held_array import HeldArray
from .messages import training_name
from .randomness import CONSTANT, NUM_RANDOM_OPS
from .recorder import Recorder
from .run import Key, Run
from .weighted_sum import weighted_sum


def _constant_graph(recorder: Recorder, built: BuiltGraph) -> Tuple[Any, bool]:
  """Returns the graph of constant mode, and whether it is the other one with `seed2` at 0."""
  graph_def = built.graph.as_graph_def()
  obstacle = constant_obstacle(built, graph_def)
  built.draws_repeat = not obstacle and not any('PyFunc' in node.op for node in graph_def.node)
  if obstacle:
    again = recorder.built(built.training, CONSTANT)
    if built.gradients:
      add_gradients(again, weighted_sum)
    return again.graph, False
  for node in random_nodes(graph_def):
    node.attr['seed2'].i = 0
  graph = tf.Graph()
  with graph.as_default():
    tf.import_graph_def(graph_def, name='')
  return graph, True


def _observation(built: BuiltGraph, tensors: Dict[Key, Any], runs: int) -> Dict[str, Any]:
  """Returns the manifest's entry for what a run yielded."""
  losses = built.regularization_losses

  def all_of(quantity: str) -> List[List[Any]]:
    return [[name, tensor] for (kind, name), tensor in tensors.items() if kind == quantity]

  return {
    'outputs': all_of('output'),
    'regularization_losses': [
      [names, tensors['regularization loss', str(number)]]
      for number, (names, _) in enumerate(losses)
    ],
    'regularization_total': tensors['regularization total', ''],
    'initial_values': all_of('initial value'),
    'state_after': all_of('state after'),
    'gradients': all_of('gradient'),
    'noise_runs': runs,
  }


def _record_filled(
  recorder: Recorder, built: BuiltGraph, graph: Any, description: str, gradients: bool
) -> None:
  """Records a run with given values of the variables."""
  varied = description == DISTINCT_VALUES
  inputs = recorder.varied if varied else recorder.inputs
  values = recorder.fill_values(built, description)
  run = Run(built, graph, inputs, values, recorder.sessions, gradients)
  text = '{}, {}{}'.format(
    training_name(built.training), description, ', gradients' if gradients else ''
  )
  tensors, runs = recorder.measured(text, run.evaluate)
  recorder.runs.append(
    dict(
      _observation(built, tensors, runs),
      kind='filled',
      training=built.training,
      fill=description,
      inputs='varied' if varied else 'given',
      with_gradients=gradients,
    )
  )
  if varied and recorder.options.intermediates != 'none':
    with recorder.step('  intermediate tensors'):
      recorder.intermediates.append(_intermediates(recorder, built, run))


_FEW_SAMPLES = 64  # of a tensor on the way


def _intermediates(recorder: Recorder, built: BuiltGraph, run: Run) -> Dict[str, Any]:
  """Stores the floating tensors of the forward graph behind what the last run gave."""
  names = [name for _, name in built.outputs if name is not None]
  names += [name for _, name in built.regularization_losses]
  behind = ops_behind(built.graph.get_tensor_by_name(name) for name in names)
  position = {op.name: n for n, op in enumerate(built.graph.get_operations())}
  wanted = [
    tensor.name
    for op in sorted(behind.values(), key=lambda op: position[op.name])
    if op.type not in _KNOWN_VALUES and not _reads_variable(op) and not is_in_loop(op)
    for tensor in op.outputs
    if tensor.dtype.is_floating and built.graph.is_fetchable(tensor)
  ]
  full = recorder.options.intermediates == 'full'
  tensors = []
  for name, value in run.tensors(wanted):
    held = HeldArray(value, 0 if full or value.size <= _FEW_SAMPLES else _FEW_SAMPLES, block=0)
    tensors.append([name, recorder.writer.add(held)])
  return {'run': len(recorder.runs) - 1, 'tensors': tensors}


# What holds a known value, or none outside of its loop.
_KNOWN_VALUES = ('Const', 'Placeholder', 'VariableV2', 'Variable', 'ReadVariableOp', 'Enter')


def _reads_variable(op: Any) -> bool:
  return op.type == 'Identity' and op.inputs[0].op.type in _KNOWN_VALUES


def _record_seeded(recorder: Recorder, built: BuiltGraph, graph: Any, mode: str) -> None:
  """Records a run from the graph's own, seeded initial values."""
  run = Run(built, graph, recorder.inputs, None, recorder.sessions)
  text = '{}, {}'.format(training_name(built.training), mode)
  tensors, runs = recorder.measured(text, run.evaluate)
  entry = _observation(built, tensors, runs)
  # Every variable has a state after the run; most have the one before.
  entry['state_after'] = [
    [v.name, tensors.get(('state after', v.name), tensors['initial value', v.name])]
    for v in built.owned()
  ]
  recorder.runs.append(dict(entry, kind='seeded', mode=mode, training=built.training))


def record_training_mode(recorder: Recorder, training: bool) -> Dict[str, Any]:
  """Records all runs of one training mode, and returns the entry of its graph."""
  modes = recorder.options.training_modes
  built = recorder.built(training)
  if training is (True in modes):
    with recorder.step('adding gradients, {}'.format(training_name(training))):
      add_gradients(built, weighted_sum)
  with recorder.step('making the graph of constant mode, {}'.format(training_name(training))):
    constant, rewritten = _constant_graph(recorder, built)
  graph = constant if built.draws_in_computation else built.graph
  # Runs of one graph follow each other: a session of a large graph takes seconds to open.
  _record_seeded(recorder, built, built.graph, NUM_RANDOM_OPS)
  if training is not (False in modes):
    _record_filled(recorder, built, graph, DISTINCT_VALUES, gradients=False)
    _record_filled(recorder, built, graph, CONSTANT_VALUES, gradients=False)
  _record_seeded(recorder, built, constant, CONSTANT)
  if built.gradients:
    _record_filled(recorder, built, graph, DISTINCT_VALUES, gradients=True)
  return graph_entry(recorder, built, None if rewritten else constant)
