"""What of losses and training steps is proven, and differences that three steps do not show."""

import abc

import keras
import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

import tf2verify

v1 = tf.compat.v1
Status = tf2verify.Status
STAIRS = {'decay_steps': 1000, 'decay_rate': 0.5, 'staircase': True}


class Classifier(tf2verify.EquivalenceCase, abc.ABC):
  """Two dense layers of tf.layers, and of Keras 3."""

  def build_tf1_graph(self, inputs, training):
    net = v1.layers.dense(inputs, 5, tf.tanh, name='hidden')
    return v1.layers.dense(net, 3, name='logits')

  def make_tf2_layer(self):
    hidden = keras.layers.Dense(5, 'tanh', name='hidden')
    return keras.Sequential([hidden, keras.layers.Dense(3, name='logits')])

  def make_inputs(self):
    return tf2verify.normal_inputs((4, 6))

  def make_labels(self):
    return np.array([0, 1, 2, 0])

  def tf1_loss(self, outputs, labels):
    return v1.losses.sparse_softmax_cross_entropy(labels, outputs)

  def tf2_loss(self, outputs, labels):
    each = keras.losses.sparse_categorical_crossentropy(labels, outputs, from_logits=True)
    return tf.reduce_mean(each)

  def make_tf1_optimizer(self):
    return v1.train.AdamOptimizer(0.01)

  def make_tf2_optimizer(self):
    return keras.optimizers.Adam(0.01, epsilon=1e-8)


class Adam(Classifier, abc.ABC):
  """Whose powers of the decays TF1 keeps, and Keras forms anew."""


class Momentum(Classifier, abc.ABC):
  """Whose slots Keras keeps in another unit."""

  def make_tf1_optimizer(self):
    return v1.train.MomentumOptimizer(0.05, 0.9, use_nesterov=True)

  def make_tf2_optimizer(self):
    return keras.optimizers.SGD(0.05, momentum=0.9, nesterov=True)


class Scheduled(Classifier, abc.ABC):
  """A learning rate that falls after many steps."""

  rate = STAIRS

  def make_tf1_train_op(self, loss):
    step = v1.train.get_or_create_global_step()
    rate = v1.train.exponential_decay(0.1, step, **STAIRS)
    return v1.train.GradientDescentOptimizer(rate).minimize(loss, global_step=step)

  def make_tf2_optimizer(self):
    return keras.optimizers.SGD(keras.optimizers.schedules.ExponentialDecay(0.1, **self.rate))


class RightSchedule(Scheduled, abc.ABC):
  pass


class OtherSteps(Scheduled, abc.ABC):
  rate = {**STAIRS, 'decay_steps': 2000}


class OtherRate(Scheduled, abc.ABC):
  rate = {**STAIRS, 'decay_rate': 0.25}


class Conditional(Scheduled, abc.ABC):
  """Whose rate is chosen among branches, of which a step takes one."""

  def make_tf1_train_op(self, loss):
    step = v1.train.get_or_create_global_step()
    rate = v1.train.piecewise_constant(step, [1000], [0.1, 0.05])
    return v1.train.GradientDescentOptimizer(rate).minimize(loss, global_step=step)

  def make_tf2_optimizer(self):
    # Keras takes the boundary itself as part of the first piece, as TF1 does.
    return keras.optimizers.SGD(
      keras.optimizers.schedules.PiecewiseConstantDecay([1000], [0.1, 0.05])
    )


class Floored(Classifier, abc.ABC):
  """Probabilities that are kept away from 0 by another number, which none of them reaches."""

  least = 1e-12

  def _loss(self, outputs, labels, least):
    shares = tf.reduce_sum(tf.nn.softmax(outputs) * tf.one_hot(labels, 3), -1)
    return -tf.reduce_mean(tf.math.log(tf.maximum(shares, least)))

  def tf1_loss(self, outputs, labels):
    return self._loss(outputs, labels, 1e-12)

  def tf2_loss(self, outputs, labels):
    return self._loss(outputs, labels, self.least)


def _made(case, **attributes):
  """Returns a case of a declaration, which runs no tests of its own."""
  return type(f'{case.__name__}Case', (case,), attributes)


class ProvenStepsTest(parameterized.TestCase):
  def _stages(self, case, status=Status.PASSED):
    verdict = tf2verify.verify(_made(case), stages=['training_steps'])
    self.assertEqual(verdict.status, status, verdict.to_text())
    return {stage.stage: stage for stage in verdict.stages}

  def _spots(self, stage):
    return [spot for spot in stage.blind_spots if spot.startswith('the graphs differ')]

  @parameterized.parameters(Adam, Momentum, RightSchedule)
  def test_right_ports_are_proven(self, case):
    stages = self._stages(case)
    for name in ('loss', 'training_steps'):
      with self.subTest(name):
        proven = stages[name].proven
        self.assertTrue(proven.is_whole, proven)
        self.assertGreater(proven.tf2_operations, 5)
        self.assertEqual(proven.tf2_proven, proven.tf2_operations)
        self.assertEqual(self._spots(stages[name]), [])

  @parameterized.parameters(
    (OtherSteps, 'the constant of RealDiv is 1000 in tf1', '2000 in the port'),
    (OtherRate, 'the constant of Pow is 0.5 in tf1', '0.25 in the port'),
  )
  def test_schedules_that_differ_later(self, case, tf1, port):
    """The steps taken do not show them; the rates of later steps do, and the graphs say which."""
    stage = self._stages(case, Status.FAILED)['training_steps']
    self.assertTrue(all('step counts' in d.run for d in stage.differences), stage)
    self.assertFalse(stage.proven.is_whole)
    (spot,) = self._spots(stage)
    self.assertIn(tf1, spot)
    self.assertIn(port, spot)
    self.assertIn('ExponentialDecay(0.1, **self.rate)', spot)

  def test_a_loss_whose_bound_no_example_reaches(self):
    verdict = tf2verify.verify(_made(Floored, least=1e-7), stages=['loss'])
    stage = verdict.stages[-1]
    if stage.status is Status.PASSED:  # what the extreme outputs show is a finding
      self.assertIn('1e-12 in tf1', ' '.join(self._spots(stage)))
    else:
      self.assertEqual(stage.status, Status.FAILED)

  def test_a_condition_of_the_count_of_steps_is_related(self):
    """Its branches are compared at other counts, and Keras has none: nothing is told of them."""
    stage = self._stages(Conditional)['training_steps']
    self.assertEqual(stage.proven.reason, '')
    self.assertGreater(stage.proven.tf2_proven, 0)
    self.assertFalse(stage.proven.is_whole)
    self.assertEqual([one for one in stage.blind_spots if 'branch' in one], [])

  def test_name_scopes_of_keras_3_are_closed(self):
    """AutoGraph leaves one open where it gives up on the user's code in it."""

    class Dense(keras.optimizers.Adam):
      def apply(self, grads, trainable_variables=None):
        return super().apply([tf.convert_to_tensor(g) for g in grads], trainable_variables)

    optimizer = lambda _: Dense(0.01, epsilon=1e-8)  # noqa: E731
    self._stages(_made(Adam, make_tf2_optimizer=optimizer))
    self.assertEqual(keras.Variable(0.0, name='made').path, 'made')

  def test_a_case_that_does_not_want_it(self):
    stages = self._stages(_made(Momentum, relate_graphs=False))
    for name in ('loss', 'training_steps'):
      self.assertEqual(stages[name].proven.reason, 'relate_graphs is False')


if __name__ == '__main__':
  absltest.main()
