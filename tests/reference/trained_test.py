"""Tests of which variables a train op trains."""

import tensorflow as tf
from absl.testing import absltest

from tf2verify.reference.trained import trained_variables
from tf2verify.reference.updates import Updates

v1 = tf.compat.v1


class TrainedTest(absltest.TestCase):
  """Of the variables `online`, `target` and `other`, which are all trainable."""

  def setUp(self):
    super().setUp()
    self.enter_context(tf.Graph().as_default())
    self.inputs = v1.placeholder(tf.float32, [2])

  def variables(self, use_resource=True):
    found = [
      v1.get_variable(name, [2], use_resource=use_resource)
      for name in ('online', 'target', 'other')
    ]
    self.online, self.target, self.other = found
    # Nothing stops the gradient: which variables are trained, the train op says.
    self.loss = tf.reduce_sum(tf.square(self.online - self.target * self.inputs))

  def trained(self, make):
    updates, gate = Updates(), tf.no_op()
    with updates.recording():
      train_op = tf.group(make())
    handles = {v.op.name: v.initializer.inputs[0] for v in (self.online, self.target, self.other)}
    return trained_variables(train_op, handles, gate, updates)

  def copied(self):
    return self.target.assign(0.9 * self.target + 0.1 * self.online)

  def step(self, **options):
    return v1.train.AdamOptimizer(0.1).minimize(self.loss, **options)

  def test_by_an_optimizer(self):
    for use_resource in (True, False):
      with self.subTest(use_resource), tf.Graph().as_default():
        self.inputs = v1.placeholder(tf.float32, [2])
        self.variables(use_resource)
        self.assertEqual(self.trained(self.step), ['online', 'target'])

  def test_a_target_network_is_a_copy(self):
    for use_resource in (True, False):
      with self.subTest(use_resource), tf.Graph().as_default():
        self.inputs = v1.placeholder(tf.float32, [2])
        self.variables(use_resource)

        def make():
          with tf.control_dependencies([self.step(var_list=[self.online])]):
            return self.copied()

        self.assertEqual(self.trained(make), ['online'])

  def test_gradients_of_all_and_updates_of_some(self):
    self.variables()

    def make():
      optimizer = v1.train.GradientDescentOptimizer(0.1)
      pairs = optimizer.compute_gradients(self.loss, [self.online, self.target])
      return tf.group(optimizer.apply_gradients(pairs[:1]), self.copied())

    self.assertEqual(self.trained(make), ['online'])

  def test_an_optimizer_that_is_given_no_gradient(self):
    self.variables()
    self.loss = tf.reduce_sum(tf.square(self.online - tf.stop_gradient(self.target)))
    self.assertEqual(self.trained(self.step), ['online'])

  def test_updates_that_the_train_op_does_not_run(self):
    self.variables()

    def make():
      self.step(var_list=[self.target])
      return self.step(var_list=[self.online])

    self.assertEqual(self.trained(make), ['online'])

  def test_written_by_hand(self):
    self.variables()

    def make():
      (gradient,) = tf.gradients(self.loss, [self.online])
      stepped = self.online - 0.1 * gradient
      copied = self.target.assign(0.9 * self.target + 0.1 * stepped)
      return tf.group(self.online.assign(stepped), copied)

    self.assertEqual(self.trained(make), ['online'])

  def test_written_by_hand_from_an_accumulator(self):
    for use_resource in (True, False):
      with self.subTest(use_resource), tf.Graph().as_default():
        self.inputs = v1.placeholder(tf.float32, [2])
        self.variables(use_resource)

        def make():
          kept = v1.get_variable('kept', [2], trainable=False, use_resource=self.use_resource)
          (gradient,) = tf.gradients(self.loss, [self.online])
          with tf.control_dependencies([kept.assign_add(gradient)]):
            return self.online.assign_sub(0.1 * kept)

        self.use_resource = use_resource
        self.assertEqual(self.trained(make), ['online'])

  def test_in_a_branch_that_is_not_always_taken(self):
    self.variables()
    count = v1.get_variable('count', [], tf.int32, trainable=False)

    def make():
      step = self.step(var_list=[self.online])
      with tf.control_dependencies([step]):
        return v1.cond(count % 100 < 1, lambda: tf.group(self.copied()), tf.no_op)

    self.assertEqual(self.trained(make), ['online'])

  def test_by_the_gradient_of_what_is_read_of_it(self):
    self.variables()
    read = tf.identity(self.other)
    self.loss += tf.reduce_sum(tf.square(read - self.inputs))

    def make():
      (gradient,) = tf.gradients(self.loss, [read])
      return self.other.assign_sub(0.1 * gradient)

    self.assertEqual(self.trained(make), ['other'])

  def test_an_average_of_the_inputs_is_no_gradient(self):
    self.variables()

    def make():
      return tf.group(
        self.step(var_list=[self.online]), self.other.assign(0.9 * self.other + 0.1 * self.inputs)
      )

    self.assertEqual(self.trained(make), ['online'])

  def test_what_the_model_has_made_before(self):
    self.variables()
    step = self.step(var_list=[self.online])
    average, copied = self.other.assign(0.9 * self.other + 0.1 * self.inputs), self.copied()
    made = self.trained(lambda: tf.group(step, average, copied))
    # Whether that is a gradient of `other`, nobody saw.
    self.assertEqual(made, ['online', 'other'])


if __name__ == '__main__':
  absltest.main()
