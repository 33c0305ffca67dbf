"""A pool that the port pads itself, before a normalization that it spells otherwise than TF1."""

import abc

import keras
from absl.testing import absltest

import tf2verify

# isort: split
import tensorflow as tf

layers = keras.layers


class PoolCase(tf2verify.EquivalenceCase, abc.ABC):
  """SAME max pooling and fused batch norm of TF1, as at the start of a ResNet."""

  training_modes = (False,)
  padding, epsilon = 'same', 1e-3

  def build_tf1_graph(self, inputs, training):
    v1 = tf.compat.v1.layers
    net = v1.conv2d(inputs, 4, 3, padding='same', name='conv')
    net = v1.max_pooling2d(net, 3, 2, 'same')
    net = tf.nn.relu(v1.batch_normalization(net, training=training, name='norm'))
    return v1.conv2d(net, 5, 3, padding='same', name='last')

  def make_tf2_layer(self):
    padded = [layers.ZeroPadding2D(1)] if self.padding == 'valid' else []
    return keras.Sequential(
      [
        layers.Conv2D(4, 3, padding='same', name='conv'),
        *padded,
        layers.MaxPooling2D(3, 2, self.padding),
        layers.BatchNormalization(epsilon=self.epsilon, name='norm'),
        layers.ReLU(),
        layers.Conv2D(5, 3, padding='same', name='last'),
      ]
    )

  def make_inputs(self):
    return tf2verify.normal_inputs((2, 8, 8, 3))


def causes(**attributes):
  case = type('Variant', (PoolCase,), {'__module__': __name__, **attributes})
  stage = next(
    stage
    for stage in tf2verify.verify(case, ['zero_randomness']).stages
    if stage.stage == 'zero_randomness'
  )
  return stage, [] if stage.diagnosis is None else [cause.rule for cause in stage.diagnosis.causes]


class PaddedPoolTest(absltest.TestCase):
  def test_the_right_port(self):
    stage, _ = causes()
    self.assertIs(stage.status, tf2verify.Status.PASSED, stage.to_text())

  def test_the_padding_is_named_and_the_epsilon_as_well(self):
    stage, rules = causes(padding='valid', epsilon=1e-2)
    self.assertEqual(set(rules), {'fixed_padding', 'normalization_epsilon'}, stage.to_text())

  def test_the_padding_alone(self):
    stage, rules = causes(padding='valid')
    self.assertEqual(rules, ['fixed_padding'], stage.to_text())

  def test_the_epsilon_alone(self):
    stage, rules = causes(epsilon=1e-2)
    self.assertEqual(rules, ['normalization_epsilon'], stage.to_text())


if __name__ == '__main__':
  absltest.main()
