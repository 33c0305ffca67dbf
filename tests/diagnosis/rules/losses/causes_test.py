import abc

import numpy as np
import tensorflow as tf
from absl.testing import absltest

import tf2verify
from tests.port_bugs import losses
from tests.stages import tiny_models
from tests.stages.tiny_models import bias, kernel

v1 = tf.compat.v1
keras = tf.keras


class CauseTestCase(absltest.TestCase):
  def assert_cause(self, case, *words):
    """Asserts that every difference has one cause, which contains the words."""
    found = tf2verify.verify(case, stages=['loss']).stages[-1]
    self.assertIs(found.status, tf2verify.Status.FAILED, found.to_text())
    causes = {difference.hint for difference in found.differences}
    if causes == {''} and found.diagnosis is not None:  # one that was tried out is of the stage
      causes = {cause.text for cause in found.diagnosis.causes}
    self.assertLen(causes, 1, found.to_text())
    (cause,) = causes
    for word in words:
      self.assertIn(word, cause)

  def assert_no_cause(self, case):
    found = tf2verify.verify(case, stages=['loss']).stages[-1]
    self.assertIs(found.status, tf2verify.Status.FAILED, found.to_text())
    self.assertEqual({difference.hint for difference in found.differences}, {''})


class FormulaTest(CauseTestCase):
  def test_sparse_cross_entropy_of_a_softmax(self):
    class Case(losses.Classified):
      def tf2_loss(self, outputs, labels):
        loss = keras.losses.SparseCategoricalCrossentropy()
        return loss(labels['classes'], tf.nn.softmax(outputs))

    self.assert_cause(Case, 'the loss of tf2 saturates at 16.118', 'gradient is zero')

  def test_reference_that_saturates(self):
    class Case(losses.Classified):
      def tf1_loss(self, outputs, labels):
        rows = tf.clip_by_value(tf.nn.softmax(outputs), 1e-7, 1.0 - 1e-7)
        return -tf.reduce_mean(tf.reduce_sum(self.one_hot(labels) * tf.math.log(rows), 1))

    self.assert_cause(Case, 'the loss of tf1 saturates at 16.118')

  def test_softmax_of_the_model(self):
    class Case(losses.Classified):
      def model(self, inputs, training):
        logits = inputs @ kernel() + bias()
        return logits, tf.nn.softmax(logits)

      def tf1_loss(self, outputs, labels):
        return super().tf1_loss(outputs[0], labels)

      def tf2_loss(self, outputs, labels):
        return keras.losses.CategoricalCrossentropy()(self.one_hot(labels), outputs[1])

    self.assert_cause(Case, 'the loss of tf2 saturates at 16.118')

  def test_binary_logits_taken_for_probabilities(self):
    class Case(tiny_models.Affine):
      def make_labels(self):
        return np.array([[0, 1, 1], [1, 0, 0], [0, 0, 1], [1, 1, 1]], np.float32)

      def tf1_loss(self, outputs, labels):
        return v1.losses.sigmoid_cross_entropy(labels, outputs)

      def tf2_loss(self, outputs, labels):
        return keras.losses.BinaryCrossentropy()(labels, outputs)

    self.assert_cause(Case, 'tf2 treats logits as probabilities', 'from_logits=True')

  def test_epsilon_of_a_distribution(self):
    class Case(losses.Classified):
      def model(self, inputs, training):
        return tf.nn.softmax(super().model(inputs, training))

      def tf1_loss(self, outputs, labels):
        return -tf.reduce_mean(tf.reduce_sum(self.one_hot(labels) * tf.math.log(outputs), 1))

      def tf2_loss(self, outputs, labels):
        return keras.losses.CategoricalCrossentropy()(self.one_hot(labels), outputs)

    self.assert_cause(Case, 'by the placement of the epsilon', 'tf2 the logarithm of the clipped')

  def test_ctc_of_sparse_labels_and_steps_first(self):
    class Case(losses.Transcribed):
      def model(self, inputs, training):
        return tf.transpose(super().model(inputs, training), [1, 0, 2])

      def make_labels(self):
        return v1.SparseTensorValue(
          np.int64([[0, 0], [0, 1], [1, 0]]), np.int32([1, 2, 2]), np.int64([2, 2])
        )

      def tf1_loss(self, outputs, labels):
        return tf.reduce_mean(v1.nn.ctc_loss(tf.SparseTensor(*labels), outputs, [5, 4]))

      def tf2_loss(self, outputs, labels):
        labels = tf.SparseTensor(*labels)
        return tf.reduce_mean(tf.nn.ctc_loss(labels, outputs, None, [5, 4], blank_index=0))

    self.assert_no_cause(Case)  # the lengths are not among the labels

    class WithLengths(Case):
      def make_labels(self):
        return {'sparse': super().make_labels(), 'steps': np.array([5, 4], np.int32)}

      def tf1_loss(self, outputs, labels):
        sparse = tf.SparseTensor(*labels['sparse'])
        return tf.reduce_mean(v1.nn.ctc_loss(sparse, outputs, labels['steps']))

      def tf2_loss(self, outputs, labels):
        sparse, steps = tf.SparseTensor(*labels['sparse']), labels['steps']
        return tf.reduce_mean(tf.nn.ctc_loss(sparse, outputs, None, steps, blank_index=0))

    self.assert_cause(WithLengths, 'blank_index=-1')

  def test_two_losses_of_no_known_formula(self):
    class Case(tiny_models.Affine):
      def tf1_loss(self, outputs, labels):
        return tf.reduce_mean(tf.abs(outputs))

      def tf2_loss(self, outputs, labels):
        return tf.reduce_mean(tf.square(outputs))

    self.assert_no_cause(Case)


class Weighted(tiny_models.Affine, abc.ABC):
  """A binary loss with weights that no name tells."""

  def make_labels(self):
    y = np.array([[0, 1, 1], [1, 0, 0], [0, 0, 1], [1, 1, 1]], np.float32)
    return {'y': y, 'w': np.array([[1], [2], [0], [0.5]], np.float32)}

  def tf1_loss(self, outputs, labels):
    return v1.losses.sigmoid_cross_entropy(labels['y'], outputs, labels['w'])

  def port_loss(self, outputs, labels, **settings):
    loss = keras.losses.BinaryCrossentropy(reduction='none', **settings)
    each = loss(labels['y'], outputs) * labels['w'][:, 0]
    present = tf.cast(tf.math.count_nonzero(labels['w']), tf.float32)
    return tf.math.divide_no_nan(tf.reduce_sum(each), present)


class WeightedTest(CauseTestCase):
  def test_right_port(self):
    class Case(Weighted):
      def tf2_loss(self, outputs, labels):
        return self.port_loss(outputs, labels, from_logits=True)

    found = tf2verify.verify(Case, stages=['loss']).stages[-1]
    self.assertIs(found.status, tf2verify.Status.PASSED, found.to_text())

  def test_logits_taken_for_probabilities(self):
    class Case(Weighted):
      def tf2_loss(self, outputs, labels):
        return self.port_loss(outputs, labels)

    self.assert_cause(Case, 'tf2 treats logits as probabilities', 'from_logits=True')

  def test_smoothing(self):
    class Case(Weighted):
      def tf2_loss(self, outputs, labels):
        return self.port_loss(outputs, labels, from_logits=True, label_smoothing=0.1)

    self.assert_cause(Case, 'tf2 smooths its labels by 0.1, tf1 does not', 'leave it out')

  def test_logits_taken_for_probabilities_and_smoothing_on_both_sides(self):
    class Case(Weighted):
      def tf1_loss(self, outputs, labels):
        return v1.losses.sigmoid_cross_entropy(
          labels['y'], outputs, labels['w'], label_smoothing=0.05
        )

      def tf2_loss(self, outputs, labels):
        return self.port_loss(outputs, labels, label_smoothing=0.05)

    self.assert_cause(Case, 'tf2 treats logits as probabilities', 'from_logits=True')

  def test_other_denominator(self):
    class Case(Weighted):
      def tf2_loss(self, outputs, labels):
        each = keras.losses.BinaryCrossentropy(from_logits=True, reduction='none')
        return tf.reduce_mean(each(labels['y'], outputs) * labels['w'][:, 0])

    self.assert_cause(Case, 'the number of weights that are not zero in tf1', "labels['w']")

  def test_weights_that_do_not_tell_what_tf1_divides_by(self):
    class Case(Weighted):
      weights: tuple[float, ...] = (1.0, 2.0, 0.5, 3.0)

      def make_labels(self):
        labels = super().make_labels()
        return {'y': labels['y'], 'v': np.array(self.weights, np.float32)[:, None]}

      def tf1_loss(self, outputs, labels):
        return v1.losses.sigmoid_cross_entropy(labels['y'], outputs, labels['v'])

      def tf2_loss(self, outputs, labels):
        each = tf.nn.sigmoid_cross_entropy_with_logits(labels['y'], outputs)
        weights = tf.broadcast_to(labels['v'], tf.shape(each))
        return tf.math.divide_no_nan(tf.reduce_sum(each * weights), tf.reduce_sum(weights))

    class WithZero(Case):
      weights = 1.0, 0.0, 0.5, 3.0

    known = 'divided by the number of weights that are not zero'
    for case, words in (
      (Case, (f'{known} (or ', 'the same on all examples) in tf1', 'tf.compat.v1.losses divides')),
      (WithZero, (f'{known} in tf1 and by the sum of the weights in tf2',)),
    ):
      stage = tf2verify.verify(case, stages=['loss']).stages[-1]
      said = [cause.text for cause in stage.diagnosis.causes]
      for word in words:
        self.assertIn(word, said[0])

  def test_without_a_cause_the_lines_are_told(self):
    class Case(Weighted):
      def tf2_loss(self, outputs, labels):
        return tf.reduce_mean(tf.square(outputs) * labels['w'])

    found = tf2verify.verify(Case, stages=['loss']).stages[-1]
    self.assertEqual({difference.hint for difference in found.differences}, {''})
    (cause,) = found.diagnosis.causes
    self.assertIn('at these lines (the operation was not identified)', cause.text)
    text = found.to_text()
    self.assertIn('tf1_loss: return v1.losses.sigmoid_cross_entropy(', text)
    self.assertIn('tf2_loss: return tf.reduce_mean(tf.square(outputs)', text)


class UnreadWeightsTest(CauseTestCase):
  def test_port_without_the_weights(self):
    class Case(losses.Weighted):
      def tf2_loss(self, outputs, labels):
        loss = keras.losses.CategoricalCrossentropy(from_logits=True)
        return loss(self.one_hot(labels), outputs)

    self.assert_cause(
      Case, "the loss of tf2 does not depend on labels['weights']", 'that of tf1 goes from', 'to 0'
    )

  def test_reference_without_the_weights(self):
    class Case(losses.Weighted):
      def tf1_loss(self, outputs, labels):
        return v1.losses.softmax_cross_entropy(self.one_hot(labels), outputs)

    found = tf2verify.verify(Case, stages=['loss']).stages[-1]
    one, other = (cause.text for cause in found.diagnosis.causes)  # the sum, and what divides it
    self.assertIn("the loss of tf1 does not depend on labels['weights']", one)
    self.assertIn("the number of weights that are not zero in tf2 (labels['weights'])", other)

  def test_zero_divided_by_zero(self):
    class Case(losses.Weighted):
      def tf2_loss(self, outputs, labels):
        weights = labels['weights']
        each = tf.nn.softmax_cross_entropy_with_logits(self.one_hot(labels), outputs)
        present = tf.cast(tf.math.count_nonzero(weights), tf.float32)
        return tf.reduce_sum(each * weights) / present

    self.assert_cause(Case, 'tf2 is NaN where tf1 is 0', 'divide_no_nan')

  def test_reference_that_divides_zero_by_zero(self):
    class Case(losses.Weighted):
      def tf1_loss(self, outputs, labels):
        weights = labels['weights']
        each = tf.nn.softmax_cross_entropy_with_logits(self.one_hot(labels), outputs)
        present = tf.cast(tf.math.count_nonzero(weights), tf.float32)
        return tf.reduce_sum(each * weights) / present

    verdict = tf2verify.verify(Case, stages=['loss']).stages[-1]
    self.assertIs(verdict.status, tf2verify.Status.PASSED, verdict.to_text())
    self.assertIn("is 0 on labels['weights'] all zero", ' '.join(verdict.blind_spots))

  def test_weights_that_both_read(self):
    class Case(losses.Weighted):
      def tf2_loss(self, outputs, labels):
        return super().tf2_loss(outputs, {**labels, 'weights': labels['weights'] ** 2})

    self.assert_no_cause(Case)


class SmoothingTest(CauseTestCase):
  def test_of_independent_labels(self):
    class Case(tiny_models.Affine):
      def make_labels(self):
        return np.array([[0, 1, 1], [1, 0, 0], [0, 0, 1], [1, 1, 1]], np.float32)

      def tf1_loss(self, outputs, labels):
        return v1.losses.sigmoid_cross_entropy(labels, outputs)

      def tf2_loss(self, outputs, labels):
        loss = keras.losses.BinaryCrossentropy(from_logits=True, label_smoothing=0.2)
        return loss(labels, outputs)

    self.assert_cause(Case, 'tf2 smooths its labels by 0.2, tf1 does not')

  def test_of_both_sides(self):
    class Case(Weighted):
      def tf2_loss(self, outputs, labels):
        return self.port_loss(outputs, labels, from_logits=True, label_smoothing=0.2)

    class Half(Case):
      def tf1_loss(self, outputs, labels):
        return v1.losses.sigmoid_cross_entropy(
          labels['y'], outputs, labels['w'], label_smoothing=0.1
        )

    self.assert_cause(
      Half, 'tf2 smooths its labels by 0.2, tf1 by 0.1', 'label_smoothing of Binary', 'give it 0.1'
    )

  def test_by_hand_over_the_other_classes(self):
    class Case(losses.Smoothed):
      def tf2_loss(self, outputs, labels):
        one_hot, classes = self.one_hot(labels), outputs.shape[-1]
        smoothed = 0.9 * one_hot + 0.1 / (classes - 1) * (1.0 - one_hot)
        return tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(smoothed, outputs))

    classes = 3
    self.assert_cause(
      Case,
      f'tf2 smooths its labels by {0.1 * classes / (classes - 1):.3g}, tf1 by 0.1',
      'if the port has the argument label_smoothing',
      f'if it smooths the labels itself, tf1 has (1 - 0.1)·y + 0.1/{classes} with all',
      f'spread over the {classes - 1} others alone, 0.1 is',
    )

  def test_of_another_share(self):
    class Case(losses.Smoothed):
      def tf2_loss(self, outputs, labels):
        loss = keras.losses.CategoricalCrossentropy(from_logits=True, label_smoothing=0.05)
        return loss(self.one_hot(labels), outputs)

    self.assert_cause(Case, 's = 0.05')

  def test_of_a_part_with_a_weight(self):
    def total(loss):
      # No formula that is known: the share is that of the part, times its weight.
      return lambda self, outputs, labels: (
        0.5 * loss(self.one_hot(labels), outputs) + 0.01 * tf.reduce_sum(tf.abs(outputs))
      )

    smoothed = keras.losses.CategoricalCrossentropy(from_logits=True, label_smoothing=0.1)
    plain = keras.losses.CategoricalCrossentropy(from_logits=True)
    case = type('Case', (losses.Smoothed,), {'tf1_loss': total(smoothed), 'tf2_loss': total(plain)})
    self.assert_cause(
      case, 'tf1 smooths its labels by 0.05 more than tf2 does', 'divided by w', 'a weight of w'
    )


def _joined(text):
  return ' '.join(text.split())


class DenominatorTest(CauseTestCase):
  def test_weights_of_a_squared_error(self):
    class Case(tiny_models.Affine):
      def make_labels(self):
        labels = tf2verify.normal_inputs((4, 3), seed=1)
        return {'targets': labels, 'weights': np.ones((4, 1), np.float32)}

      def tf1_loss(self, outputs, labels):
        return v1.losses.mean_squared_error(labels['targets'], outputs, labels['weights'])

      def tf2_loss(self, outputs, labels):
        loss = keras.losses.MeanSquaredError()
        return loss(labels['targets'], outputs, labels['weights'])

    self.assert_cause(Case, 'the number of weights that are not zero in tf1')

  def test_as_many_classes_as_examples(self):
    class Case(tiny_models.Affine):
      def make_inputs(self):
        return tf2verify.normal_inputs((3, 3))

      def make_labels(self):
        return tf2verify.normal_inputs((3, 3), seed=1)

      def tf1_loss(self, outputs, labels):
        examples = tf.cast(tf.shape(outputs)[0], tf.float32)
        return tf.reduce_sum(tf.abs(outputs - labels)) / examples

      def tf2_loss(self, outputs, labels):
        return tf.reduce_mean(tf.abs(outputs - labels))

    found = tf2verify.verify(Case, stages=['loss']).stages[-1].to_text()
    self.assertIn('by the batch size in tf1 and by the number of terms in tf2', _joined(found))

  def test_sum_for_a_batch_size_that_is_written_down(self):
    class Case(losses.Classified):
      def tf1_loss(self, outputs, labels):
        return 4.0 * super().tf1_loss(outputs, labels)

    self.assert_cause(Case, 'nothing (a sum) in tf1 and by the batch size in tf2', '0.25 times')

  def test_sum_of_the_port(self):
    class Case(losses.PerExample):
      def tf1_loss(self, outputs, labels):
        return tf.reduce_mean(super().tf1_loss(outputs, labels))

    self.assert_cause(Case, 'the batch size in tf1 and by nothing (a sum) in tf2', '4 times')

  def test_mean_over_steps(self):
    class Case(losses.Sequences):
      def make_labels(self):
        return {**super().make_labels(), 'weights': np.ones((3, 4), np.float32)}

      def tf1_loss(self, outputs, labels):
        terms = tf.nn.sparse_softmax_cross_entropy_with_logits(labels['words'], outputs)
        return tf.reduce_sum(terms) / 3.0

      def tf2_loss(self, outputs, labels):
        terms = tf.nn.sparse_softmax_cross_entropy_with_logits(labels['words'], outputs)
        return tf.reduce_mean(terms)

    self.assert_cause(Case, 'the number of terms in tf2')

  def test_a_factor_that_is_no_number_of_anything(self):
    class Case(losses.Classified):
      def tf1_loss(self, outputs, labels):
        return 1.7 * super().tf1_loss(outputs, labels)

    self.assert_no_cause(Case)


if __name__ == '__main__':
  absltest.main()
