"""What a call of a port yields, as records."""

from typing import Any

import tensorflow as tf

from tf2verify.records.observation import TensorRecord
from tf2verify.reference.variables import static_shape, variable_name
from tf2verify.sides import side
from tf2verify.sides.hooks.user_code import user_code
from tf2verify.sides.tf2.layers.port import Port, array_of, flat_outputs


def output_records(outputs: Any) -> dict[str, Any]:
  """Returns the fields of an observation that its outputs fill."""
  flat = flat_outputs(outputs)
  return {
    'structure': flat.structure,
    'outputs': tuple(
      TensorRecord(path, None if leaf is None else array_of(leaf)) for path, leaf in flat.leaves
    ),
  }


def losses_kept(port: Port) -> int:
  """Returns the number of losses that a layer holds; a `tf.Module` holds none."""
  with user_code(side.TF2, 'layer.losses'):
    return len(getattr(port.layer, 'losses', ()))


def gradient_record(port: Port, variable: Any, gradient: Any) -> TensorRecord:
  """Returns the gradient for a variable, rows of `IndexedSlices` in their places.

  To be given to `Port.gradients`, together with the others.
  """
  if gradient is None:
    return TensorRecord(variable_name(variable), None)
  if isinstance(gradient, tf.IndexedSlices):
    shape = tuple(size or 0 for size in static_shape(variable.shape))
    dense = side.dense_gradient(array_of(gradient.values), array_of(gradient.indices), shape)
    return port.record_of(variable, dense, constants=False)
  return port.record_of(variable, gradient, constants=False)
