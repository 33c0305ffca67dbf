import abc
import contextlib
import dataclasses
import time
from unittest import mock

import numpy as np
import tensorflow as tf
from absl.testing import absltest

import tf2verify
from tests.stages import tiny_models
from tests.stages.tiny_models import bias, kernel
from tf2verify.records.repetition import FirstVariation, Variation
from tf2verify.records.tensor_key import TensorKey
from tf2verify.stages.repetition.repetition import Repeater

v1 = tf.compat.v1
Status = tf2verify.Status


def jitter(values):
  noise = np.random.default_rng().random(values.shape)
  return (values + 1e-6 * noise).astype(np.float32)


class Affine(tiny_models.Affine, abc.ABC):
  """A port of its own, so that one side can vary alone."""

  def port(self, inputs, training):
    return inputs @ kernel() + bias()


class StageTestCase(absltest.TestCase):
  def climb(self, case):
    return tf2verify.verify(case, stages=['determinism']).stages[-1]

  def assert_found(self, case, status, *words):
    found = self.climb(case)
    text = found.to_text()
    self.assertIs(found.status, status, text)
    said = f'{found.reason}\n{text}'
    for word in words:
      self.assertIn(word, said)
    return found

  def assert_passes(self, case, *words):
    found = self.assert_found(case, Status.PASSED, *words)
    self.assertEmpty(found.differences)
    return found


class PortVariesTest(StageTestCase):
  def test_a_generator_without_a_seed(self):
    class Case(Affine):
      def port(self, inputs, training):
        return super().port(inputs, training) + np.random.default_rng().random(3) * 1e-6

    self.assert_found(
      Case,
      Status.FAILED,
      'output (the output) [training, distinct values]: repetition differs',
      'tf1: the same bits in 3 runs',
      'elements differ from run to run, by up to',
      'determinism_test.py:',
      'np.random.default_rng().random(3) * 1e-6',
      'no operation computed it: Python did',
    )

  def test_the_clock(self):
    class Case(Affine):
      def port(self, inputs, training):
        drift = tf.cast(tf.timestamp() % 1, tf.float32)
        return super().port(inputs, training) + 1e-6 * drift

    self.assert_found(
      Case,
      Status.FAILED,
      'the first to vary: Timestamp at ',
      'it reads the clock',
      'enable_op_determinism() the port does not run',
      'Timestamp cannot be called when determinism is enabled',
    )

  def test_a_seed_of_the_clock(self):
    class Case(Affine):
      def port(self, inputs, training):
        seed = [time.time_ns() % 2**31, 0]
        return super().port(inputs, training) + 1e-6 * tf.random.stateless_uniform([3], seed)

    self.assert_found(Case, Status.FAILED, 'stateless_uniform([3], seed)', 'the time')

  def test_in_a_function(self):
    class Case(Affine):
      def port(self, inputs, training):
        @tf.function
        def drift():
          return tf.cast(tf.timestamp() % 1, tf.float32)

        return super().port(inputs, training) + 1e-6 * drift()

    self.assert_found(Case, Status.FAILED, 'the first to vary: Timestamp at ')

  def test_an_initial_value(self):
    class Case(Affine):
      def port(self, inputs, training):
        start = np.random.default_rng().random((3, 3)).astype(np.float32)
        return inputs @ v1.get_variable('kernel', initializer=start) + bias()

    self.assert_found(
      Case,
      Status.FAILED,
      'initial value kernel [training, constant]: repetition differs',
      'likely cause: the first to vary: AssignVariableOp at ',
    )

  def test_a_python_function(self):
    class Case(Affine):
      def port(self, inputs, training):
        net = super().port(inputs, training)
        return net + tf.stop_gradient(tf.numpy_function(jitter, [tf.zeros([3])], tf.float32))

    self.assert_found(Case, Status.FAILED, 'tf.numpy_function')

  def test_training_steps_only(self):
    class Case(Affine):
      def make_tf1_optimizer(self):
        return v1.train.AdamOptimizer(0.01)

      def make_tf2_optimizer(self):
        rate = 0.01 + 1e-5 * np.random.default_rng().random()
        return tf.keras.optimizers.Adam(rate, epsilon=1e-8)

    found = self.assert_found(
      Case,
      Status.FAILED,
      'variable kernel [3 training steps]: repetition differs',
      'in make_tf2_optimizer: return tf.keras.optimizers.Adam(rate, epsilon=1e-8)',
    )
    self.assertEqual({d.run for d in found.differences}, {'3 training steps'})


class ReferenceVariesTest(StageTestCase):
  def test_is_not_blamed_on_the_port(self):
    class Case(Affine):
      def model(self, inputs, training):
        net = super().model(inputs, training)
        return net + tf.stop_gradient(v1.py_func(jitter, [tf.zeros([3])], tf.float32))

    found = self.assert_found(
      Case,
      Status.INCONCLUSIVE,
      'the TF1 side is not deterministic, which is not the fault of the port: 2 tensors vary',
      'no port can be closer to it than that',
      'note: the first to vary on the tf1 side: PyFunc at ',
      '3 of 3 (100.0 %) elements of what it gives differ',
      'it runs Python: a generator without a seed',
      'different bits from run to run:',
    )
    self.assertEmpty(found.differences)
    self.assertLen(found.tables[0].rows, 2)

  def test_both_sides(self):
    class Case(tiny_models.Affine):
      def model(self, inputs, training):
        net = super().model(inputs, training)
        return net + tf.stop_gradient(v1.py_func(jitter, [tf.zeros([3])], tf.float32))

    found = self.assert_found(
      Case, Status.INCONCLUSIVE, 'note: the port varies, too; the first to vary: '
    )
    self.assertEqual({row[0] for row in found.tables[0].rows}, {'tf1', 'tf2'})


class RoundingTest(StageTestCase):
  """A sum of several gradients that takes them in the order in which they are there."""

  def _found(self, amount, port=False, first=None, case=Affine):
    key = TensorKey('gradient', 'kernel', 'training, constant')
    varying = (Variation(key, 3, 12, amount, 1e-3, greatest=2.0),)

    def varies(side):
      def repetitions(repeater):
        return dataclasses.replace(side(repeater), varying=varying, first=first)

      return repetitions

    with contextlib.ExitStack() as patched:
      for name in ('tf1', 'tf2') if port else ('tf1',):
        made = varies(getattr(Repeater, name))
        patched.enter_context(mock.patch.object(Repeater, name, made))
      return self.climb(type('Varying', (case,), {}))

  def test_is_a_blind_spot(self):
    for port in (False, True):
      found = self._found(1e-6, port)
      self.assertIs(found.status, Status.PASSED, found.to_text())
      (said,) = (one for one in found.blind_spots if 'repeats itself up to rounding only' in one)
      self.assertIn('by up to 1e-06 (relative 0.001), where the greatest element is 2', said)
      self.assertEqual('of the port 1 tensor varies so, too' in said, port)

  def test_more_than_rounding(self):
    self.assertIs(self._found(1e-4).status, Status.INCONCLUSIVE)

  def test_an_operation_that_varies_by_itself(self):
    first = FirstVariation('PyFunc', 'f', None, '', None)
    self.assertIs(self._found(1e-6, first=first).status, Status.INCONCLUSIVE)

  def test_a_port_that_varies_by_an_operation_of_its_own(self):
    class Case(Affine):
      def port(self, inputs, training):
        net = super().port(inputs, training)
        return net + tf.stop_gradient(tf.numpy_function(jitter, [tf.zeros([3])], tf.float32))

    self.assertIs(self._found(1e-7, case=Case).status, Status.INCONCLUSIVE)


class RepeatableTest(StageTestCase):
  def test_plain(self):
    class Case(Affine):
      pass

    found = self.assert_passes(Case, 'repeated in this process only: fresh_processes = 2')
    self.assertEqual(found.compared.blind_spots, 0)
    self.assertEqual(found.compared.tensors, 16)
    self.assertEmpty(found.tables)

  def test_dropout_and_moving_averages(self):
    class Case(tiny_models.Dropped):
      def model(self, inputs, training):
        net = super().model(inputs, training)
        return v1.layers.batch_normalization(net, training=training, name='norm')

    self.assert_passes(Case)

  def test_generators_that_follow_the_seeds(self):
    class Case(Affine):
      def port(self, inputs, training):
        noise = np.random.rand(3) + np.random.default_rng(7).random(3)
        return super().port(inputs, training) + 1e-6 * noise + tf.random.normal([3])

    self.assert_passes(Case)

  def test_training_steps(self):
    class Case(Affine):
      def make_tf1_optimizer(self):
        return v1.train.MomentumOptimizer(0.01, 0.9)

      def make_tf2_optimizer(self):
        return v1.train.MomentumOptimizer(0.01, 0.9)

    found = self.assert_passes(Case)
    self.assertGreater(found.compared.tensors, 30)

  def test_no_floating_output(self):
    class Case(Affine):
      def model(self, inputs, training):
        return tf.argmax(super().model(inputs, training), 1)

      def port(self, inputs, training):
        return self.model(inputs, training)

    self.assert_passes(Case)

  def test_inference_only(self):
    class Case(Affine):
      training_modes = (False,)

    self.assert_passes(Case)

  def test_steps_that_cannot_be_taken_are_said(self):
    class Case(Affine):
      def make_tf2_optimizer(self):
        raise ValueError('no rate')

    found = self.assert_passes(Case, 'training steps of tf2 were not repeated: ', 'no rate')
    self.assertEqual(found.compared.blind_spots, 1)

  def test_count_of_steps_that_is_none(self):
    class Case(Affine):
      training_steps_to_take = '3'

      def make_tf2_optimizer(self):
        return v1.train.GradientDescentOptimizer(0.01)

    self.assert_passes(
      Case, "not repeated: training_steps_to_take is '3', which is not a number of steps"
    )

  def test_op_determinism_is_off_again(self):
    class Case(Affine):
      pass

    self.assert_passes(Case)
    tf.random.uniform([1])  # raises where it is on

  def test_the_port_is_run_even_if_it_computes_something_else(self):
    class Case(Affine):
      def port(self, inputs, training):
        return 2.0 * super().port(inputs, training)

    self.assert_passes(Case)


class OnAGpuTest(StageTestCase):
  def test_no_deterministic_kernel(self):
    class Case(tiny_models.OneImageModel):
      def model(self, inputs, training):
        net = v1.layers.conv2d(inputs, 2, 3, name='conv')
        return v1.image.resize_nearest_neighbor(net, [8, 8])

    if 'GPU' in {device.device_type for device in tf.config.list_physical_devices()}:
      self.skipTest('there is a GPU')
    found = self.assert_passes(
      Case,
      '1 blind spot',
      'not run on a GPU, where ResizeNearestNeighborGrad (',
      'in model: return v1.image.resize_nearest_neighbor(net, [8, 8])) of the port has no',
      'on a GPU BiasAddGrad, Conv2DBackpropFilter, Conv2DBackpropInput repeat only with',
    )
    self.assertEqual(found.compared.blind_spots, 1)

  def test_no_deterministic_kernel_in_the_reference_alone(self):
    class Case(tiny_models.OneImageModel):
      def model(self, inputs, training):
        return self.doubled(v1.layers.conv2d(inputs, 2, 3, name='conv'))

      def doubled(self, net):
        return v1.image.resize_nearest_neighbor(net, [8, 8])

      def port(self, inputs, training):
        self.doubled = lambda net: tf.repeat(tf.repeat(net, 2, 1), 2, 2)
        return self.model(inputs, training)

    if 'GPU' in {device.device_type for device in tf.config.list_physical_devices()}:
      self.skipTest('there is a GPU')
    found = self.assert_passes(Case, 'on a GPU BiasAddGrad, Conv2DBackpropFilter')
    self.assertEqual(found.compared.blind_spots, 0)
    self.assertNotIn('ResizeNearestNeighborGrad', found.to_text())

  def test_one_that_the_switch_makes_deterministic(self):
    class Case(tiny_models.OneModel):
      def model(self, inputs, training):
        labels = tf.constant([0, 1, 2, 1])
        return v1.nn.sparse_softmax_cross_entropy_with_logits(
          labels=labels, logits=inputs @ kernel()
        )

    found = self.assert_passes(Case)
    self.assertEqual(found.compared.blind_spots, 0)
    self.assertIn('SparseSoftmaxCrossEntropyWithLogits repeats only with', found.to_text())


if __name__ == '__main__':
  absltest.main()
