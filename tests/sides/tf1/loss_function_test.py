import numpy as np
import tensorflow as tf
from absl.testing import absltest

from tests.sides.loss_cases import LABELS, OUTPUTS, declared, example
from tf2verify.errors import BuilderError, CaseDefinitionError, UserCodeError
from tf2verify.records.loss_values import LossExample
from tf2verify.reference.perturbation import Perturber
from tf2verify.sides.tf1.loss_function import Tf1LossFunction

v1 = tf.compat.v1


def function(loss, outputs=OUTPUTS, labels=LABELS):
  return Tf1LossFunction(declared(tf1_loss=loss, tf1_metrics=loss), outputs, labels)


def cross_entropy(outputs, labels):
  return v1.losses.sparse_softmax_cross_entropy(labels, outputs)


class ValueTest(absltest.TestCase):
  def test_value_and_gradient(self):
    found = function(lambda outputs, labels: tf.reduce_sum(outputs**2)).value(example())
    np.testing.assert_allclose(found.value, np.sum(OUTPUTS**2), 1e-6)
    np.testing.assert_allclose(found.gradient(''), 2 * OUTPUTS, 1e-6)

  def test_loss_per_example_stays_one(self):
    found = function(lambda outputs, labels: tf.reduce_sum(outputs**2, 1)).value(example())
    self.assertEqual(found.value.shape, (4,))
    np.testing.assert_allclose(found.gradient(''), 2 * OUTPUTS, 1e-6)

  def test_rows_of_a_gather(self):
    found = function(lambda outputs, labels: tf.reduce_sum(tf.gather(outputs, [1, 1])))
    expected = np.zeros((4, 3))
    expected[1] = 2
    np.testing.assert_array_equal(found.value(example()).gradient(''), expected)

  def test_unconnected_and_integer_outputs(self):
    outputs = {'a': OUTPUTS, 'b': OUTPUTS, 'c': LABELS}
    loss = function(lambda outputs, labels: tf.reduce_sum(outputs['a']), outputs)
    leaves = {f'[{key!r}]': value for key, value in outputs.items()}
    found = loss.value(LossExample('example', leaves, {'': LABELS}))
    self.assertEqual([record.name for record in found.gradients], ["['a']", "['b']"])
    self.assertIsNone(found.gradient("['b']"))

  def test_another_batch_size(self):
    loss = function(cross_entropy)
    for size in (4, 1):
      self.assertEqual(loss.value(example(OUTPUTS[:size], LABELS[:size])).value.shape, ())

  def test_dimensions_of_tf1_and_of_tf2(self):
    by_value = function(lambda outputs, labels: tf.reduce_sum(outputs) / outputs.shape[0].value)
    by_int = function(lambda outputs, labels: tf.reduce_sum(outputs) / float(outputs.shape[0]))
    expected = np.sum(OUTPUTS) / 4
    for loss in (by_value, by_int):
      np.testing.assert_allclose(loss.value(example()).value, expected, 1e-5)

  def test_collections_are_fresh(self):
    def loss(outputs, labels):
      v1.losses.add_loss(tf.reduce_sum(outputs))
      return tf.add_n(v1.losses.get_losses())

    loss = function(loss)
    values = [loss.value(example(OUTPUTS[:size])).value for size in (4, 2)]
    np.testing.assert_allclose(values, [OUTPUTS.sum(), OUTPUTS[:2].sum()], 1e-5)

  def test_variables_of_the_loss_are_initialized(self):
    def loss(outputs, labels):
      return tf.reduce_sum(
        outputs - v1.get_variable('center', [3], initializer=v1.ones_initializer())
      )

    np.testing.assert_allclose(function(loss).value(example()).value, OUTPUTS.sum() - 12, 1e-5)

  def test_moved(self):
    loss = function(lambda outputs, labels: outputs[:, 0])
    whole = example(np.full((4, 3), 50, np.float32))
    still, moved = loss.value(whole).value, loss.value(whole, Perturber(0)).value
    self.assertGreater(np.abs(moved - still).max(), 0)
    np.testing.assert_allclose(moved, still, 1e-6)

  def test_probabilities_of_zero_and_one_stay(self):
    loss = function(lambda outputs, labels: tf.reduce_sum(outputs, 1))
    exact = example(np.eye(4, 3, dtype=np.float32))
    np.testing.assert_array_equal(loss.value(exact, Perturber(0)).value, loss.value(exact).value)


class ErrorTest(absltest.TestCase):
  def test_raised_by_the_hook(self):
    with self.assertRaisesRegex(UserCodeError, 'tf1_loss raised KeyError'):
      function(lambda outputs, labels: {}['x']).value(example())

  def test_raised_in_the_session(self):
    def loss(outputs, labels):
      with tf.control_dependencies([v1.assert_negative(outputs)]):
        return tf.reduce_sum(outputs)

    with self.assertRaisesRegex(UserCodeError, 'running tf1_loss raised InvalidArgumentError'):
      function(loss).value(example())

  def test_no_tensor(self):
    with self.assertRaisesRegex(CaseDefinitionError, 'tf1_loss returned None'):
      function(lambda outputs, labels: None).value(example())

  def test_session_of_its_own(self):
    with self.assertRaisesRegex(BuilderError, 'tf1_loss opened a session'):
      function(lambda outputs, labels: v1.Session()).value(example())


class ProgramTest(absltest.TestCase):
  def test_fused_cross_entropy_keeps_two(self):
    found = function(cross_entropy).program(example())
    self.assertEqual((found.reads, found.kept), ({''}, {'': 2}))

  def test_logarithm_of_a_clipped_softmax_keeps_many(self):
    def loss(outputs, labels):
      rows = tf.clip_by_value(tf.nn.softmax(outputs), 1e-7, 1 - 1e-7)
      return -tf.reduce_sum(tf.one_hot(labels, 3) * tf.math.log(rows))

    self.assertGreater(function(loss).program(example()).kept[''], 8)

  def test_stopped_output_is_read(self):
    loss = function(lambda outputs, labels: tf.reduce_sum(tf.stop_gradient(outputs)) * tf.ones([]))
    self.assertEqual(loss.program(example()).reads, {''})


class MetricsTest(absltest.TestCase):
  def test_one_update_each(self):
    def metrics(outputs, labels):
      return {'mean': v1.metrics.mean(outputs), 'sum': tf.reduce_sum(outputs)}

    found = {metric.name: metric.value for metric in function(metrics).metrics(example())}
    np.testing.assert_allclose(found['mean'], OUTPUTS.mean(), 1e-5)
    np.testing.assert_allclose(found['sum'], OUTPUTS.sum(), 1e-5)


if __name__ == '__main__':
  absltest.main()
