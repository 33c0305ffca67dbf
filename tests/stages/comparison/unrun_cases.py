"""Cases of which nothing is run."""

import numpy as np
import tensorflow as tf

from tests.stages.comparison import proven_cases
from tests.stages.tiny_models import OneModel

v1 = tf.compat.v1
_HUGE = 1 << 20


class Huge(OneModel):
  """A table of 4 TiB, which no machine allocates by accident."""

  def make_inputs(self):
    return np.arange(6, dtype=np.int32).reshape(2, 3)

  def model(self, inputs, training):
    table = v1.get_variable('table', (_HUGE, _HUGE), initializer=v1.ones_initializer())
    return tf.reduce_sum(tf.nn.embedding_lookup(table, inputs), -1)


class Looked(tf.keras.layers.Layer):
  def __init__(self):
    super().__init__()
    self.table = tf.keras.layers.Embedding(_HUGE, _HUGE, name='embedding')

  def call(self, inputs, training=False):
    return tf.reduce_sum(self.table(inputs), 2)


class HugeInKeras(Huge):
  def variable_names(self, name):
    return 'looked/embedding/embeddings'

  def make_tf2_layer(self):
    return Looked()


class UnpairedInKeras(HugeInKeras):
  def variable_names(self, name):
    return name


class Made(tf.Module):
  """Variables made in every way, with initial values of every kind."""

  def __init__(self):
    super().__init__()
    self.array = tf.Variable(np.ones(3, 'float32'), name='array')
    self.tensor = tf.Variable(tf.ones([3]), name='tensor')
    self.number = tf.Variable(2.0, name='number')
    self.drawn = tf.Variable(lambda: tf.random.normal([3]), name='drawn', trainable=False)
    self.counter = tf.Variable(0, dtype=tf.int64, name='counter')

  def __call__(self, inputs, training=False):
    if training:
      self.counter.assign_add(1)
    return (inputs + self.array) * self.tensor * self.number + self.drawn


class EveryKind(OneModel):
  def variable_names(self, name):
    return name

  def model(self, inputs, training):
    made = {
      name: v1.get_variable(name, shape, trainable=name != 'drawn')
      for name, shape in (('array', 3), ('tensor', 3), ('number', ()), ('drawn', 3))
    }
    counter = v1.get_variable(
      'counter', (), tf.int64, initializer=v1.zeros_initializer(), trainable=False
    )
    if training:
      v1.add_to_collection(v1.GraphKeys.UPDATE_OPS, v1.assign_add(counter, 1))
    return (inputs + made['array']) * (made['number'] * made['tensor']) + made['drawn']

  def make_tf2_layer(self):
    return Made()


class ReadsItsValues(proven_cases.Dense):
  """A port that is made of the initial value of a variable, which it reads as a number."""

  def port(self, inputs, training):
    kernel = v1.get_variable('d/kernel', (int(inputs.shape[-1]), 4))
    bias = v1.get_variable('d/bias', (4,), initializer=v1.zeros_initializer())
    with tf.init_scope():
      if not np.isfinite(bias.numpy()).all():
        raise ValueError
    net = tf.nn.bias_add(tf.matmul(inputs, kernel), bias)
    return self.activation(v1.layers.dropout(net, 0.25, training=training))


class OneMore(proven_cases.Dense):
  def port(self, inputs, training):
    more = v1.get_variable('more', (4,))
    return self.model(inputs, training) + more


class Raising(proven_cases.Dense):
  def make_tf2_layer(self):
    raise ValueError('not made')
