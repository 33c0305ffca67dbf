"""A port's layer, and what is known of its variables."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tf2verify.errors import LayerError
from tf2verify.records.observation import TensorRecord, VariableRecord
from tf2verify.sides import nests
from tf2verify.sides.graphs.op_recorder import OpRecorder, static_shape, variable_name


class Port:
  """A layer, and what is known of its variables."""

  def __init__(self, layer: Any) -> None:
    self.layer = layer
    self.recorder = OpRecorder()

  def variables(self) -> list[Any]:
    """Returns the layer's own variables, each once."""
    return list({id(variable): variable for variable in self.layer.variables}.values())

  def initial_values(self) -> tuple[TensorRecord, ...]:
    """Returns the values at creation, of the layer's variables."""
    known = {id(creation.variable): creation for creation in self.recorder.creations}
    records = []
    for variable in self.variables():
      creation = known.get(id(variable))
      value = None if creation is None else creation.initial_value
      records.append(
        TensorRecord(variable_name(variable), array_of(variable if value is None else value))
      )
    return tuple(records)

  def keeps_initial_values(self) -> bool:
    """Tells whether the value at creation is still known for every variable."""
    known = {id(c.variable) for c in self.recorder.creations if c.initial_value is not None}
    return all(id(variable) in known for variable in self.variables())

  def reset(self) -> None:
    """Gives every variable the value that it had at creation."""
    values = {id(c.variable): c.initial_value for c in self.recorder.creations}
    for variable in self.variables():
      variable.assign(values[id(variable)])

  def forget_initial_values(self, variables: Sequence[Any]) -> None:
    """Frees the memory of values that no run will need again."""
    forgotten = {id(variable) for variable in variables}
    for creation in self.recorder.creations:
      if id(creation.variable) in forgotten:
        creation.initial_value = None

  def values(self) -> tuple[TensorRecord, ...]:
    """Returns the values now."""
    return tuple(TensorRecord(variable_name(v), array_of(v)) for v in self.variables())

  def described(self, variables: Sequence[Any]) -> list[VariableRecord]:
    """Returns the records of variables, the layer's own or not."""
    sources = {id(creation.variable): creation.source for creation in self.recorder.creations}
    trainable = {id(variable) for variable in self.layer.trainable_variables}
    own = {id(variable) for variable in self.variables()}
    return [
      VariableRecord(
        variable_name(variable),
        static_shape(variable.shape),
        variable.dtype.base_dtype.name,
        trainable=id(variable) in trainable if id(variable) in own else bool(variable.trainable),
        trainable_flag=bool(variable.trainable),
        source=sources.get(id(variable)),
      )
      for variable in variables
    ]


def array_of(value: Any) -> np.ndarray:
  """Returns a tensor's or variable's value, sharing its memory where that is possible."""
  if isinstance(value, tf.Variable):
    value = value.read_value()
  return np.asarray(value)


def flat_outputs(outputs: Any) -> nests.FlatNest:
  """Takes a layer's outputs apart.

  Raises:
    LayerError: one of them is no tensor.
  """
  try:
    return nests.flatten(outputs)
  except nests.NotATensor as error:
    raise LayerError(
      f"the layer's call returned something that is not a tensor: {error}; return tensors, or "
      'tuples, lists, named tuples and dictionaries of tensors'
    ) from error
