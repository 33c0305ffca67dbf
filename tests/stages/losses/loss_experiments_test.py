"""Tests of tf2verify.stages.losses.edited_losses: mistakes in losses that are tried out."""

import abc
import unittest.mock

import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

import tf2verify
from tests.global_probes import process_state
from tests.stages import tiny_models
from tf2verify.records.diagnosis import Cause
from tf2verify.records.experiment import Edit, Outcome
from tf2verify.stages.losses import edited_losses, separate_losses

v1 = tf.compat.v1


def focal(
  outputs,
  labels,
  gamma=2.0,
  smoothing=0.1,
  weights=(1.0, 2.0, 0.5),
  entropy=0.01,
  penalty=tf.square,
  reduce=tf.reduce_mean,
):
  """A focal loss of smoothed labels, with weights of classes, entropy and a penalty."""
  probabilities = tf.nn.softmax(outputs)
  target = tf.one_hot(labels, 3)
  if smoothing:
    target = target * (1 - smoothing) + smoothing / 3
  logs = tf.nn.log_softmax(outputs)
  each = -0.25 * target * (1 - probabilities) ** gamma * logs
  total = reduce(tf.reduce_sum(each * tf.constant(weights), 1))
  uncertain = -tf.reduce_sum(probabilities * logs, 1)
  return total - entropy * tf.reduce_mean(uncertain) + 0.003 * tf.reduce_sum(penalty(outputs))


class _Focal(tiny_models.Affine, abc.ABC):
  mistakes: dict = {}

  def make_labels(self):
    return np.array([0, 2, 1, 1], np.int32)

  def tf1_loss(self, outputs, labels):
    return focal(outputs, labels)

  def tf2_loss(self, outputs, labels):
    return focal(outputs, labels, **self.mistakes)


def loss_of(case):
  return tf2verify.verify(case, stages=['loss']).stages[-1]


def case_with(**mistakes):
  return type('Case', (_Focal,), {'mistakes': mistakes})


class FocalTest(parameterized.TestCase):
  @parameterized.parameters(
    ({'gamma': 1.5}, Edit.SETTING, 'is 1.5 in the port, 2 in tf1'),
    ({'smoothing': 0.2}, Edit.SETTING, 'is 0.8 in the port, 0.9 in tf1'),
    ({'smoothing': 0}, Edit.OPERATIONS, 'the port lacks AddV2(y=0.03333334)'),
    ({'weights': (1.0, 2.0, 0.7)}, Edit.SETTING, '[1. , 2. , 0.7] in the port'),
    ({'entropy': -0.01}, Edit.SETTING, 'is -0.01 in the port, 0.01 in tf1'),
    ({'penalty': tf.abs}, Edit.OPERATIONS, 'the port computes Abs, tf1 computes Square'),
    ({'reduce': tf.reduce_sum}, Edit.OPERATIONS, 'the port computes Sum'),
  )
  def test_mistake_is_proven(self, mistakes, edit, words):
    before = process_state()
    verdict = loss_of(case_with(**mistakes))
    self.assertEqual(process_state(), before)
    self.assertIs(verdict.status, tf2verify.Status.FAILED)
    [cause] = verdict.diagnosis.causes
    self.assertEqual((cause.experiment.edit, cause.experiment.outcome), (edit, Outcome.PROVEN))
    self.assertIn(words, cause.text, verdict.to_text())
    self.assertLess(cause.experiment.apart, 1e-6)
    self.assertNotIn('where tf1 computes Mul', cause.text)

  def test_five_mistakes_in_order(self):
    verdict = loss_of(
      case_with(
        gamma=1.5, smoothing=0, weights=(1.0, 2.0, 0.7), penalty=tf.abs, reduce=tf.reduce_sum
      )
    )
    experiments = [cause.experiment for cause in verdict.diagnosis.causes]
    self.assertEqual([one.number for one in experiments], [1, 2, 3, 4, 5], verdict.to_text())
    self.assertEqual({one.outcome for one in experiments}, {Outcome.PROVEN})
    words = ('lacks AddV2', '1.5', '0.7', 'computes Sum', 'computes Abs')
    for word, one in zip(words, experiments, strict=True):
      self.assertIn(word, one.text)

  def test_right_port_passes(self):
    verdict = loss_of(case_with())
    self.assertIs(verdict.status, tf2verify.Status.PASSED, verdict.to_text())


class SummedTooMuchTest(absltest.TestCase):
  def test_mean_of_one_number_is_a_mean_of_all_once_that_is_corrected(self):
    """A trace of the mean has the axes of a scalar: none."""

    def dice(outputs, labels, axes):
      found = tf.nn.softmax(outputs)
      wanted = tf.one_hot(labels, 3)
      overlap = tf.reduce_sum(found * wanted, axes)
      return 1.0 - tf.reduce_mean(2.0 * overlap / (1.0 + tf.reduce_sum(found + wanted, axes)))

    class Case(_Focal):
      def tf1_loss(self, outputs, labels):
        return dice(outputs, labels, [1])

      def tf2_loss(self, outputs, labels):
        return dice(outputs, labels, None)

    verdict = loss_of(Case)
    [cause] = verdict.diagnosis.causes
    self.assertIs(cause.experiment.outcome, Outcome.PROVEN, verdict.to_text())
    self.assertIn('reduction_indices of Sum', cause.text)
    self.assertNotIn('batch size', verdict.to_text())


class HonestyTest(absltest.TestCase):
  def test_edit_that_mends_nothing_is_no_cause(self):
    """The comparison is the stage's: with one that always finds something, nothing is proven."""

    def judged(self, repairs):
      left, shares = known(self, repairs)
      return left | {('loss', 'value', "the model's outputs")}, shares

    known = edited_losses.EditedLosses.judged
    with unittest.mock.patch.object(edited_losses.EditedLosses, 'judged', judged):
      verdict = loss_of(case_with(gamma=1.5))
    self.assertNotIn('proven', verdict.to_text())

  def test_port_that_computes_otherwise_as_a_graph(self):
    class Case(_Focal):
      def tf2_loss(self, outputs, labels):
        return focal(outputs, labels, 1.5 if tf.executing_eagerly() else 1.7)

    verdict = loss_of(Case)
    self.assertNotIn('proven', verdict.to_text())
    self.assertIn('as a graph, tf2_loss yields something else', verdict.to_text())

  def test_what_is_right_on_the_model_alone_is_not_proven(self):
    """A mean is a sum by the number of examples, of this batch."""

    class Case(_Focal):
      def tf1_loss(self, outputs, labels):
        return tf.reduce_mean(tf.square(outputs))

      def tf2_loss(self, outputs, labels):
        return tf.reduce_sum(tf.square(outputs)) / 13.0

    verdict = loss_of(Case)
    for cause in verdict.diagnosis.causes:
      said = cause.experiment is not None and cause.experiment.outcome is Outcome.PROVEN
      self.assertFalse(said and cause.experiment.edit is Edit.SETTING, verdict.to_text())

  def test_metric_that_differs_is_left_over(self):
    class Case(_Focal):
      mistakes = {'gamma': 1.5}

      def tf1_metrics(self, outputs, labels):
        return {'greatest': tf.reduce_max(outputs)}

      def tf2_metrics(self, outputs, labels):
        return {'greatest': tf.reduce_max(outputs) + 1.0}

    verdict = loss_of(Case)
    self.assertNotIn('(proven', verdict.to_text())
    self.assertIn('5 tensors still differ', verdict.to_text())

  def test_rule_that_is_wrong_goes(self):
    wrong = (Cause('the planets stand badly', '', 'wrong'),)

    def causes(self, results):
      del self, results
      return wrong

    with unittest.mock.patch.object(separate_losses.SeparateLosses, '_causes_of', causes):
      verdict = loss_of(case_with(entropy=0.02))
    self.assertNotIn('planets', verdict.to_text())


class _DoubleQ(tiny_models.OneModel, abc.ABC):
  """The action is chosen by one network and its value read from the other one."""

  exchanged = False

  def model(self, inputs, training):
    kernels = [v1.get_variable(name, [3, 3]) for name in ('online', 'target')]
    return {name: inputs @ kernel for name, kernel in zip('ab', kernels, strict=True)}

  def make_labels(self):
    return np.array([0.5, -1.0, 0.25, 2.0], np.float32)

  def tf1_loss(self, outputs, labels):
    best = tf.one_hot(tf.argmax(outputs['a'], 1), 3)
    value = tf.reduce_sum(best * tf.stop_gradient(outputs['b']), 1)
    return tf.reduce_mean(tf.square(labels + 0.9 * value))

  def tf2_loss(self, outputs, labels):
    chosen, read = ('b', 'a') if self.exchanged else ('a', 'b')
    best = tf.argmax(outputs[chosen], -1)
    value = tf.gather(tf.stop_gradient(outputs[read]), best[:, None], axis=1, batch_dims=1)[:, 0]
    return tf.reduce_mean(tf.square(labels + 0.9 * value))


class _Recognized(tiny_models.Affine, abc.ABC):
  """Two sequences of two frames, the labels of one of them from the second class on."""

  frames_of = staticmethod(lambda frames: frames)

  def make_labels(self):
    return {'symbols': np.array([[0, 1], [1, 0]], np.int32), 'frames': np.array([2, 1], np.int32)}

  def tf1_loss(self, outputs, labels):
    symbols = labels['symbols'][:, :1]
    sparse = tf.SparseTensor(
      tf.where(tf.ones_like(symbols, tf.bool)), tf.reshape(symbols, [-1]), [2, 1]
    )
    logits = tf.reshape(outputs, [2, 2, 3])
    return tf.reduce_mean(v1.nn.ctc_loss(sparse, logits, labels['frames']))

  def tf2_loss(self, outputs, labels):
    frames = labels['frames']
    each = tf.nn.ctc_loss(
      labels=tf.RaggedTensor.from_tensor(labels['symbols'], lengths=[1, 1]).to_sparse(),
      logits=tf.reshape(outputs, [2, 2, 3]),
      label_length=None,
      logit_length=self.frames_of(frames),
      blank_index=2,
    )
    return tf.reduce_mean(each)


class SingleInputTest(parameterized.TestCase):
  @parameterized.parameters(
    (lambda frames: tf.maximum(frames, 2), 'the port has Maximum(y=2), which tf1 does not have'),
    (lambda frames: tf.fill([2], 2), "the port never reads the input labels['frames']"),
  )
  def test_one_of_several_that_are_made_otherwise(self, frames_of, words):
    stage = loss_of(type('Whole', (_Recognized,), {'frames_of': staticmethod(frames_of)}))
    self.assertIs(stage.status, tf2verify.Status.FAILED)
    proven = [
      cause.text
      for cause in stage.diagnosis.causes
      if cause.experiment and cause.experiment.outcome is Outcome.PROVEN
    ]
    self.assertLen(proven, 1, stage.to_text())
    self.assertIn(words, proven[0])

  def test_right_port(self):
    self.assertIs(loss_of(_Recognized).status, tf2verify.Status.PASSED)


class _Returns(tiny_models.Affine, abc.ABC):
  """Discounted returns in a loop of Python, whose factors either side orders differently."""

  gamma = 0.99
  reads_dones = True

  def make_labels(self):
    random = np.random.default_rng(3)
    rewards = random.normal(size=(3, 4)).astype(np.float32) * 2
    return {'rewards': rewards, 'dones': (random.random((3, 4)) > 0.5).astype(np.float32)}

  def clipped(self, rewards):
    return tf.clip_by_value(rewards, -1.0, 1.0)

  def tf1_loss(self, outputs, labels):
    value, found = tf.stop_gradient(outputs[:, 0]), []
    rewards = tf.unstack(tf.clip_by_value(labels['rewards'], -1.0, 1.0))
    for reward, done in reversed(list(zip(rewards, tf.unstack(labels['dones']), strict=True))):
      value = reward + 0.99 * value * (1.0 - done)
      found.append(value)
    return tf.reduce_mean(tf.square(tf.stack(found) - outputs[:, 1]))

  def tf2_loss(self, outputs, labels):
    value, found = tf.stop_gradient(outputs[:, 0]), []
    rewards, dones = self.clipped(labels['rewards']), labels['dones']
    for t in reversed(range(3)):
      left = (1.0 - dones[t]) * value if self.reads_dones else value
      value = rewards[t] + self.gamma * left
      found.append(value)
    return tf.reduce_mean(tf.square(tf.stack(found) - outputs[:, 1]))


class LoopOfPythonTest(parameterized.TestCase):
  """One line makes an operation each time that the loop runs it."""

  @parameterized.named_parameters(
    ('number', {'gamma': 0.9}, '0.9 in the port, 0.99 in tf1'),
    ('input that is not read', {'reads_dones': False}, "never reads the input labels['dones']"),
    ('operation', {'clipped': lambda self, rewards: tf.sign(rewards)}, 'the port computes Sign'),
  )
  def test_mistake_is_one_cause(self, mistake, words):
    stage = loss_of(type('Wrong', (_Returns,), mistake))
    (cause,) = stage.diagnosis.causes
    self.assertIs(cause.experiment.outcome, Outcome.PROVEN, stage.to_text())
    self.assertIn(words, cause.text)

  def test_right_port(self):
    self.assertIs(loss_of(_Returns).status, tf2verify.Status.PASSED)


class _Entropy(tiny_models.Affine, abc.ABC):
  """A log-likelihood with the other sign than in TF1, and probabilities beside it."""

  twice = False

  def make_labels(self):
    return np.array([0, 2, 1, 1], np.int32)

  def tf1_loss(self, outputs, labels):
    each = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=outputs)
    weights = tf.constant([1.0, 2.0, 0.5, 1.0])
    return tf.reduce_mean(each * weights) + 0.1 * tf.reduce_sum(tf.nn.softmax(outputs) ** 2)

  def tf2_loss(self, outputs, labels):
    probabilities = tf.nn.softmax(outputs)
    logs = tf.nn.log_softmax(probabilities if self.twice else outputs)
    each = tf.gather(logs, labels, axis=1, batch_dims=1)
    weights = tf.constant([1.0, 2.0, 0.5, 1.0])
    return 0.1 * tf.reduce_sum(probabilities**2) - tf.reduce_mean(each * weights)


class OtherTensorTest(absltest.TestCase):
  def test_probabilities_that_are_taken_for_logits(self):
    stage = loss_of(type('Twice', (_Entropy,), {'twice': True}))
    (cause,) = stage.diagnosis.causes
    self.assertIs(cause.experiment.outcome, Outcome.PROVEN, stage.to_text())
    self.assertIn('LogSoftmax (LogSoftmax) reads Softmax as logits in the port', cause.text)

  def test_right_port(self):
    self.assertIs(loss_of(_Entropy).status, tf2verify.Status.PASSED)


class ExchangedInputsTest(absltest.TestCase):
  def test_each_is_read_where_tf1_reads_the_other_one(self):
    stage = loss_of(type('Exchanged', (_DoubleQ,), {'exchanged': True}))
    (cause,) = stage.diagnosis.causes
    self.assertIs(cause.experiment.outcome, Outcome.PROVEN, stage.to_text())
    self.assertIn("reads the input outputs['b']", cause.text)
    self.assertIn("the input outputs['a'] in tf1", cause.text)
    self.assertIn("reads the input outputs['a']", cause.text)

  def test_right_port(self):
    self.assertIs(loss_of(_DoubleQ).status, tf2verify.Status.PASSED)


if __name__ == '__main__':
  absltest.main()
