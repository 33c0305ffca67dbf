"""Tests of tf2verify.stages.losses.loss_graphs: which line of a loss a report names."""

import abc
import inspect
from unittest import mock

import tensorflow as tf
from absl.testing import absltest

import tf2verify
from tests.stages import tiny_models
from tf2verify.records.diagnosis import GraphAspect
from tf2verify.sides.tf1.loss_function import Tf1LossFunction
from tf2verify.sides.tf2.loss_function import Tf2LossFunction

v1 = tf.compat.v1


def reference(outputs, labels):
  weighted = tf.square(outputs - labels) * tf.constant([1.0, 2.0, 0.5])
  return tf.reduce_mean(tf.reduce_sum(weighted, 1)) + 0.1 * tf.reduce_mean(tf.nn.softplus(outputs))


class _Case(tiny_models.Affine, abc.ABC):
  def make_labels(self):
    return tf2verify.normal_inputs((4, 3), seed=1)

  def tf1_loss(self, outputs, labels):
    return reference(outputs, labels)


def line_of(function, text):
  """Returns the number of the one line of a function that has a text."""
  lines, first = inspect.getsourcelines(function)
  (found,) = (first + number for number, line in enumerate(lines) if text in line)
  return found


class LineTest(absltest.TestCase):
  def diagnosis_of(self, case):
    verdict = tf2verify.verify(case, stages=['loss']).stages[-1]
    self.assertIs(verdict.status, tf2verify.Status.FAILED, verdict.to_text())
    assert verdict.diagnosis is not None
    return verdict.diagnosis, verdict.to_text()

  def assert_names(self, diagnosis, function, text):
    """Asserts that the first divergence is a line of the port, beside one of the reference."""
    source = diagnosis.sources[0]
    assert source.tf1_source is not None and source.tf2_source is not None
    self.assertEqual(source.tf2_source.line, line_of(function, text))
    self.assertEqual(source.tf1_source.function, 'reference')

  def test_other_weight(self):
    class Case(_Case):
      def tf2_loss(self, outputs, labels):
        weighted = tf.square(outputs - labels) * tf.constant([1.0, 2.0, 0.7])
        softplus = tf.reduce_mean(tf.nn.softplus(outputs))
        return tf.reduce_mean(tf.reduce_sum(weighted, 1)) + 0.1 * softplus

    diagnosis, text = self.diagnosis_of(Case)
    self.assert_names(diagnosis, Case.tf2_loss, '0.7')
    self.assertIn('y [1. , 2. , 0.5] (tf1), [1. , 2. , 0.7] (tf2)', text)
    self.assertEqual(diagnosis.run, "the model's outputs")

  def test_other_reduction(self):
    class Case(_Case):
      def tf2_loss(self, outputs, labels):
        weighted = tf.square(outputs - labels) * tf.constant([1.0, 2.0, 0.5])
        each = tf.reduce_mean(weighted, 1)
        return tf.reduce_mean(each) + 0.1 * tf.reduce_mean(tf.nn.softplus(outputs))

    diagnosis, _ = self.diagnosis_of(Case)
    self.assert_names(diagnosis, Case.tf2_loss, 'each = ')
    self.assertEqual(diagnosis.sources[0].differences[0].aspect, GraphAspect.REPLACED)

  def test_gradient_that_is_stopped(self):
    class Case(_Case):
      def tf2_loss(self, outputs, labels):
        weighted = tf.square(outputs - labels) * tf.constant([1.0, 2.0, 0.5])
        softplus = tf.stop_gradient(tf.reduce_mean(tf.nn.softplus(outputs)))
        scaled = 0.1 * softplus
        return tf.reduce_mean(tf.reduce_sum(weighted, 1)) + scaled

    diagnosis, _ = self.diagnosis_of(Case)
    self.assert_names(diagnosis, Case.tf2_loss, 'scaled = ')
    (cause,) = diagnosis.causes
    self.assertEqual(cause.rule, 'stop_gradient')
    self.assertIsNone(cause.experiment)

  def test_part_of_a_loss(self):
    class Case(_Case):
      def tf1_loss(self, outputs, labels):
        return {'loss': reference(outputs, labels), 'greatest': tf.reduce_max(2.0 * outputs)}

      def tf2_loss(self, outputs, labels):
        greatest = tf.reduce_max(3.0 * outputs)
        return {'loss': reference(outputs, labels), 'greatest': greatest}

    diagnosis, text = self.diagnosis_of(Case)
    line = diagnosis.sources[0].tf2_source
    assert line is not None, text
    self.assertEqual(line.line, line_of(Case.tf2_loss, '3.0'))

  def test_regularization_that_is_added_in_half(self):
    class Case(tiny_models.Regularized):
      def make_labels(self):
        return tf2verify.normal_inputs((4, 3), seed=1)

      def tf1_loss(self, outputs, labels):
        return reference(outputs, labels)

      def tf2_loss(self, outputs, labels):
        return reference(outputs, labels)

      def tf2_total_loss(self, layer, outputs, labels):
        decay = 0.5 * tf.add_n(layer.losses)
        return reference(outputs, labels) + decay

    _, text = self.diagnosis_of(Case)
    self.assertIn(f'loss_lines_test.py:{line_of(Case.tf2_total_loss, "0.5")}', text)

  def test_loss_that_cannot_be_traced(self):
    class Case(_Case):
      def tf2_loss(self, outputs, labels):
        return reference(outputs, labels) + 0.25 * float(tf.reduce_max(outputs).numpy())

    diagnosis, text = self.diagnosis_of(Case)
    self.assertEqual(diagnosis.sources, ())
    self.assertIn('tf2_loss cannot be traced as a graph, so no operation is named', text)

  def test_right_loss_is_not_looked_into(self):
    class Case(_Case):
      def tf2_loss(self, outputs, labels):
        return reference(outputs, labels)

    with (
      mock.patch.object(Tf1LossFunction, 'inspectable') as tf1,
      mock.patch.object(Tf2LossFunction, 'inspectable') as tf2,
    ):
      verdict = tf2verify.verify(Case, stages=['loss']).stages[-1]
    self.assertIs(verdict.status, tf2verify.Status.PASSED)
    tf1.assert_not_called()
    tf2.assert_not_called()

  def test_fault_of_the_search_costs_no_verdict(self):
    class Case(_Case):
      def tf2_loss(self, outputs, labels):
        return 2.0 * reference(outputs, labels)

    with mock.patch.object(Tf1LossFunction, 'inspectable', side_effect=KeyError('planted')):
      diagnosis, _ = self.diagnosis_of(Case)
    self.assertEqual(diagnosis.sources, ())
    self.assertEqual(diagnosis.notes, ("the diagnosis was abandoned: KeyError: 'planted'",))


if __name__ == '__main__':
  absltest.main()
