"""Right ports that round otherwise pass; wrong ones fail, however noisy the model is."""

import abc
from unittest import mock

import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

import tf2verify
from tests.stages import tiny_models
from tests.stages.first_failure import LadderTestCase
from tests.stages.tiny_models import bias, kernel
from tf2verify.errors import UserCodeError
from tf2verify.numerics.arrays import compare_tensors
from tf2verify.numerics.tolerance import VALUE_TOLERANCES
from tf2verify.records.difference import Aspect, Difference
from tf2verify.records.observation import Observation, RegularizationLoss, TensorRecord
from tf2verify.records.tensor_key import TensorKey
from tf2verify.stages.comparison.noise import rounding
from tf2verify.stages.comparison.noise.reruns import rerun_of

v1 = tf.compat.v1


def stage_of(verdict, name):
  return next(stage for stage in verdict.stages if stage.stage == name)


class Amplified(tiny_models.OneModel, abc.ABC):
  """A power, which makes of rounding before it 64 times as much."""

  def scaled(self, inputs):
    scale = v1.get_variable('scale', [3], initializer=v1.ones_initializer())
    return (1.2 + 0.02 * tf.tanh(tf.matmul(inputs, kernel()) + bias())) * scale

  def model(self, inputs, training):
    return tf.pow(self.scaled(inputs), 64)

  def port(self, inputs, training):
    return squared_six_times(self.scaled(inputs))


class HandMadeNorm(tiny_models.OneModel, abc.ABC):
  """Batch norm from its formula; before it a bias, whose gradient is zero but for rounding."""

  def model(self, inputs, training):
    net = tf.matmul(inputs, kernel()) + bias()
    return v1.layers.batch_normalization(net, training=training, fused=False, name='norm')

  def port(self, inputs, training):
    net = tf.matmul(inputs, kernel()) + bias()
    with v1.variable_scope('norm'):
      gamma = v1.get_variable('gamma', [3], initializer=v1.ones_initializer())
      beta = v1.get_variable('beta', [3], initializer=v1.zeros_initializer())
      zeros, ones = v1.zeros_initializer(), v1.ones_initializer()
      mean = v1.get_variable('moving_mean', [3], initializer=zeros, trainable=False)
      variance = v1.get_variable('moving_variance', [3], initializer=ones, trainable=False)
    if training:
      batch_mean = tf.reduce_mean(net, 0)
      batch_variance = tf.reduce_mean(tf.square(net - batch_mean), 0)
      mean.assign_sub(0.01 * (mean - batch_mean))
      variance.assign_sub(0.01 * (variance - batch_variance))
      return gamma * (net - batch_mean) / tf.sqrt(batch_variance + 1e-3) + beta
    return gamma * (net - mean) / tf.sqrt(variance + 1e-3) + beta

  def loss(self, outputs):
    return 1e5 * tf.reduce_sum(outputs * tf.cos(tf.range(12.0))[:, None][:4])

  def make_inputs(self):
    return tf2verify.normal_inputs((4, 3))


class OtherwiseTest(LadderTestCase, parameterized.TestCase):
  """Right ports."""

  def test_another_form_of_one_formula_passes_and_says_so(self):
    class Case(Amplified):
      pass

    verdict = self.assert_passes(Case)
    for name in ('zero_randomness', 'seeded_constant', 'seeded_num_random_ops'):
      text = stage_of(verdict, name).to_text()
      self.assertRegex(text, r'; \d differs? by rounding')
      self.assertIn('by no more than 2.0 x rounding noise (worst: output', text)

  def test_without_the_noise_it_would_fail(self):
    class Case(Amplified):
      pass

    with mock.patch.object(rounding, 'sort_out', lambda *_: rounding.Sorted()):
      text = self.assert_first_failure(Case, 'zero_randomness')
    self.assertNotIn('noise', text.replace('comparison/noise/', ''))  # this file's folder

  def test_dropout_draws_the_same_in_moved_runs(self):
    class Case(Amplified):
      def model(self, inputs, training):
        net = super().model(inputs, training)
        return v1.nn.dropout(net, rate=0.2) if training else net

      def port(self, inputs, training):
        net = super().port(inputs, training)
        return v1.nn.dropout(net, rate=0.2) if training else net

    verdict = self.assert_passes(Case)
    self.assertEqual(stage_of(verdict, 'seeded_constant').compared.rounding, 2)

  def test_batch_norm_by_hand(self):
    class Case(HandMadeNorm):
      pass

    verdict = self.assert_passes(Case)
    gradients = stage_of(verdict, 'gradients')
    self.assertGreaterEqual(gradients.compared.inconclusive, 1, gradients.to_text())
    self.assertIn('rounding alone changes', gradients.to_text())
    self.assertIn('use different ones', gradients.to_text())

  def test_an_output_of_nothing_but_rounding_is_inconclusive(self):
    class Case(tiny_models.OneModel):
      def model(self, inputs, training):
        net = tf.matmul(inputs, kernel()) + bias()
        return 1e4 * (net - tf.reduce_mean(net, 0))

      def port(self, inputs, training):
        net = tf.matmul(inputs, kernel()) + bias()
        share = 1.0 / tf.cast(tf.shape(net)[0], tf.float32)
        return 1e4 * (net - tf.tensordot(tf.fill(tf.shape(net)[:1], share), net, 1))

      def make_inputs(self):
        return np.repeat(tf2verify.normal_inputs((1, 3)), 7, 0)  # rows alike

    verdict = tf2verify.verify(Case, stages=['zero_randomness'])
    found = stage_of(verdict, 'zero_randomness')
    self.assertIs(found.status, tf2verify.Status.INCONCLUSIVE, found.to_text())
    self.assertEmpty(found.differences)
    self.assertIn('rounding alone changes it as much', found.to_text())

  def test_what_rounding_decides_of_equal_numbers_alone_is_a_note(self):
    class Case(tiny_models.OneModel):
      def model(self, inputs, training):
        net = tf.matmul(inputs, kernel()) + bias()
        return 1e4 * (net - tf.reduce_mean(net, 1, keepdims=True))

      def port(self, inputs, training):
        net = tf.matmul(inputs, kernel()) + bias()
        units = net.shape[1]
        return 1e4 * (net - tf.matmul(net, tf.fill([units, 1], 1.0 / units)))

    found = stage_of(tf2verify.verify(Case, stages=['zero_randomness']), 'zero_randomness')
    self.assertIs(found.status, tf2verify.Status.PASSED, found.to_text())
    self.assertEqual(found.compared.inconclusive, 1)
    self.assertIn("[inference, the guide's constant 0.001]", found.to_text())

    class Wrong(Case):
      def port(self, inputs, training):
        return super().port(inputs, training) * 1.001

    self.assert_first_failure(Wrong, 'zero_randomness')


class WrongTest(LadderTestCase, parameterized.TestCase):
  """Wrong ports with small differences: none is excused."""

  def test_a_mistake_beyond_the_noise_fails_and_shows_it(self):
    class Case(Amplified):
      def port(self, inputs, training):
        return 1.0001 * super().port(inputs, training)

    self.assert_first_failure(Case, 'zero_randomness', 'rounding noise here')

  def test_a_noisy_output_excuses_no_other(self):
    class Case(Amplified):
      def model(self, inputs, training):
        net = self.scaled(inputs)
        return tf.concat([tf.pow(net, 64), tf.nn.gelu(net, approximate=True)], 1)

      def port(self, inputs, training):
        net = self.scaled(inputs)
        return tf.concat([squared_six_times(net), tf.nn.gelu(net, approximate=False)], 1)

    words = 'within its noise as a whole, but not at'
    self.assert_first_failure(Case, 'zero_randomness', words)

  @parameterized.named_parameters(
    ('gelu', lambda n: tf.nn.gelu(n, approximate=True), lambda n: tf.nn.gelu(n, approximate=False)),
    ('bilinear', lambda n: resized(n, True), lambda n: resized(n, False)),
    ('layer norm epsilon', lambda n: layer_norm(n, 1e-12), lambda n: layer_norm(n, 1e-3)),
    ('smaller layer norm epsilon', lambda n: layer_norm(n, 1e-12), lambda n: layer_norm(n, 1e-4)),
    ('leaky slope', lambda n: tf.nn.leaky_relu(n, 0.01), lambda n: tf.nn.leaky_relu(n, 0.0101)),
    ('bfloat16', lambda n: n, lambda n: tf.cast(tf.cast(n, tf.bfloat16), tf.float32)),
  )
  def test_forward(self, right, wrong):
    class Case(tiny_models.Affine):
      def model(self, inputs, training):
        return right(super().model(inputs, training))

      def port(self, inputs, training):
        return wrong(tiny_models.Affine.model(self, inputs, training))

    self.assert_first_failure(Case, 'zero_randomness', 'rounding noise here')

  def test_batch_norm_epsilon(self):
    class Case(tiny_models.Normalized):
      epsilon = 1e-3

      def model(self, inputs, training):
        return v1.layers.batch_normalization(
          inputs, training=training, name='norm', epsilon=self.epsilon
        )

      def port(self, inputs, training):
        return v1.layers.batch_normalization(inputs, training=training, name='norm', epsilon=1e-5)

    self.assert_first_failure(Case, 'zero_randomness', 'rounding noise here')

  def test_batch_norm_momentum(self):
    class Case(tiny_models.Normalized):
      def port(self, inputs, training):
        return v1.layers.batch_normalization(inputs, training=training, name='norm', momentum=0.999)

    self.assert_first_failure(Case, 'seeded_constant', 'state after the call norm/moving_mean')

  def test_biased_variance(self):
    class Case(HandMadeNorm):
      def model(self, inputs, training):
        return self.port(inputs, training)

      def make_tf2_layer(self):
        return tiny_models.ShimLayer(self.unbiased)

      def unbiased(self, inputs, training):
        outputs = self.port(inputs, training)
        if training:
          with v1.variable_scope('norm', reuse=True):
            variance = v1.get_variable('moving_variance', [3], trainable=False)
          count = inputs.shape[0]
          variance.assign((variance - 0.99) * (count / (count - 1)) + 0.99)
        return outputs

      def make_inputs(self):
        return 3.0 * tf2verify.normal_inputs((400, 3))

      def loss(self, outputs):
        return tf.reduce_sum(outputs)

    self.assert_first_failure(
      Case, 'seeded_constant', 'state after the call norm/moving_variance', 'rounding noise here'
    )

  def test_initial_values_are_never_excused(self):
    class Case(Amplified):
      def port(self, inputs, training):
        glorot = v1.glorot_uniform_initializer()
        v1.get_variable('kernel', initializer=lambda: 1.0029 * glorot([3, 3]))
        with v1.variable_scope('', reuse=True):
          return super().port(inputs, training)

    self.assert_first_failure(Case, 'seeded_constant', 'initial value kernel')

  def test_a_reference_that_draws_without_a_seed_excuses_nothing(self):
    class Case(Amplified):
      def model(self, inputs, training):
        net = super().model(inputs, training)
        scatter = v1.py_func(lambda: np.float32(np.random.default_rng().normal()), [], tf.float32)
        return net * (1.0 + 0.001 * scatter)

    self.assert_first_failure(Case, 'zero_randomness', 'differ each time')

  def test_a_mask_is_not_moved(self):
    class Case(tiny_models.OneModel):
      threshold = 1.0

      def model(self, inputs, training):
        net = tf.matmul(inputs['values'], kernel()) + bias()
        return tf.where(tf.equal(inputs['mask'], 1.0), net, 0.0)

      def port(self, inputs, training):
        return 1.001 * self.model(inputs, training)

      def make_inputs(self):
        mask = np.array([[1.0], [0.0], [1.0], [1.0]], np.float32)
        return {'values': tf2verify.normal_inputs((4, 3)), 'mask': mask}

    self.assert_first_failure(Case, 'zero_randomness', 'rounding noise here')

  def test_a_float64_output_of_float32_variables_is_not_excused(self):
    class Case(Amplified):
      def model(self, inputs, training):
        return tf.cast(inputs, tf.float64) @ tf.cast(kernel(), tf.float64)

      def port(self, inputs, training):
        return tf.cast(inputs @ kernel(), tf.float64)

    self.assert_first_failure(Case, 'zero_randomness')


def squared_six_times(net):
  for _ in range(6):
    net = tf.square(net)
  return net


def resized(net, half_pixel_centers):
  image = tf.reshape(net, [1, 4, 3, 1])
  return tf.raw_ops.ResizeBilinear(images=image, size=[5, 5], half_pixel_centers=half_pixel_centers)


def layer_norm(net, epsilon):
  mean, variance = tf.nn.moments(net, [1], keepdims=True)
  return (net - mean) * tf.math.rsqrt(variance + epsilon)


class SortOutTest(absltest.TestCase):
  """The runs themselves."""

  def suspect(self, quantity='output', name='x', port_name=''):
    tf1 = np.linspace(1, 2, 50, dtype=np.float32)
    return suspect_of(quantity, name, tf1, tf1 + np.float32(1e-4), port_name)

  def test_without_suspects_nothing_runs(self):
    self.assertEqual(rounding.sort_out([], self.fail), rounding.Sorted())

  def test_an_error_keeps_the_finding(self):
    def rerun(perturber, gradients_of):
      raise UserCodeError('tf1', 'running the graph', 'ValueError: NaN found', 'Traceback')

    found = rounding.sort_out([self.suspect()], rerun_of(rerun))
    self.assertEmpty(found.judged)
    self.assertIn('could not be measured', found.notes[0])
    self.assertIn('NaN found', found.notes[0])

  def test_only_the_gradients_of_suspects_are_asked_for(self):
    asked = []

    def rerun(perturber, gradients_of):
      asked.append(gradients_of)
      return observation(gradients={'a': np.linspace(1, 2, 50, dtype=np.float32)})

    found = rounding.sort_out([self.suspect('gradient', 'a', 'b')], rerun_of(rerun))
    self.assertEqual(asked, 4 * [frozenset({'a'})])  # no noise at all: settled
    self.assertEmpty(found.rounding)
    self.assertEqual(found.replacements[0][1].array.noise, 0.0)

  def test_joined_regularization_losses_are_added_up(self):
    suspect = suspect_of('regularization loss', 'a, b', np.float32(3), np.float32(3.1))
    moved = []

    def rerun(perturber, gradients_of):
      moved.append(perturber)
      shift = np.float32(0.1 if perturber else 0)
      return observation(losses={('a',): 1 + shift, ('b',): np.float32(2), ('c',): np.float32(9)})

    found = rounding.sort_out([suspect], rerun_of(rerun))
    self.assertLen(found.degenerate, 1)
    self.assertLen(moved, 9)
    self.assertIsNone(moved[-1])

  def test_groups_share_the_runs_but_not_the_verdict(self):
    moved = []

    def rerun(perturber, gradients_of):
      moved.append(perturber)
      shift = np.float32(1e-4 if perturber else 0)
      values = np.linspace(1, 2, 50, dtype=np.float32)
      return observation(gradients={'a': values + shift, 'b': values + shift})

    far = np.linspace(2, 3, 5000, dtype=np.float32)
    wrong = suspect_of('gradient', 'c', far, far + np.float32(0.5))  # perturbed runs have no such
    right = [self.suspect('gradient', name) for name in 'ab']
    together, apart, none = rounding.sort_out_together(
      [right, [right[0], wrong], []], rerun_of(rerun)
    )
    self.assertLen(together.rounding, 2)
    self.assertEqual([len(apart.judged), len(apart.rounding)], [2, 0])
    self.assertEqual(none, rounding.Sorted())
    self.assertLen(moved, 9)

  def test_groups_of_several_dtypes_are_moved_apart(self):
    moved = []

    def rerun(perturber, gradients_of):
      moved.append((perturber.least_fraction_bits, gradients_of) if perturber else None)
      shift = 1e-4 if perturber else 0.0
      values = np.linspace(1, 2, 50)
      return observation(
        gradients={'a': (values + shift).astype(np.float32), 'b': (values + shift)}
      )

    values = np.linspace(1, 2, 50)
    wide = suspect_of('gradient', 'b', values, values + 1e-4)
    narrow = suspect_of('gradient', 'a', values.astype(np.float32), (values + 1e-4).astype('f4'))
    for found in rounding.sort_out_together([[narrow], [wide]], rerun_of(rerun)):
      self.assertLen(found.rounding, 1)
    self.assertEqual(set(moved), {(23, frozenset('a')), (52, frozenset('b')), None})

  def test_what_may_be_rounding(self):
    array = np.ones(3, np.float32)
    values = Difference('output', 'x', Aspect.VALUES)
    self.assertTrue(rounding.may_be_rounding(values, array))
    self.assertFalse(rounding.may_be_rounding(values, np.arange(3)))
    for quantity, aspect in (
      ('initial value', Aspect.VALUES),
      ('variable', Aspect.VALUES),
      ('output', Aspect.NON_FINITE),
      ('output', Aspect.SHAPE),
      ('gradient', Aspect.PRESENCE),
    ):
      self.assertFalse(rounding.may_be_rounding(Difference(quantity, 'x', aspect), array))


def suspect_of(quantity, name, tf1, tf2, port_name=''):
  tf1, tf2 = np.asarray(tf1), np.asarray(tf2)
  key = TensorKey(quantity, name, 'a run', port_name)
  result = compare_tensors(key, tf1, tf2, VALUE_TOLERANCES)
  return rounding.Suspect(result.difference, tf1, tf2, VALUE_TOLERANCES.for_dtype(tf1.dtype))


def observation(gradients=(), losses=()):
  return Observation(
    'tf1',
    'a run',
    '',
    (),
    gradients=tuple(TensorRecord(name, gradients[name]) for name in gradients),
    regularization_losses=tuple(
      RegularizationLoss(names, np.asarray(losses[names])) for names in losses
    ),
  )


if __name__ == '__main__':
  absltest.main()
