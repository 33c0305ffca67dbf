"""Tests of stages.training.graphs.edited_steps: mistakes in updates that are tried out."""

import abc
import unittest.mock

import keras
import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

import tf2verify
from tests.global_probes import process_state
from tests.stages import tiny_models
from tf2verify.records.experiment import Edit, Outcome
from tf2verify.sides.tf2.graphs import edited_step, step_tracing
from tf2verify.stages.training.graphs import edited_steps

v1 = tf.compat.v1


def _slot(variable, name):
  zeros = v1.zeros_initializer()
  name = f'{variable.op.name}/{name}'
  return v1.get_variable(name, variable.shape, trainable=False, initializer=zeros)


def adamw(loss, rate=lambda step: 0.05):
  """AdamW by hand: clipped, bias corrected, with weight decay and a polyak copy."""
  variables = v1.trainable_variables()
  step = v1.get_variable('t', [], initializer=v1.zeros_initializer(), trainable=False)
  gradients, _ = tf.clip_by_global_norm(tf.gradients(loss, variables), 0.3)
  first, second = 1 - tf.pow(0.9, step + 1.0), 1 - tf.pow(0.99, step + 1.0)
  updates = []
  for gradient, variable in zip(gradients, variables, strict=True):
    m, v = _slot(variable, 'adam_m'), _slot(variable, 'adam_v')
    next_m = 0.9 * m + 0.1 * gradient
    next_v = 0.99 * v + 0.01 * tf.square(gradient)
    update = (next_m / first) / (tf.sqrt(next_v / second) + 1e-3) + 0.02 * variable
    updates += [variable.assign_sub(rate(step) * update), m.assign(next_m), v.assign(next_v)]
  with tf.control_dependencies(updates):
    averages = [
      v1.get_variable(f'{v.op.name}/ema', initializer=v.initial_value, trainable=False)
      for v in variables
    ]
    averaged = [a.assign(0.95 * a + 0.05 * v) for a, v in zip(averages, variables, strict=True)]
    return tf.group(*averaged, step.assign_add(1.0))


class AdamW:
  """The port of it; slots are variables without names."""

  def __init__(self, **mistakes):
    settings = {'clip': 0.3, 'beta': 0.9, 'epsilon': 1e-3, 'decay': 0.02, 'average': 0.95}
    self.settings = {**settings, **mistakes}
    self.m, self.v, self.averages = {}, {}, {}
    self.step = tf.Variable(0.0, name='t')

  def create(self, variables):
    for variable in variables if not self.m else ():
      self.m[variable.name] = tf.Variable(tf.zeros_like(variable))
      self.v[variable.name] = tf.Variable(tf.zeros_like(variable))
      name = f'{variable.name.split(":")[0]}/ema'
      self.averages[variable.name] = tf.Variable(variable, name=name)

  def corrected(self, m, v):
    beta = self.settings['beta']
    return m / (1 - tf.pow(beta, self.step)), v / (1 - tf.pow(0.99, self.step))

  def direction(self, m, v):
    return m / (tf.sqrt(v) + self.settings['epsilon'])

  def average(self, variables):
    decay = self.settings['average']
    for variable in variables:
      average = self.averages[variable.name]
      average.assign(decay * average + (1 - decay) * variable)

  def clipped(self, gradients):
    return tf.clip_by_global_norm(gradients, self.settings['clip'])[0]

  def apply(self, gradients, variables):
    self.create(variables)
    self.step.assign_add(1.0)
    beta = self.settings['beta']
    for gradient, variable in zip(self.clipped(gradients), variables, strict=True):
      m, v = self.m[variable.name], self.v[variable.name]
      m.assign(beta * m + (1 - beta) * gradient)
      v.assign(0.99 * v + 0.01 * gradient**2)
      update = self.direction(*self.corrected(m, v)) + self.settings['decay'] * variable
      variable.assign_sub(self.rate() * update)
    self.average(variables)

  def rate(self):
    return 0.05


class _Case(tiny_models.Affine, abc.ABC):
  training_steps_to_take = 3

  def make_labels(self):
    return tf2verify.normal_inputs((4, 3), seed=1)

  def tf1_loss(self, outputs, labels):
    return tf.reduce_mean(tf.square(outputs - labels))

  def tf2_loss(self, outputs, labels):
    return tf.reduce_mean(tf.square(outputs - labels))

  def make_tf1_train_op(self, loss):
    return adamw(loss)

  def make_tf2_optimizer(self):
    return AdamW()

  def tf2_train_step(self, layer, inputs, labels, optimizer):
    with tf.GradientTape() as tape:
      loss = self.tf2_loss(layer(inputs, training=True), labels)
    variables = layer.trainable_variables
    optimizer.apply(tape.gradient(loss, variables), variables)
    return loss


def steps_of(make):
  class Case(_Case):
    def make_tf2_optimizer(self):
      return make()

  return tf2verify.verify(Case, stages=['training_steps']).stages[-1]


class FlatPort(keras.layers.Layer):
  """The affine map with a kernel of two axes, where TF1 has that of a convolution."""

  def build(self, _):
    self.kernel = self.add_weight(shape=(3, 3), initializer='zeros', name='kernel')
    self.bias = self.add_weight(shape=(3,), initializer='zeros', name='bias')

  def call(self, inputs, training=False):
    return tf.matmul(inputs, self.kernel) + self.bias


class Embedded(tf2verify.EquivalenceCase, abc.ABC):
  """Rows of a table, some of them twice, of which a clipping takes the norm."""

  def build_tf1_graph(self, inputs, training):
    start = v1.random_normal_initializer(stddev=0.05)
    table = v1.get_variable('table', [6, 3], initializer=start)
    return tf.reduce_sum(tf.nn.embedding_lookup(table, inputs), 1)

  def make_tf2_layer(self):
    return EmbeddedPort()

  def make_inputs(self):
    return np.array([[1, 1, 2], [3, 1, 4]], np.int32)

  def make_labels(self):
    return np.ones([2, 3], np.float32)

  def tf1_loss(self, outputs, labels):
    return tf.reduce_mean(tf.square(outputs - labels))

  tf2_loss = tf1_loss

  def make_tf1_train_op(self, loss):
    step = v1.train.get_or_create_global_step()
    rate = v1.train.exponential_decay(0.1, step, 2, 0.5, staircase=True)
    gradients, _ = tf.clip_by_global_norm(tf.gradients(loss, v1.trainable_variables()), 0.1)
    pairs = zip(gradients, v1.trainable_variables(), strict=True)
    return v1.train.GradientDescentOptimizer(rate).apply_gradients(pairs, global_step=step)

  def make_tf2_optimizer(self):
    rate = keras.optimizers.schedules.ExponentialDecay(0.1, 2, 0.5)  # staircase is lost
    return keras.optimizers.SGD(rate, global_clipnorm=0.1)


class EmbeddedPort(keras.layers.Layer):
  def __init__(self):
    super().__init__()
    self.table = keras.layers.Embedding(6, 3, 'random_normal', name='table')

  def call(self, inputs):
    return tf.reduce_sum(self.table(inputs), 1)


class WarmUp(keras.optimizers.schedules.LearningRateSchedule):
  """A rate that grows for four steps; the first step is `first` of them."""

  def __init__(self, first, scale=1.0):
    self.first, self.scale = first, scale

  def __call__(self, step):
    done = keras.ops.cast(step, 'float32') + self.first
    return 0.1 * keras.ops.minimum(1.0, self.scale * done / 4.0)


class WarmedUp(Embedded, abc.ABC):
  """The same table; the count of steps of Keras 3's optimizer sets the rate."""

  def make_tf1_train_op(self, loss):
    step = v1.train.get_or_create_global_step()
    rate = 0.1 * tf.minimum(1.0, (tf.cast(step, tf.float32) + 1.0) / 4.0)
    return v1.train.GradientDescentOptimizer(rate).minimize(loss, global_step=step)


class EpsilonUnderRoot(AdamW):
  def direction(self, m, v):
    return m / tf.sqrt(v + 1e-3)


class Uncorrected(AdamW):
  def corrected(self, m, v):
    return m, v


class Unclipped(AdamW):
  def clipped(self, gradients):
    return gradients


class UncorrectedInTheFirstStep(AdamW):
  """Python counts: the mistake is in one step alone."""

  taken = 0

  def apply(self, gradients, variables):
    self.taken += 1
    self.settings['decay'] = 0.02 if self.taken < 3 else 0.03
    super().apply(gradients, variables)


class AdamWTest(parameterized.TestCase):
  @parameterized.parameters(
    (lambda: AdamW(decay=0.01), Edit.SETTING, 'is 0.01 in the port, 0.02 in tf1'),
    (lambda: AdamW(clip=0.5), Edit.SETTING, 'is 0.5 in the port, 0.3 in tf1'),
    (
      lambda: AdamW(average=0.9),
      Edit.SETTING,
      'is 0.95 in TF1 (the decay in effect) and 0.9 in the port',
    ),
    (EpsilonUnderRoot, Edit.SETTING, 'the port computes Sqrt (Sqrt_1) after AddV2(y=0.001)'),
    (Uncorrected, Edit.OPERATIONS, '→ Pow(x=0.99) → Sub(x=1) → RealDiv'),
    (Unclipped, Edit.OPERATIONS, 'L2Loss → L2Loss → Pack'),
  )
  def test_mistake_is_proven(self, make, edit, words):
    before = process_state()
    verdict = steps_of(make)
    self.assertEqual(process_state(), before)
    [cause] = verdict.diagnosis.causes
    self.assertEqual((cause.experiment.edit, cause.experiment.outcome), (edit, Outcome.PROVEN))
    self.assertIn(words, cause.text, verdict.to_text())
    # What the stage took for the cause by its numbers is among the causes, or gone.
    self.assertEqual({difference.hint for difference in verdict.differences}, {''})

  def test_five_mistakes_of_which_one_shows_in_the_second_step(self):
    """The first moment is 0 before the first step, whatever its decay is multiplied by."""
    verdict = steps_of(lambda: AdamW(clip=0.5, beta=0.8, epsilon=1e-2, decay=0.01, average=0.9))
    experiments = [cause.experiment for cause in verdict.diagnosis.causes]
    self.assertEqual({one.outcome for one in experiments}, {Outcome.PROVEN}, verdict.to_text())
    self.assertEqual([one.number for one in experiments], [1, 2, 3, 4, 5], verdict.to_text())
    for words, one in zip(('0.5', '0.8', '0.01', '0.01', '0.9'), experiments, strict=True):
      self.assertIn(f'{words} in the port', one.text)

  def test_mistakes_of_two_steps_of_a_kernel_of_another_shape(self):
    """What is left in the second step is looked into from values of tf1, as the port has them."""

    class Case(_Case):
      variable_names = {'kernel': 'flat_port/kernel', 'bias': 'flat_port/bias'}

      def model(self, inputs, training):
        kernel = v1.get_variable('kernel', [1, 1, 3, 3], initializer=v1.zeros_initializer())
        bias = v1.get_variable('bias', [3], initializer=v1.zeros_initializer())
        return tf.matmul(inputs, kernel[0, 0]) + bias

      def make_tf2_layer(self):
        return FlatPort()

      def make_tf2_optimizer(self):
        return AdamW(beta=0.8, decay=0.01)

    verdict = tf2verify.verify(Case, stages=['training_steps']).stages[-1]
    causes = verdict.diagnosis.causes
    self.assertLen(causes, 2, verdict.to_text())
    self.assertEqual({cause.experiment.outcome for cause in causes}, {Outcome.PROVEN})
    texts = ' '.join(cause.text for cause in causes)
    for words in ('0.8', '0.01'):
      self.assertRegex(texts, rf'{words}( and 0.2)? in the port')

  def test_mistake_of_a_later_step(self):
    verdict = steps_of(UncorrectedInTheFirstStep)
    self.assertEqual(verdict.diagnosis.run, 'step 3')
    [cause] = verdict.diagnosis.causes
    self.assertIs(cause.experiment.outcome, Outcome.PROVEN, verdict.to_text())
    self.assertIn('is 0.03 in the port, 0.02 in tf1', cause.text)

  def test_a_clipping_of_rows_is_no_cause_where_the_rate_is(self):
    case = type('Case', (Embedded,), {})
    (cause,) = tf2verify.verify(case, stages=['training_steps']).stages[-1].diagnosis.causes
    self.assertIn('staircase=True', cause.text)
    self.assertNotIn('clip', cause.text)
    self.assertIs(cause.experiment.outcome, Outcome.PROVEN)

  def test_a_number_that_the_port_reads_twice_is_one_mistake(self):
    class Case(Embedded):
      def make_tf2_optimizer(self):
        rate = keras.optimizers.schedules.ExponentialDecay(0.05, 2, 0.5, staircase=True)
        return keras.optimizers.SGD(rate, global_clipnorm=0.1)

    (cause,) = tf2verify.verify(Case, stages=['training_steps']).stages[-1].diagnosis.causes
    self.assertIn('0.05 in place of 0.1', cause.text)
    self.assertEqual((cause.experiment.number, cause.experiment.mistakes), (1, 1))

  @parameterized.parameters((0.0, 1.0), (1.0, 0.5), (2.0, 1.0))
  def test_schedule_of_the_count_of_steps_of_keras_3(self, first, scale):
    class Case(WarmedUp):
      def make_tf2_optimizer(self):
        return keras.optimizers.SGD(WarmUp(first, scale))

    verdict = tf2verify.verify(Case, stages=['training_steps']).stages[-1]
    (cause,) = verdict.diagnosis.causes
    self.assertIs(cause.experiment.outcome, Outcome.PROVEN, verdict.to_text())
    self.assertIn('step_experiments_test.py', verdict.to_text())

  def test_right_schedule_of_the_count_of_steps_of_keras_3(self):
    class Case(WarmedUp):
      def make_tf2_optimizer(self):
        return keras.optimizers.SGD(WarmUp(1.0))

    verdict = tf2verify.verify(Case, stages=['training_steps']).stages[-1]
    self.assertIs(verdict.status, tf2verify.Status.PASSED, verdict.to_text())

  def test_right_port_passes(self):
    verdict = steps_of(AdamW)
    self.assertIs(verdict.status, tf2verify.Status.PASSED, verdict.to_text())


class Counting(AdamW):
  """Takes every second step at twice the rate, which Python counts."""

  calls = 0

  def apply(self, gradients, variables):
    self.calls += 1
    super().apply(gradients, variables)

  def rate(self):
    return 0.05 if self.calls % 2 else 0.1


class SharedGraphsTest(absltest.TestCase):
  def _graphs(self, make, train_op=adamw):
    """Returns the verdict, how often a step was traced, and how many graphs were edited."""

    class Case(_Case):
      def make_tf1_train_op(self, loss):
        return train_op(loss)

      def make_tf2_optimizer(self):
        return make()

    traced, edited = [], []
    trace, begin = step_tracing.StepTracing.trace, edited_step.EditableStep.begin

    def tracing(self):
      traced.append(self)
      return trace(self)

    def beginning(self, change=None, targets_only=False):
      edited.append(targets_only)
      return begin(self, change, targets_only)

    with (
      unittest.mock.patch.object(step_tracing.StepTracing, 'trace', tracing),
      unittest.mock.patch.object(edited_step.EditableStep, 'begin', beginning),
    ):
      verdict = tf2verify.verify(Case)
    return verdict, len(traced), sum(edited)

  def test_steps_are_traced_once_each(self):
    verdict, traced, _ = self._graphs(lambda: AdamW(decay=0.01))
    self.assertIn('proven', verdict.to_text())
    # The second one twice: it has another graph than the first one, which makes the slots.
    self.assertEqual(traced, 4)

  def test_a_graph_is_edited_once_for_all_steps(self):
    judged = []
    known = edited_steps.EditedSteps.judged

    def judging(self, repairs):
      judged.append(repairs)
      return known(self, repairs)

    with unittest.mock.patch.object(edited_steps.EditedSteps, 'judged', judging):
      _, _, edited = self._graphs(lambda: AdamW(decay=0.01))
    self.assertLessEqual(edited, 2 * len(judged))

  def test_steps_of_other_graphs_are_other_graphs(self):
    def train_op(loss):
      return adamw(loss, lambda step: 0.05 * (1.0 + tf.math.floormod(step, 2.0)))

    verdict, _, _ = self._graphs(lambda: Counting(decay=0.01), train_op)
    self.assertIn('proven', verdict.to_text())
    self.assertIn('0.02', verdict.to_text())
    right, _, _ = self._graphs(Counting, train_op)
    self.assertTrue(right.passed, right.to_text())


class HonestyTest(absltest.TestCase):
  def test_what_holds_in_the_first_step_alone_is_not_proven(self):
    """In the first step the correction is a constant, which an edit may not put there."""
    known = edited_steps.EditedSteps.judged

    def judged(self, repairs):
      left, shares = known(self, repairs)
      return left | {('update', 'kernel', 'step 3')}, shares

    with unittest.mock.patch.object(edited_steps.EditedSteps, 'judged', judged):
      verdict = steps_of(lambda: AdamW(decay=0.01))
    self.assertNotIn('proven', verdict.to_text())

  def test_slot_that_starts_otherwise_is_no_edit(self):
    class Case(_Case):
      def make_tf1_train_op(self, loss):
        return v1.train.RMSPropOptimizer(0.01).minimize(loss)

      def make_tf2_optimizer(self):
        return tf.keras.optimizers.legacy.RMSprop(0.01, rho=0.9, epsilon=1e-10)

      def tf2_train_step(self, layer, inputs, labels, optimizer):
        with tf.GradientTape() as tape:
          loss = self.tf2_loss(layer(inputs, training=True), labels)
        variables = layer.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
        return loss

    verdict = tf2verify.verify(Case, stages=['training_steps']).stages[-1]
    self.assertIn('no experiment: the values before the step', verdict.to_text())
    self.assertTrue(all(cause.experiment is None for cause in verdict.diagnosis.causes))

  def test_step_that_cannot_be_traced_has_no_experiment(self):
    class WithNumpy(AdamW):
      def direction(self, m, v):
        return m.numpy() / (tf.sqrt(v) + 1e-2)

    verdict = steps_of(WithNumpy)
    self.assertNotIn('proven', verdict.to_text())


if __name__ == '__main__':
  absltest.main()
