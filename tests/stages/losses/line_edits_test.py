"""Mistakes of one line in a port that is written in another way than tf1."""

import keras
import numpy as np
import tensorflow as tf
from absl.testing import absltest

from tests.stages.losses.single_edits_test import loss_of
from tf2verify.records.experiment import Outcome
from tf2verify.records.status import Status

v1 = tf.compat.v1


def scores(outputs):
  """Returns scores of pairs of labels, `[batch, 3, 3]`."""
  return outputs[:, :1, None] * tf.constant(np.linspace(-1.0, 1.0, 9).reshape(3, 3), tf.float32)


def forward_of_tf1(outputs):
  """The recursion of a linear chain over three steps, as a scan over transposed scores."""
  steps = tf.stack([scores(outputs), 0.5 * scores(outputs)])

  def step(alpha, score):
    return tf.reduce_logsumexp(alpha[:, :, None] + score, 1)

  alphas = tf.scan(step, steps, tf.zeros_like(scores(outputs)[:, 0]))
  return tf.reduce_mean(tf.reduce_logsumexp(alphas[-1], 1))


def forward_of_port(outputs, axis=1):
  alpha = keras.ops.zeros_like(scores(outputs)[:, 0])
  for scale in (1.0, 0.5):
    alpha = keras.ops.logsumexp(alpha[:, :, None] + scale * scores(outputs), axis=axis)
  return keras.ops.mean(keras.ops.logsumexp(alpha, axis=-1))


_WEIGHTS = [[0.5, 2.0, -1.0, 0.3, 0.7, -0.2]]


def gate_of_tf1(outputs):
  both = tf.concat([0.7 * (outputs - 0.5), tf.square(outputs)], 1)
  weights = tf.constant(_WEIGHTS)
  weights = tf.concat([weights[:, :3], weights[:, 3:6]], 1)
  kept = tf.tanh(tf.reduce_sum(both * weights, 1))
  return tf.reduce_mean(kept * tf.sqrt(1.0 + tf.reduce_sum(both, 1) ** 2))


def gate_of_port(
  outputs, squash=tf.tanh, shift=0.5, turned=False, scale_after=False, first_again=False
):
  weights = tf.constant(_WEIGHTS)
  first = 0.7 * outputs - shift if scale_after else 0.7 * (outputs - shift)
  first = 0.7 * (shift - outputs) if turned else first
  second = outputs**2
  of_second = weights[:, :3] if first_again else weights[:, 3:6]
  kept = squash(
    keras.ops.einsum('bi,xi->b', first, weights[:, :3])
    + keras.ops.einsum('bi,xi->b', second, of_second)
  )
  total = keras.ops.sum(first, -1) + keras.ops.sum(second, -1)
  return keras.ops.einsum('b,b->', kept, tf.sqrt(1.0 + total**2)) / outputs.shape[0]


def mean_of_tf1(outputs):
  weights = tf.sequence_mask([1, 2, 3, 1], 3, tf.float32)
  return tf.reduce_sum(tf.square(outputs) * weights) / (tf.reduce_sum(weights) + 1e-12)


def mean_of_port(outputs, axis=None):
  weights = tf.sequence_mask([1, 2, 3, 1], 3, tf.float32)
  shares = tf.reduce_sum(outputs**2 * weights, axis) / (tf.reduce_sum(weights, axis) + 1e-12)
  return tf.reduce_mean(shares)


def focal_of_tf1(outputs):
  chosen = tf.sigmoid(outputs)
  return tf.reduce_mean(0.25 * tf.square(1.0 - chosen) + 0.75 * chosen * tf.abs(outputs))


def focal_of_port(outputs, one=0.25, other=0.75):
  chosen = keras.ops.sigmoid(outputs)
  both = one * (1.0 - chosen) ** 2 + other * keras.ops.abs(outputs) * chosen
  return keras.ops.mean(both)


class LineEditsTest(absltest.TestCase):
  def test_mean_of_each_sequence_instead_of_all_of_them(self):
    self.assertIs(loss_of(mean_of_tf1, mean_of_port).status, Status.PASSED)
    text, _ = self.only_cause(mean_of_tf1, lambda outputs: mean_of_port(outputs, 1))
    self.assertRegex(text, r'go(es)? over axis 1 in the port, over axes 0, 1 in tf1')

  def test_two_numbers_exchanged(self):
    self.assertIs(loss_of(focal_of_tf1, focal_of_port).status, Status.PASSED)
    text, _ = self.only_cause(focal_of_tf1, lambda outputs: focal_of_port(outputs, 0.75, 0.25))
    self.assertRegex(text, r'has 0\.75 and .* has 0\.25 in the port, 0\.25 and 0\.75 in tf1')

  def test_variance_that_is_made_unbiased(self):
    def of_tf1(outputs):
      mean, variance = tf.nn.moments(outputs, [0])
      normal = (outputs - mean) / (tf.sqrt(variance) + 1e-6)
      return tf.reduce_mean(tf.tanh(normal) * outputs)

    def of_port(outputs):
      variance = tf.math.reduce_variance(outputs, 0) * 4.0 / 3.0
      normal = (outputs - keras.ops.mean(outputs, 0)) * tf.math.rsqrt(variance + 1e-12)
      return keras.ops.mean(outputs * keras.ops.tanh(normal))

    text, _ = self.only_cause(of_tf1, of_port)
    self.assertIn('the port has Mul(y=4) → RealDiv(y=3)', text)

  def test_square_that_is_missing(self):
    text, _ = self.only_cause(
      lambda outputs: tf.reduce_mean(tf.sqrt(1.0 + tf.reduce_sum(outputs**2, 1))),
      lambda outputs: keras.ops.mean(keras.ops.sqrt(keras.ops.sum(outputs, -1) + 1.0)),
    )
    self.assertRegex(text, r'lacks (Square|Pow\(y=2\))')

  def test_square_of_the_mean(self):
    def of_tf1(outputs):
      return v1.losses.mean_squared_error(tf.ones_like(outputs[:, 0]), outputs[:, 0], weights=0.5)

    def of_port(outputs):
      return 0.5 * tf.reduce_mean(outputs[:, 0] - 1.0) ** 2

    text, _ = self.only_cause(of_tf1, of_port)
    self.assertRegex(text, r'computes Pow\(2\) .* after Mean.*, tf1 before Mean')

  def test_number_that_is_subtracted(self):
    """A mask of the diagonal, before a softmax over the pairs of a batch."""

    def of_tf1(outputs):
      short = tf.tanh(outputs)
      count = tf.shape(short)[0]
      pairs = tf.matmul(short, short, transpose_b=True) - 1e9 * tf.eye(count)
      return v1.losses.softmax_cross_entropy(
        tf.one_hot(tf.roll(tf.range(count), 1, 0), count), pairs
      )

    def of_port(outputs, masked=-1e9):
      short = tf.tanh(outputs)
      pairs = keras.ops.einsum('ad,bd->ab', short, short)
      count = tf.shape(short)[0]
      pairs = tf.linalg.set_diag(pairs, tf.fill([count], masked))
      others = tf.roll(tf.range(count), 1, 0)
      return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(others, pairs))

    self.assertIs(loss_of(of_tf1, of_port).status, Status.PASSED)
    text, _ = self.only_cause(of_tf1, lambda outputs: of_port(outputs, 0.0))
    self.assertIn('has 0 in the port, -1e+09 in tf1, which subtracts 1e+09', text)

  def test_temperature_of_one_of_two(self):
    def of_tf1(outputs):
      teacher = tf.stop_gradient(outputs[:, ::-1] + 1.0)
      soft = tf.nn.softmax(teacher / 3.0)
      each = tf.nn.softmax_cross_entropy_with_logits(labels=soft, logits=outputs / 3.0)
      return tf.reduce_mean(each)

    def of_port(outputs, warm=lambda teacher: teacher / 3.0):
      soft = keras.ops.softmax(warm(tf.stop_gradient(outputs[:, ::-1] + 1.0)))
      return -tf.reduce_mean(tf.reduce_sum(soft * tf.nn.log_softmax(outputs / 3.0), -1))

    self.assertIs(loss_of(of_tf1, of_port).status, Status.PASSED)
    text, _ = self.only_cause(of_tf1, lambda outputs: of_port(outputs, lambda teacher: teacher))
    self.assertRegex(text, r'the port lacks RealDiv\((y=)?3\)')

  def test_elements_that_are_left_out_at_the_other_end(self):
    """Windows of one and of two steps, as a convolution with VALID leaves them."""

    def of_tf1(outputs):
      known = tf.sequence_mask([3, 2, 1, 3], 3, tf.float32)
      found = []
      for size in (1, 2):
        lacks = tf.slice(1.0 - known, [0, size], [-1, -1])
        found.append(tf.reduce_max(outputs[:, : 3 - size] - 1e3 * lacks, 1))
      return tf.reduce_mean(tf.nn.relu(tf.stack(found)))

    def of_port(outputs, causal=False):
      known = tf.sequence_mask([3, 2, 1, 3], 3)
      found = []
      for size in (1, 2):
        is_there = known[:, :-size] if causal else known[:, size:]
        kept = tf.where(is_there, tf.nn.relu(outputs[:, : 3 - size]), 0.0)
        found.append(keras.ops.max(kept, axis=1))
      return keras.ops.mean(keras.ops.stack(found))

    self.assertIs(loss_of(of_tf1, of_port).status, Status.PASSED)
    text, _ = self.only_cause(of_tf1, lambda outputs: of_port(outputs, True))
    self.assertIn('and 1 more of the line) leaves elements out at one end in the port', text)

  def test_a_sign_beside_a_weight(self):
    """A value of tf1 mends the loss there, and not its gradient."""

    def of_tf1(outputs):
      fakes, slopes = outputs[:, 0], outputs[:, 1:]
      return 10.0 * tf.reduce_mean(tf.square(slopes - 1.0)) + tf.reduce_mean(-fakes)

    def of_port(outputs, weight=10.0, sign=-1.0):
      fakes, slopes = outputs[:, 0], outputs[:, 1:]
      gap = tf.reduce_mean(fakes) if sign > 0 else -tf.reduce_mean(fakes)
      return gap + weight * tf.reduce_mean(tf.square(slopes - 1.0))

    self.assertIs(loss_of(of_tf1, of_port).status, Status.PASSED)
    stage = loss_of(of_tf1, lambda outputs: of_port(outputs, 1.0, 1.0))
    causes = stage.diagnosis.causes
    self.assertLen(causes, 2, stage.to_text())
    self.assertTrue(all(one.is_proven for one in causes), stage.to_text())
    self.assertRegex(causes[0].text, 'is 1 in the port, 10 in tf1')
    self.assertRegex(causes[1].text, 'the port lacks Neg')

  def test_a_target_that_is_one_step_early(self):
    """Classes of the next step: by one-hot vectors in tf1, by numbers in the port."""
    ids = np.array([[1, 0, 2, 1], [0, 2, 2, 0], [1, 1, 0, 2], [2, 0, 1, 1]], np.int32)

    def of_tf1(outputs):
      target = tf.one_hot(ids, 3)[:, 2:]
      logits = tf.stack([outputs[:, :2], 2.0 * outputs[:, :2], -outputs[:, :2]], -1)
      return tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(target, logits))

    def of_port(outputs, taken):
      logits = tf.stack([outputs[:, :2], 2.0 * outputs[:, :2], -outputs[:, :2]], -1)
      target = tf.constant(ids)[:, taken]
      losses = tf.nn.sparse_softmax_cross_entropy_with_logits(target, logits)
      return tf.reduce_mean(losses)

    self.assertIs(
      loss_of(of_tf1, lambda outputs: of_port(outputs, slice(2, None))).status, Status.PASSED
    )
    text, _ = self.only_cause(of_tf1, lambda outputs: of_port(outputs, slice(1, -1)))
    self.assertRegex(text, r'takes \[:, 1:-1\] in the port; with 2: instead')

  def only_cause(self, one, other):
    verdict = loss_of(one, other)
    self.assertIs(verdict.status, Status.FAILED, verdict.to_text())
    self.assertLen(verdict.diagnosis.causes, 1, verdict.to_text())
    [cause] = verdict.diagnosis.causes
    self.assertIs(cause.experiment.outcome, Outcome.PROVEN, verdict.to_text())
    return cause.text, verdict

  def test_right_ports(self):
    for one, other in ((forward_of_tf1, forward_of_port), (gate_of_tf1, gate_of_port)):
      verdict = loss_of(one, other)
      self.assertIs(verdict.status, Status.PASSED, verdict.to_text())

  def test_another_axis(self):
    text, verdict = self.only_cause(forward_of_tf1, lambda x: forward_of_port(x, axis=2))
    self.assertIn('ReduceLogSumExp/Sum (Sum) is 2 in the port, 1 in tf1', text)
    [source, *_] = verdict.diagnosis.sources
    # The rounds of TF1's loop stand in its graph.
    self.assertIn('/round_', source.tf1_op)
    self.assertEqual(source.tf1_source.function, 'step')
    self.assertIn('axis=axis', source.tf2_source.code)

  def test_further_axes_of_a_sum_whose_mean_then_has_fewer(self):
    def one(outputs):
      return tf.reduce_mean(tf.sqrt(1.0 + tf.reduce_sum(tf.square(scores(outputs)), [1, 2])))

    def other(outputs, axis=(1, 2)):
      squares = keras.ops.einsum('bij,bij->bij', scores(outputs), scores(outputs))
      return keras.ops.mean((1.0 + keras.ops.sum(squares, axis=axis)) ** 0.5)

    self.assertIs(loss_of(one, other).status, Status.PASSED)
    text, verdict = self.only_cause(one, lambda outputs: other(outputs, axis=2))
    self.assertRegex(text, r'go(es)? over axis 2 in the port, over axes 1, 2 in tf1')
    self.assertIn('axes [2] (tf2), [1, 2] (corrected)', verdict.to_text())

  def test_a_stop_that_is_missing(self):
    def one(outputs):
      advantage = tf.stop_gradient(tf.reduce_sum(outputs * tf.constant(_WEIGHTS[0][:3]), 1))
      return tf.reduce_mean(advantage * tf.reduce_sum(tf.square(outputs), 1))

    def other(outputs, stop=tf.stop_gradient):
      advantage = stop(keras.ops.einsum('bi,xi->b', outputs, tf.constant(_WEIGHTS)[:, :3]))
      return keras.ops.einsum('b,bi,bi->', advantage, outputs, outputs) / outputs.shape[0]

    self.assertIs(loss_of(one, other).status, Status.PASSED)
    text, verdict = self.only_cause(one, lambda outputs: other(outputs, lambda value: value))
    self.assertIn('put tf.stop_gradient there', text)
    [source, *_] = verdict.diagnosis.sources
    self.assertIn('advantage = stop(', source.tf2_source.code)

  def test_an_activation_that_is_missing(self):
    text, _ = self.only_cause(gate_of_tf1, lambda x: gate_of_port(x, squash=lambda y: y))
    self.assertIn('the port lacks Tanh', text)

  def test_another_number(self):
    text, _ = self.only_cause(gate_of_tf1, lambda x: gate_of_port(x, shift=0.25))
    self.assertIn('0.25', text)
    self.assertIn('0.5', text)

  def test_an_operation_on_the_other_side_of_its_neighbor(self):
    text, _ = self.only_cause(gate_of_tf1, lambda x: gate_of_port(x, scale_after=True))
    self.assertRegex(text, r'the port computes Mul\(0.7\) .* before .*, tf1 after')

  def test_another_slice(self):
    text, _ = self.only_cause(gate_of_tf1, lambda x: gate_of_port(x, first_again=True))
    self.assertIn('takes [:, :3] in the port; with [:, 3:6]', text)

  def test_operands_in_the_other_order(self):
    text, _ = self.only_cause(gate_of_tf1, lambda x: gate_of_port(x, turned=True))
    self.assertRegex(text, 'order|Neg')


if __name__ == '__main__':
  absltest.main()
