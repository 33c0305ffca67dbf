import numpy as np
import tensorflow as tf
from absl.testing import absltest

from tests import small_case
from tests.sides.loss_cases import LABELS, OUTPUTS, declared, example
from tf2verify.errors import CaseDefinitionError, UserCodeError
from tf2verify.sides.tf2.loss_function import Tf2LossFunction

keras = tf.keras


def function(loss, outputs=OUTPUTS, labels=LABELS):
  return Tf2LossFunction(declared(tf2_loss=loss, tf2_metrics=loss), outputs, labels)


def cross_entropy(outputs, labels):
  return keras.losses.SparseCategoricalCrossentropy(from_logits=True)(labels, outputs)


class ValueTest(absltest.TestCase):
  def test_eagerly_and_traced(self):
    loss = function(lambda outputs, labels: tf.reduce_sum(outputs**2))
    for found in (loss.value(example()), loss.traced_value(example())):
      np.testing.assert_allclose(found.value, np.sum(OUTPUTS**2), 1e-6)
      np.testing.assert_allclose(found.gradient(''), 2 * OUTPUTS, 1e-6)

  def test_rows_of_a_gather(self):
    loss = function(lambda outputs, labels: tf.reduce_sum(tf.gather(outputs, [1, 1])))
    for found in (loss.value(example()), loss.traced_value(example())):
      np.testing.assert_array_equal(found.gradient('').sum(1), [0, 6, 0, 0])

  def test_unconnected(self):
    loss = function(lambda outputs, labels: tf.reduce_sum(tf.stop_gradient(outputs)))
    for found in (loss.value(example()), loss.traced_value(example())):
      self.assertIsNone(found.gradient(''))

  def test_keras_goes_back_to_the_logits_in_a_function_only(self):
    wrong = example(np.float32([[200, 0, 0]]), np.int32([1]))

    def loss(outputs, labels):
      rows = tf.nn.softmax(outputs)
      return keras.losses.SparseCategoricalCrossentropy()(labels, rows)

    loss = function(loss)
    np.testing.assert_allclose(loss.value(wrong).value, 16.118095, 1e-5)
    np.testing.assert_array_equal(loss.value(wrong).gradient(''), [[0, 0, 0]])
    np.testing.assert_allclose(loss.traced_value(wrong).value, 200, 1e-5)

  def test_traced_runs_op_by_op(self):
    # Grappler would add the two constants up first.
    loss = function(lambda outputs, labels: tf.reduce_sum(1.0 - outputs + 1e-7))
    ones = example(np.ones((4, 3), np.float32))
    np.testing.assert_array_equal(loss.value(ones).value, loss.traced_value(ones).value)

  def test_options_of_grappler_are_put_back(self):
    before = tf.config.optimizer.get_experimental_options()
    function(cross_entropy).traced_value(example())
    after = tf.config.optimizer.get_experimental_options()
    self.assertEqual(after.get('disable_meta_optimizer', False), False)
    self.assertEqual({k: after[k] for k in before}, before)

  def test_same_random_numbers_at_every_call(self):
    loss = function(lambda outputs, labels: tf.reduce_sum(outputs * tf.random.normal([4, 3])))
    self.assertEqual(loss.value(example()).value, loss.value(example()).value)

  def test_condition_in_python(self):
    class Case(small_case.SmallCase):
      def tf2_loss(self, outputs, labels):
        if tf.reduce_sum(outputs) > 100.0:
          return tf.reduce_sum(outputs)
        return tf.reduce_sum(outputs**2)

    found = Tf2LossFunction(Case(), OUTPUTS, LABELS).traced_value(example())
    np.testing.assert_allclose(found.value, np.sum(OUTPUTS**2), 1e-6)


class ErrorTest(absltest.TestCase):
  def test_raised_by_the_hook(self):
    with self.assertRaisesRegex(UserCodeError, 'tf2_loss raised KeyError'):
      function(lambda outputs, labels: {}['x']).value(example())

  def test_not_traceable(self):
    loss = function(lambda outputs, labels: tf.reduce_sum(outputs * outputs.numpy()))
    loss.value(example())
    with self.assertRaisesRegex(UserCodeError, 'numpy'):
      loss.traced_value(example())

  def test_no_tensor(self):
    with self.assertRaisesRegex(CaseDefinitionError, 'tf2_loss returned None'):
      function(lambda outputs, labels: None).value(example())


class ProgramTest(absltest.TestCase):
  def test_fused_cross_entropy_keeps_two(self):
    loss = function(cross_entropy)
    found = loss.program(example())
    self.assertEqual((found.reads, found.kept), ({''}, {'': 2}))
    self.assertEqual(loss.computed_eagerly(example(), frozenset({''})), {'': 2})

  def test_logarithm_of_clipped_probabilities_keeps_many(self):
    loss = function(
      lambda outputs, labels: keras.losses.SparseCategoricalCrossentropy()(labels, outputs)
    )
    self.assertGreater(loss.program(example()).kept[''], 8)
    self.assertGreater(loss.computed_eagerly(example(), frozenset({''}))[''], 8)

  def test_what_is_not_read(self):
    loss = function(lambda outputs, labels: tf.reduce_sum(tf.zeros([4, 3])))
    self.assertEqual(loss.program(example()).reads, frozenset())


class MetricsTest(absltest.TestCase):
  def test_tensors_and_keras_metrics(self):
    def metrics(outputs, labels):
      area = keras.metrics.AUC(num_thresholds=5, curve='PR')
      area.update_state(labels > 0, tf.sigmoid(outputs[:, 0]))
      return {'area': area, 'sum': tf.reduce_sum(outputs)}

    area, total = function(metrics).metrics(example())
    self.assertEqual(dict(area.settings)['curve'], 'PR')
    self.assertEqual(dict(area.counts)['true_positives'].shape, (5,))
    np.testing.assert_allclose(total.value, OUTPUTS.sum(), 1e-5)
    self.assertEqual((total.name, total.counts), ('sum', ()))


if __name__ == '__main__':
  absltest.main()
