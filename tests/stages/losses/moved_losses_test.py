"""A part of the loss that the port adds within its call, and what it may not excuse."""

import abc

import tensorflow as tf
from absl.testing import absltest

import tf2verify
from tests.stages.first_failure import LadderTestCase

v1 = tf.compat.v1
keras = tf.keras
STAGE = 'loss'
EXCUSE = 'adds a part of the loss of tf1'
GRADIENT_OF_TOTAL = 'gradient of the total loss in the model'


class Model(keras.layers.Layer):
  """Both sides' model: two outputs, weight decay of the case, and what it adds in its call."""

  def __init__(self, case):
    super().__init__()
    self.case = case

  @v1.keras.utils.track_tf1_style_variables
  def call(self, inputs):
    outputs = self.case.net(inputs)
    added = self.case.added_in_call(outputs)
    if added is not None:
      self.add_loss(added)
    return outputs


class Decayed(tf2verify.EquivalenceCase, abc.ABC):
  """Weight decay on both sides, and a target in the loss through which no gradient flows."""

  decays = (5e-4, 1e-3)

  def net(self, inputs):
    first, second = (keras.regularizers.l2(decay) if decay else None for decay in self.decays)
    return {
      'value': v1.layers.dense(inputs, 2, kernel_regularizer=first, name='value'),
      'next': v1.layers.dense(inputs, 2, kernel_regularizer=second, name='next'),
    }

  def added_in_call(self, outputs):
    return None

  def build_tf1_graph(self, inputs, training):
    return self.net(inputs)

  def make_tf2_layer(self):
    return Model(self)

  def make_inputs(self):
    return tf2verify.normal_inputs((4, 5))

  def make_labels(self):
    return tf2verify.normal_inputs((4, 2), seed=1)

  def reduced(self, losses):
    return tf.reduce_mean(losses)

  def error(self, outputs, labels, stop):
    target = stop(labels + 0.9 * tf.sigmoid(outputs['next']))
    return self.reduced(tf.square(outputs['value'] - target) + tf.square(outputs['next']))

  def tf1_loss(self, outputs, labels):
    return self.error(outputs, labels, tf.stop_gradient)

  def tf2_loss(self, outputs, labels):
    return self.error(outputs, labels, tf.stop_gradient)


class Forgets(Decayed, abc.ABC):
  """The port differentiates the target as well."""

  def tf2_loss(self, outputs, labels):
    return self.error(outputs, labels, tf.identity)


class Moves(Decayed, abc.ABC):
  """A term of tf1's loss that the port adds in its call."""

  def size(self, outputs):
    return 0.3 * tf.reduce_mean(tf.square(tf.sigmoid(outputs['value'])))

  def added_in_call(self, outputs):
    return self.size(outputs)

  def build_tf1_graph(self, inputs, training):
    return self.net(inputs)

  def tf1_loss(self, outputs, labels):
    return super().tf1_loss(outputs, labels) + self.size(outputs)


class NothingMovedTest(LadderTestCase):
  def assert_stop_is_missing(self, **attributes):
    case = type('Case', (Forgets,), attributes)
    text = self.assert_first_failure(case, STAGE, "loss gradient outputs['next']")
    self.assertNotIn(EXCUSE, ' '.join(text.split()))
    self.assertNotIn(GRADIENT_OF_TOTAL, text)

  def test_stop_gradient_is_missing_beside_weight_decay(self):
    self.assert_stop_is_missing()

  def test_large_weight_decay_of_one_layer(self):
    self.assert_stop_is_missing(decays=(50.0, None))

  def test_losses_per_example(self):
    self.assert_stop_is_missing(reduced=lambda self, losses: tf.reduce_sum(losses, 1))

  def test_values_that_differ_by_less_than_rounding_of_the_total(self):
    class Case(Decayed):
      decays = (2e4, 2e4)

      def tf2_loss(self, outputs, labels):
        return 1.05 * super().tf2_loss(outputs, labels)

    text = self.assert_first_failure(Case, STAGE, 'loss value')
    self.assertNotIn(EXCUSE, ' '.join(text.split()))


class MovedTest(LadderTestCase):
  def test_right(self):
    loss = self.assert_passes(type('Case', (Moves,), {}), STAGE).stages[-1]
    self.assertTrue(any(EXCUSE in spot for spot in loss.blind_spots), loss.to_text())

  def test_and_stop_gradient_is_missing(self):
    class Case(Moves):
      def tf2_loss(self, outputs, labels):
        return self.error(outputs, labels, tf.identity)

    text = self.assert_first_failure(Case, STAGE, GRADIENT_OF_TOTAL)
    words = 'but their gradients do not: tf1 stops gradients at', 'the port stops gradients at no'
    for word in words:
      self.assertIn(word, ' '.join(text.split()))

  def test_the_part_itself_is_stopped(self):
    class Case(Moves):
      def added_in_call(self, outputs):
        return tf.stop_gradient(self.size(outputs))

    self.assert_first_failure(Case, STAGE, GRADIENT_OF_TOTAL)


class WithoutEffectTest(LadderTestCase):
  """Gradients that are stopped on one side and are zero on all data."""

  def blind_spots(self, tf1, tf2):
    def beyond(self, outputs, labels, stop):
      stopped = stop(tf.nn.relu(tf.sigmoid(outputs['next']) - 5.0))
      fit = tf.square(outputs['value'] - labels) + tf.square(outputs['next'])
      return tf.reduce_mean(fit + stopped)

    case = type(
      'Case',
      (Decayed,),
      {
        'error': beyond,
        'tf1_loss': lambda self, outputs, labels: self.error(outputs, labels, tf1),
        'tf2_loss': lambda self, outputs, labels: self.error(outputs, labels, tf2),
      },
    )
    return self.assert_passes(case, STAGE).stages[-1].blind_spots

  def test_of_tf1(self):
    spots = self.blind_spots(tf.stop_gradient, tf.identity)
    self.assertTrue(
      any('tf1 stops a gradient that the port does not: tf1 reads' in s for s in spots), spots
    )

  def test_of_the_port(self):
    spots = self.blind_spots(tf.identity, tf.stop_gradient)
    self.assertTrue(any('the port stops a gradient that tf1 does not' in s for s in spots), spots)

  def test_of_both(self):
    spots = self.blind_spots(tf.stop_gradient, tf.stop_gradient)
    self.assertFalse(any('stops a gradient' in spot for spot in spots), spots)


if __name__ == '__main__':
  absltest.main()
