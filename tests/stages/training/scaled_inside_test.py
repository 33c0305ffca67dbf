"""Gradients that one side scales before the update, and the other within it."""

import abc

import keras
import tensorflow as tf

import tf2verify
from tests.stages.first_failure import LadderTestCase
from tf2verify import Status

v1 = tf.compat.v1
_STAGE = 'training_steps'


class Scaling(keras.optimizers.Optimizer):
  """Momentum as of TF1, which scales the gradient of one layer."""

  def __init__(self, rate, factor, momentum=0.9, clip=None):
    super().__init__(rate, global_clipnorm=clip)
    self.factor, self.momentum = factor, momentum

  def build(self, variables):
    if not self.built:
      super().build(variables)
      self.velocities = self.add_optimizer_variables(variables, 'velocity')

  def update_step(self, gradient, variable, learning_rate):
    factor = self.factor if 'bias' in variable.name else 1.0
    held = self.velocities[self._get_variable_index(variable)]
    self.assign(held, self.momentum * held + factor * gradient)
    self.assign(variable, variable - learning_rate * held)


class ScaledBefore(tf2verify.EquivalenceCase, abc.ABC):
  factor = 5.0
  clip = None

  def build_tf1_graph(self, inputs, training):
    return v1.layers.dense(inputs, 3, name='logits')

  def make_tf2_layer(self):
    return keras.Sequential([keras.layers.Dense(3, name='logits')])

  def make_inputs(self):
    return tf2verify.normal_inputs((4, 5))

  def tf1_loss(self, outputs, labels):
    return tf.reduce_mean(outputs**2)

  tf2_loss = tf1_loss

  def make_tf1_train_op(self, loss):
    variables = v1.trainable_variables()
    gradients = tf.gradients(loss, variables)
    if self.clip:
      gradients, _ = tf.clip_by_global_norm(gradients, self.clip)
    scaled = [5.0 * g if 'bias' in v.name else g for g, v in zip(gradients, variables, strict=True)]
    optimizer = v1.train.MomentumOptimizer(0.01, 0.9)
    return optimizer.apply_gradients(zip(scaled, variables, strict=True))

  def make_tf2_optimizer(self):
    return Scaling(0.01, self.factor, clip=self.clip)


class Clipping(Scaling):
  """The same, with elements of gradients clipped in the update."""

  def update_step(self, gradient, variable, learning_rate):
    gradient = tf.clip_by_value(gradient, -self.factor, self.factor)
    held = self.velocities[self._get_variable_index(variable)]
    self.assign(held, self.momentum * held + gradient)
    self.assign(variable, variable - learning_rate * held)


class ClippedBefore(ScaledBefore, abc.ABC):
  """Means over two towers, clipped: TF1 has no other gradients of a variable."""

  def make_tf1_train_op(self, loss, outputs):
    optimizer = v1.train.MomentumOptimizer(0.01, 0.9)
    towers = [
      optimizer.compute_gradients(self.tf1_loss(part, None)) for part in tf.split(outputs, 2)
    ]
    means = [(tf.add_n([g for g, _ in one]) / 2.0, one[0][1]) for one in zip(*towers, strict=True)]
    return optimizer.apply_gradients([(tf.clip_by_value(g, -0.01, 0.01), v) for g, v in means])

  def make_tf2_optimizer(self):
    return Clipping(0.01, self.factor)


class ScaledInsideTest(LadderTestCase):
  def stage(self, case):
    verdict = tf2verify.verify(case, [_STAGE])
    return next(stage for stage in verdict.stages if stage.stage == _STAGE)

  def test_the_same_factor(self):
    class Case(ScaledBefore):
      pass

    found = self.stage(Case)
    self.assertIs(found.status, Status.PASSED, found.to_text())
    self.assertIn('one side scales the gradients before the update', ' '.join(found.notes))

  def test_after_clipping(self):
    class Case(ScaledBefore):
      clip = 0.01

    found = self.stage(Case)
    self.assertIs(found.status, Status.PASSED, found.to_text())

  def test_clipped_within_the_update(self):
    for bound in (0.01, 0.02):
      with self.subTest(bound=bound):
        found = self.stage(type('Case', (ClippedBefore,), {'factor': bound}))
        wanted = Status.PASSED if bound == 0.01 else Status.FAILED
        self.assertIs(found.status, wanted, found.to_text())

  def test_decayed_within_the_update(self):
    """By a share of the gradient that is small, and that the update shows all the same."""

    class Decaying(keras.optimizers.SGD):
      def __init__(self, factor, **settings):
        super().__init__(0.01, **settings)
        self.factor = factor

      def update_step(self, gradient, variable, learning_rate):
        if len(variable.shape) == 2:
          gradient = gradient + self.factor * variable
        super().update_step(gradient, variable, learning_rate)

    class Case(ScaledBefore):
      factor, momentum = 5e-4, 0.9

      def make_tf1_train_op(self, loss):
        has_momentum = v1.train.MomentumOptimizer(0.01, 0.9)
        optimizer = has_momentum if self.momentum else v1.train.GradientDescentOptimizer(0.01)
        known = optimizer.compute_gradients(loss)
        decayed = [(g + 5e-4 * v if 'kernel' in v.name else g, v) for g, v in known]
        return optimizer.apply_gradients(decayed)

      def make_tf2_optimizer(self):
        return Decaying(self.factor, momentum=self.momentum)

    for factor, momentum in ((5e-4, 0.9), (5e-4, 0.0), (6e-4, 0.9), (0.0, 0.0)):
      with self.subTest(factor=factor, momentum=momentum):
        found = self.stage(type('Other', (Case,), {'factor': factor, 'momentum': momentum}))
        wanted = Status.PASSED if factor == 5e-4 else Status.FAILED
        self.assertIs(found.status, wanted, found.to_text())

  def test_one_of_two_slots_differs(self):
    class Case(ScaledBefore):
      def make_tf1_train_op(self, loss):
        optimizer = v1.train.AdadeltaOptimizer(0.5)
        known = optimizer.compute_gradients(loss)
        return optimizer.apply_gradients([(tf.clip_by_norm(g, 0.01), v) for g, v in known])

      def make_tf2_optimizer(self):
        return keras.optimizers.Adadelta(0.5, rho=0.95, epsilon=1e-8, global_clipnorm=0.01)

    found = self.stage(Case)
    self.assertIs(found.status, Status.FAILED)
    self.assertNotIn('the updates and the slots agree', ' '.join(found.notes))

  def test_an_update_too_small_to_show_a_factor(self):
    class Case(ScaledBefore):
      def build_tf1_graph(self, inputs, training):
        return v1.layers.dense(v1.layers.dense(1e-6 * inputs, 3, name='small'), 2, name='logits')

      def make_tf2_layer(self):
        small, last = keras.layers.Dense(3, name='small'), keras.layers.Dense(2, name='logits')
        return keras.Sequential([keras.layers.Rescaling(1e-6), small, last])

      def tf1_loss(self, outputs, labels):
        return tf.reduce_mean((outputs - 1.0) ** 2)

      tf2_loss = tf1_loss

      def make_tf1_train_op(self, loss):
        optimizer = v1.train.AdagradOptimizer(0.01)
        gradients, variables = zip(*optimizer.compute_gradients(loss), strict=True)
        gradients, _ = tf.clip_by_global_norm(gradients, 0.1)
        return optimizer.apply_gradients(zip(gradients, variables, strict=True))

      def make_tf2_optimizer(self):
        return keras.optimizers.Adagrad(0.01, 0.1, epsilon=0.0, global_clipnorm=0.05)

    found = self.stage(Case)
    self.assertIs(found.status, Status.FAILED)
    self.assertIn('applied gradient small/kernel', found.to_text())
    self.assertNotIn('the updates and the slots agree', ' '.join(found.notes))

  def test_another_factor(self):
    class Case(ScaledBefore):
      factor = 4.0

    self.assertIs(self.stage(Case).status, Status.FAILED)

  def test_no_factor(self):
    class Case(ScaledBefore):
      factor = 1.0

    self.assertIs(self.stage(Case).status, Status.FAILED)

  def test_momentum_shows_a_factor_in_the_update(self):
    class Case(ScaledBefore):
      slot_names = {'logits/kernel/Momentum': None, 'logits/bias/Momentum': None}

    found = self.stage(Case)
    self.assertIs(found.status, Status.PASSED, found.to_text())

  def test_adam_does_not_show_a_factor_and_what_it_keeps_does(self):
    class Case(ScaledBefore):
      def make_tf1_train_op(self, loss):
        variables = v1.trainable_variables()
        gradients = [5.0 * g for g in tf.gradients(loss, variables)]
        optimizer = v1.train.AdamOptimizer(0.01, epsilon=1e-12)
        return optimizer.apply_gradients(zip(gradients, variables, strict=True))

      def make_tf2_optimizer(self):
        return keras.optimizers.Adam(0.01, epsilon=1e-12)

    self.assertIs(self.stage(Case).status, Status.FAILED)

  def test_what_adam_keeps_has_to_be_compared(self):
    class Case(ScaledBefore):
      def slot_names(self, name):
        return None

      def make_tf1_train_op(self, loss):
        variables = v1.trainable_variables()
        gradients = [5.0 * g for g in tf.gradients(loss, variables)]
        optimizer = v1.train.AdamOptimizer(0.01, epsilon=1e-12)
        return optimizer.apply_gradients(zip(gradients, variables, strict=True))

      def make_tf2_optimizer(self):
        return keras.optimizers.Adam(0.01, epsilon=1e-12)

    self.assertIs(self.stage(Case).status, Status.FAILED)
