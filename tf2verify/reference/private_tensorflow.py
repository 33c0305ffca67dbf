"""What TensorFlow keeps to itself, or has in other places by version."""

from typing import Any

import tensorflow as tf
from tensorflow.python.client import session as client_session
from tensorflow.python.framework import random_seed, tensor_shape
from tensorflow.python.framework.tensor_util import constant_value
from tensorflow.python.util import nest as tf_nest

try:
  from tensorflow.python.ops import gradients_util
except ImportError:  # before TensorFlow 1.14
  from tensorflow.python.ops import gradients_impl as gradients_util

__all__ = (
  'client_session',
  'constant_value',
  'gradients_util',
  'random_seed',
  'tensor_shape',
  'tf_nest',
  'v1',
)

v1: Any = getattr(tf.compat, 'v1', None)
