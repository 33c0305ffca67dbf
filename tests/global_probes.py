"""What a process is: its globals, read without tf2verify's own list of them."""

import atexit
import decimal
import gc
import locale
import logging
import os
import random
import signal
import sys
import threading
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from absl import logging as absl_logging

import tf2verify

# isort: split
import tensorflow as tf
import tensorflow.python.keras.backend as inner_backend
from tensorflow.python import tf2
from tensorflow.python.autograph.utils import ag_logging
from tensorflow.python.client import session as session_lib
from tensorflow.python.data.ops import dataset_ops, debug_mode
from tensorflow.python.eager import context, record
from tensorflow.python.framework import config, ops, random_seed, tensor_shape
from tensorflow.python.ops import (
  control_flow_util,
  resource_variables_toggle,
  stateful_random_ops,
  variable_scope,
)
from tensorflow.python.training.experimental import mixed_precision_global_state
from tf_keras.src import backend
from tf_keras.src.engine import base_layer_utils

v1 = tf.compat.v1


def _generator_state(generator: Any) -> Any:
  if generator is None:
    return None
  if isinstance(generator, random.Random):
    return id(generator), generator.getstate()
  return id(generator), generator.state.numpy().tolist()


def _names(counts: Any) -> dict[Any, dict[Any, int]]:
  return {id(graph): dict(by_name) for graph, by_name in counts.items() if by_name}


def _graph() -> Any:
  return ops._default_graph_stack.get_default()


def _numpy_random_state() -> Any:
  name, keys, *rest = np.random.get_state()
  return name, keys.tobytes(), rest


_PYTHON: dict[str, Callable[[], Any]] = {
  'environment': lambda: dict(os.environ),
  'working folder': os.getcwd,
  'sys.path': lambda: list(sys.path),
  'sys.argv': lambda: list(sys.argv),
  'sys.meta_path': lambda: list(sys.meta_path),
  'recursion limit': sys.getrecursionlimit,
  'streams': lambda: (id(sys.stdout), id(sys.stderr), id(sys.stdin)),
  'excepthook': lambda: sys.excepthook,
  'trace and profile': lambda: (sys.gettrace(), sys.getprofile()),
  'warning filters': lambda: list(warnings.filters),
  'warning display': lambda: (warnings.showwarning, warnings.formatwarning),
  'random': random.getstate,
  'threads': lambda: sorted(thread.name for thread in threading.enumerate()),
  # Whether objects are frozen; how many they are changes as some of them die.
  'garbage collection': lambda: (gc.isenabled(), gc.get_threshold(), gc.get_freeze_count() > 0),
  'logging level': lambda: (logging.root.level, logging.root.manager.disable),
  'logging handlers': lambda: list(logging.root.handlers),
  'absl verbosity': absl_logging.get_verbosity,
  'locale': lambda: locale.setlocale(locale.LC_ALL),
  'interrupt handler': lambda: signal.getsignal(signal.SIGINT),
  'decimal precision': lambda: decimal.getcontext().prec,
  'exit functions': atexit._ncallbacks,
}
_NUMPY: dict[str, Callable[[], Any]] = {
  'np.random': _numpy_random_state,
  'np.geterr': np.geterr,
  'np.geterrcall': np.geterrcall,
  'np.getbufsize': np.getbufsize,
  'np.get_printoptions': np.get_printoptions,
}
_MODES: dict[str, Callable[[], Any]] = {
  'eager': lambda: (tf.executing_eagerly(), context.default_execution_mode),
  'TF2 behavior': tf2.enabled,
  'tensor equality': lambda: tf.Tensor._USE_EQUALITY,
  'equality of variables': lambda: (tf.Variable.__eq__, tf.Variable.__hash__),
  'v2 tensor shapes': lambda: (
    tensor_shape._TENSORSHAPE_V2_OVERRIDE,
    type(tf.TensorShape([1])[0]),
  ),
  'control flow v2': lambda: (
    control_flow_util.ENABLE_CONTROL_FLOW_V2,
    v1.control_flow_v2_enabled(),
  ),
  'resource variables': lambda: (
    v1.resource_variables_enabled(),
    resource_variables_toggle._DEFAULT_USE_RESOURCE,
    variable_scope.get_variable_scope().use_resource,
  ),
  'tf.data': lambda: (v1.data.Dataset, dataset_ops.Dataset, debug_mode.DEBUG_MODE),
  'eager functions': tf.config.functions_run_eagerly,
  'soft device placement': tf.config.get_soft_device_placement,
  'op determinism': config.is_op_determinism_enabled,
  'TensorFloat-32': tf.config.experimental.tensor_float_32_execution_enabled,
  'XLA': tf.config.optimizer.get_jit,
  'grappler': tf.config.optimizer.get_experimental_options,
  'kernel threads': lambda: (
    tf.config.threading.get_inter_op_parallelism_threads(),
    tf.config.threading.get_intra_op_parallelism_threads(),
  ),
  'device policy': tf.config.experimental.get_device_policy,
  'synchronous execution': tf.config.experimental.get_synchronous_execution,
  'mixed precision': mixed_precision_global_state.is_mixed_precision_graph_rewrite_enabled,
  'mixed precision policy': mixed_precision_global_state.is_using_mixed_precision_policy,
  'traceback filtering': tf.debugging.is_traceback_filtering_enabled,
  'TensorFlow log level': v1.logging.get_verbosity,
  'autograph verbosity': lambda: (ag_logging.verbosity_level, ag_logging.echo_log_to_stdout),
  'patched functions': lambda: (
    ops.disable_eager_execution,
    v1.disable_eager_execution,
    v1.disable_v2_behavior,
    v1.reset_default_graph,
    session_lib.BaseSession.__init__,
    v1.get_variable,
    random_seed.get_seed,
  ),
}
_SCOPES: dict[str, Callable[[], Any]] = {
  'default graph': lambda: (id(_graph()), len(ops._default_graph_stack.stack)),
  'ops of the default graph': lambda: len(_graph().get_operations()),
  'collections of the default graph': lambda: {
    str(key): len(_graph().get_collection_ref(key)) for key in _graph().get_all_collection_keys()
  },
  'seed of the default graph': lambda: _graph().seed,
  'variable creators': lambda: list(_graph()._variable_creator_stack),
  'scope counts': lambda: {
    name: count
    for name, count in variable_scope.get_variable_scope_store().variable_scopes_count.items()
    if count
  },
  'variable store': lambda: list(variable_scope._get_default_variable_store()._vars),
  'variable scope': lambda: variable_scope.get_variable_scope().name,
  'name scope': lambda: context.context().scope_name,
  'device': lambda: context.context().device_name,
  'op callbacks': lambda: list(context.context().op_callbacks),
  'default session': v1.get_default_session,
  'strategy': lambda: id(tf.distribute.get_strategy()),
  'tape': record.could_possibly_record,
  'summary writer': lambda: bool(tf.summary.should_record_summaries()),
}
_SEEDS: dict[str, Callable[[], Any]] = {
  'tf.random seed': lambda: context.context()._seed,
  'tf.random op seeds': lambda: _generator_state(getattr(context.context(), '_rng', None)),
  'tf.random generator': lambda: _generator_state(stateful_random_ops.global_generator),
  'Keras seeds': lambda: _generator_state(getattr(backend._SEED_GENERATOR, 'generator', None)),
  'Keras generator type': backend.is_tf_random_generator_enabled,
}
_KERAS: dict[str, Callable[[], Any]] = {
  'floatx': lambda: (backend.floatx(), inner_backend.floatx()),
  'epsilon': backend.epsilon,
  'image data format': backend.image_data_format,
  'dtype policy': lambda: tf.keras.mixed_precision.global_policy().name,
  'v2 dtype behavior': base_layer_utils.v2_dtype_behavior_enabled,
  'layer names': lambda: _names(backend.PER_GRAPH_OBJECT_NAME_UIDS),
  'inner layer names': lambda: _names(inner_backend.PER_GRAPH_OBJECT_NAME_UIDS),
  'learning phase': lambda: (
    backend._DUMMY_EAGER_GRAPH.learning_phase_is_set,
    [value for _, value in backend._GRAPH_LEARNING_PHASES.items() if isinstance(value, int)],
  ),
  'Keras session': lambda: backend._SESSION.session,
  'Keras graph': lambda: id(getattr(backend._GRAPH, 'graph', None)),
  'variable initialization': lambda: backend._MANUAL_VAR_INIT,
  'custom objects': lambda: dict(tf.keras.utils.get_custom_objects()),
  'call context': lambda: base_layer_utils.call_context().in_call,
}
PROBES = {**_PYTHON, **_NUMPY, **_MODES, **_SCOPES, **_SEEDS, **_KERAS}


def process_state() -> dict[str, Any]:
  """Returns the value of every probe."""
  return {name: read() for name, read in PROBES.items()}


__all__ = ['PROBES', 'process_state', 'tf2verify']
