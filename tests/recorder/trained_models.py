"""Right models that are trained in other ways, for the recorder's tests."""

import numpy as np
import tensorflow as tf

from tests.sides.trained_sides import Trained

v1 = tf.compat.v1
train = v1.train


class CenteredRmsProp(Trained):
  def make_tf1_optimizer(self):
    return train.RMSPropOptimizer(0.01, 0.9, momentum=0.9, epsilon=1e-3, centered=True)


class Adam(Trained):
  def make_tf1_optimizer(self):
    return train.AdamOptimizer(0.01)


class DecayedNesterov(Trained):
  training_steps_to_take = 5

  def make_tf1_optimizer(self):
    step = train.get_or_create_global_step()
    rate = train.exponential_decay(0.1, step, 2, 0.5, staircase=True)
    return train.MomentumOptimizer(rate, 0.9, use_nesterov=True)


class ClippedAndAveraged(Trained):
  def make_tf1_train_op(self, loss):
    variables = v1.trainable_variables()
    gradients, _ = tf.clip_by_global_norm(tf.gradients(loss, variables), 0.1)
    step = train.get_or_create_global_step()
    pairs = zip(gradients, variables, strict=True)
    update = train.AdagradOptimizer(0.1).apply_gradients(pairs, step)
    average = tf.train.ExponentialMovingAverage(0.9, step)
    with tf.control_dependencies([update]):
      return average.apply(variables)


class Dropped(Trained):
  def model(self, inputs, training):
    net = super().model(inputs, training)
    return v1.nn.dropout(net, rate=0.5) if training else net


class DroppedInALoop(Trained):
  def model(self, inputs, training):
    net = super().model(inputs, training)

    def again(number, value):
      return number + 1, v1.nn.dropout(value, rate=0.1)

    return tf.while_loop(lambda n, _: n < 3, again, [0, net])[1] if training else net


class RegularizedNorm(Trained):
  run_update_ops = False

  def model(self, inputs, training):
    net = tf.matmul(inputs, v1.get_variable('kernel', [3, 3], regularizer=tf.nn.l2_loss))
    return v1.layers.batch_normalization(net, training=training, name='norm')


class Embedded(Trained):
  """Rows of one variable, one of them twice."""

  def model(self, inputs, training):
    return tf.nn.embedding_lookup(v1.get_variable('embedding', [5, 3]), inputs)

  def make_inputs(self):
    return np.array([3, 0, 3, 2], np.int32)


class TwoOptimizers(Trained):
  def make_tf1_train_op(self, loss):
    step = train.get_or_create_global_step()
    known = {variable.op.name: variable for variable in v1.trainable_variables()}
    return [
      train.AdamOptimizer(0.01).minimize(loss, step, [known['kernel']]),
      train.MomentumOptimizer(0.01, 0.9).minimize(loss, var_list=[known['bias']]),
    ]


class OwnMomentum(Trained):
  """State under the word `momentum` that is none of MomentumOptimizer's."""

  def make_tf1_train_op(self, loss):
    class Signs(train.Optimizer):
      def _create_slots(self, var_list):
        for variable in var_list:
          self._zeros_slot(variable, 'momentum', self.get_name())

      def _resource_apply_dense(self, grad, var):
        momentum = self.get_slot(var, 'momentum')
        with tf.control_dependencies([momentum.assign(0.9 * momentum + 0.1 * grad)]):
          return var.assign_sub(0.01 * tf.sign(momentum))

      _apply_dense = _resource_apply_dense

    return Signs(False, 'Signs').minimize(loss, train.get_or_create_global_step())


class KerasMomentum(Trained):
  def make_tf1_train_op(self, loss):
    variables = v1.trainable_variables()
    pairs = zip(tf.gradients(loss, variables), variables, strict=True)
    return self.optimizer().apply_gradients(pairs)

  def optimizer(self):
    return tf.keras.optimizers.legacy.SGD(0.01, momentum=0.9)


class OwnKerasMomentum(KerasMomentum):
  """SGD of Keras whose update is another one."""

  def optimizer(self):
    class Minus(tf.keras.optimizers.legacy.SGD):
      def _resource_apply_dense(self, grad, var, apply_state=None):
        momentum = self.get_slot(var, 'momentum')
        with tf.control_dependencies([momentum.assign(0.9 * momentum - grad)]):
          return var.assign_add(0.01 * momentum)

    return Minus(0.01, momentum=0.9)


class WordsBefore(Trained):
  """Slots by get_variable, their word before the name of the variable."""

  def make_tf1_train_op(self, loss):
    variables = v1.trainable_variables()
    updates = []
    for gradient, variable in zip(tf.gradients(loss, variables), variables, strict=True):
      name = f'optimizer/adam_m/{variable.op.name}'
      zeros = v1.zeros_initializer()
      m = v1.get_variable(name, variable.shape, trainable=False, initializer=zeros)
      with tf.control_dependencies([m.assign(0.9 * m + 0.1 * gradient)]):
        updates.append(variable.assign_sub(0.01 * m))
    return tf.group(*updates)
