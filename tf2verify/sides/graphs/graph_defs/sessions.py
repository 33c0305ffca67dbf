"""Graphs of a GraphDef, and sessions that run them as they were built."""

from typing import Any

import tensorflow as tf

from tf2verify.environment import time_limit

v1 = tf.compat.v1


def open_session(graph: tf.Graph) -> Any:
  """Opens a session that runs a graph as it was built.

  Grappler's rewriting (convolution, batch norm and relu fused into one kernel,
  constants folded) rounds differently than the same ops one by one, which is what
  the port runs eagerly. Without it both sides run the same kernels, and a
  difference is the port's.
  """
  config = v1.ConfigProto()
  config.graph_options.rewrite_options.disable_meta_optimizer = True
  config.graph_options.optimizer_options.opt_level = v1.OptimizerOptions.L0
  left = time_limit.seconds_left()
  if left is not None:  # a loop that never ends is cancelled then
    config.operation_timeout_in_ms = max(1, round(1000 * left))
  return v1.Session(graph=graph, config=config)


def imported(graph_def: Any) -> tf.Graph:
  """Returns the graph of a GraphDef."""
  graph = tf.Graph()
  _place_anywhere(graph_def)
  with graph.as_default():
    tf.import_graph_def(graph_def, name='')
  return graph


def _place_anywhere(graph_def: Any) -> None:
  """Takes the device off operations that run there anyway: in an import each takes its time."""
  devices = {node.device for node in graph_def.node if node.device}
  if not devices or tf.config.list_logical_devices('GPU'):
    return
  default = {device for device in devices if _is_first_cpu(device)}
  for node in graph_def.node:
    if node.device in default:
      node.device = ''


def _is_first_cpu(device: str) -> bool:
  known = tf.DeviceSpec.from_string(device)
  place = known.job, known.replica, known.task, known.device_type, known.device_index
  anywhere = ('localhost', 0, 0, 'CPU', 0)
  return all(one in (None, other) for one, other in zip(place, anywhere, strict=True))
