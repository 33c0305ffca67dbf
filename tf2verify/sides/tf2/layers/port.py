"""A port's layer, and what is known of its variables."""

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import tensorflow as tf

from tf2verify.errors import LayerError
from tf2verify.records.observation import TensorRecord, VariableRecord
from tf2verify.reference import nests
from tf2verify.reference.variables import static_shape, variable_name
from tf2verify.relation.layouts.variable_layouts import Layouts
from tf2verify.sides.graphs.lines.op_recorder import OpRecorder
from tf2verify.sides.process import randomness
from tf2verify.sides.side import RunSpec
from tf2verify.sides.tf2.layers import layer_parts
from tf2verify.tensorflow_internals import keras3


class HoldsElements(Protocol):
  """Elements of a variable that are to have other values."""

  def into(self, value: np.ndarray) -> np.ndarray:
    """Returns a value of the variable, in the shape of tf1, with these elements."""


class Port:
  """A layer, and what is known of its variables.

  Attributes:
    layer: the layer.
    recorder: sees what its calls do.
    layouts: of its variables: values come and go in the shapes of tf1.
  """

  def __init__(self, layer: Any, layouts: Layouts, keeps_values: bool = True) -> None:
    """Takes the layer, and whether the initial values of its variables are kept."""
    self.layer = layer
    self.recorder = OpRecorder(keeps_values)
    self.layouts = layouts
    # Values that are known to be meant, and what they are for the port: a sum is rounded.
    self._expected: dict[tuple[str, ...], tuple[list[np.ndarray], dict[str, np.ndarray]]] = {}

  def take(self, layer: Any) -> None:
    """Takes the layer as it was made.

    What making it has assigned (a target network that starts as a copy, a table of embeddings) is
    what its variables start with, whatever they were created with.
    """
    self.layer = layer
    for creation in self.recorder.creations:
      if creation.initial_value is None or not creation.initial_value.dtype.is_floating:
        continue
      now = creation.variable.read_value()
      if not np.array_equal(array_of(now), array_of(creation.initial_value)):
        creation.initial_value = now
        creation.make_value = None  # no function makes it

  def variables(self) -> list[Any]:
    """Returns the layer's own variables, each once."""
    return layer_parts.variables_of(self.layer)

  def trainable_variables(self) -> list[Any]:
    """Returns those of them that the layer trains, each once."""
    return [keras3.held(variable) for variable in layer_parts.trainable_of(self.layer)]

  def used_beside(self) -> tuple[Any, ...]:
    """Returns the variables that calls made or used, and that the layer does not own."""
    known = [*self.variables(), *layer_parts.states_beside(self.layer)]
    return self.recorder.variables_used_beside(known)

  def made_by_get_variable(self) -> bool:
    """Returns whether anything in the layer is made as in tf1, with the names of tf1."""
    if any(creation.creator == 'get_variable' for creation in self.recorder.creations):
      return True
    modules = layer_parts.modules_of(self.layer)
    return any(hasattr(module, '_tf1_style_var_store') for module in modules)

  def is_relaid_state(self, own: str) -> bool:
    """Returns whether a variable is state whose elements lie in another order than in tf1.

    What a call writes of it is then compared by the name of tf1: a table whose rows are columns
    there. Not one that tf1 has several variables for, or has without a constant.
    """
    layouts = self.layouts
    if not layouts.lies_otherwise(own) or layouts.lie_apart(own) or layouts.adds_constants(own):
      return False
    return own not in map(variable_name, self.trainable_variables())

  def initial_values(self) -> tuple[TensorRecord, ...]:
    """Returns the values at creation, of the layer's variables."""
    known = {id(creation.variable): creation for creation in self.recorder.creations}
    records = []
    for variable in self.variables():
      creation = known.get(id(variable))
      value = None if creation is None else creation.initial_value
      records.append(self.record_of(variable, variable if value is None else value))
    return self.layouts.grouped(records)

  def own_initial_values(self, names: Iterable[str]) -> dict[str, np.ndarray]:
    """Returns the values at creation of some variables, by their own names and in their shapes."""
    known = {id(creation.variable): creation for creation in self.recorder.creations}
    found = {variable_name(variable): variable for variable in self.variables()}
    values = {}
    for name in names:
      creation = known.get(id(found[name]))
      value = None if creation is None else creation.initial_value
      values[name] = array_of(found[name] if value is None else value)
    return values

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
    records = self.layouts.grouped(self.record_of(v, v) for v in self.variables())
    if not self._expected:
      return records
    return self._as_expected(records, {variable_name(v): array_of(v) for v in self.variables()})

  def shown(self, own: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Returns values of all variables as they are shown, of those by their own names."""
    layouts = self.layouts
    records = layouts.grouped(TensorRecord(n, layouts.to_tf1(n, value)) for n, value in own.items())
    return {r.name: np.asarray(r.value) for r in self._as_expected(records, own)}

  def _as_expected(
    self, records: Iterable[TensorRecord], own: Mapping[str, np.ndarray]
  ) -> tuple[TensorRecord, ...]:
    known: dict[str, np.ndarray] = {}
    for names, (values, moved) in self._expected.items():
      if all(n in own and _same_bits(own[n], value) for n, value in moved.items()):
        known.update(zip(names, values, strict=True))
    return tuple(TensorRecord(r.name, known.get(r.name, r.value)) for r in records)

  def expect(self, values: Mapping[str, np.ndarray]) -> None:
    """Takes values that variables may get, to give back the same where a constant is added."""
    for name in values:
      together = self.layouts.neighbours(name)
      if self.layouts.adds_constants(name) and all(other in values for other in together):
        wanted = {other: np.array(values[other]) for other in together}
        own = self.layouts.ungrouped(wanted)
        moved = {one: self.layouts.to_tf2(one, value) for one, value in own.items()}
        self._expected[together] = list(wanted.values()), moved

  def record_of(self, variable: Any, value: Any, constants: bool = True) -> TensorRecord:
    """Returns a value of a variable (its own, initial, a gradient) in the shape of tf1.

    Args:
      variable: of the layer.
      value: in the shape of the variable; one of a group keeps it, see `Layouts.grouped`.
      constants: False for what a constant of the layout is not added to: a gradient.
    """
    name = variable_name(variable)
    return TensorRecord(name, self.layouts.to_tf1(name, array_of(value), constants))

  def gradients(self, records: Iterable[TensorRecord]) -> tuple[TensorRecord, ...]:
    """Returns gradients for variables, by `record_of`, as those for the variables of tf1."""
    return self.layouts.grouped(records, constants=False)

  def wants_gradient_of(self, run: RunSpec, variable: Any) -> bool:
    """Returns whether a run wants the gradient for a variable, or for one that it is a part of."""
    shown = self.layouts.shown_names(variable_name(variable))
    return any(run.wants_gradient_of(name) for name in shown)

  def assign(self, values: Iterable[tuple[str, np.ndarray]]) -> None:
    """Gives variables values, by the names and in the shapes in which they are shown.

    Args:
      values: of some variables; each is asked for when it is assigned.
    """
    variables: dict[str, list[Any]] = {}
    for variable in self.variables():
      variables.setdefault(variable_name(variable), []).append(variable)
    waiting: dict[str, np.ndarray] = {}
    for name, value in values:
      together = self.layouts.neighbours(name)
      if not all(own in variables for own in self.layouts.own_names(name)):
        continue
      waiting[name] = value
      if all(other in waiting for other in together):
        self._assign(variables, {other: waiting.pop(other) for other in together})
    if waiting:  # a part of a group: the rest keeps its value
      now = {record.name: record.value for record in self.values()}
      together = tuple(other for name in waiting for other in self.layouts.neighbours(name))
      self._assign(variables, {n: np.asarray(waiting.get(n, now[n])) for n in together})

  def hold(self, held: Mapping[str, HoldsElements]) -> None:
    """Gives elements of variables other values, by the names under which these are shown."""
    values = {record.name: record.value for record in self.values()}
    self.assign(
      (name, elements.into(np.asarray(values[name])))
      for name, elements in held.items()
      if name in values
    )

  def _assign(
    self, variables: Mapping[str, Sequence[Any]], values: Mapping[str, np.ndarray]
  ) -> None:
    self.expect(values)
    for own, value in self.layouts.ungrouped(values).items():
      given, namesakes = self.layouts.to_tf2(own, value), variables[own]
      if len(namesakes) > 1 and np.shape(given) != static_shape(namesakes[-1].shape):
        raise LayerError(
          f'{len(namesakes)} variables of the port are called {own!r}, and have different shapes: '
          'values are given by name; give each a name of its own (in a tf.Module, by '
          'tf.Module.with_name_scope or by name=)'
        )
      namesakes[-1].assign(given)

  def identities(self) -> dict[str, int]:
    """Returns the identity of each variable by the name that is shown; the first of a group."""
    found = {
      name: id(variable)
      for variable in reversed(self.variables())
      for name in self.layouts.shown_names(variable_name(variable))
    }
    return {record.name: found[record.name] for record in self.inventory()}

  def inventory(self) -> list[VariableRecord]:
    """Returns the records of the layer's own variables, as they are shown."""
    return self.layouts.described(self.described(self.variables()))

  def made_so_far(self) -> set[str]:
    """Returns the names of those that are there, as shown; also of a layer that is not built."""
    made = [variable_name(variable) for variable in layer_parts.variables_made(self.layer)]
    return {shown for name in made for shown in self.layouts.shown_names(name)}

  def described(self, variables: Sequence[Any]) -> list[VariableRecord]:
    """Returns the records of variables, the layer's own or not, each by itself."""
    sources = {id(creation.variable): creation.source for creation in self.recorder.creations}
    trainable = {id(variable) for variable in self.trainable_variables()}
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


def _same_bits(one: np.ndarray, other: np.ndarray) -> bool:
  return one.shape == other.shape and one.tobytes() == other.tobytes()


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
  value = keras3.held(value)
  if isinstance(value, tf.Variable):
    value = value.read_value()
  return np.asarray(value)


def readable_outputs(outputs: Any) -> Any:
  """Returns a layer's outputs with the values of variables of Keras 3 in their place.

  `keras.ops.convert_to_tensor` returns a variable itself: to a port, that is the tensor.
  """
  try:
    nests.flatten(outputs)
    return outputs
  except nests.NotATensor as error:
    if not keras3.is_variable(error.leaf):
      return outputs
  return nests.map_leaves(
    lambda _, leaf: tf.convert_to_tensor(keras3.held(leaf)) if keras3.is_variable(leaf) else leaf,
    outputs,
  )


def checked_outputs(outputs: Any) -> Any:
  """Returns what a layer's call returned, as `readable_outputs` does.

  Raises:
    LayerError: it is None, or holds what is not a tensor.
  """
  if outputs is None:
    raise LayerError(
      "the layer's call returned None: usually a missing `return`; return the output tensors, "
      "in the same structure as the builder's"
    )
  readable = readable_outputs(outputs)
  flat_outputs(readable)  # here, and not where it is first compared: other stages come before
  return readable


def flat_outputs(outputs: Any) -> nests.FlatNest:
  """Takes a layer's outputs apart.

  Raises:
    LayerError: one of them is not a tensor.
  """
  try:
    return nests.flatten(readable_outputs(outputs))
  except nests.NotATensor as error:
    raise LayerError(
      f"the layer's call returned something that is not a tensor: {error}; return tensors, or "
      'tuples, lists, named tuples and dictionaries of tensors'
    ) from error
