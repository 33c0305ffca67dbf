"""The process-wide state that user code or tf2verify may turn, piece by piece."""

import dataclasses
import decimal
import gc
import logging
import os
import random
import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow.python.keras.backend as inner_backend
import tf_keras
from absl import logging as absl_logging
from tensorflow.python import tf2
from tensorflow.python.autograph.utils import ag_logging
from tensorflow.python.eager import context
from tensorflow.python.framework import config, ops, tensor_shape
from tensorflow.python.ops import (
  control_flow_util,
  resource_variables_toggle,
  stateful_random_ops,
  variable_scope,
)
from tensorflow.python.training.experimental import mixed_precision_global_state
from tf_keras.src import backend
from tf_keras.src.engine import base_layer_utils
from tf_keras.src.mixed_precision import policy

from tf2verify.tensorflow_internals import decorated_calls, keras3, layer_classes

v1 = tf.compat.v1


@dataclasses.dataclass(frozen=True)
class ProcessGlobal:
  """One piece of process-wide state."""

  name: str  # how a reader knows it
  read: Callable[[], Any]  # returns a value that later changes of the state do not alter
  write: Callable[[Any], None]  # puts such a value back


def _setting(name: str, read: Callable[[], Any], write: Callable[[Any], Any]) -> ProcessGlobal:
  """A piece that is written only where it has changed."""

  def write_change(value: Any) -> None:
    if read() != value:
      write(value)

  return ProcessGlobal(name, read, write_change)


def _attribute(name: str, owner: Any, attribute: str) -> ProcessGlobal:
  return ProcessGlobal(
    name,
    lambda: getattr(owner, attribute, None),
    lambda value: setattr(owner, attribute, value),
  )


def _mapping(name: str, mapping: Any) -> ProcessGlobal:
  def write(items: tuple[tuple[Any, Any], ...]) -> None:
    mapping.clear()
    mapping.update(items)

  return _setting(name, lambda: tuple(mapping.items()), write)


def _sequence(name: str, items: Callable[[], Any]) -> ProcessGlobal:
  def write(saved: list[Any]) -> None:
    items()[:] = saved

  return _setting(name, lambda: list(items()), write)


def _switch(
  name: str,
  read: Callable[[], bool],
  turn_on: Callable[[], None],
  turn_off: Callable[[], None],
) -> ProcessGlobal:
  return _setting(name, read, lambda on: turn_on() if on else turn_off())


def _layer_name_counts(name: str, counts: Any) -> ProcessGlobal:
  def write(saved: dict[Any, Any]) -> None:
    counts.clear()
    counts.update({graph: by_name.copy() for graph, by_name in saved.items()})

  return ProcessGlobal(
    name, lambda: {graph: by_name.copy() for graph, by_name in counts.items()}, write
  )


def _generator(name: str, owner: Any, attribute: str) -> ProcessGlobal:
  """A `random.Random` that its owner may lack: which one, and how far it has drawn."""

  def read() -> Any:
    generator = getattr(owner(), attribute, None)
    return generator, None if generator is None else generator.getstate()

  def write(saved: Any) -> None:
    generator, state = saved
    if generator is not None:
      generator.setstate(state)
      setattr(owner(), attribute, generator)
    elif hasattr(owner(), attribute):
      delattr(owner(), attribute)

  return ProcessGlobal(name, read, write)


def _read_working_folder() -> str | None:
  try:
    return os.getcwd()
  except FileNotFoundError:  # somebody has deleted it
    return None


def _write_working_folder(folder: str | None) -> None:
  if folder is not None:
    os.chdir(folder)


def _write_execution_mode(mode: tuple[int, bool]) -> None:
  context.default_execution_mode, eager = mode
  context.context()._thread_local_data.is_eager = eager


def _read_global_generator() -> tuple[Any, Any]:
  generator = stateful_random_ops.global_generator
  if generator is None or not tf.executing_eagerly():
    return generator, None
  return generator, generator.state.numpy()


def _write_global_generator(saved: tuple[Any, Any]) -> None:
  generator, state = saved
  stateful_random_ops.global_generator = generator
  if state is not None:
    generator.state.assign(state)


def _read_default_graph() -> tuple[Any, ...]:
  """Returns the graph, what its collections hold, and how often each scope was opened.

  Eager code leaves variable scopes and regularization losses there.
  """
  graph = ops._default_graph_stack._GetGlobalDefaultGraph()
  collections = {key: list(items) for key, items in graph._collections.items()}
  stores = collections.get(variable_scope._VARSCOPESTORE_KEY, ())
  counts = [(store, dict(store.variable_scopes_count)) for store in stores]
  return graph, collections, counts, graph.seed


def _write_default_graph(saved: tuple[Any, ...]) -> None:
  graph, collections, counts, seed = saved
  ops._default_graph_stack._global_default_graph = graph
  graph._collections.clear()
  graph._collections.update(collections)
  for store, scopes in counts:
    store.variable_scopes_count = scopes
  graph.seed = seed


def _write_grappler_options(options: dict[str, Any]) -> None:
  # The setter adds to what is there, so that it cannot take back.
  context.context()._optimizer_experimental_options = options
  context.context().function_call_options = None


def _write_op_callbacks(callbacks: list[Any]) -> None:
  tf.debugging.disable_check_numerics()  # it remembers that it is on
  context.context()._thread_local_data.op_callbacks[:] = callbacks


def _read_learning_phases() -> tuple[Any, ...]:
  phases = backend._GRAPH_LEARNING_PHASES
  return backend._DUMMY_EAGER_GRAPH.learning_phase_is_set, phases, list(phases.items())


def _write_learning_phases(saved: tuple[Any, ...]) -> None:
  backend._DUMMY_EAGER_GRAPH.learning_phase_is_set, phases, items = saved
  backend._GRAPH_LEARNING_PHASES = phases
  phases.clear()
  phases.update(items)


_PYTHON = (
  ProcessGlobal('random state', random.getstate, random.setstate),
  _mapping('environment variables', os.environ),
  _setting('working folder', _read_working_folder, _write_working_folder),
  _sequence('module search path', lambda: sys.path),
  _sequence('command line', lambda: sys.argv),
  _attribute('standard output', sys, 'stdout'),
  _attribute('standard error', sys, 'stderr'),
  _setting('recursion limit', sys.getrecursionlimit, sys.setrecursionlimit),
  _switch('garbage collection', gc.isenabled, gc.enable, gc.disable),
  ProcessGlobal('decimal context', lambda: decimal.getcontext().copy(), decimal.setcontext),
  _sequence('warning filters', lambda: warnings.filters),
  _attribute('warning display', warnings, 'showwarning'),
  _setting('logging level', lambda: logging.root.level, logging.root.setLevel),
  _setting('logging threshold', lambda: logging.root.manager.disable, logging.disable),
  _sequence('logging handlers', lambda: logging.root.handlers),
  _setting('absl log level', absl_logging.get_verbosity, absl_logging.set_verbosity),
)
_NUMPY = (
  ProcessGlobal('numpy random state', np.random.get_state, np.random.set_state),
  _setting('numpy error handling', np.geterr, lambda value: np.seterr(**value)),
  _setting('numpy error function', np.geterrcall, np.seterrcall),
  _setting('numpy print options', np.get_printoptions, lambda v: np.set_printoptions(**v)),
)
_TENSORFLOW = (
  # Execution mode comes before all that asks for it.
  ProcessGlobal(
    'eager execution',
    lambda: (context.default_execution_mode, context.context()._thread_local_data.is_eager),
    _write_execution_mode,
  ),
  _switch('TF2 behavior', tf2.enabled, tf2.enable, tf2.disable),
  _switch(
    'tensor equality',
    lambda: bool(tf.Tensor._USE_EQUALITY),
    v1.enable_tensor_equality,
    v1.disable_tensor_equality,
  ),
  _attribute('v2 tensor shapes', tensor_shape, '_TENSORSHAPE_V2_OVERRIDE'),
  _attribute('resource variables', resource_variables_toggle, '_DEFAULT_USE_RESOURCE'),
  _attribute('control flow v2', control_flow_util, 'ENABLE_CONTROL_FLOW_V2'),
  ProcessGlobal('default graph', _read_default_graph, _write_default_graph),
  _setting('op callbacks', lambda: list(context.context().op_callbacks), _write_op_callbacks),
  _setting('eager functions', tf.config.functions_run_eagerly, tf.config.run_functions_eagerly),
  _setting(
    'soft device placement',
    tf.config.get_soft_device_placement,
    tf.config.set_soft_device_placement,
  ),
  _switch(
    'op determinism',
    config.is_op_determinism_enabled,
    config.enable_op_determinism,
    config.disable_op_determinism,
  ),
  _setting(
    'TensorFloat-32',
    tf.config.experimental.tensor_float_32_execution_enabled,
    tf.config.experimental.enable_tensor_float_32_execution,
  ),
  _setting('XLA', tf.config.optimizer.get_jit, tf.config.optimizer.set_jit),
  _setting(
    'grappler options',
    lambda: dict(context.context()._optimizer_experimental_options),
    _write_grappler_options,
  ),
  _switch(
    'traceback filtering',
    tf.debugging.is_traceback_filtering_enabled,
    tf.debugging.enable_traceback_filtering,
    tf.debugging.disable_traceback_filtering,
  ),
  _setting('TensorFlow log level', v1.logging.get_verbosity, v1.logging.set_verbosity),
  _attribute('autograph log level', ag_logging, 'verbosity_level'),
  _attribute('autograph log to stdout', ag_logging, 'echo_log_to_stdout'),
  _attribute('TensorFlow seed', context.context(), '_seed'),
  _generator('TensorFlow op seeds', context.context, '_rng'),
  ProcessGlobal('TensorFlow global generator', _read_global_generator, _write_global_generator),
)
_KERAS = (
  _generator('Keras seed generator', lambda: backend._SEED_GENERATOR, 'generator'),
  _attribute('Keras random generator type', backend, '_USE_GENERATOR_FOR_RNG'),
  _layer_name_counts('Keras layer names', backend.PER_GRAPH_OBJECT_NAME_UIDS),
  _layer_name_counts('TF-internal layer names', inner_backend.PER_GRAPH_OBJECT_NAME_UIDS),
  ProcessGlobal(
    'Keras layer classes', layer_classes.read_tf1_classes, layer_classes.write_tf1_classes
  ),
  ProcessGlobal(
    'decorated layer calls', decorated_calls.read_targets, decorated_calls.write_targets
  ),
  ProcessGlobal('Keras 3 layer names', keras3.read_names, keras3.write_names),
  ProcessGlobal('Keras 3 name scopes', keras3.read_open_scopes, keras3.write_open_scopes),
  ProcessGlobal('Keras 3 seed generator', keras3.read_seeds, keras3.write_seeds),
  ProcessGlobal('Keras 3 settings', keras3.read_settings, keras3.write_settings),
  _setting('Keras floatx', tf_keras.backend.floatx, tf_keras.backend.set_floatx),
  _setting('Keras epsilon', tf_keras.backend.epsilon, tf_keras.backend.set_epsilon),
  _setting(
    'Keras image data format',
    tf_keras.backend.image_data_format,
    tf_keras.backend.set_image_data_format,
  ),
  _attribute('Keras v2 dtype behavior', base_layer_utils, 'V2_DTYPE_BEHAVIOR'),
  # Not by its setter, which refuses where the dtype behavior is that of TF1.
  _attribute('Keras dtype policy', policy, '_global_policy'),
  _attribute('mixed precision', mixed_precision_global_state, '_using_mixed_precision_policy'),
  _attribute('Keras variable initialization', backend, '_MANUAL_VAR_INIT'),
  ProcessGlobal('Keras learning phase', _read_learning_phases, _write_learning_phases),
  _attribute('Keras graph', backend._GRAPH, 'graph'),
  _attribute('Keras session', backend._SESSION, 'session'),
)
PROCESS_GLOBALS: tuple[ProcessGlobal, ...] = (*_PYTHON, *_NUMPY, *_TENSORFLOW, *_KERAS)
