"""TF1 code that reads from everywhere; copied to a folder, changed there, and imported from it."""

import dataclasses
import enum
import functools
import json
import os
import types

import kept_base
import numpy as np
import tensorflow as tf
from kept_base import shared

import tf2verify

v1 = tf.compat.v1
_HERE = os.path.dirname(os.path.abspath(__file__))
SCALE = 2.0
ONES = [1.0, {'inner': (1.0, 2.0)}]
NAMES = {'a', 'b'}
STATE = np.load(os.path.join(_HERE, 'state.npy'))
with open(os.path.join(_HERE, 'config.json')) as _file:
  CONFIG = json.load(_file)
WORD = os.environ.get('KEPT_AT_IMPORT', 'word')
SPACE = types.SimpleNamespace(rate=0.5)


class Kind(enum.Enum):
  PLAIN = 1.0


@dataclasses.dataclass
class Settings:
  units: int = 3
  rate: float = 0.25


SETTINGS = Settings()


def times(x, factor=2.0, *, shift=0.0):
  return x * factor + shift


def adds(n):
  def inner(x):
    return x + n

  return inner


INNER = adds(1.0)
PART = functools.partial(times, factor=3.0)
ACTIVATION = lambda x: x * SCALE  # noqa: E731


@functools.lru_cache
def remembered():
  return 1.0


def decorated(function):
  @functools.wraps(function)
  def wrapper(x):
    return function(x) * 2.0

  return wrapper


@decorated
def wrapped(x):
  return x - 1.0


class Net(kept_base.Base):
  rate = 0.5
  table = {'one': 1.0}

  def __init__(self, offset=1.0):
    self.offset = offset

  def __call__(self, x):
    return self.shifted(x) * self.rate + self.offset + self.table['one']

  @property
  def half(self):
    return 0.5

  @staticmethod
  def constant():
    return 4.0


NET = Net()


def read():
  with open(os.path.join(_HERE, 'data.txt')) as file:
    return float(file.read())


class KeptCase(tf2verify.EquivalenceCase):
  units = 3
  factor = np.float32(2.0)

  def helper(self, x):
    return x + 1.0

  def build_tf1_graph(self, inputs, training):
    x = NET(inputs) * NET.half + Net.constant() + read()
    x = INNER(PART(times(ACTIVATION(wrapped(x))))) + Kind.PLAIN.value * SPACE.rate
    x = x * ONES[1]['inner'][0] * STATE[0] * CONFIG['scale'] + shared(x) + len(WORD) + len(NAMES)
    x = x * float(os.environ.get('KEPT_IN_BUILD', '1')) + self.helper(x) * self.factor
    w = v1.get_variable('w', (2, self.units), initializer=v1.ones_initializer())
    return tf.nn.relu(tf.matmul(x, w)) * SETTINGS.rate

  def make_tf2_layer(self):
    return tf.keras.layers.Dense(3)

  def make_inputs(self):
    return np.ones((2, 2), np.float32)
