import numpy as np
import tensorflow as tf
from absl.testing import absltest

from tests.sides.loss_cases import LABELS, OUTPUTS, example
from tf2verify.errors import CaseDefinitionError
from tf2verify.sides.losses import loss_function

v1 = tf.compat.v1


class NestTest(absltest.TestCase):
  def test_there_and_back(self):
    nest = {'a': OUTPUTS, 'b': (LABELS, None)}
    leaves = loss_function.leaves_of(nest)
    self.assertEqual(list(leaves), ["['a']", "['b'][0]"])
    again = loss_function.filled(nest, {**leaves, "['a']": LABELS})
    self.assertIs(again['a'], LABELS)
    self.assertIsNone(again['b'][1])

  def test_no_labels(self):
    self.assertEqual(loss_function.leaves_of(None), {})
    self.assertIsNone(loss_function.filled(None, {}))

  def test_sparse_outputs(self):
    value = v1.SparseTensorValue(np.zeros((1, 2), np.int64), np.ones(1), np.array([2, 2]))
    found = loss_function.sparse({'a': [value], 'b': LABELS})
    self.assertIsInstance(found['a'][0], tf.SparseTensor)
    self.assertIs(found['b'], LABELS)

  def test_signature_tells_shapes_and_dtypes_apart(self):
    signatures = {
      loss_function.signature(example(outputs, labels))
      for outputs in (OUTPUTS, OUTPUTS[:1], OUTPUTS.astype(np.float64))
      for labels in (LABELS, None)
    }
    self.assertLen(signatures, 6)
    self.assertIn(loss_function.signature(example(2 * OUTPUTS)), signatures)


class CheckedLossTest(absltest.TestCase):
  def test_tensors_and_variables(self):
    for loss in (tf.constant(1.0), tf.constant([1.0, 2.0]), tf.Variable(1.0)):
      self.assertIsInstance(loss_function.checked_loss(loss, 'tf2_loss'), tf.Tensor)

  def test_others(self):
    for loss, words in (
      (None, 'tf2_loss returned None: usually a missing `return`'),
      (1.0, 'tf2_loss returned a float'),
      ({'a': tf.constant(1)}, 'no floating tensor'),
      (tf.constant(1), 'dtype int32'),
    ):
      with self.subTest(words), self.assertRaisesRegex(CaseDefinitionError, words):
        loss_function.checked_loss(loss, 'tf2_loss')


class CheckedMetricsTest(absltest.TestCase):
  def test_tensors_pairs_and_keras_metrics(self):
    self.assertEqual(
      list(loss_function.checked_metrics({'a': 1.0, 'b': (tf.constant(1.0), None)}, 'tf1_metrics')),
      ['a', 'b'],
    )
    metric = tf.keras.metrics.Mean()
    self.assertEqual(loss_function.checked_metrics({'a': metric}, 'tf2_metrics'), {'a': metric})

  def test_others(self):
    metric = tf.keras.metrics.Mean()
    for made, hook, words in (
      (None, 'tf1_metrics', 'a dictionary from name to metric'),
      ({}, 'tf2_metrics', 'with at least one'),
      ({'a': 'b'}, 'tf2_metrics', 'or an updated Keras metric'),
      ({'a': metric}, 'tf1_metrics', r'or \(value, update op\)'),
    ):
      with self.subTest(words), self.assertRaisesRegex(CaseDefinitionError, words):
        loss_function.checked_metrics(made, hook)


class CountTest(absltest.TestCase):
  def test_what_takes_memory_of_its_own(self):
    with tf.Graph().as_default() as graph:
      net = v1.placeholder(tf.float32, [4, 3])
      net = tf.reshape(tf.identity(net), [3, 4])
      tf.reduce_sum(tf.square(net) + tf.cast(tf.argmax(net, 1)[:, None], tf.float32))
    found = loss_function.count_of_size(graph.get_operations(), {'': 12, "['b']": 3})
    self.assertEqual(found, {'': 2, "['b']": 1})


if __name__ == '__main__':
  absltest.main()
