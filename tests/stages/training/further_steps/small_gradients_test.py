"""What gradients are multiplied by before a clipping that every step reaches."""

import abc

import keras
import tensorflow as tf
from absl.testing import absltest, parameterized

import tf2verify
from tests.stages.training.further_steps.other_gradients_test import Trained
from tf2verify import Status

v1 = tf.compat.v1
_STAGE = 'training_steps'
_LIMIT = 0.05


class _Accumulating:
  """Adds up the gradients of two steps, and moves by their mean, clipped."""

  def __init__(self, factor):
    self.factor = factor
    self.optimizer = keras.optimizers.SGD(0.1, momentum=0.9, global_clipnorm=_LIMIT)
    self.totals = []
    self.calls = tf.Variable(0, trainable=False)

  def step(self, gradients, variables):
    if not self.totals:
      self.totals = [tf.Variable(tf.zeros_like(v), trainable=False) for v in variables]
    for gradient, total in zip(gradients, self.totals, strict=True):
      total.assign_add(gradient)
    self.calls.assign_add(1)
    if int(self.calls) % 2 == 0:
      pairs = [(self.factor * t, v) for t, v in zip(self.totals, variables, strict=True)]
      self.optimizer.apply_gradients(pairs)
      for total in self.totals:
        total.assign(tf.zeros_like(total))


class _Accumulated(Trained, abc.ABC):
  training_steps_to_take = 4
  make_tf1_optimizer = tf2verify.EquivalenceCase.make_tf1_optimizer
  factor = 0.5

  def make_tf1_train_op(self, loss):
    step = v1.train.get_or_create_global_step()
    optimizer = v1.train.MomentumOptimizer(0.1, 0.9)
    variables = v1.trainable_variables()
    pairs = optimizer.compute_gradients(loss, variables)
    totals = [
      v1.get_variable(
        v.op.name + '/total', v.shape, initializer=v1.zeros_initializer(), trainable=False
      )
      for v in variables
    ]
    added = [total.assign_add(g) for total, (g, _) in zip(totals, pairs, strict=True)]
    with tf.control_dependencies(added):
      count = step.assign_add(1)

    def apply():
      means = [total.read_value() / 2.0 for total in totals]
      clipped, _ = tf.clip_by_global_norm(means, _LIMIT)
      update = optimizer.apply_gradients(list(zip(clipped, variables, strict=True)))
      with tf.control_dependencies([update]):
        emptied = [total.assign(tf.zeros_like(total)) for total in totals]
      with tf.control_dependencies(emptied):
        return tf.constant(True)

    return tf.cond(tf.equal(count % 2, 0), apply, lambda: tf.constant(False))

  def make_tf2_optimizer(self):
    return _Accumulating(self.factor)

  def tf2_train_step(self, layer, inputs, labels, optimizer):
    with tf.GradientTape() as tape:
      loss = self.tf2_loss(layer(inputs), labels)
    variables = layer.trainable_variables
    optimizer.step(tape.gradient(loss, variables), variables)
    return loss


class _Scaled(keras.layers.Layer):
  """A dense layer after a scale, which follows the greatest input in training."""

  def __init__(self):
    super().__init__(name='scaled')
    self.scale = self.add_weight(name='scale', shape=(), initializer='ones', trainable=False)
    self.dense = keras.layers.Dense(3, name='dense')

  def call(self, inputs, training=False):
    outputs = self.dense(inputs / self.scale)
    if training:
      self.scale.assign(0.5 * self.scale + keras.ops.max(keras.ops.abs(inputs)))
    return outputs


class _WaitsForUpdates(Trained, abc.ABC):
  """Gradients that are formed under a control dependency on the update ops."""

  training_steps_to_take = 3

  def build_tf1_graph(self, inputs, training):
    ones = v1.ones_initializer()
    scale = v1.get_variable('scale', [], initializer=ones, trainable=False, use_resource=True)
    net = v1.layers.dense(inputs / scale, 3, name='dense')
    if training:
      with tf.control_dependencies([net]):
        update = scale.assign(0.5 * scale + tf.reduce_max(tf.abs(inputs)))
      v1.add_to_collection(v1.GraphKeys.UPDATE_OPS, update)
    return net

  def make_tf2_layer(self):
    return _Scaled()

  def make_tf1_train_op(self, loss):
    optimizer = v1.train.MomentumOptimizer(0.1, 0.9)
    with tf.control_dependencies(v1.get_collection(v1.GraphKeys.UPDATE_OPS)):
      gradients, variables = zip(*optimizer.compute_gradients(loss), strict=True)
      gradients, _ = tf.clip_by_global_norm(gradients, _LIMIT)
      step = v1.train.get_or_create_global_step()
      return optimizer.apply_gradients(zip(gradients, variables, strict=True), step)

  def make_tf2_optimizer(self):
    return keras.optimizers.SGD(0.1, momentum=0.9, global_clipnorm=_LIMIT)


class SmallGradientsTest(parameterized.TestCase):
  @parameterized.parameters(0.5, 1.0)
  def test_sum_for_the_mean_of_accumulated_gradients(self, factor):
    found = tf2verify.verify(type('Case', (_Accumulated,), {'factor': factor}), [_STAGE]).stages[-1]
    self.assertIs(found.status, Status.PASSED, found.to_text())
    said = [one for one in found.blind_spots if 'a further one at gradients that are' in one]
    self.assertLen(said, int(factor != 0.5), found.to_text())
    self.assertTrue(all('dense/kernel' in one for one in said), said)

  def test_gradients_that_wait_for_updates_run_them_once(self):
    found = tf2verify.verify(type('Case', (_WaitsForUpdates,), {}), [_STAGE]).stages[-1]
    self.assertIs(found.status, Status.PASSED, found.to_text())
    said = [one for one in found.blind_spots if 'a further one at gradients that are' in one]
    self.assertEmpty(said)


if __name__ == '__main__':
  absltest.main()
