"""Optimizers and schedules of TF1 and Keras that look different and take the same steps."""

import abc

import tensorflow as tf

from tests.port_bugs import contrib_optimizers, schedules, trained_models
from tests.port_bugs.port_bug import Control

v1 = tf.compat.v1
new, legacy = tf.keras.optimizers, tf.keras.optimizers.legacy
_L1_L2 = {'l1_regularization_strength': 0.01, 'l2_regularization_strength': 0.01}


class Adagrad(trained_models.Trained):
  def make_tf1_optimizer(self):
    return v1.train.AdagradOptimizer(0.1)

  def make_tf2_optimizer(self):
    return new.Adagrad(0.1)


class LegacyAdagrad(Adagrad):
  def make_tf2_optimizer(self):
    return legacy.Adagrad(0.1)


class Ftrl(trained_models.Trained):
  def make_tf1_optimizer(self):
    return v1.train.FtrlOptimizer(0.1, **_L1_L2)

  def make_tf2_optimizer(self):
    return new.Ftrl(0.1, **_L1_L2)


class LegacyFtrl(Ftrl):
  def make_tf2_optimizer(self):
    return legacy.Ftrl(0.1, **_L1_L2)


class AdaMax(trained_models.FewSignals):
  def make_tf1_optimizer(self):
    return contrib_optimizers.AdaMaxOptimizer(0.01)

  def make_tf2_optimizer(self):
    return new.Adamax(0.01, epsilon=1e-8)


class LegacyAdaMax(AdaMax):
  def make_tf2_optimizer(self):
    return legacy.Adamax(0.01, epsilon=1e-8)


class Adam(trained_models.FewSignals):
  def make_tf1_optimizer(self):
    return v1.train.AdamOptimizer(0.001)

  def make_tf2_optimizer(self):
    return new.Adam(0.001, epsilon=1e-8)


class LegacyAdam(Adam):
  def make_tf2_optimizer(self):
    return legacy.Adam(0.001, epsilon=1e-8)


class Adadelta(trained_models.Trained):
  def make_tf1_optimizer(self):
    return v1.train.AdadeltaOptimizer(0.01)

  def make_tf2_optimizer(self):
    return new.Adadelta(0.01, epsilon=1e-8)


class LegacyAdadelta(Adadelta):
  def make_tf2_optimizer(self):
    return legacy.Adadelta(0.01, epsilon=1e-8)


class Momentum(trained_models.Trained):
  nesterov = False

  def make_tf1_optimizer(self):
    return v1.train.MomentumOptimizer(0.1, 0.9, use_nesterov=self.nesterov)

  def make_tf2_optimizer(self):
    return new.SGD(0.1, 0.9, nesterov=self.nesterov)


class LegacyMomentum(Momentum):
  def make_tf2_optimizer(self):
    return legacy.SGD(0.1, 0.9, nesterov=self.nesterov)


class Nesterov(Momentum):
  nesterov = True


class LegacyNesterov(LegacyMomentum):
  nesterov = True


class RmsPropFromOne(new.RMSprop):
  """Starts the mean of squares where TF1 does."""

  def build(self, var_list):
    first = not getattr(self, '_built', False)
    super().build(var_list)
    for velocity in self._velocities if first else ():
      velocity.assign(tf.ones_like(velocity))


class PresetRmsProp(trained_models.Trained):
  def make_tf1_optimizer(self):
    return v1.train.RMSPropOptimizer(0.01)

  def make_tf2_optimizer(self):
    return RmsPropFromOne(0.01, epsilon=1e-10)


class Scheduled(trained_models.Trained, abc.ABC):
  """A learning rate that changes."""

  training_steps_to_take = 5

  def tf1_rate(self, step):
    raise NotImplementedError

  def tf2_rate(self):
    raise NotImplementedError

  def make_tf1_optimizer(self):
    return v1.train.GradientDescentOptimizer(self.tf1_rate(v1.train.get_or_create_global_step()))

  def make_tf2_optimizer(self):
    return new.SGD(self.tf2_rate())


class Exponential(Scheduled):
  def tf1_rate(self, step):
    return v1.train.exponential_decay(0.1, step, 3, 0.9)

  def tf2_rate(self):
    return new.schedules.ExponentialDecay(0.1, 3, 0.9)


class Piecewise(Scheduled):
  def tf1_rate(self, step):
    return v1.train.piecewise_constant(step, [1, 3], [0.1, 0.05, 0.01])

  def tf2_rate(self):
    return new.schedules.PiecewiseConstantDecay([1, 3], [0.1, 0.05, 0.01])


class Polynomial(Scheduled):
  def tf1_rate(self, step):
    return v1.train.polynomial_decay(0.1, step, 4, power=2.0)

  def tf2_rate(self):
    return new.schedules.PolynomialDecay(0.1, 4, power=2.0)


class InverseTime(Scheduled):
  def tf1_rate(self, step):
    return v1.train.inverse_time_decay(0.1, step, 2, 0.5)

  def tf2_rate(self):
    return new.schedules.InverseTimeDecay(0.1, 2, 0.5)


class KeptMomentum(schedules.ScheduledMomentum):
  def make_tf2_optimizer(self):
    return self.make_tf1_optimizer()


CONTROLS = (
  Control('Adagrad of Keras: the accumulator starts at 0.1 as in TF1', Adagrad),
  Control('the same, legacy', LegacyAdagrad),
  Control('Ftrl of Keras with an explicit learning rate', Ftrl),
  Control('the same, legacy', LegacyFtrl),
  Control("AdaMax of contrib and Keras' Adamax with epsilon 1e-8, tiny gradients", AdaMax),
  Control('the same, legacy', LegacyAdaMax),
  Control('Adam of Keras with epsilon 1e-8, tiny gradients', Adam),
  Control('the same, legacy', LegacyAdam),
  Control('Adadelta of Keras with epsilon 1e-8', Adadelta),
  Control('the same, legacy', LegacyAdadelta),
  Control('momentum of Keras at a constant learning rate', Momentum),
  Control('the same, legacy', LegacyMomentum),
  Control("Nesterov's momentum of Keras at a constant learning rate", Nesterov),
  Control('the same, legacy', LegacyNesterov),
  Control('RMSProp of Keras with its slot preset to 1 and epsilon 1e-10', PresetRmsProp),
  Control('momentum of TF1 with a schedule, kept in eager mode', KeptMomentum),
  Control('exponential decay of TF1 and of Keras', Exponential),
  Control('piecewise constant learning rates of TF1 and of Keras', Piecewise),
  Control('polynomial decay of TF1 and of Keras', Polynomial),
  Control('inverse time decay of TF1 and of Keras', InverseTime),
)
