"""Where the operations of a GraphDef run."""

from typing import Any

import tensorflow as tf


def place_anywhere(graph_def: Any) -> None:
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
