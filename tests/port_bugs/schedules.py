"""Mistakes that show when a learning rate changes."""

import tensorflow as tf

from tests.port_bugs import trained_models
from tests.port_bugs.port_bug import PortBug
from tests.port_bugs.trained_models import differentiated

v1 = tf.compat.v1
_STEPS = 'training_steps'


def global_step():
  return v1.train.get_or_create_global_step()


class MomentumOfTf1(tf.keras.optimizers.SGD):
  """Multiplies by the learning rate what is accumulated, not what is added to it."""

  def update_step(self, gradient, variable):
    accumulated = self.momentums[self._index_dict[self._var_key(variable)]]
    accumulated.assign(self.momentum * accumulated + gradient)
    variable.assign_sub(self.learning_rate * accumulated)


class ScheduledMomentum(trained_models.Trained):
  """The learning rate drops to a tenth after two steps."""

  def make_tf1_optimizer(self):
    rate = v1.train.piecewise_constant(global_step(), [1], [0.1, 0.01])
    return v1.train.MomentumOptimizer(rate, 0.9)

  def tf2_rate(self):
    return tf.keras.optimizers.schedules.PiecewiseConstantDecay([1], [0.1, 0.01])

  def make_tf2_optimizer(self):
    return MomentumOfTf1(self.tf2_rate(), 0.9)


class ScheduledMomentumOfKeras(ScheduledMomentum):
  def make_tf2_optimizer(self):
    return tf.keras.optimizers.SGD(self.tf2_rate(), momentum=0.9)


class Decayed(trained_models.Trained):
  def make_tf1_optimizer(self):
    rate = v1.train.exponential_decay(0.1, global_step(), 1, 0.5)
    return v1.train.GradientDescentOptimizer(rate)

  def make_tf2_optimizer(self):
    return tf.keras.optimizers.SGD(tf.keras.optimizers.schedules.ExponentialDecay(0.1, 1, 0.5))


class DecayedOnce(Decayed):
  def make_tf2_optimizer(self):
    step = tf.Variable(0, dtype=tf.int64)
    rate = v1.train.exponential_decay(0.1, step, 1, 0.5)
    return tf.keras.optimizers.SGD(float(rate()))


class Staircase(trained_models.Trained):
  """The learning rate is halved at every other step."""

  training_steps_to_take = 4
  staircase = True

  def make_tf1_optimizer(self):
    rate = v1.train.exponential_decay(0.1, global_step(), 2, 0.5, staircase=True)
    return v1.train.GradientDescentOptimizer(rate)

  def make_tf2_optimizer(self):
    decay = tf.keras.optimizers.schedules.ExponentialDecay(0.1, 2, 0.5, self.staircase)
    return tf.keras.optimizers.SGD(decay)


class Slope(Staircase):
  staircase = False


class OneGlobalStep(trained_models.TwoNetworks):
  """Critic and generator in turn; each counts one global step, which the schedule reads."""

  def make_tf1_train_op(self, loss):
    variables = v1.trainable_variables()
    gradients = tf.gradients(loss, variables)
    pairs = list(zip(gradients, variables, strict=True))
    after = gradients
    for name in ('critic', 'generator'):
      with tf.control_dependencies(after):
        rate = v1.train.exponential_decay(0.1, global_step(), 1, 0.9)
        optimizer = v1.train.GradientDescentOptimizer(rate)
        own = [pair for pair in pairs if pair[1].name.startswith(name)]
        after = [optimizer.apply_gradients(own, global_step())]
    return after[0]

  def make_tf2_optimizer(self):
    decay = tf.keras.optimizers.schedules.ExponentialDecay(0.1, 1, 0.9)
    return tf.keras.optimizers.legacy.SGD(decay)

  def tf2_train_step(self, layer, inputs, labels, optimizer):
    loss, gradients = differentiated(self, layer, inputs, labels)
    pairs = list(zip(gradients, layer.trainable_variables, strict=True))
    for name in ('critic', 'generator'):
      optimizer.apply_gradients([pair for pair in pairs if pair[1].name.startswith(name)])
    return loss


class TwoCountsOfSteps(OneGlobalStep):
  def tf2_train_step(self, layer, inputs, labels, optimizer):
    loss, gradients = differentiated(self, layer, inputs, labels)
    if not hasattr(layer, 'of_generator'):
      layer.of_generator = [self.make_tf2_optimizer()]
    pairs = list(zip(gradients, layer.trainable_variables, strict=True))
    for name, own in (('critic', optimizer), ('generator', layer.of_generator[0])):
      own.apply_gradients([pair for pair in pairs if pair[1].name.startswith(name)])
    return loss


PORT_BUGS = (
  PortBug(
    'B60',
    'momentum and a schedule',
    tf1='MomentumOptimizer multiplies the accumulated gradients by the learning rate of the step',
    mistake='SGD of Keras adds each gradient with the learning rate of its own step',
    stage=_STEPS,
    wrong=ScheduledMomentumOfKeras,
    right=ScheduledMomentum,
    words=('momentum', 'learning rate', 'until the learning rate changes'),
  ),
  PortBug(
    'B66',
    'frozen schedule',
    tf1='the learning rate is a tensor of the global step',
    mistake='its value is taken once, when the optimizer is made',
    stage=_STEPS,
    wrong=DecayedOnce,
    right=Decayed,
    words=('learning rate', 'stays', 'tf.keras.optimizers.schedules'),
  ),
  PortBug(
    'B67',
    'staircase',
    tf1='exponential_decay(staircase=True)',
    mistake='ExponentialDecay with its default, staircase=False',
    stage=_STEPS,
    wrong=Slope,
    right=Staircase,
    words=('staircase=True', 'learning rate'),
  ),
  PortBug(
    'B68',
    'one global step for two optimizers',
    tf1='two optimizers count the same global step, which their schedules read',
    mistake='each Keras optimizer counts its own iterations',
    stage=_STEPS,
    wrong=TwoCountsOfSteps,
    right=OneGlobalStep,
    words=('global_step', 'iterations', '2 a step'),
  ),
)
