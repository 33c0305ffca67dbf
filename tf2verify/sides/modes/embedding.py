"""A port embedded in a Keras functional model."""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf
import tf_keras

from tf2verify.errors import Tf2VerifyError
from tf2verify.reference import nests
from tf2verify.tensorflow_internals import keras3


class NotEmbeddable(Tf2VerifyError):
  """No functional model can take such inputs; the message says why."""


class _Embedding(tf_keras.layers.Layer):  # type: ignore[misc]
  """Makes a layer of a `tf.Module`, which functional models do not take."""

  def __init__(self, module: Any, call: Callable[[Any], Any]) -> None:
    super().__init__(autocast=False)
    self.module = module
    self._call = call

  def call(self, inputs: Any, training: Any = None) -> Any:
    """Calls the module, in the training mode that the caller has settled."""
    del training
    return self._call(inputs)


@dataclasses.dataclass(frozen=True)
class Embedded:
  """A functional model that holds a port and nothing else."""

  model: Any
  is_list: bool  # whether the port returns a list of one output, out of which tf-keras takes it

  def __call__(self, inputs: Any, training: bool) -> Any:
    """Returns what the port does."""
    found = self.model(inputs, training=training)
    return [found] if self.is_list and not isinstance(found, list) else found


def embedded(call: Callable[[Any], Any], port: Any, inputs: Any) -> Embedded:
  """Returns a functional model that holds the port and nothing else.

  Args:
    call: calls the port on a nest of tensors.
    port: a Keras layer, which is called directly, or a `tf.Module`, which goes into a
      layer of its own.
    inputs: the nest of arrays whose shapes the model takes, batch size included.

  Raises:
    NotEmbeddable: an input has no batch axis.
  """
  of_keras3 = keras3.is_layer(port)
  library = keras3.loaded() if of_keras3 else tf_keras
  scalars: list[str] = []
  # Keras 3 warns of an input whose name is not its key.
  names = {f'[{key!r}]': key for key in inputs} if isinstance(inputs, dict) else {}

  def keras_input(path: str, leaf: np.ndarray) -> Any:
    if not leaf.ndim:
      scalars.append(path or 'the input')
      return None
    dtype = tf.string if leaf.dtype.kind in 'SU' else tf.as_dtype(leaf.dtype)
    if not of_keras3:
      return library.Input(batch_shape=leaf.shape, dtype=dtype)
    return library.Input(batch_shape=leaf.shape, dtype=dtype.name, name=names.get(path))

  symbolic = nests.map_leaves(keras_input, inputs)
  if scalars:
    raise NotEmbeddable(f'{scalars[0]} is a scalar, and the inputs of Keras models have a batch')
  is_layer = isinstance(port, tf_keras.layers.Layer) or of_keras3
  outputs = call(symbolic) if is_layer else _Embedding(port, call)(symbolic)
  is_list = isinstance(outputs, list) and len(outputs) == 1
  return Embedded(library.Model(symbolic, outputs), is_list)
