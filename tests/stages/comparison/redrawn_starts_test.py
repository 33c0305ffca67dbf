"""Initial values that a port draws before it makes the variable, and those of integers."""

import abc

import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

import tf2verify
from tests.stages import tiny_models
from tests.stages.without_hurry import WithoutHurryTestCase

v1 = tf.compat.v1
keras = tf.keras.initializers
STAGE = 'seeded_constant'
LAST = 'gradients'
SHAPE = (96, 128)


class Port(tf.Module):
  """`inputs @ kernel`, whose kernel starts with a tensor that is there already."""

  def __init__(self, make_start, in_call):
    super().__init__()
    self.kernel = None
    self._make_start = make_start
    if not in_call:
      self.make()

  def make(self):
    self.kernel = tf.Variable(self._make_start(), name='kernel')

  def __call__(self, inputs):
    if self.kernel is None:
      self.make()
    return inputs @ self.kernel


class Started(tiny_models.OneModel, abc.ABC):
  in_call = False

  def tf1_start(self):
    raise NotImplementedError

  def tf2_start(self):
    raise NotImplementedError

  def build_tf1_graph(self, inputs, training):
    return inputs @ v1.get_variable('kernel', initializer=self.tf1_start())

  def make_tf2_layer(self):
    return Port(self.tf2_start, self.in_call)

  def make_inputs(self):
    return tf2verify.normal_inputs((4, SHAPE[0]))


def mask(share):
  class Case(Started):
    def tf1_start(self):
      return tf.cast(v1.random_uniform(SHAPE) < 0.3, tf.float32)

    def tf2_start(self):
      return tf.where(tf.random.uniform(SHAPE) > 1 - share, 1.0, 0.0)

  return Case


def near_identity(stddev, table=None):
  table = np.eye(*SHAPE, dtype=np.float32) if table is None else table

  class Case(Started):
    def tf1_start(self):
      return np.eye(*SHAPE, dtype=np.float32) + v1.random_normal(SHAPE, stddev=0.01)

    def tf2_start(self):
      return table + keras.RandomNormal(stddev=stddev)(SHAPE)

  return Case


def gates(factor):
  """Four draws side by side, each of the size of a gate."""

  class Case(Started):
    def tf1_start(self):
      return tf.concat([v1.glorot_uniform_initializer()([96, 32]) for _ in range(4)], 1)

    def tf2_start(self):
      start = keras.GlorotUniform
      parts = [start()([96, 32]) for _ in range(3)] + [factor * start()([96, 32])]
      return tf.concat(parts, 1)

  return Case


def of_numpy(stddev):
  class Case(Started):
    def tf1_start(self):
      return v1.random_normal(SHAPE, stddev=0.1)

    def tf2_start(self):
      return np.random.normal(0, stddev, SHAPE).astype(np.float32)

  return Case


def log_uniform(greatest):
  class Case(Started):
    in_call = True

    def tf1_start(self):
      return tf.exp(v1.random_uniform(SHAPE, np.log(1e-3), np.log(1e-1)))

    def tf2_start(self):
      return 10.0 ** -tf.random.uniform(SHAPE, -np.log10(greatest), 3.0)  # from above

  return Case


class RedrawnTest(WithoutHurryTestCase, parameterized.TestCase):
  most_draws = 64

  @parameterized.parameters(
    mask(0.3), near_identity(0.01), gates(1.0), of_numpy(0.1), log_uniform(0.1)
  )
  def test_passes(self, case):
    verdict = self.assert_passes(case, LAST)
    self.assertIn('by a test of', verdict.to_text())
    self.assertEmpty(verdict.stages[3].blind_spots)

  @parameterized.parameters(
    mask(0.32),
    near_identity(0.0103),
    near_identity(0.01, np.roll(np.eye(*SHAPE, dtype=np.float32), 1, 1)),
    gates(1.1),
    of_numpy(0.103),
    log_uniform(0.11),
  )
  def test_fails(self, case):
    self.assert_first_failure(case, STAGE, 'initial value kernel', 'distribution differs')

  def test_a_table(self):
    class Case(of_numpy(0.1)):
      def tf2_start(self):
        return np.random.RandomState(0).normal(0, 0.2, SHAPE).astype(np.float32)

    self.assert_first_failure(Case, STAGE, 'initial value kernel')


class Permuted(tiny_models.OneModel, abc.ABC):
  """Columns in another order, which is drawn."""

  def tf2_order(self):
    raise NotImplementedError

  def build_tf1_graph(self, inputs, training):
    order = v1.random_shuffle(tf.range(24))
    order = v1.get_variable('order', initializer=order, trainable=False)
    return tf.gather(inputs, order, axis=1) * v1.get_variable('scale', [24])

  def make_tf2_layer(self):
    order = self.tf2_order

    class Layer(tf.Module):
      def __init__(self):
        super().__init__()
        self.order = tf.Variable(order(), name='order', trainable=False)
        start = keras.GlorotUniform()
        self.scale = tf.Variable(lambda: start([24]), name='scale')

      def __call__(self, inputs):
        return tf.gather(inputs, self.order, axis=1) * self.scale

    return Layer()

  def make_inputs(self):
    return tf2verify.normal_inputs((4, 24))


class IntegerTest(WithoutHurryTestCase):
  most_draws = 64

  def test_drawn_otherwise(self):
    class Case(Permuted):
      def tf2_order(self):
        return tf.argsort(tf.random.uniform([24]))

    self.assert_passes(Case, LAST)

  def test_not_filled_by_the_case(self):
    class Case(Permuted):
      def tf2_order(self):
        return tf.argsort(tf.random.uniform([24]))

      def fill_values(self, name, shape, dtype):
        return None

    self.assert_passes(Case, LAST)

  def test_with_repetitions(self):
    class Case(Permuted):
      def tf2_order(self):
        return tf.random.uniform([24], 0, 24, tf.int32)

    self.assert_first_failure(
      Case, STAGE, 'tf1 draws the same numbers in a different order every time, unlike the port'
    )

  def test_an_order_that_is_not_drawn(self):
    class Case(Permuted):
      def tf2_order(self):
        return tf.range(24)

    self.assert_first_failure(Case, STAGE, 'initial value order')


if __name__ == '__main__':
  absltest.main()
