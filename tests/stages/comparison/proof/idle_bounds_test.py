"""Bounds that one side alone has, and that nothing reaches, where not all is proven."""

import abc
import dataclasses
from unittest import mock

import keras
import numpy as np
import tensorflow as tf
from absl.testing import absltest

import tf2verify
from tf2verify import Status
from tf2verify.errors import NotApplicable
from tf2verify.stages.comparison.proof import idle_bounds, proving, tried_bounds

v1 = tf.compat.v1
_SAID = "changes nothing at the case's own inputs"


class Quantized(tf2verify.EquivalenceCase, abc.ABC):
  """The nearest of some codes, chosen in another way by the port, which no rule knows."""

  has_gain = False

  def build_tf1_graph(self, inputs, training):
    projected = v1.layers.dense(inputs, 4, name='project')
    book = v1.get_variable('book', [4, 7])
    near = -tf.reduce_sum(projected**2, 1, keepdims=True) + 2 * tf.matmul(projected, book)
    near -= tf.reduce_sum(book**2, 0, keepdims=True)
    found = tf.nn.embedding_lookup(tf.transpose(book), tf.argmax(near, 1))
    return self.tf1_end(v1.layers.dense(found, 3, name='end'))

  def tf1_end(self, net):
    return tf.clip_by_value(net, -4.0, 4.0)

  def port_end(self, net):
    return keras.ops.clip(net, -4.0, 4.0)

  def port_number(self, number):
    return number

  def make_tf2_layer(self):
    case = self

    class Port(keras.Model):
      def __init__(self):
        super().__init__(name='port')
        self.project = keras.layers.Dense(4, name='project')
        self.end = keras.layers.Dense(3, name='end')
        self.book = self.add_weight(shape=(4, 7), initializer='glorot_uniform', name='book')
        if case.has_gain:
          self.gain = self.add_weight(shape=(), initializer='glorot_uniform', name='gain')

      def call(self, inputs):
        book = keras.ops.convert_to_tensor(self.book)
        apart = self.project(inputs)[:, :, None] - book[None]
        number = case.port_number(keras.ops.argmin(keras.ops.sum(apart**2, axis=1), axis=1))
        net = self.end(keras.ops.take(keras.ops.transpose(book), number, axis=0))
        return case.port_end(net * case.port_gain(self.gain) if case.has_gain else net)

    return Port()

  def make_inputs(self):
    return tf2verify.normal_inputs((6, 5)) * 0.3


def _found(stage='zero_randomness', base=Quantized, **hooks):
  verdict = tf2verify.verify(type('Case', (base,), hooks), [stage])
  return next(one for one in verdict.stages if one.stage == stage)


class Rewarded(tf2verify.EquivalenceCase, abc.ABC):
  def build_tf1_graph(self, inputs, training):
    return v1.layers.dense(inputs, 3, name='q')

  def make_tf2_layer(self):
    return keras.Sequential([keras.layers.Dense(3, name='q')])

  def make_inputs(self):
    return tf2verify.normal_inputs((6, 4))

  def make_labels(self):
    return np.array([1, -1, 0.1, 0.3, 2.5, -0.5], np.float32)

  def tf1_loss(self, outputs, labels):
    return v1.losses.huber_loss(labels, tf.reduce_sum(outputs, 1))

  def tf2_loss(self, outputs, labels):
    wanted = self.bounded(labels)
    huber = keras.losses.Huber(delta=1.0, reduction=None)
    return keras.ops.mean(huber(wanted[:, None], keras.ops.sum(outputs, 1)[:, None]))

  def bounded(self, labels):
    return labels


class Trusting(Rewarded, abc.ABC):
  """Rates by the norms of variables, and 1 for those that are 0; a loss that cannot be proven."""

  guarded = True

  def make_labels(self):
    return np.ones(6, np.float32)

  def tf1_loss(self, outputs, labels):
    return tf.reduce_mean(tf.square(tf.reduce_sum(outputs, 1) - labels))

  tf2_loss = tf1_loss

  def make_tf1_train_op(self, loss):
    variables = v1.trainable_variables()
    updates = []
    for gradient, variable in zip(tf.gradients(loss, variables), variables, strict=True):
      of_both = tf.norm(variable), tf.norm(gradient)
      trust = tf.where(of_both[0] > 0.0, of_both[0] / of_both[1], 1.0)
      updates.append(v1.assign_sub(variable, 0.001 * trust * gradient))
    return tf.group(*updates)

  def make_tf2_optimizer(self):
    return [tf.Variable(0)]

  def tf2_train_step(self, layer, inputs, labels, optimizer):
    with tf.GradientTape() as tape:
      loss = self.tf2_loss(layer(inputs, training=True), labels)
    variables = layer.trainable_variables
    gradients = tape.gradient(loss, [one.value for one in variables])
    for gradient, variable in zip(gradients, variables, strict=True):
      length = tf.sqrt(tf.reduce_sum(variable.value**2))
      trust = length / tf.norm(gradient)
      if self.guarded:
        trust = tf.where(length > 0.0, trust, 1.0)
      variable.value.assign_sub(0.001 * trust * gradient)
    return loss


class Shortened(Trusting, abc.ABC):
  """Gradients whose global norm is never below the bound, as the case has it."""

  def make_tf1_train_op(self, loss):
    variables = v1.trainable_variables()
    clipped, _ = tf.clip_by_global_norm(tf.gradients(loss, variables), 0.25)
    pairs = zip(clipped, variables, strict=True)
    return tf.group(*(v1.assign_sub(variable, 0.1 * one) for one, variable in pairs))

  def tf2_train_step(self, layer, inputs, labels, optimizer):
    with tf.GradientTape() as tape:
      loss = self.tf2_loss(layer(inputs, training=True), labels)
    variables = [one.value for one in layer.trainable_variables]
    gradients = tape.gradient(loss, variables)
    norm = tf.linalg.global_norm(gradients)
    for gradient, variable in zip(gradients, variables, strict=True):
      short = gradient * (0.25 / norm)
      variable.assign_sub(0.1 * (tf.where(norm > 0.25, short, gradient) if self.guarded else short))
    return loss


class _Unbounded(keras.optimizers.schedules.LearningRateSchedule):
  def __call__(self, step):
    return 0.01 * (1.0 - tf.cast(step, tf.float32) / 20.0)


class Annealed(Quantized, abc.ABC):
  """A rate that ends at 0: its factor is bounded from below, or the count from above."""

  make_labels = Trusting.make_labels
  tf1_loss = tf2_loss = Trusting.tf1_loss
  schedule = keras.optimizers.schedules.PolynomialDecay(0.01, 20, end_learning_rate=0.0)

  def make_tf1_train_op(self, loss):
    step = v1.train.get_or_create_global_step()
    rate = 0.01 * tf.maximum(0.0, 1.0 - tf.cast(step, tf.float32) / 20.0)
    return v1.train.AdamOptimizer(rate, epsilon=1e-4).minimize(loss, global_step=step)

  def make_tf2_optimizer(self):
    return keras.optimizers.Adam(self.schedule, epsilon=1e-4)


class _WarmedUp(keras.optimizers.schedules.LearningRateSchedule):
  """Computes both cases at each step, with a count that is no less than 0 in one of them."""

  def __init__(self, limit):
    self.after = keras.optimizers.schedules.PolynomialDecay(0.1, limit, 0.001, power=2.0)

  def __call__(self, step):
    step = keras.ops.cast(step, 'float32')
    return keras.ops.where(step < 2, 0.05 * step, self.after(keras.ops.maximum(step - 2, 0.0)))


class WarmedUp(Quantized, abc.ABC):
  """TF1 has a branch for the warm-up."""

  training_steps_to_take = 6
  make_labels = Trusting.make_labels
  tf1_loss = tf2_loss = Trusting.tf1_loss
  limit = 3

  def make_tf1_train_op(self, loss):
    step = v1.train.get_or_create_global_step()
    later = v1.train.polynomial_decay(0.1, step - 2, 3, 0.001, power=2.0)
    rate = tf.cond(step < 2, lambda: 0.05 * tf.cast(step, tf.float32), lambda: later)
    return v1.train.GradientDescentOptimizer(rate).minimize(loss, step)

  def make_tf2_optimizer(self):
    return keras.optimizers.SGD(_WarmedUp(self.limit))


class IdleBoundsTest(absltest.TestCase):
  def test_a_recorded_graph_that_does_not_run_here_is_told(self):
    refused = NotApplicable('the recorded graph is not run here')
    with mock.patch.object(proving, 'one_sided', side_effect=refused):
      found = _found()
    self.assertIs(found.status, Status.PASSED)
    (said,) = (one for one in found.blind_spots if 'were not looked for' in one)
    self.assertIn('the recorded graph is not run here', said)

  def test_right_port_has_the_bounds_of_tf1(self):
    found = _found()
    self.assertIs(found.status, Status.PASSED, found.to_text())
    self.assertEqual([one for one in found.blind_spots if _SAID in one], [])

  def test_bounds_of_one_number_that_are_reached_together(self):
    def ends(tf1, port):
      def tf1_end(self, net):
        return Quantized.tf1_end(self, net * tf1(v1.get_variable('gain', [])))

      def port_gain(self, gain):
        return port(keras.ops.convert_to_tensor(gain))

      return {'tf1_end': tf1_end, 'port_gain': port_gain, 'has_gain': True}

    spellings = (
      lambda gain: tf.minimum(gain, 20.0) / 20.0,
      lambda gain: tf.minimum(gain / 20.0, 1.0),
    )
    for port in spellings:
      said = ' '.join(_found(**ends(spellings[0], port)).blind_spots)
      self.assertNotIn(_SAID, said)
    other = _found(**ends(spellings[0], lambda gain: tf.minimum(gain / 20.0, 2.0)))
    self.assertIn('Minimum with 2', other.to_text())

  def test_bounds_of_a_number_and_of_its_inverse(self):
    share = np.array([0.25, 0.5])
    one = idle_bounds._Idle(0, 'a', ('Minimum', 2.0), share)
    same = idle_bounds._Idle(1, 'b', ('Maximum', 0.5), np.array([2.0, 4.0]))
    self.assertTrue(one.is_reached_with(same))
    self.assertTrue(same.is_reached_with(one))
    self.assertFalse(one.is_reached_with(dataclasses.replace(same, side=0)))
    self.assertFalse(one.is_reached_with(dataclasses.replace(same, bound=('Minimum', 0.5))))
    self.assertFalse(one.is_reached_with(dataclasses.replace(same, share=same.share * 1.01)))
    self.assertFalse(one.is_reached_with(dataclasses.replace(same, share=None)))
    turned = dataclasses.replace(one, side=1, bound=('Minimum', -2.0))
    self.assertFalse(one.is_reached_with(turned))

  def test_bound_of_tf1_alone(self):
    found = _found(port_end=lambda _, net: net)
    self.assertIs(found.status, Status.PASSED, found.to_text())
    (said,) = (one for one in found.blind_spots if _SAID in one)
    self.assertIn('tf1 has Minimum with 4 and Maximum with -4 at', said)
    self.assertIn('the port has no such bound', said)

  def test_choice_that_no_step_takes(self):
    for guarded in (True, False):
      with self.subTest(guarded=guarded):
        case = type('Case', (Trusting,), {'guarded': guarded})
        found = tf2verify.verify(case, ['training_steps']).stages[-1]
        self.assertIs(found.status, Status.PASSED, found.to_text())
        said = [one for one in found.blind_spots if 'a choice (where) of another value or 1' in one]
        self.assertEqual(len(said), 0 if guarded else 1, found.to_text())

  def test_bounds_that_both_sides_reach_at_the_same_step(self):
    for number in (tried_bounds._MOST_OPERATIONS, 0):
      with mock.patch.object(tried_bounds, '_MOST_OPERATIONS', number):
        found = _found('training_steps', Annealed)
      self.assertIs(found.status, Status.PASSED, found.to_text())
      self.assertNotIn(_SAID, ' '.join(found.blind_spots))
    other = _found('training_steps', Annealed, schedule=_Unbounded())
    self.assertIs(other.status, Status.FAILED, other.to_text())

  def test_bound_of_a_case_that_is_a_branch_in_tf1(self):
    found = _found('training_steps', WarmedUp)
    self.assertIs(found.status, Status.PASSED, found.to_text())
    self.assertNotIn(_SAID, ' '.join(found.blind_spots))
    other = _found('training_steps', WarmedUp, limit=4)
    self.assertIs(other.status, Status.FAILED, other.to_text())

  def test_bound_that_nothing_reaches(self):
    def tf1_end(self, net):
      return tf.abs(net)

    found = _found(tf1_end=tf1_end, port_end=lambda _, net: keras.ops.maximum(abs(net), 0.0))
    self.assertEqual(found.blind_spots, (), found.to_text())

  def test_bounds_of_each_element(self):
    def tf1_end(self, net):
      rest = [tf.minimum(net[:, n], limit) for n, limit in enumerate((4.0, 5.0, 6.0))]
      return tf.stack(rest, 1)

    for limits, count in (((4.0, 5.0, 6.0), 0), ((4.0, 5.0, 7.0), 1)):
      port_end = lambda _, net, limits=limits: keras.ops.minimum(net, np.float32(limits))  # noqa: E731
      found = _found(tf1_end=tf1_end, port_end=port_end)
      self.assertLen(found.blind_spots, count, found.to_text())

  def test_clipping_that_every_step_reaches(self):
    for guarded in (True, False):
      with self.subTest(guarded=guarded):
        case = type('Case', (Shortened,), {'guarded': guarded})
        found = tf2verify.verify(case, ['training_steps']).stages[-1]
        self.assertIs(found.status, Status.PASSED, found.to_text())
        said = [one for one in found.blind_spots if 'tf1 has Minimum with 4 at' in one]
        self.assertEqual(len(said), 0 if guarded else 1, found.to_text())

  def test_choice_in_rounds_of_which_the_first_take_one_side(self):
    """Every example is alive in the first rounds; TF1 multiplies by a mask instead."""
    lengths = np.array([2, 3, 4, 4, 2, 3])

    def tf1_end(self, net):
      alive = tf.cast(tf.sequence_mask(lengths, 4), tf.float32)
      return tf.stack([net * alive[:, n : n + 1] * (n + 1.0) for n in range(4)], 1)

    def port_end(self, net):
      return tf.stack([tf.where((n < lengths)[:, None], net * (n + 1.0), 0.0) for n in range(4)], 1)

    def late(self, net):
      return tf.stack([tf.where((n < lengths + 2)[:, None], net, 0.0) for n in range(4)], 1)

    found = _found(tf1_end=tf1_end, port_end=port_end, other_sizes=())
    self.assertIs(found.status, Status.PASSED, found.to_text())
    self.assertNotIn(_SAID, ' '.join(found.blind_spots))
    ones = {'tf1_end': lambda _, net: tf.stack([net] * 4, 1), 'port_end': late}
    found = _found(**ones, other_sizes=())
    self.assertIn('the port has a choice (where) of another', ' '.join(found.blind_spots))

  def test_rest_of_a_division(self):
    found = _found(port_number=lambda _, number: tf.math.floormod(number, 7))
    self.assertIs(found.status, Status.PASSED, found.to_text())
    self.assertIn('the port has FloorMod with 7 at', ' '.join(found.blind_spots))

  def test_bound_of_the_port_alone(self):
    found = _found(tf1_end=lambda _, net: net)
    self.assertIn('the port has', ' '.join(found.blind_spots))
    self.assertIn('tf1 has no such bound', ' '.join(found.blind_spots))

  def test_bound_in_a_loop_of_tf1(self):
    """What the rounds of a loop compute is not run; its numbers are read, where they are in it."""

    def bounded(by):
      def body(n, net):
        return n + 1, tf.clip_by_value(net + 1.0, -by, by)

      return lambda _, net: v1.while_loop(lambda n, net: n < 2, body, (0, net))[1]

    def port_end(self, net):
      for _ in range(2):
        net = keras.ops.clip(net + 1.0, -20.0, 20.0)
      return net

    found = _found(tf1_end=bounded(20.0), port_end=port_end)
    self.assertIs(found.status, Status.PASSED, found.to_text())
    self.assertNotIn(_SAID, ' '.join(found.blind_spots))
    found = _found(tf1_end=bounded(30.0), port_end=port_end)
    self.assertIs(found.status, Status.PASSED, found.to_text())
    self.assertIn('the port has Minimum with 20', ' '.join(found.blind_spots))

  def test_bound_of_a_label(self):
    def bounded(self, labels):
      return keras.ops.maximum(labels, -5.0)

    found = _found('loss', Rewarded, bounded=bounded)
    self.assertIs(found.status, Status.PASSED, found.to_text())
    self.assertIn('the port has Maximum with -5 at', ' '.join(found.blind_spots))
    self.assertNotIn(_SAID, ' '.join(_found('loss', Rewarded).blind_spots))


if __name__ == '__main__':
  absltest.main()
