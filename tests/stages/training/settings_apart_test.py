"""Settings of optimizers that differ, and that neither steps nor graphs show."""

import abc

import keras
import tensorflow as tf
from absl.testing import absltest, parameterized

import tf2verify

v1 = tf.compat.v1
_STAGE = 'training_steps'


class Adagrad(tf2verify.EquivalenceCase, abc.ABC):
  """A dense layer, whose gradients are far greater than any epsilon."""

  relate_graphs = False
  epsilon = 0.0

  def build_tf1_graph(self, inputs, training):
    return v1.layers.dense(inputs, 3, name='logits')

  def make_tf2_layer(self):
    return keras.Sequential([keras.layers.Dense(3, name='logits')])

  def make_inputs(self):
    return tf2verify.normal_inputs((4, 5))

  def tf1_loss(self, outputs, labels):
    return tf.reduce_mean(outputs**2)

  tf2_loss = tf1_loss

  def make_tf1_optimizer(self):
    return v1.train.AdagradOptimizer(0.05)

  def make_tf2_optimizer(self):
    return keras.optimizers.Adagrad(0.05, epsilon=self.epsilon)


class _OwnAdagrad(keras.optimizers.Adagrad):
  """Reads no epsilon, whatever it is given."""

  def update_step(self, gradient, variable, learning_rate):
    total = self._accumulators[self._get_variable_index(variable)]
    total.assign_add(gradient**2)
    variable.assign_sub(learning_rate * gradient / keras.ops.sqrt(total))


class _Named(keras.optimizers.Adagrad):
  """Computes updates as its base does."""

  def get_config(self):
    return super().get_config()


class DefaultAdam(Adagrad, abc.ABC):
  rate, epsilon = 0.001, 1e-7  # as where nothing is passed

  def make_tf1_optimizer(self):
    return v1.train.AdamOptimizer(0.01)

  def make_tf2_optimizer(self):
    return keras.optimizers.Adam(self.rate, epsilon=self.epsilon)


class SettingsApartTest(parameterized.TestCase):
  def test_an_epsilon_beside_another_rate(self):
    cause = (
      '2 settings of the optimizers differ: lr is 0.01 in TF1 and 0.001 in the port, epsilon is '
      '1e-08 in TF1 and 1e-07 in the port: pass learning_rate=0.01, epsilon=1e-08 to '
    )
    for epsilon, is_said in ((1e-7, True), (1e-8, False)):
      case = type('Case', (DefaultAdam,), {'epsilon': epsilon})
      text = ' '.join(tf2verify.verify(case, stages=[_STAGE]).to_text().split())
      with self.subTest(epsilon=epsilon):
        self.assertEqual(cause in text, is_said, text)
        self.assertIn('pass learning_rate=0.01', text)

  @parameterized.parameters((0.0, False), (1e-9, True))
  def test_epsilon_of_adagrad(self, value, is_told):
    case = type('Case', (Adagrad,), {'epsilon': value})
    found = tf2verify.verify(case, [_STAGE]).stages[-1]
    self.assertIs(found.status, tf2verify.Status.PASSED, found.to_text())
    spots = ' '.join(found.blind_spots)
    self.assertEqual('epsilon is 0 in tf1 and 1e-09 in the port' in spots, is_told, spots)
    self.assertNotIn('replaces', spots)

  @parameterized.parameters((_OwnAdagrad, False), (_Named, True))
  def test_an_update_of_its_own(self, optimizer, is_told):
    class Case(Adagrad):
      def make_tf2_optimizer(self):
        return optimizer(0.05, epsilon=1e-9)

    found = tf2verify.verify(Case, [_STAGE]).stages[-1]
    self.assertIs(found.status, tf2verify.Status.PASSED, found.to_text())
    self.assertEqual('epsilon is' in ' '.join(found.blind_spots), is_told, found.blind_spots)

  @parameterized.parameters((0.0, True), (1e-30, False))
  def test_epsilon_of_0_that_legacy_keras_replaces(self, value, is_told):
    class Case(Adagrad):
      def make_tf2_layer(self):
        return tf.keras.Sequential([tf.keras.layers.Dense(3, name='logits')])

      def make_tf2_optimizer(self):
        return tf.keras.optimizers.legacy.Adagrad(0.05, epsilon=value)

    found = tf2verify.verify(Case, [_STAGE]).stages[-1]
    self.assertIs(found.status, tf2verify.Status.PASSED, found.to_text())
    spots = ' '.join(found.blind_spots)
    told = 'legacy.Adagrad replaces an epsilon of 0 by its default: pass 1e-30)'
    self.assertEqual(told in spots, is_told, spots)
    self.assertEqual('epsilon is 0 in tf1' in spots, is_told, spots)


if __name__ == '__main__':
  absltest.main()
