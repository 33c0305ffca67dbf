import numpy as np
import tensorflow as tf
from absl.testing import absltest

import tf2verify
from tf2verify.diagnosis.formulas import losses as formulas
from tf2verify.diagnosis.formulas.losses import Evaluated
from tf2verify.numerics.extreme_outputs import extreme_examples
from tf2verify.numerics.output_relations import sigmoid, softmax
from tf2verify.records.loss_values import LossExample

v1 = tf.compat.v1
keras = tf.keras
LOGITS = tf2verify.normal_inputs((4, 3))
CLASSES = np.array([0, 2, 1, 2], np.int32)
BINARY = np.array([[0, 1, 1], [1, 0, 0], [0, 0, 1], [1, 1, 1]], np.float32)


def formula_of(loss, outputs=LOGITS, labels=CLASSES, **more):
  """Returns the formula of a loss that takes outputs and labels."""
  model = LossExample('model', {'': outputs}, {"['y']": labels, **more})
  examples = [model, *extreme_examples(model, [''], ())]
  values = [np.asarray(loss(example.outputs[''], *example.labels.values())) for example in examples]
  evaluated = [Evaluated(*pair) for pair in zip(examples, values, strict=True)]
  return formulas.formula_of(evaluated, '')


def one_hot(labels):
  return np.eye(3, dtype=np.float32)[labels]


class CategoricalTest(absltest.TestCase):
  def test_cross_entropy_of_logits(self):
    sparse = tf.nn.sparse_softmax_cross_entropy_with_logits
    for loss in (
      lambda z, y: sparse(y, z),
      lambda z, y: tf.reduce_sum(sparse(y, z)),
      lambda z, y: keras.losses.SparseCategoricalCrossentropy(from_logits=True)(y, z),
      lambda z, y: keras.losses.CategoricalCrossentropy(from_logits=True)(one_hot(y), z),
    ):
      self.assertEqual(formula_of(loss), formulas.FUSED_SOFTMAX)

  def test_clipped_softmax(self):
    for loss in (
      lambda z, y: keras.losses.SparseCategoricalCrossentropy()(y, softmax(z)),
      lambda z, y: keras.losses.CategoricalCrossentropy()(one_hot(y), softmax(z)),
    ):
      self.assertEqual(formula_of(loss), formulas.CLIPPED_SOFTMAX)

  def test_logits_as_probabilities(self):
    for loss in (
      lambda z, y: keras.losses.SparseCategoricalCrossentropy()(y, z),
      lambda z, y: keras.losses.CategoricalCrossentropy()(one_hot(y), z),
    ):
      self.assertEqual(formula_of(loss), formulas.CLIPPED_ROWS)

  def test_unknown(self):
    self.assertEqual(formula_of(lambda z, y: tf.reduce_mean(z**2)), '')
    self.assertEqual(
      formula_of(lambda z, y: 1.001 * keras.losses.SparseCategoricalCrossentropy(True)(y, z)), ''
    )


class BinaryTest(absltest.TestCase):
  def test_formulas(self):
    p = sigmoid(LOGITS)
    for name, outputs, loss in (
      (formulas.FUSED_SIGMOID, LOGITS, keras.losses.BinaryCrossentropy(from_logits=True)),
      (formulas.CLIPPED_BINARY, p, keras.losses.BinaryCrossentropy()),
      (
        formulas.CLIPPED_SIGMOID,
        LOGITS,
        lambda y, z: keras.losses.BinaryCrossentropy()(y, sigmoid(z)),
      ),
    ):
      with self.subTest(name):
        self.assertEqual(formula_of(lambda z, y, loss=loss: loss(y, z), outputs, BINARY), name)

  def test_log_loss(self):
    def loss(p, y):
      with tf.Graph().as_default(), v1.Session() as session:
        return session.run(v1.losses.log_loss(y, p))

    self.assertEqual(formula_of(loss, sigmoid(LOGITS), BINARY), formulas.SHIFTED_BINARY)


class VectorTest(absltest.TestCase):
  def test_cosine(self):
    def unit(a):
      return tf.linalg.l2_normalize(a, -1)

    targets = tf2verify.normal_inputs((4, 3), seed=1)
    for name, loss in (
      (formulas.DOT, lambda a, b: tf.reduce_mean(1 - tf.reduce_sum(a * b, -1))),
      (formulas.NEGATIVE_COSINE, lambda a, b: keras.losses.CosineSimilarity()(b, a)),
      (formulas.COSINE, lambda a, b: tf.reduce_mean(1 - tf.reduce_sum(unit(a) * unit(b), -1))),
    ):
      with self.subTest(name):
        self.assertEqual(formula_of(loss, labels=targets), name)


class WeightedTest(absltest.TestCase):
  def test_each_denominator(self):
    weights = np.float32([1.0, 0.5, 2.0, 1.0])
    for divisor in (
      lambda w: 1.0,
      lambda w: w.size,
      lambda w: max(np.count_nonzero(w), 1),
      lambda w: max(w.sum(), 1e-12),
    ):

      def loss(z, y, w, divisor=divisor):
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(y, z)
        return tf.reduce_sum(losses * w) / divisor(w)

      found = formula_of(loss, **{"['weights']": weights})
      self.assertEqual(found, formulas.FUSED_SOFTMAX)

  def test_weights_of_examples_for_their_steps(self):
    found = formulas._spread(np.float32([[2.0], [3.0]]), (2, 4))
    np.testing.assert_array_equal(found, [[2] * 4, [3] * 4])

  def test_weights_that_do_not_fit(self):
    with self.assertRaises(ValueError):
      formulas._spread(np.ones(3), (2, 4))


class SmoothedTest(absltest.TestCase):
  def recognized(self, loss, **more):
    model = LossExample('model', {'': LOGITS}, {"['y']": BINARY, **more})
    examples = [model, *extreme_examples(model, [''], ())]
    values = [np.asarray(loss(e.outputs[''], *e.labels.values())) for e in examples]
    return formulas.recognized([Evaluated(*p) for p in zip(examples, values, strict=True)], '')

  def test_share_of_smoothing(self):
    found = self.recognized(
      lambda z, y: keras.losses.BinaryCrossentropy(True, label_smoothing=0.3)(y, z)
    )
    self.assertEqual(found, formulas.Recognized(formulas.FUSED_SIGMOID, 0.3))

  def test_weights_of_any_name(self):
    weights = np.array([3.0, 0.0, 1.0, 0.5], np.float32)
    found = self.recognized(
      lambda z, y, w: keras.losses.BinaryCrossentropy(True, label_smoothing=0.1)(y, z, w),
      **{"['importance']": weights},
    )
    self.assertEqual(found, formulas.Recognized(formulas.FUSED_SIGMOID, 0.1))

  def test_labels_as_they_are(self):
    found = self.recognized(lambda z, y: keras.losses.BinaryCrossentropy(True)(y, z))
    self.assertEqual(found, formulas.Recognized(formulas.FUSED_SIGMOID))

  def test_no_formula(self):
    self.assertIsNone(self.recognized(lambda z, y: tf.reduce_mean(tf.square(z - y))))
    self.assertIsNone(
      self.recognized(lambda z, y: 1.01 * keras.losses.BinaryCrossentropy(True)(y, z))
    )


if __name__ == '__main__':
  absltest.main()
