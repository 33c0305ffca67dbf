"""Weight decay of another scale: one cause, proven by the numbers, however its graph is made."""

import abc

import keras as keras3
import tensorflow as tf
from absl.testing import absltest, parameterized

import tf2verify

v1 = tf.compat.v1
_SCALE = 1e-3


def half_of_squares(kernel):
  return _SCALE * tf.nn.l2_loss(kernel)


class Decayed(tf2verify.EquivalenceCase, abc.ABC):
  """A convolution and two dense layers, of which some have a regularizer on both sides."""

  keras = keras3
  regularized = ('conv', 'hidden', 'logits')
  times = 2.0
  slope = 0.2

  def build_tf1_graph(self, inputs, training):
    del training
    of = dict.fromkeys(self.regularized, half_of_squares)
    net = v1.layers.conv1d(inputs, 4, 3, kernel_regularizer=of.get('conv'), name='conv')
    net = tf.reduce_mean(tf.nn.leaky_relu(net, 0.2), 1)
    net = v1.layers.dense(net, 6, tf.nn.relu, kernel_regularizer=of.get('hidden'), name='hidden')
    return v1.layers.dense(net, 3, kernel_regularizer=of.get('logits'), name='logits')

  def make_tf2_layer(self):
    layers = self.keras.layers
    decay = self.keras.regularizers.L2(self.times * _SCALE / 2)
    of = dict.fromkeys(self.regularized, decay)
    return self.keras.Sequential(
      [
        layers.Conv1D(4, 3, kernel_regularizer=of.get('conv'), name='conv'),
        layers.LeakyReLU(self.slope),
        layers.GlobalAveragePooling1D(),
        layers.Dense(6, 'relu', kernel_regularizer=of.get('hidden'), name='hidden'),
        layers.Dense(3, kernel_regularizer=of.get('logits'), name='logits'),
      ]
    )

  def make_inputs(self):
    return tf2verify.normal_inputs((4, 5, 7))


class TwoScales(Decayed, abc.ABC):
  """The scale of the port is three times that of tf1, but of one layer five times."""

  times = 3.0

  def make_tf2_layer(self):
    model = super().make_tf2_layer()
    model.layers[0].kernel_regularizer = self.keras.regularizers.L2(5 * _SCALE / 2)
    return model


def causes_of(**declared):
  case = type('Case', (Decayed,), declared)
  verdict = tf2verify.verify(case, stages=['zero_randomness'])
  stage = verdict.stages[-1]
  return stage.diagnosis.causes, verdict.to_text()


class WeightDecayTest(parameterized.TestCase):
  @parameterized.product(
    regularized=(('conv', 'hidden', 'logits'), ('hidden',)),
    times=(2.0, 3.0),
    keras=(keras3, tf.keras),
  )
  def test_is_the_only_cause(self, regularized, times, keras):
    causes, text = causes_of(regularized=regularized, times=times, keras=keras)
    self.assertEqual([cause.rule for cause in causes], ['weight_decay_factor'], text)
    self.assertTrue(causes[0].is_proven, text)
    self.assertIn('cause (proven: ', text)
    self.assertIn(
      f'is {times:g} times that of tf1: multiply the scale that the port is given by '
      f'{1 / times:.4g}',
      text,
    )
    if len(regularized) > 1:
      self.assertIn('all 3 regularization losses that differ', text)

  @parameterized.product(regularized=(('conv', 'hidden', 'logits'), ('hidden',)), times=(2.0, 3.0))
  def test_beside_another_mistake_both_are_told(self, regularized, times):
    causes, text = causes_of(regularized=regularized, times=times, slope=0.3)
    rules = {'weight_decay_factor', 'leaky_relu_slope'}
    self.assertEqual({cause.rule for cause in causes}, rules, text)
    self.assertIn('pass negative_slope=0.2', text)
    self.assertTrue(all(cause.is_proven for cause in causes), text)
    self.assertEqual({cause.experiment.mistakes for cause in causes}, {2})

  def test_several_scales_are_no_factor(self):
    verdict = tf2verify.verify(type('Case', (TwoScales,), {}), stages=['zero_randomness'])
    causes = verdict.stages[-1].diagnosis.causes
    self.assertNotIn('weight_decay_factor', [cause.rule for cause in causes], verdict.to_text())

  def test_the_same_scale_passes(self):
    verdict = tf2verify.verify(type('Case', (Decayed,), {'times': 1.0}), stages=['zero_randomness'])
    self.assertIs(verdict.status, tf2verify.Status.PASSED, verdict.to_text())


if __name__ == '__main__':
  absltest.main()
