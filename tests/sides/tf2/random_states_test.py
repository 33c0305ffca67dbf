"""States of random generators are no weights, whoever owns them; a hidden weight stays one."""

import abc

import keras
import tensorflow as tf
from absl.testing import absltest

import tf2verify
from tests.stages.first_failure import LadderTestCase

v1 = tf.compat.v1
_NOT_COMPARED = 'which are not weights: not compared'


def _drawn(shape, dtype=None):
  return keras.random.uniform(shape, -0.1, 0.1, dtype)


class _Case(tf2verify.EquivalenceCase, abc.ABC):
  def build_tf1_graph(self, inputs, training):
    drawn = v1.random_uniform_initializer(-0.1, 0.1)
    return v1.layers.dense(inputs, 3, kernel_initializer=drawn, name='logits')

  def make_inputs(self):
    return tf2verify.normal_inputs((4, 8))


class Subclassed(keras.Model):
  def __init__(self):
    super().__init__()
    self.logits = keras.layers.Dense(3, kernel_initializer=_drawn, name='logits')

  def call(self, inputs):
    return self.logits(inputs)


class DrawsInCall(keras.Model):
  def __init__(self):
    super().__init__()
    self.logits = keras.layers.Dense(3, name='logits')

  def call(self, inputs):
    return self.logits(inputs) + keras.random.uniform((3,))


class OfGenerator(tf.keras.Model):
  """Of Keras 2; the generator is one of TensorFlow."""

  def __init__(self):
    super().__init__()
    self.noise = tf.random.Generator.from_seed(3)
    self.logits = tf.keras.layers.Dense(3, name='logits')

  def call(self, inputs):
    return self.logits(inputs) + self.noise.uniform((3,))


class OwnsState(tf.Module):
  def __init__(self):
    super().__init__()
    self.noise = tf.random.Generator.from_seed(3)
    self.state = self.noise.state
    self.kernel = tf.Variable(tf.zeros((8, 3)), name='logits/kernel')
    self.bias = tf.Variable(tf.zeros(3), name='logits/bias')

  def __call__(self, inputs, training=False):
    return inputs @ self.kernel + self.bias + self.noise.uniform((3,))


def functional():
  inputs = keras.Input((8,))
  return keras.Model(
    inputs, keras.layers.Dense(3, kernel_initializer=_drawn, name='logits')(inputs)
  )


class Hides(Subclassed):
  def __init__(self):
    super().__init__()
    hidden = tf.Variable(tf.ones(3), name='hidden', trainable=False)
    self.scaled = lambda value: value * hidden

  def call(self, inputs):
    return self.scaled(super().call(inputs))


def _case(make):
  return type('Case', (_Case,), {'make_tf2_layer': lambda self: make()})


class RandomStatesTest(LadderTestCase):
  def test_are_listed_and_not_compared(self):
    # The generator that Keras shares is none of the port's.
    for make, count in ((Subclassed, 0), (DrawsInCall, 0), (OwnsState, 1)):
      with self.subTest(make.__name__):
        text = self.assert_passes(_case(make), 'variable_inventory').to_text()
        self.assertEqual(text.count(_NOT_COMPARED), count, text)

  def test_generator_of_tensorflow_is_no_weight(self):
    self.assert_passes(_case(OfGenerator), 'variable_inventory')

  def test_port_that_draws_initial_values_passes(self):
    self.assert_passes(_case(Subclassed), 'gradients')
    self.assert_passes(_case(functional), 'gradients')  # drawn before it is called

  def test_hidden_weight_is_found(self):
    self.assert_first_failure(_case(Hides), 'variable_inventory', 'untracked', 'hidden')


if __name__ == '__main__':
  absltest.main()
