"""Cases of blocks of one kind, one after the other, whose variables are mapped."""

import abc

import keras

import tf2verify
from tf2verify.commands.variable_map import derived_of

# isort: split
import tensorflow as tf

v1 = tf.compat.v1
UNITS = 4


class BlockCase(tf2verify.EquivalenceCase, abc.ABC):
  """Blocks of one kind one after the other, and a layer of logits."""

  training_modes = (False,)
  variable_map = 'derive'
  blocks = 2

  def build_tf1_graph(self, inputs, training):
    net = inputs
    for number in range(self.blocks):
      with v1.variable_scope(f'block_{number}', initializer=v1.random_normal_initializer()):
        net = self.block(net)
    return v1.layers.dense(net, 3, name='logits')

  @abc.abstractmethod
  def block(self, net): ...

  def make_inputs(self):
    return tf2verify.normal_inputs((2, 7, UNITS))


class Port(keras.Model):
  def __init__(self, *blocks):
    super().__init__(name='port')
    self.blocks = blocks
    self.logits = keras.layers.Dense(3, name='logits')

  def call(self, x):
    for block in self.blocks:
      x = block(x)
    return self.logits(x)


def derived(case, **hooks):
  return derived_of(type('Variant', (case,), {'__module__': case.__module__, **hooks}), print)


def entry_of(found, name):
  return next(entry for entry in found.variable_map.entries if name in entry.tf1)
