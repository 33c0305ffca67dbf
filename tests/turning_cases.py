"""Cases whose own code turns a global of the process, somewhere where it is called."""

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

from tests import small_case

# isort: split
import tensorflow as tf
from absl import logging as absl_logging

v1 = tf.compat.v1


def _turn_error_handling() -> None:
  np.seterr(all='raise')
  np.seterrcall(print)


def _turn_warnings() -> None:
  warnings.simplefilter('error', ResourceWarning)
  warnings.showwarning = print


def _turn_environment() -> None:
  os.environ['DATA'] = '/nowhere'
  os.environ.pop('HOME', None)


def _turn_streams() -> None:
  sys.stdout = sys.stderr


def _draw_numbers() -> None:
  random.random()
  np.random.rand()
  tf.random.normal([1])
  tf.random.get_global_generator().normal([1])
  tf.keras.initializers.GlorotUniform()((2, 2))


def _add_to_collections() -> None:
  v1.add_to_collection('activations', 1)


TURNS: dict[str, Callable[[], Any]] = {
  'random.seed': lambda: random.seed(1),
  'np.random.seed': lambda: np.random.seed(1),
  'tf.random.set_seed': lambda: tf.random.set_seed(1),
  'set_random_seed': lambda: tf.keras.utils.set_random_seed(1),
  'tf.random.set_global_generator': lambda: tf.random.set_global_generator(
    tf.random.Generator.from_seed(1)
  ),
  'draws': _draw_numbers,
  'np.seterr': _turn_error_handling,
  'np.set_printoptions': lambda: np.set_printoptions(precision=2),
  'warnings': _turn_warnings,
  'os.environ': _turn_environment,
  'os.chdir': lambda: os.chdir(os.sep),
  'sys.path': lambda: sys.path.insert(0, 'models'),
  'sys.argv': lambda: sys.argv.append('--train'),
  'sys.stdout': _turn_streams,
  'sys.setrecursionlimit': lambda: sys.setrecursionlimit(5000),
  'gc.disable': gc.disable,
  'decimal': lambda: setattr(decimal.getcontext(), 'prec', 5),
  'logging': lambda: logging.getLogger().setLevel(logging.ERROR),
  'logging.disable': lambda: logging.disable(logging.ERROR),
  'absl logging': lambda: absl_logging.set_verbosity(absl_logging.DEBUG),
  'tf.logging': lambda: v1.logging.set_verbosity(v1.logging.DEBUG),
  'autograph': lambda: tf.autograph.set_verbosity(1),
  'disable_tensor_equality': v1.disable_tensor_equality,
  'disable_v2_tensorshape': v1.disable_v2_tensorshape,
  'disable_control_flow_v2': v1.disable_control_flow_v2,
  'disable_resource_variables': v1.disable_resource_variables,
  'run_functions_eagerly': lambda: tf.config.run_functions_eagerly(True),
  'set_soft_device_placement': lambda: tf.config.set_soft_device_placement(False),
  'enable_op_determinism': tf.config.experimental.enable_op_determinism,
  'tensor_float_32': lambda: tf.config.experimental.enable_tensor_float_32_execution(False),
  'set_jit': lambda: tf.config.optimizer.set_jit('autoclustering'),
  'grappler': lambda: tf.config.optimizer.set_experimental_options({'constant_folding': False}),
  'check_numerics': tf.debugging.enable_check_numerics,
  'traceback filtering': tf.debugging.disable_traceback_filtering,
  'set_floatx': lambda: tf.keras.backend.set_floatx('float64'),
  'set_epsilon': lambda: tf.keras.backend.set_epsilon(1e-3),
  'channels_first': lambda: tf.keras.backend.set_image_data_format('channels_first'),
  'mixed precision': lambda: tf.keras.mixed_precision.set_global_policy('mixed_bfloat16'),
  'v2 dtype behavior': v1.keras.layers.disable_v2_dtype_behavior,
  'learning phase': lambda: tf.keras.backend.set_learning_phase(1),
  'Keras generator': tf.keras.backend.experimental.enable_tf_random_generator,
  'Keras variable initialization': lambda: tf.keras.backend.manual_variable_initialization(True),
  'collections': _add_to_collections,
  'clear_session': tf.keras.backend.clear_session,
  'layer names': lambda: tf.keras.layers.Dense(1),
}


class TurningCase(small_case.SmallCase):
  """Turns a global wherever its code is called."""

  turn: Callable[[], Any]
  turned: str

  def build_tf1_graph(self, inputs: Any, training: bool) -> Any:
    type(self).turn()
    return small_case.model(inputs, training)

  def make_tf2_layer(self) -> Any:
    type(self).turn()
    return small_case.Port()

  def call_tf2_layer(self, layer: Any, inputs: Any, training: bool) -> Any:
    outputs = layer(inputs, training=training)
    type(self).turn()
    return outputs

  def make_inputs(self) -> Any:
    type(self).turn()
    return super().make_inputs()

  def loss(self, outputs: Any) -> Any:
    type(self).turn()
    return super().loss(outputs)


def turning_case(name: str) -> type[TurningCase]:
  """Returns a case that makes one of `TURNS` wherever its code is called."""
  return type('TurningCase', (TurningCase,), {'turn': staticmethod(TURNS[name]), 'turned': name})
