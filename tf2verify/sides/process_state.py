"""The process-wide state that user code or tf2verify may turn, and its way back."""

import contextlib
import dataclasses
import os
import random
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow.python.keras.backend as inner_backend
from tensorflow.python import tf2
from tensorflow.python.eager import context
from tensorflow.python.framework import tensor_shape
from tensorflow.python.ops import (
  control_flow_util,
  resource_variables_toggle,
  stateful_random_ops,
)
from tf_keras.src import backend

from tf2verify.errors import EnvironmentProblem

v1 = tf.compat.v1


@dataclasses.dataclass(frozen=True)
class ProcessGlobal:
  """One piece of process-wide state.

  Attributes:
    name: how a reader knows it.
    read: returns a value that later changes of the state do not alter.
    write: puts such a value back.
  """

  name: str
  read: Callable[[], Any]
  write: Callable[[Any], None]


def _attribute(name: str, owner: Any, attribute: str) -> ProcessGlobal:
  return ProcessGlobal(
    name,
    lambda: getattr(owner, attribute, None),
    lambda value: setattr(owner, attribute, value),
  )


def _mapping(name: str, mapping: Any) -> ProcessGlobal:
  def write(items: tuple[tuple[Any, Any], ...]) -> None:
    if tuple(mapping.items()) != items:
      mapping.clear()
      mapping.update(items)

  return ProcessGlobal(name, lambda: tuple(mapping.items()), write)


def _layer_name_counts(name: str, counts: Any) -> ProcessGlobal:
  def write(saved: dict[Any, Any]) -> None:
    counts.clear()
    counts.update({graph: by_name.copy() for graph, by_name in saved.items()})

  return ProcessGlobal(
    name, lambda: {graph: by_name.copy() for graph, by_name in counts.items()}, write
  )


def _switch(
  name: str,
  read: Callable[[], bool],
  turn_on: Callable[[], None],
  turn_off: Callable[[], None],
) -> ProcessGlobal:
  return ProcessGlobal(name, read, lambda on: turn_on() if on else turn_off())


def _write_execution_mode(mode: tuple[int, bool]) -> None:
  context.default_execution_mode, eager = mode
  context.context()._thread_local_data.is_eager = eager


def _write_tensor_equality(on: bool) -> None:
  v1.enable_tensor_equality() if on else v1.disable_tensor_equality()


def _write_error_handling(value: dict[str, Any]) -> None:
  np.seterr(**value)


def _write_warning_filters(filters: list[Any]) -> None:
  warnings.filters[:] = filters  # type: ignore[index]


PROCESS_GLOBALS: tuple[ProcessGlobal, ...] = (
  ProcessGlobal('random state', random.getstate, random.setstate),
  ProcessGlobal('numpy random state', np.random.get_state, np.random.set_state),
  ProcessGlobal('numpy error handling', np.geterr, _write_error_handling),
  ProcessGlobal('numpy print options', np.get_printoptions, lambda v: np.set_printoptions(**v)),
  ProcessGlobal('warning filters', lambda: list(warnings.filters), _write_warning_filters),
  _mapping('environment variables', os.environ),
  # Execution mode comes before all that asks for it.
  ProcessGlobal(
    'eager execution',
    lambda: (context.default_execution_mode, context.context()._thread_local_data.is_eager),
    _write_execution_mode,
  ),
  _switch('TF2 behavior', tf2.enabled, tf2.enable, tf2.disable),
  ProcessGlobal('tensor equality', lambda: tf.Tensor._USE_EQUALITY, _write_tensor_equality),
  _attribute('v2 tensor shapes', tensor_shape, '_TENSORSHAPE_V2_OVERRIDE'),
  _attribute('resource variables', resource_variables_toggle, '_DEFAULT_USE_RESOURCE'),
  _attribute('control flow v2', control_flow_util, 'ENABLE_CONTROL_FLOW_V2'),
  ProcessGlobal(
    'eager functions', tf.config.functions_run_eagerly, tf.config.run_functions_eagerly
  ),
  ProcessGlobal(
    'soft device placement',
    tf.config.get_soft_device_placement,
    tf.config.set_soft_device_placement,
  ),
  ProcessGlobal('TensorFlow log level', v1.logging.get_verbosity, v1.logging.set_verbosity),
  ProcessGlobal(
    'TensorFlow seed',
    lambda: (context.context()._seed, getattr(context.context(), '_rng', None)),
    lambda value: _write_seed(*value),
  ),
  _attribute('TensorFlow global generator', stateful_random_ops, 'global_generator'),
  ProcessGlobal(
    'Keras seed generator',
    lambda: getattr(backend._SEED_GENERATOR, 'generator', None),
    lambda value: setattr(backend._SEED_GENERATOR, 'generator', value),
  ),
  _attribute('Keras random generator type', backend, '_USE_GENERATOR_FOR_RNG'),
  _layer_name_counts('Keras layer names', backend.PER_GRAPH_OBJECT_NAME_UIDS),
  _layer_name_counts('TF-internal layer names', inner_backend.PER_GRAPH_OBJECT_NAME_UIDS),
  ProcessGlobal('Keras floatx', tf.keras.backend.floatx, tf.keras.backend.set_floatx),
  ProcessGlobal('Keras epsilon', tf.keras.backend.epsilon, tf.keras.backend.set_epsilon),
  ProcessGlobal(
    'Keras image data format',
    tf.keras.backend.image_data_format,
    tf.keras.backend.set_image_data_format,
  ),
  ProcessGlobal(
    'Keras dtype policy',
    tf.keras.mixed_precision.global_policy,
    tf.keras.mixed_precision.set_global_policy,
  ),
)


def _write_seed(seed: int | None, generator: random.Random | None) -> None:
  eager = context.context()
  eager._seed = seed
  if generator is not None:
    eager._rng = generator


@contextlib.contextmanager
def preserved() -> Iterator[None]:
  """Puts every process global back on exit, also after an error."""
  saved = [(piece, piece.read()) for piece in PROCESS_GLOBALS]
  try:
    yield
  finally:
    for piece, value in saved:
      piece.write(value)


def reset_layer_names() -> None:
  """Lets Keras count layer names from the start, so that a fresh layer has the first names."""
  backend.PER_GRAPH_OBJECT_NAME_UIDS.clear()
  inner_backend.PER_GRAPH_OBJECT_NAME_UIDS.clear()


@contextlib.contextmanager
def tf1_semantics(v2_tensorshape: bool) -> Iterator[None]:
  """Gives TF1's meaning to `==` on tensors and variables and to the items of a shape.

  With tensor equality on, `variable in collection` compares elements, and every
  look-up hashes a variable slowly: 12 of the 20 seconds that building
  Inception-ResNet-v2 takes.

  Args:
    v2_tensorshape: whether `shape[i]` is an int (TF2) or a `Dimension` with a
      `.value` (TF1).
  """
  switches = [
    piece for piece in PROCESS_GLOBALS if piece.name in ('tensor equality', 'v2 tensor shapes')
  ]
  saved = [(piece, piece.read()) for piece in switches]
  try:
    v1.disable_tensor_equality()
    v1.enable_v2_tensorshape() if v2_tensorshape else v1.disable_v2_tensorshape()
    yield
  finally:
    for piece, value in saved:
      piece.write(value)


def require_eager() -> None:
  """Raises `EnvironmentProblem` where eager execution is off."""
  if not tf.executing_eagerly():
    raise EnvironmentProblem(
      'eager execution is off, so the tf2 side cannot run: a module that was imported called '
      'tf.disable_v2_behavior() or tf.disable_eager_execution(), as TF1 files do at their top; '
      'remove that line (tf2verify runs the builder inside a tf.Graph, where TF1 semantics hold '
      'anyway)'
    )
