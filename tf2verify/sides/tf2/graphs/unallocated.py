"""The port as graphs, without a value for any of its variables: for models that do not fit."""

import contextlib
import functools
from collections.abc import Callable, Collection, Iterator
from typing import Any, final

import numpy as np
import tensorflow as tf

from tf2verify.relation.layouts.variable_layouts import Layouts
from tf2verify.sides import side
from tf2verify.sides.graphs.lines.op_recorder import MAKING
from tf2verify.sides.graphs.variables.effects import Effect
from tf2verify.sides.hooks.user_code import user_code
from tf2verify.sides.process import randomness
from tf2verify.sides.process import state as process_state
from tf2verify.sides.tf2.graphs import port_tracing
from tf2verify.sides.tf2.graphs.effects import port_effects
from tf2verify.sides.tf2.layers.checked_layer import check_layer, check_not_built
from tf2verify.sides.tf2.layers.keras3_parts import check_keras3
from tf2verify.sides.tf2.layers.port import Port
from tf2verify.sides.tf2.traces.tracing import NotTraceable, TracedPort
from tf2verify.tensorflow_internals import graphs, keras3, variables

# What a variable may be made with besides its initial value.
_KEPT = ('trainable', 'name', 'constraint', 'synchronization', 'aggregation')


@final
class UnallocatedLayer:
  """Traces a layer whose variables are handles: they have a shape, and no value."""

  def __init__(self, declaration: side.Declaration, inputs: Any, progress: side.Progress) -> None:
    self._declaration = declaration
    self._inputs = inputs
    self._progress = progress
    self._layouts = Layouts()
    self._calls: dict[bool, port_tracing.TracedCall] = {}

  @functools.cached_property
  def _made(self) -> Port:
    """The layer, before it is called."""
    process_state.reset_names()
    port = Port(None, self._layouts, keeps_values=False)
    with (
      _unread(port),
      _handles_only(),
      randomness.seeded(randomness.CONSTANT),
      user_code(side.TF2, 'make_tf2_layer'),
      port.recorder.recording(MAKING),
    ):
      layer = self._declaration.make_tf2_layer()
    check_layer(layer)
    check_not_built(layer, {id(creation.variable) for creation in port.recorder.creations})
    port.layer = layer
    return port

  @functools.cached_property
  def _port(self) -> Port:
    """The layer after it was traced in all training modes, so that its variables are there."""
    port = self._made
    for training in self._declaration.training_modes:
      call = f'trace, {side.training_name(training)}'
      self._progress(f'tracing the TF2 layer, {side.training_name(training)}')
      with _unread(port), _handles_only(), port.recorder.recording(call):
        self._calls[training] = port_tracing.traced_call(
          self._declaration, port, self._inputs, training
        )
    check_keras3(port)
    return port

  def is_of_keras3(self) -> bool:
    """Returns whether the port is a layer of Keras 3.

    Raises:
      NotTraceable: values of variables are read or written while the layer is made.
    """
    return keras3.is_layer(self._made.layer)

  def inventory(self) -> side.Inventory:
    """Returns the variables of the layer.

    Raises:
      NotTraceable: the port does not run on symbolic tensors, or needs values of its variables.
    """
    return side.Inventory(tuple(self._port.inventory()))

  def made_by_get_variable(self) -> bool:
    """Returns whether anything in the layer is made as in tf1, with the names of tf1."""
    return self._port.made_by_get_variable()

  def effects_of(self, names: Collection[str], labels: Any) -> dict[str, Effect] | None:
    """Returns which of some variables a compared number depends on; None if that is not known."""
    with _handles_only():
      return port_effects(self._declaration, self._port, self._inputs, labels, names)

  def present(self, layouts: Layouts, mapped: bool = False) -> None:
    """Shows variables from now on in the shapes that the reference has."""
    del mapped
    self._layouts = self._port.layouts = layouts

  def traced(self, run: side.RunSpec) -> TracedPort:
    """Returns the trace of a training mode by the names of tf1; it can be read, and not run."""
    port = self._port
    return self._calls[run.training].named(port, run)


@contextlib.contextmanager
def _unread(port: Port) -> Iterator[None]:
  """Raises `NotTraceable` where a value is read: what it stands for is not there.

  Also in place of another error, which may follow from it: the values are of the shape (0,).
  """
  try:
    yield
  except Exception:
    _check_unread(port)
    raise
  _check_unread(port)


def _check_unread(port: Port) -> None:
  if port.recorder.values_used:
    raise NotTraceable('it reads or writes a value of its variables while it is made or traced')


@contextlib.contextmanager
def _handles_only() -> Iterator[None]:
  """Lets variables be made without a value."""
  with tf.variable_creator_scope(_handle):
    yield


def _handle(next_creator: Callable[..., Any], **arguments: Any) -> Any:
  del next_creator
  shape, dtype = _described(arguments)
  kept = {name: arguments[name] for name in _KEPT if arguments.get(name) is not None}
  if kept.get('trainable') is None:
    kept['trainable'] = kept.get('synchronization') is not tf.VariableSynchronization.ON_READ
  return variables.UninitializedVariable(shape=shape, dtype=dtype, **kept)


def _described(arguments: dict[str, Any]) -> tuple[tf.TensorShape, tf.DType]:
  """Returns shape and dtype of a variable; its initial value is made as a graph, if at all."""
  value, shape, dtype = (arguments.get(name) for name in ('initial_value', 'shape', 'dtype'))
  shape = None if shape is None else tf.TensorShape(shape)
  if shape is not None and dtype is not None:
    return shape, tf.as_dtype(dtype)
  if isinstance(value, (np.ndarray, tf.Tensor)):
    own = tf.TensorShape(value.shape)
    return (own if shape is None else shape), tf.as_dtype(dtype or value.dtype)
  # Named as graphs are that nobody runs, so that no random op of it counts.
  graph = graphs.FuncGraph('initial_value_scratch_graph')
  with graph.as_default():
    made = tf.convert_to_tensor(value() if callable(value) else value, dtype)
  return (made.shape if shape is None else shape), made.dtype
