"""Steps that do more, or less, than an update: gradients accumulated, losses scaled."""

import abc

import tensorflow as tf
from absl.testing import absltest, parameterized

import tf2verify
from tests.stages.first_failure import LadderTestCase
from tests.stages.training.training_steps_test import RATE, STAGE, OwnLoop, Trained

v1 = tf.compat.v1
keras = tf.keras.optimizers


class Accumulated(OwnLoop, abc.ABC):
  """Applies the mean gradient of two steps at every second one."""

  training_steps_to_take = 4
  counts_every = 1

  def make_tf1_train_op(self, loss):
    variables = v1.trainable_variables()
    sums = [
      v1.get_variable(f'sum/{v.op.name}', v.shape, initializer=v1.zeros_initializer())
      for v in variables
    ]
    gradients = tf.gradients(loss, variables)
    added = [s.assign_add(g / 2) for s, g in zip(sums, gradients, strict=True)]
    with tf.control_dependencies(added):
      step = v1.train.get_or_create_global_step().assign_add(1)

    def update():
      pairs = [(s.read_value(), v) for s, v in zip(sums, variables, strict=True)]
      with tf.control_dependencies(
        [v1.train.GradientDescentOptimizer(RATE).apply_gradients(pairs)]
      ):
        return tf.group(*(s.assign(tf.zeros_like(s)) for s in sums))

    return tf.cond(tf.equal(step % 2, 0), update, tf.no_op)

  def make_tf2_optimizer(self):
    return {'sgd': keras.SGD(RATE), 'sums': {}, 'micro': tf.Variable(0)}

  def update(self, optimizer, gradients, variables):
    sums, micro = optimizer['sums'], optimizer['micro']
    for gradient, variable in zip(gradients, variables, strict=True):
      kept = sums.setdefault(variable.name, tf.Variable(tf.zeros_like(variable)))
      kept.assign_add(gradient / 2)
    micro.assign_add(self.counts_every)
    if micro % (2 * self.counts_every) == 0:
      pairs = [(tf.identity(sums[v.name]), v) for v in variables]
      optimizer['sgd'].apply_gradients(pairs)
      for kept in sums.values():
        kept.assign(tf.zeros_like(kept))


class SummedThenHalved(Accumulated, abc.ABC):
  """The same, with plain variables that start with a tensor, and halved when applied."""

  times = 1.0
  zeroed_after_update = True

  def make_tf1_train_op(self, loss):
    variables = v1.trainable_variables()
    sums = [v1.Variable(tf.zeros(v.shape), trainable=False, name='sum') for v in variables]
    step = v1.train.get_or_create_global_step()
    added = [s.assign_add(g) for s, g in zip(sums, tf.gradients(loss, variables), strict=True)]
    with tf.control_dependencies(added):
      counted = step.assign_add(1)

    def update():
      pairs = [(s / 2, v) for s, v in zip(sums, variables, strict=True)]
      applied = v1.train.GradientDescentOptimizer(RATE).apply_gradients(pairs)
      with tf.control_dependencies([applied] if self.zeroed_after_update else []):
        zeroed = [s.assign(tf.zeros_like(s)) for s in sums]
      return tf.group(applied, *zeroed)

    return tf.cond(tf.equal(counted % 2, 0), update, tf.no_op)

  def update(self, optimizer, gradients, variables):
    super().update(optimizer, [self.times * g for g in gradients], variables)


class Scaled(OwnLoop, abc.ABC):
  """A loss scale in tf1 that the gradients are divided by before they are applied."""

  times = 1.0
  scale = 128.0

  def make_tf1_train_op(self, loss):
    optimizer = v1.train.GradientDescentOptimizer(RATE)
    pairs = optimizer.compute_gradients(loss * self.scale)
    pairs = [(g / self.scale * (2.0 if 'bias' in v.name else 1.0), v) for g, v in pairs]
    return optimizer.apply_gradients(pairs, v1.train.get_or_create_global_step())

  def update(self, optimizer, gradients, variables):
    pairs = [
      (self.times * g * (2.0 if 'bias' in v.name else 1.0), v)
      for g, v in zip(gradients, variables, strict=True)
    ]
    optimizer.apply_gradients(pairs)


class Averaged(OwnLoop, abc.ABC):
  """Averages of the weights by hand; those of tf1 start with `initial_value`."""

  decay = 0.9

  def make_tf1_train_op(self, loss):
    variables = v1.trainable_variables()
    update = v1.train.GradientDescentOptimizer(RATE).minimize(loss)
    averages = [
      v1.get_variable(f'{v.op.name}_avg', initializer=v.initial_value, trainable=False)
      for v in variables
    ]
    with tf.control_dependencies([update]):
      pairs = zip(averages, variables, strict=True)
      moved = [a.assign(0.9 * a + 0.1 * v.read_value()) for a, v in pairs]
    with tf.control_dependencies(moved):
      return v1.train.get_or_create_global_step().assign_add(1)

  def make_tf2_optimizer(self):
    return {'sgd': keras.SGD(RATE), 'avg': {}}

  def update(self, optimizer, gradients, variables):
    averages = optimizer['avg']
    for variable in variables:
      if variable.name not in averages:
        averages[variable.name] = tf.Variable(variable)
    optimizer['sgd'].apply_gradients(zip(gradients, variables, strict=True))
    for variable in variables:
      average = averages[variable.name]
      average.assign(self.decay * average + (1.0 - self.decay) * variable)


class AccumulatedTest(LadderTestCase, parameterized.TestCase):
  def status(self, case):
    return tf2verify.verify(case, stages=[STAGE]).stages[-1]

  def test_a_counter_beside_that_of_the_optimizer(self):
    class Case(Accumulated):
      pass

    self.assertIs(self.status(Case).status, tf2verify.Status.PASSED, self.status(Case).to_text())

  def test_no_counter_that_counts_as_tf1(self):
    class Case(Accumulated):
      counts_every = 2

    self.assert_first_failure(Case, STAGE, 'global step (count) [step 1]')

  def test_sums_that_start_with_a_tensor(self):
    """What makes everything wait for the losses is not to reach the initial values."""

    class Case(SummedThenHalved):
      pass

    found = self.status(Case)
    self.assertIs(found.status, tf2verify.Status.PASSED, found.to_text())

  def test_sums_that_are_not_halved(self):
    class Case(SummedThenHalved):
      times = 2.0

    self.assert_first_failure(Case, STAGE, 'update kernel [step 2]')

  def test_a_branch_that_leaves_open_when_the_sums_are_zeroed(self):
    for times, status in ((1.0, tf2verify.Status.PASSED), (2.0, tf2verify.Status.FAILED)):
      with self.subTest(times):

        class Case(SummedThenHalved):
          zeroed_after_update = False

        Case.times = times
        found = self.status(Case)
        self.assertIs(found.status, status, found.to_text())
        self.assertIn('nothing in the graph of the reference orders', found.to_text())

  def test_averages_by_hand(self):
    class Case(Averaged):
      pass

    found = self.status(Case)
    self.assertIs(found.status, tf2verify.Status.PASSED, found.to_text())
    self.assertNotIn('not compared', found.to_text())

  def test_averages_with_another_decay(self):
    class Case(Averaged):
      decay = 0.91

    self.assert_first_failure(Case, STAGE, 'slot avg of kernel')

  @parameterized.parameters(128.0, 2.0**15, 10.0)
  def test_a_scaled_loss(self, scale):
    class Case(Scaled):
      pass

    Case.scale = scale
    found = self.status(Case)
    self.assertIs(found.status, tf2verify.Status.PASSED, found.to_text())
    self.assertIn(f'tf1 computes its gradients {scale:g} times as large and', found.to_text())

  def test_a_scaled_loss_and_other_gradients(self):
    class Case(Scaled):
      times = 0.99

    self.assert_first_failure(Case, STAGE, 'gradient kernel [step 1]')

  def test_clipped_gradients_of_another_size(self):
    class Case(Trained):
      def make_tf1_train_op(self, loss):
        optimizer = v1.train.GradientDescentOptimizer(RATE)
        gradients, variables = zip(*optimizer.compute_gradients(loss), strict=True)
        gradients, _ = tf.clip_by_global_norm(gradients, 1e-2)
        return optimizer.apply_gradients(zip(gradients, variables, strict=True))

      def tf2_train_step(self, layer, inputs, labels, optimizer):
        with tf.GradientTape() as tape:
          loss = self.tf2_loss(layer(inputs, training=True), labels)
          doubled = 2.0 * loss
        variables = layer.trainable_variables
        gradients, _ = tf.clip_by_global_norm(tape.gradient(doubled, variables), 1e-2)
        optimizer.apply_gradients(zip(gradients, variables, strict=True))
        return loss

    self.assert_first_failure(Case, STAGE, 'gradient kernel [step 1]')


if __name__ == '__main__':
  absltest.main()
