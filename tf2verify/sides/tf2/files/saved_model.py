"""A port's SavedModel: saved, loaded again and run."""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from tf2verify.records.observation import Observation, TensorRecord
from tf2verify.reference import nests
from tf2verify.reference.nests import FlatNest
from tf2verify.sides import side
from tf2verify.sides.hooks.user_code import user_code
from tf2verify.sides.process import randomness
from tf2verify.sides.tf2.layers import layer_parts
from tf2verify.sides.tf2.layers.outermost import scope_around
from tf2verify.sides.tf2.layers.port import array_of, flat_outputs
from tf2verify.tensorflow_internals import keras


@dataclasses.dataclass(frozen=True, eq=False)
class SavedPort:
  """A port that was saved."""

  traced: Callable[[], Observation]  # runs the function that was saved, in this process
  loaded: Callable[[], Observation]  # loads the SavedModel and runs its function


def save(
  declaration: side.Declaration, layer: Any, inputs: Any, training: bool, folder: str
) -> SavedPort:
  """Saves a layer's call as a SavedModel with one function.

  The module that is saved holds the layer's variables and tables, not the layer: Keras
  would trace every one of its sublayers as well.

  Args:
    declaration: the case.
    layer: called once, so that its variables are there.
    inputs: a nest of arrays, whose shapes and dtypes are the signature.
    training: the training mode.
    folder: where to.

  Raises:
    UserCodeError: the layer cannot be traced or saved.
  """
  arrays: list[np.ndarray] = []
  nests.map_leaves(lambda _, leaf: arrays.append(leaf), inputs)
  fed = [tf.constant(array) for array in arrays]
  nest: list[FlatNest] = []

  def call(*tensors: Any) -> list[Any]:
    given = iter(tensors)
    nested = nests.map_leaves(lambda _, leaf: next(given), inputs)
    hook = layer_parts.call_of(declaration, layer)
    with scope_around(layer):
      nest[:] = [flat_outputs(hook(layer, nested, training))]
    return [leaf for _, leaf in nest[0].leaves if tf.is_tensor(leaf)]

  def observation(values: list[Any]) -> Observation:
    left = iter(values)
    leaves = [(path, next(left) if tf.is_tensor(leaf) else leaf) for path, leaf in nest[0].leaves]
    records = tuple(
      TensorRecord(path, None if leaf is None else np.array(array_of(leaf)))
      for path, leaf in leaves
    )
    return Observation(side.TF2, '', nest[0].structure, records)

  module = tf.Module()
  module.held = _resources(layer)
  module.call = tf.function(
    call, input_signature=[tf.TensorSpec(tensor.shape, tensor.dtype) for tensor in fed]
  )
  with randomness.seeded(randomness.CONSTANT), user_code(side.TF2, 'tf.saved_model.save'):
    tf.saved_model.save(module, folder)

  def run(saved: Any) -> Observation:
    with randomness.seeded(randomness.CONSTANT), user_code(side.TF2, 'the SavedModel'):
      return observation(saved.call(*fed))

  def loaded() -> Observation:
    with user_code(side.TF2, 'tf.saved_model.load'):
      model = tf.saved_model.load(folder)  # which its function does not keep alive
    return run(model)

  return SavedPort(lambda: run(module), loaded)


def _resources(layer: Any) -> list[Any]:
  """Returns the variables and tables of a layer, as its attributes lead to them."""
  variables = [*layer_parts.variables_of(layer), *layer_parts.states_beside(layer)]
  found = {id(variable): variable for variable in variables}
  seen = {id(layer)}
  level = [layer]
  while level:
    children = [c for parent in level for c in tf.train.TrackableView.children(parent).values()]
    level = []
    for child in children:
      if id(child) in seen:
        continue
      seen.add(id(child))
      level.append(child)
      if isinstance(child, (tf.Variable, keras.CAPTURABLE_RESOURCE)):
        found[id(child)] = child
  return list(found.values())
