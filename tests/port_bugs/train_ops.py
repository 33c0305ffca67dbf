"""Mistakes of what a training step does beside the update rule."""

import tensorflow as tf
import tf_slim as slim

from tests.port_bugs import trained_models
from tests.port_bugs.port_bug import PortBug
from tests.port_bugs.trained_models import differentiated, of_network

v1 = tf.compat.v1
_STEPS = 'training_steps'


class ClippedTogether(trained_models.Steep):
  def make_tf1_train_op(self, loss):
    optimizer = v1.train.GradientDescentOptimizer(0.1)
    gradients, variables = zip(*optimizer.compute_gradients(loss), strict=True)
    clipped, _ = tf.clip_by_global_norm(gradients, 1.0)
    step = v1.train.get_or_create_global_step()
    return optimizer.apply_gradients(zip(clipped, variables, strict=True), step)

  def make_tf2_optimizer(self):
    return tf.keras.optimizers.SGD(0.1, global_clipnorm=1.0)


class ClippedApart(ClippedTogether):
  def make_tf2_optimizer(self):
    return tf.keras.optimizers.SGD(0.1, clipnorm=1.0)


def clip_each(pairs):
  # What clip_gradient_norm=1.0 does, in a tf-slim whose TensorFlow still has ops.IndexedSlices.
  return [(tf.clip_by_norm(gradient, 1.0), variable) for gradient, variable in pairs]


class ClippedBySlim(trained_models.Steep):
  def make_tf1_train_op(self, loss):
    optimizer = v1.train.GradientDescentOptimizer(0.1)
    return slim.training.create_train_op(loss, optimizer, transform_grads_fn=clip_each)

  def make_tf2_optimizer(self):
    return tf.keras.optimizers.SGD(0.1, clipnorm=1.0)


class ClippedTogetherForSlim(ClippedBySlim):
  def make_tf2_optimizer(self):
    return tf.keras.optimizers.SGD(0.1, global_clipnorm=1.0)


class Averaged(trained_models.Trained):
  """Keeps a moving average of the weights, which follows fast in the beginning."""

  def average(self, step):
    return tf.train.ExponentialMovingAverage(0.999, num_updates=step)

  def make_tf1_train_op(self, loss):
    step = v1.train.get_or_create_global_step()
    trained = v1.train.GradientDescentOptimizer(0.1).minimize(loss, step)
    with tf.control_dependencies([trained]):
      return self.average(step).apply(v1.trainable_variables())

  def make_tf2_optimizer(self):
    return tf.keras.optimizers.SGD(0.1)

  def tf2_train_step(self, layer, inputs, labels, optimizer):
    if not hasattr(layer, 'average'):
      layer.average = self.average(optimizer.iterations)
      layer.average.apply(layer.trainable_variables)  # it starts where the weights do
    loss, gradients = differentiated(self, layer, inputs, labels)
    optimizer.apply_gradients(zip(gradients, layer.trainable_variables, strict=True))
    layer.average.apply(layer.trainable_variables)
    return loss


class AveragedByKeras(Averaged):
  def make_tf2_optimizer(self):
    return tf.keras.optimizers.SGD(0.1, use_ema=True, ema_momentum=0.999)

  def tf2_train_step(self, layer, inputs, labels, optimizer):
    loss, gradients = differentiated(self, layer, inputs, labels)
    optimizer.apply_gradients(zip(gradients, layer.trainable_variables, strict=True))
    return loss


class CriticAlone(trained_models.TwoNetworks):
  """Fetches the train op of one of the two networks."""

  trained = 'critic'

  def make_tf1_train_op(self, loss):
    optimizer = v1.train.GradientDescentOptimizer(0.1)
    step, variables = v1.train.get_or_create_global_step(), v1.trainable_variables()
    optimizer.minimize(loss, var_list=of_network('generator', variables))
    return optimizer.minimize(loss, step, var_list=of_network('critic', variables))

  def make_tf2_optimizer(self):
    return tf.keras.optimizers.SGD(0.1)

  def tf2_train_step(self, layer, inputs, labels, optimizer):
    loss, gradients = differentiated(self, layer, inputs, labels)
    pairs = zip(gradients, layer.trainable_variables, strict=True)
    optimizer.build(layer.trainable_variables)
    optimizer.apply_gradients([pair for pair in pairs if pair[1].name.startswith(self.trained)])
    return loss


class BothNetworks(CriticAlone):
  trained = ''


class LossBeforeTheUpdate(trained_models.Trained):
  def make_tf1_optimizer(self):
    return v1.train.GradientDescentOptimizer(0.1)

  def make_tf2_optimizer(self):
    return tf.keras.optimizers.SGD(0.1)

  def tf2_train_step(self, layer, inputs, labels, optimizer):
    loss, gradients = differentiated(self, layer, inputs, labels)
    optimizer.apply_gradients(zip(gradients, layer.trainable_variables, strict=True))
    return loss


class LossAfterTheUpdate(LossBeforeTheUpdate):
  def tf2_train_step(self, layer, inputs, labels, optimizer):
    super().tf2_train_step(layer, inputs, labels, optimizer)
    return self.tf2_loss(layer(inputs, training=True), labels)


PORT_BUGS = (
  PortBug(
    'B64',
    'scope of clipping',
    tf1='clip_by_global_norm: the global norm of all gradients',
    mistake='clipnorm of Keras: the norm of each gradient',
    stage=_STEPS,
    wrong=ClippedApart,
    right=ClippedTogether,
    words=('global norm', 'each', 'global_clipnorm=1'),
  ),
  PortBug(
    'B64',
    'scope of clipping',
    tf1="clip_gradient_norm of slim's create_train_op: the norm of each gradient",
    mistake='global_clipnorm of Keras: the global norm of all',
    stage=_STEPS,
    wrong=ClippedTogetherForSlim,
    right=ClippedBySlim,
    words=('global norm', 'each', 'pass clipnorm=1'),
  ),
  PortBug(
    'B69',
    'num_updates of a moving average',
    tf1='ExponentialMovingAverage(0.999, num_updates=step) follows faster at the beginning',
    mistake='use_ema of Keras, which does not',
    stage=_STEPS,
    wrong=AveragedByKeras,
    right=Averaged,
    words=('decay', 'num_updates', '0.999'),
  ),
  PortBug(
    'B72',
    'pruning of the graph',
    tf1="session.run of one network's train op runs nothing else",
    mistake='the port trains both networks at every step',
    stage=_STEPS,
    wrong=BothNetworks,
    right=CriticAlone,
    words=('does not update generator/kernel', 'fetched'),
  ),
  PortBug(
    'B73',
    'order of fetches',
    tf1='session.run([loss, train_op]) gives the loss before the update',
    mistake='the port returns that after the update',
    stage=_STEPS,
    wrong=LossAfterTheUpdate,
    right=LossBeforeTheUpdate,
    words=('loss', 'next step', 'before the update'),
  ),
)
