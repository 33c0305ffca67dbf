import abc

import numpy as np
import tensorflow as tf
from absl.testing import absltest

import tf2verify
from tests.port_bugs import losses
from tests.stages import tiny_models
from tests.stages.first_failure import LadderTestCase
from tests.stages.tiny_models import bias, kernel

v1 = tf.compat.v1
STAGE = 'loss'
Status = tf2verify.Status


class Squared(tiny_models.Affine, abc.ABC):
  """A squared error of unbounded targets."""

  def make_labels(self):
    return tf2verify.normal_inputs((4, 3), seed=1)

  def tf1_loss(self, outputs, labels):
    return v1.losses.mean_squared_error(labels, outputs)

  def tf2_loss(self, outputs, labels):
    return tf.reduce_mean(tf.square(outputs - labels))


class Sequences(tiny_models.OneModel, abc.ABC):
  """Steps of sequences, of which a mask leaves some out."""

  def model(self, inputs, training):
    return tf.tensordot(inputs, v1.get_variable('kernel', [3, 5]), 1)

  def make_inputs(self):
    return tf2verify.normal_inputs((3, 4, 3))

  def make_labels(self):
    mask = np.arange(4) < np.array([[4], [2], [3]])
    return {'words': np.arange(12, dtype=np.int32).reshape(3, 4) % 5, 'mask': mask}

  def terms(self, outputs, labels):
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels['words'], logits=outputs)
    return losses, tf.cast(labels['mask'], tf.float32)

  def tf1_loss(self, outputs, labels):
    losses, mask = self.terms(outputs, labels)
    return v1.div_no_nan(tf.reduce_sum(losses * mask), tf.reduce_sum(mask))

  def tf2_loss(self, outputs, labels):
    return self.tf1_loss(outputs, labels)


class Anchors(tiny_models.OneModel, abc.ABC):
  """A focal loss of two anchors at each step, with three classes each, of which -1 is none."""

  def model(self, inputs, training):
    return tf.tensordot(inputs, v1.get_variable('kernel', [3, 6]), 1)

  def make_inputs(self):
    return tf2verify.normal_inputs((3, 4, 3))

  def make_labels(self):
    return np.arange(24, dtype=np.int32).reshape(3, 4, 2) % 4 - 1

  def loss_with(self, modulator, outputs, labels):
    targets = tf.reshape(tf.one_hot(labels, 3), [-1, 4, 6])
    entropy = tf.nn.sigmoid_cross_entropy_with_logits(labels=targets, logits=outputs)
    return tf.reduce_sum(modulator(outputs, targets) * entropy)

  def tf1_loss(self, outputs, labels):
    return self.loss_with(self.tf1_modulator, outputs, labels)

  def tf2_loss(self, outputs, labels):
    return self.loss_with(self.tf2_modulator, outputs, labels)

  def tf2_modulator(self, logits, labels):
    return tf.exp(-1.5 * (labels * logits + tf.nn.softplus(-logits)))


def verdict_of(case):
  return tf2verify.verify(case, stages=[STAGE]).stages[-1]


class ValueTest(LadderTestCase):
  def test_another_loss_in_the_tails_alone(self):
    class Case(Squared):
      def tf1_loss(self, outputs, labels):
        return v1.losses.huber_loss(labels, outputs, delta=8.0)

      def tf2_loss(self, outputs, labels):
        return 0.5 * tf.reduce_mean(tf.square(outputs - labels))

    self.assert_first_failure(
      Case, STAGE, 'the losses differ only on: ', 'large outputs', 'loss of each example:'
    )

  def test_a_bound_in_eager_mode_alone(self):
    class Case(Squared):
      def tf2_loss(self, outputs, labels):
        bounded = tf.clip_by_value(outputs, -3.0, 3.0) if tf.executing_eagerly() else outputs
        return tf.reduce_mean(tf.square(bounded - labels))

    self.assert_first_failure(
      Case, STAGE, 'in eager mode tf2_loss computes something else than as a graph', 'from_logits'
    )

  def test_term_that_is_a_constant(self):
    class Case(Squared):
      def tf2_loss(self, outputs, labels):
        return super().tf2_loss(outputs, labels) + 0.5

    self.assert_first_failure(Case, STAGE, 'tf2 is tf1 +0.5 on every example')

  def test_batch_size_written_into_the_port(self):
    class Case(Squared):
      def tf2_loss(self, outputs, labels):
        return tf.reduce_sum(tf.square(outputs - labels)) / 12.0

    self.assert_first_failure(
      Case, STAGE, 'the first example alone', 'tf2_loss divides by a batch size of 4'
    )

  def test_batch_size_written_into_the_reference_is_no_fault_of_the_port(self):
    class Case(Squared):
      def tf1_loss(self, outputs, labels):
        return tf.reduce_sum(tf.square(outputs - labels)) / 12.0

    self.assertIn('tf1_loss divides by a batch size of 4', verdict_of(Case).to_text())
    self.assert_passes(Case, STAGE)

  def test_port_that_takes_two_examples_and_not_one(self):
    class Case(Squared):
      def tf2_loss(self, outputs, labels):
        tf.debugging.assert_greater(tf.shape(outputs)[0], 1, 'the steps after the first')
        return super().tf2_loss(outputs, labels)

    text = verdict_of(Case).to_text()
    self.assertIn('tf2_loss raises on the first example alone, tf1_loss does not: not', text)
    self.assert_passes(Case, STAGE)

    class Fixed(Squared):
      def tf2_loss(self, outputs, labels):
        return super().tf2_loss(tf.ensure_shape(outputs, [4, 3]), labels)

    self.assert_first_failure(
      Fixed, STAGE, 'the first example alone', 'raises', 'is written into tf2_loss'
    )

    class Declared(Fixed):
      other_sizes = ()

    self.assertIn('forbids it (other_sizes)', verdict_of(Declared).to_text())
    self.assert_passes(Declared, STAGE)

    class Divided(Case):
      def tf2_loss(self, outputs, labels):
        tf.debugging.assert_greater(tf.shape(outputs)[0], 1, 'the steps after the first')
        return tf.reduce_sum(tf.square(outputs - labels)) / 12.0

    self.assert_first_failure(
      Divided, STAGE, 'the first two examples', 'tf2_loss divides by a batch size of 4'
    )

  def test_label_that_follows_from_another_one_in_all_examples(self):
    class Case(Squared):
      def make_labels(self):
        return {
          'click': np.array([1, 1, 0, 1], np.float32),
          'buy': np.array([1, 0, 0, 1], np.float32),
        }

      def tf1_loss(self, outputs, labels):
        return tf.reduce_mean(tf.square(outputs[:, 0] - labels['click'] * labels['buy']))

      def tf2_loss(self, outputs, labels):
        return tf.reduce_mean(tf.square(outputs[:, 0] - labels['buy']))

    verdict = verdict_of(Case)
    self.assertIn("differ with labels['click'] of other examples", verdict.to_text())

    class Right(Case):
      tf2_loss = Case.tf1_loss

    self.assertNotIn('of other examples', verdict_of(Right).to_text())

  def test_weights_that_are_never_zero(self):
    class Case(Squared):
      def make_labels(self):
        weights = np.array([[0.5], [1.0], [2.0], [1.5]], np.float32)
        return {'target': super().make_labels(), 'w': weights}

      def tf1_loss(self, outputs, labels):
        return v1.losses.mean_squared_error(labels['target'], outputs, labels['w'])

      def tf2_loss(self, outputs, labels):
        return tf.reduce_mean(labels['w'] * tf.square(outputs - labels['target']))

    class Right(Case):
      def tf2_loss(self, outputs, labels):
        errors = labels['w'] * tf.square(outputs - labels['target'])
        return tf.reduce_sum(errors) / (3.0 * tf.math.count_nonzero(labels['w'], dtype='float32'))

    verdict = verdict_of(Case)
    self.assertIs(verdict.status, Status.PASSED)
    self.assertIn("differ with zeros in labels['w']", verdict.to_text())
    self.assertNotIn('zeros in', verdict_of(Right).to_text())
    self.assert_passes(Right, STAGE)

  def test_an_empty_mask(self):
    class Case(Squared):
      def make_labels(self):
        return np.array([[0.5, 0.0, 1.0], [1.0, 0.2, 0.0], [0.1, 2.0, 0.3], [0, 0, 1]], np.float32)

      def errors(self, outputs, labels):
        mask = tf.cast(tf.not_equal(labels, 0.0), tf.float32)
        mask /= tf.reduce_mean(mask)
        return mask * tf.abs(outputs - labels)

      def tf1_loss(self, outputs, labels):
        errors = self.errors(outputs, labels)
        return tf.reduce_mean(tf.where(v1.is_nan(errors), tf.zeros_like(errors), errors))

      def tf2_loss(self, outputs, labels):
        return tf.reduce_mean(self.errors(outputs, labels))

    found = verdict_of(Case)
    self.assertIs(found.status, Status.PASSED, found.to_text())
    (said,) = (one for one in found.blind_spots if 'zeros for all labels' in one)
    self.assertIn('(tf1 0, tf2 nan)', said)
    right = verdict_of(type('Right', (Case,), {'tf2_loss': Case.tf1_loss}))
    self.assertNotIn('zeros for all labels', right.to_text())

  def test_logarithm_of_a_softmax_where_no_label_fits(self):
    class Case(Sequences):
      def make_labels(self):  # of all steps but the last
        return np.array([[1, 2, 4], [3, 0, 1], [4, 2, 2]], np.int32)

      def tf1_loss(self, outputs, labels):
        return tf.reduce_mean(self.entropy(outputs, tf.nn.log_softmax(outputs)))

      def entropy(self, outputs, logarithms):
        return tf.reduce_sum(tf.nn.softmax(outputs) * logarithms, -1)

    class Wrong(Case):
      def tf2_loss(self, outputs, labels):
        return tf.reduce_mean(self.entropy(outputs, tf.math.log(tf.nn.softmax(outputs))))

    self.assert_passes(Case, STAGE)
    self.assert_first_failure(Wrong, STAGE, 'saturated outputs', 'tf.nn.log_softmax')

  def test_logarithm_of_a_softmax_in_the_reference_alone(self):
    class Case(Sequences):
      def make_labels(self):
        return np.array([[1, 2, 4], [3, 0, 1], [4, 2, 2]], np.int32)

      def tf1_loss(self, outputs, labels):
        logarithms = tf.math.log(tf.nn.softmax(outputs))
        return tf.reduce_mean(tf.reduce_sum(tf.nn.softmax(outputs) * logarithms, -1))

      def tf2_loss(self, outputs, labels):
        logarithms = tf.nn.log_softmax(outputs)
        return tf.reduce_mean(tf.reduce_sum(tf.nn.softmax(outputs) * logarithms, -1))

    self.assert_passes(Case, STAGE)
    self.assertIn('tf1_loss is nan, and tf2_loss is ', verdict_of(Case).to_text())

  def test_overflow_of_the_reference_where_no_label_fits(self):
    class Case(Anchors):
      def tf1_modulator(self, logits, labels):
        return tf.exp(1.5 * (-labels * logits - tf.math.log1p(tf.exp(-logits))))

    text = ' '.join(verdict_of(Case).to_text().split())
    self.assert_passes(Case, STAGE)
    self.assertIn('on saturated outputs (±100), tf1_loss is ', text)
    self.assertIn(' with a gradient that is not finite, and tf2_loss is ', text)
    self.assertIn('the reference overflows or underflows there, which the port fixes', text)

  def test_finite_losses_that_differ_where_no_label_fits(self):
    class Case(Anchors):
      def tf1_modulator(self, logits, labels):
        logits = tf.stop_gradient(logits)
        return tf.exp(1.5 * (-labels * logits - tf.math.log1p(tf.exp(-logits))))

      def tf2_modulator(self, logits, labels):
        return super().tf2_modulator(tf.stop_gradient(logits), labels)

    class Same(Case):
      def tf1_modulator(self, logits, labels):
        return self.tf2_modulator(logits, labels)

    self.assert_passes(Case, STAGE)
    self.assertIn('not judged, since no label gives', verdict_of(Case).to_text())
    self.assertNotIn('(±100)', verdict_of(Same).to_text())

  def test_two_functions_for_the_loss_of_sequences(self):
    class Case(losses.Transcribed):
      pass

    self.assert_passes(Case, STAGE)

  def test_empty_mask(self):
    class Case(Sequences):
      def tf2_loss(self, outputs, labels):
        losses, mask = self.terms(outputs, labels)
        return tf.reduce_sum(losses * mask) / tf.reduce_sum(mask)

    self.assert_first_failure(
      Case, STAGE, "labels['mask'] all zero", 'in their non-finite pattern', 'tf1 0, tf2 nan'
    )

  def test_empty_mask_that_the_port_mends(self):
    class Case(Sequences):
      def tf1_loss(self, outputs, labels):
        losses, mask = self.terms(outputs, labels)
        return tf.reduce_sum(losses * mask) / tf.reduce_sum(mask)

      def tf2_loss(self, outputs, labels):
        return super().tf1_loss(outputs, labels)

    verdict = verdict_of(Case)
    self.assertIs(verdict.status, Status.PASSED, verdict.to_text())
    self.assertIn("tf1_loss is NaN and tf2_loss is 0 on labels['mask']", verdict.to_text())

  def test_empty_mask_that_the_port_mends_beside_another_term(self):
    class Case(Sequences):
      def tf1_loss(self, outputs, labels):
        losses, mask = self.terms(outputs, labels)
        return tf.reduce_sum(losses * mask) / tf.reduce_sum(mask) + tf.reduce_mean(outputs**2)

      def tf2_loss(self, outputs, labels):
        return super().tf1_loss(outputs, labels) + tf.reduce_mean(outputs**2)

    verdict = verdict_of(Case)
    self.assertIs(verdict.status, Status.PASSED, verdict.to_text())
    self.assertIn('tf1_loss is NaN and tf2_loss is ', verdict.to_text())

  def test_empty_mask_that_a_metric_of_the_port_mends(self):
    class Case(Sequences):
      def tf1_metrics(self, outputs, labels):
        losses, mask = self.terms(outputs, labels)
        return {'mean': tf.reduce_sum(losses * mask) / tf.reduce_sum(mask)}

      def tf2_metrics(self, outputs, labels):
        losses, mask = self.terms(outputs, labels)
        return {'mean': tf.math.divide_no_nan(tf.reduce_sum(losses * mask), tf.reduce_sum(mask))}

    verdict = verdict_of(Case)
    self.assertIs(verdict.status, Status.PASSED, verdict.to_text())
    self.assertIn('metric mean of tf1 is NaN and that of the port is 0', verdict.to_text())

  def test_labels_that_are_all_ignored(self):
    class Case(Sequences):
      def make_labels(self):
        return np.array([[1, 2, 255, 255], [3, 0, 255, 1], [4, 255, 255, 255]], np.int32)

      def terms(self, outputs, labels):
        valid = labels < 5
        words = tf.where(valid, labels, tf.zeros_like(labels))
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=words, logits=outputs)
        return losses, tf.cast(valid, tf.float32)

    class Wrong(Case):
      def tf2_loss(self, outputs, labels):
        losses, mask = self.terms(outputs, labels)
        return tf.reduce_sum(losses * mask) / tf.reduce_sum(mask)

    self.assert_passes(Case, STAGE)
    self.assert_first_failure(Wrong, STAGE, 'labels all 255', 'it divides 0 by 0')

  def test_mask_of_booleans_is_seen_by_its_name(self):
    class Case(Sequences):
      def tf2_loss(self, outputs, labels):
        return tf.reduce_mean(self.terms(outputs, labels)[0])

    text = self.assert_first_failure(Case, STAGE, "labels['mask'] zero for the first example")
    self.assertNotIn('fractional', text)

  def test_loss_of_some_of_the_examples(self):
    class Case(losses.PerExample):
      def tf2_loss(self, outputs, labels):
        return tf.nn.sparse_softmax_cross_entropy_with_logits(labels['classes'], outputs)[:3]

    self.assert_first_failure(Case, STAGE, 'loss value', 'shape differs', 'tf1: (4,)')

  def test_a_term_that_is_the_same_on_every_example_is_no_constant_if_gradients_differ(self):
    class Case(Squared):
      def advantage(self, labels):
        return (labels - tf.reduce_mean(labels)) / tf.math.reduce_std(labels)

      def tf1_loss(self, outputs, labels):
        return tf.reduce_mean(tf.square(outputs)) + self.term(outputs, self.advantage(labels))

      def tf2_loss(self, outputs, labels):
        size = float(labels.shape[0] * labels.shape[1])
        scaled = self.advantage(labels) * tf.sqrt(size / (size + 1.0))
        return tf.reduce_mean(tf.square(outputs)) + self.term(outputs, scaled)

      def term(self, outputs, advantage):
        return tf.reduce_mean(tf.maximum(advantage, 0.0) * (1.0 + 1e-3 * tf.tanh(outputs)))

    found = verdict_of(Case)
    self.assertIs(found.status, Status.FAILED)
    self.assertNotIn('one side adds a constant', found.to_text())

  def test_own_example(self):
    class Case(Squared):
      def tf2_loss(self, outputs, labels):
        difference = outputs - labels
        return tf.reduce_mean(tf.where(outputs == 7.0, 0.0, tf.square(difference)))

      def loss_examples(self):
        yield 'a seven', np.full((4, 3), 7.0, np.float32), self.make_labels()

    self.assert_first_failure(Case, STAGE, 'loss value [a seven]')

  def test_example_on_which_tf1_alone_raises(self):
    class Case(Squared):
      def tf1_loss(self, outputs, labels):
        with tf.control_dependencies([v1.assert_less(tf.abs(outputs), 20.0)]):
          return super().tf1_loss(outputs, labels)

    self.assertIn('left out, since tf1_loss raises on it: large', verdict_of(Case).to_text())
    self.assert_passes(Case, STAGE)

    class Declared(Case):
      def loss_examples(self):
        yield 'far out', np.full((4, 3), 21.0, np.float32), self.make_labels()

    self.assert_first_failure(Declared, STAGE, 'presence differs', 'far out', 'tf2: gives a loss')

  def test_example_on_which_the_port_alone_raises(self):
    class Case(losses.Weighted):
      def tf2_loss(self, outputs, labels):
        with tf.control_dependencies([tf.debugging.assert_positive(labels['weights'])]):
          return super().tf2_loss(outputs, labels)

    self.assert_first_failure(
      Case, STAGE, 'presence differs', 'tf1: gives a loss', 'tf2: raises InvalidArgumentError'
    )


class GradientTest(LadderTestCase):
  def test_stopped_on_one_side(self):
    class Case(tiny_models.Affine):
      def tf1_loss(self, outputs, labels):
        return tf.reduce_sum(outputs * tf.stop_gradient(outputs))

      def tf2_loss(self, outputs, labels):
        return tf.reduce_sum(outputs * outputs)

    text = self.assert_first_failure(
      Case, STAGE, 'loss gradient outputs', 'max relative difference 1'
    )
    self.assertNotIn('loss value', text)

  def test_of_an_output_that_one_side_does_not_reach(self):
    class Case(tiny_models.OneModel):
      def model(self, inputs, training):
        return {'logits': inputs @ kernel(), 'target': inputs + bias()}

      def tf1_loss(self, outputs, labels):
        return tf.reduce_sum(tf.square(outputs['logits'] - tf.stop_gradient(outputs['target'])))

      def tf2_loss(self, outputs, labels):
        return tf.reduce_sum(tf.square(outputs['logits'] - outputs['target']))

    self.assert_first_failure(
      Case, STAGE, "loss gradient outputs['target']", 'presence differs', 'tf1: missing'
    )

  def test_small_one_is_compared_by_its_own_size(self):
    class Case(tiny_models.Affine):
      def tf1_loss(self, outputs, labels):
        return 1e-3 * tf.reduce_mean(tf.stop_gradient(outputs) * outputs)

      def tf2_loss(self, outputs, labels):
        almost = 0.99 * tf.stop_gradient(outputs) + 0.01 * outputs
        return 1e-3 * tf.reduce_mean(almost * outputs)

    text = self.assert_first_failure(Case, STAGE, "loss gradient outputs [the model's outputs]")
    self.assertNotIn('loss value', text)


class EagerAndTracedTest(LadderTestCase):
  def test_loss_that_is_another_in_a_function(self):
    class Case(Squared):
      def tf2_loss(self, outputs, labels):
        factor = 1.0 if tf.executing_eagerly() else 2.0
        return factor * super().tf2_loss(outputs, labels)

    self.assert_first_failure(Case, STAGE, 'tf.function]')
    runs = {difference.run for difference in verdict_of(Case).differences}
    self.assertIn("the model's outputs, tf.function", runs)
    self.assertNotIn("the model's outputs", runs)

  def test_python_condition_on_a_tensor(self):
    class Case(Squared):
      def tf2_loss(self, outputs, labels):
        loss = super().tf2_loss(outputs, labels)
        if loss > 100.0:
          loss = loss * 1.0
        return loss

    self.assertEqual(self.assert_passes(Case, STAGE).stages[-1].compared.blind_spots, 0)

  def test_loss_that_cannot_be_traced_is_a_blind_spot(self):
    class Case(Squared):
      def tf2_loss(self, outputs, labels):
        outputs.numpy()
        return super().tf2_loss(outputs, labels)

    found = self.assert_passes(Case, STAGE).stages[-1]
    self.assertEqual(found.compared.blind_spots, 1)
    self.assertIn('not as a tf.function', found.to_text())


class WithinTheModelTest(LadderTestCase):
  def test_reference_without_its_regularization(self):
    class Case(losses.Decayed):
      def tf1_total_loss(self, outputs, labels):
        return self.tf1_loss(outputs, labels)

    self.assert_first_failure(Case, STAGE, 'tf2 adds them to what it minimizes, tf1 does not')

  def test_loss_that_is_twice_in_the_collection(self):
    class Case(losses.Decayed):
      def tf1_loss(self, outputs, labels):
        return v1.losses.mean_squared_error(labels, outputs)

      def tf1_total_loss(self, outputs, labels):
        self.tf1_loss(outputs, labels)
        return v1.losses.get_total_loss()

    self.assert_first_failure(
      Case,
      STAGE,
      'once more than that of tf2',
      'call only tf.compat.v1.losses.get_total_loss()',
    )

  def test_regularization_in_the_loss_of_tf1(self):
    class Case(losses.Decayed):
      def tf1_loss(self, outputs, labels):
        v1.losses.mean_squared_error(labels, outputs)
        return v1.losses.get_total_loss()

    text = self.assert_passes(Case, STAGE).stages[-1].to_text()
    self.assertIn('the loss of tf1 includes its regularization already', text)

  def test_loss_of_the_graph_of_the_model(self):
    class Case(tiny_models.Affine):
      def model(self, inputs, training):
        return tf.identity(super().model(inputs, training), 'logits')

      def tf1_loss(self, outputs, labels):
        logits = v1.get_default_graph().get_tensor_by_name('logits:0')
        return tf.reduce_sum(tf.square(logits))

      def tf2_loss(self, outputs, labels):
        return tf.reduce_sum(tf.square(outputs))

    found = self.assert_passes(Case, STAGE).stages[-1]
    self.assertEqual((found.compared.tensors, found.compared.blind_spots), (2, 1))
    self.assertIn('tf1_loss cannot be run without the model', found.to_text())

  def test_outputs_that_differ_in_training_are_not_blamed_on_the_loss(self):
    class Case(tiny_models.Dropped):
      def port(self, inputs, training):
        return super().model(inputs, False)

      def tf1_loss(self, outputs, labels):
        return tf.reduce_mean(tf.square(outputs))

      def tf2_loss(self, outputs, labels):
        return tf.reduce_mean(tf.square(outputs))

    found = verdict_of(Case)
    self.assertIs(found.status, Status.PASSED, found.to_text())
    self.assertIn('outputs of the models differ in this run, if only by rounding', found.to_text())


class OutputsThatFollowFromAnotherTest(LadderTestCase):
  def test_softmax_in_place_of_the_logits(self):
    class Case(losses.Classified):
      def model(self, inputs, training):
        logits = inputs @ kernel() + bias()
        return {'logits': logits, 'probabilities': tf.nn.softmax(logits)}

      def tf1_loss(self, outputs, labels):
        return super().tf1_loss(outputs['logits'], labels)

      def tf2_loss(self, outputs, labels):
        loss = tf.keras.losses.CategoricalCrossentropy()
        return loss(self.one_hot(labels), outputs['probabilities'])

    self.assert_first_failure(
      Case, STAGE, "loss gradient outputs['logits'] [saturated, wrong]", 'saturates at 16.118'
    )

  def test_outputs_without_relation(self):
    class Case(tiny_models.OneModel):
      def model(self, inputs, training):
        net = inputs @ kernel() + bias()
        return {'net': net, 'cubed': net**3}

      def tf1_loss(self, outputs, labels):
        return tf.reduce_sum(outputs['net'] ** 3)

      def tf2_loss(self, outputs, labels):
        return tf.reduce_sum(outputs['cubed'])

    found = self.assert_passes(Case, STAGE).stages[-1]
    self.assertIn(
      "read different outputs (tf1: outputs['net']; tf2: outputs['cubed'])", found.to_text()
    )
    self.assertEqual(found.compared.blind_spots, 1)


class MemoryTest(LadderTestCase):
  def test_tensors_of_the_size_of_the_outputs(self):
    class Case(losses.PerExample):
      def tf1_loss(self, outputs, labels):
        return tf.reduce_sum(super().tf1_loss(outputs, labels))

      def tf2_loss(self, outputs, labels):
        rows = tf.exp(outputs) / tf.reduce_sum(tf.exp(outputs), 1, keepdims=True)
        return -tf.reduce_sum(tf.one_hot(labels['classes'], 3) * tf.math.log(rows))

      def make_inputs(self):
        return 0.1 * super().make_inputs()

    text = verdict_of(Case).to_text()
    self.assertRegex(text, r'tf1 +2 +96')
    self.assertRegex(text, r'the loss of tf2 computes \d\d tensors of the size of outputs, that of')

  def test_no_note_for_the_same_loss(self):
    text = verdict_of(losses.PerExample).to_text()
    self.assertIn('tensors of the size of outputs (4, 3) in the loss and its gradient', text)
    self.assertNotIn('the loss of tf2 computes', text)


class MetricTest(LadderTestCase):
  def test_missing_on_one_side(self):
    class Case(losses.Measured):
      def tf2_metrics(self, outputs, labels):
        return {'area': super().tf2_metrics(outputs, labels)['auc']}

    self.assert_first_failure(Case, STAGE, 'metric area', 'tf1: missing', 'metric auc')

  def test_of_outputs_that_follow_from_each_other(self):
    class Case(losses.Classified):
      def model(self, inputs, training):
        logits = inputs @ kernel() + bias()
        return {'logits': logits, 'rows': tf.nn.softmax(logits), 'class': tf.argmax(logits, 1)}

      def tf1_loss(self, outputs, labels):
        return super().tf1_loss(outputs['logits'], labels)

      def tf2_loss(self, outputs, labels):
        return super().tf2_loss(outputs['logits'], labels)

      def tf1_metrics(self, outputs, labels):
        return {'accuracy': v1.metrics.accuracy(labels['classes'], outputs['class'])}

      def tf2_metrics(self, outputs, labels):
        metric = tf.keras.metrics.SparseCategoricalAccuracy()
        metric.update_state(labels['classes'], outputs['rows'])
        return {'accuracy': metric}

    self.assert_passes(Case, STAGE)

  def test_another_threshold(self):
    class Case(losses.Measured):
      def tf1_metrics(self, outputs, labels):
        return {'accuracy': v1.metrics.accuracy(labels > 0.5, outputs > 0.3)}

      def tf2_metrics(self, outputs, labels):
        metric = tf.keras.metrics.BinaryAccuracy()
        metric.update_state(labels, outputs)
        return {'accuracy': metric}

    self.assert_first_failure(Case, STAGE, 'metric accuracy')


class ApplicabilityTest(LadderTestCase):
  def test_no_loss(self):
    class Case(tiny_models.Affine):
      pass

    found = verdict_of(Case)
    self.assertIs(found.status, Status.NOT_APPLICABLE)
    self.assertIn('tf1_loss and tf2_loss', found.reason)

  def assert_error(self, case, *words):
    found = verdict_of(case)
    self.assertIs(found.status, Status.ERROR, found.to_text())
    for word in words:
      self.assertIn(word, ' '.join(found.to_text().split()))

  def test_one_of_two(self):
    class Case(tiny_models.Affine):
      def tf1_loss(self, outputs, labels):
        return tf.reduce_sum(outputs)

    self.assert_error(Case, 'declares tf1_loss, but not tf2_loss')

  def test_return_values(self):
    for value, words in (
      (None, ('returned None', 'missing `return`')),
      (0.5, ('returned a float',)),
      ([tf.constant(1.0)], ('tf1_loss returned', 'tf2_loss', 'parts of a loss')),
      (tf.constant(1), ('int32',)),
    ):
      for hook in ('tf1_loss', 'tf2_loss'):
        with self.subTest(f'{hook} {value}'):
          wrong = {hook: lambda self, outputs, labels, value=value: _built_again(value)}
          self.assert_error(type('Case', (Squared,), wrong), hook, *words)

  def test_labels_of_another_batch_size(self):
    class Case(losses.PerExample):
      def make_labels(self):
        return {'classes': np.array([0, 1, 2], np.int32)}

    self.assert_error(Case, 'leading size 3', 'make_inputs of 4', 'a different batch size')

  def test_labels_that_are_none(self):
    class Case(losses.PerExample):
      def make_labels(self):
        return None

    self.assert_error(Case, 'make_labels returned None', 'missing `return`')

  def test_no_labels(self):
    class Case(tiny_models.Affine):
      def tf1_loss(self, outputs, labels):
        return tf.reduce_mean(outputs - labels)

      def tf2_loss(self, outputs, labels):
        return tf.reduce_mean(outputs - labels)

    self.assert_error(Case, 'declares no make_labels')

  def test_a_loss_for_each_example(self):
    def of_examples(self, outputs, labels):
      return tf.reduce_mean(tf.square(outputs - labels), 1)

    for hook, sides in (('tf1_loss', 'a sum'), ('tf2_loss', 'in tf2')):
      with self.subTest(hook):
        case = type('Case', (Squared,), {hook: of_examples})
        self.assert_first_failure(
          case, STAGE, sides, f'{hook} returns a value for each example, shape (4,)', 'reduce_mean'
        )

  def test_own_example_of_another_structure(self):
    class Case(Squared):
      def loss_examples(self):
        return [('two', {'logits': np.zeros((4, 3), np.float32)}, self.make_labels())]

    self.assert_error(Case, "a different structure in 'two'", "outputs['logits']")

  def test_own_example_of_two_parts(self):
    class Case(Squared):
      def loss_examples(self):
        return [(np.zeros((4, 3), np.float32), self.make_labels())]

    self.assert_error(Case, 'each item is (name, outputs, labels)')

  def test_metrics_that_are_no_dictionary(self):
    class Case(losses.Measured):
      def tf1_metrics(self, outputs, labels):
        return v1.metrics.mean(outputs)

    self.assert_error(Case, 'tf1_metrics returned', 'a dictionary from name to metric')


def _built_again(value):
  """Returns a constant in the graph that is being built."""
  if isinstance(value, tf.Tensor):
    return tf.constant(value.numpy())
  return [tf.constant(1.0)] if isinstance(value, list) else value


if __name__ == '__main__':
  absltest.main()
