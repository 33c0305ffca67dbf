"""A port's layer, and what is known of its variables."""

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tf2verify.errors import LayerError
from tf2verify.records.observation import TensorRecord, VariableRecord
from tf2verify.reference import nests
from tf2verify.reference.variables import static_shape, variable_name
from tf2verify.relation.layouts import Layouts
from tf2verify.sides.graphs.op_recorder import OpRecorder
from tf2verify.sides.process import randomness


class Port:
  """A layer, and what is known of its variables.

  Attributes:
    layer: the layer.
    recorder: sees what its calls do.
    layouts: of its variables: values come and go in the shapes of tf1.
  """

  def __init__(self, layer: Any, layouts: Layouts) -> None:
    self.layer = layer
    self.recorder = OpRecorder()
    self.layouts = layouts

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
      records.append(self.record_of(variable, variable if value is None else value))
    return tuple(records)

  def keeps_initial_values(self) -> bool:
    """Returns whether the value at creation is still known for every variable."""
    known = {id(c.variable) for c in self.recorder.creations if c.initial_value is not None}
    return all(id(variable) in known for variable in self.variables())

  def reset(self) -> None:
    """Gives every variable the value that it had at creation, where that is known."""
    values = {id(c.variable): c.initial_value for c in self.recorder.creations}
    for variable in self.variables():
      value = values.get(id(variable))
      if value is not None:
        variable.assign(value)

  def forget_initial_values(self, variables: Sequence[Any]) -> None:
    """Frees the memory of values that no run will need again."""
    forgotten = {id(variable) for variable in variables}
    for creation in self.recorder.creations:
      if id(creation.variable) in forgotten:
        creation.initial_value = None

  def values(self) -> tuple[TensorRecord, ...]:
    """Returns the values now."""
    return tuple(self.record_of(variable, variable) for variable in self.variables())

  def record_of(self, variable: Any, value: Any) -> TensorRecord:
    """Returns a value of a variable (its own, initial, a gradient) in the shape of tf1."""
    name = variable_name(variable)
    return TensorRecord(name, self.layouts.to_tf1(name, array_of(value)))

  def value_of(self, variable: Any) -> np.ndarray:
    """Returns the value of a variable now, in the shape of tf1."""
    return self.layouts.to_tf1(variable_name(variable), array_of(variable))

  def assign(self, variable: Any, value: np.ndarray) -> None:
    """Gives a variable a value that has the shape of tf1."""
    variable.assign(self.layouts.to_tf2(variable_name(variable), value))

  def described(self, variables: Sequence[Any]) -> list[VariableRecord]:
    """Returns the records of variables, the layer's own or not."""
    sources = {id(creation.variable): creation.source for creation in self.recorder.creations}
    trainable = {id(variable) for variable in self.layer.trainable_variables}
    own = {id(variable) for variable in self.variables()}
    return [
      VariableRecord(
        variable_name(variable),
        self.layouts.shape_of(variable_name(variable), static_shape(variable.shape)),
        variable.dtype.base_dtype.name,
        trainable=id(variable) in trainable if id(variable) in own else bool(variable.trainable),
        trainable_flag=bool(variable.trainable),
        source=sources.get(id(variable)),
      )
      for variable in variables
    ]


@contextlib.contextmanager
def untraced(mode: str) -> Iterator[None]:
  """Lets functions run eagerly that were traced in `constant` mode, to draw as in another one."""
  before = tf.config.functions_run_eagerly()
  if mode != randomness.CONSTANT:
    tf.config.run_functions_eagerly(True)
  try:
    yield
  finally:
    tf.config.run_functions_eagerly(before)


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
