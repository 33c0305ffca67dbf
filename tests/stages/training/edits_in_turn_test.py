"""Two mistakes of one training step, of which no single edit mends what differs."""

import abc

import keras
import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

import tf2verify

v1 = tf.compat.v1
_PARTS = ('actor', 'critic')


class _Adam:
  def __init__(self, rate, beta1):
    self.rate, self.beta1 = rate, beta1
    self.t = tf.Variable(0.0, trainable=False)
    self.m, self.v = [], []

  def apply(self, gradients, variables):
    if not self.m:
      for slots, name in ((self.m, 'm'), (self.v, 'v')):
        slots += [tf.Variable(tf.zeros(v.shape), name=name, trainable=False) for v in variables]
    self.t.assign_add(1.0)
    rate = self.rate * tf.sqrt(1.0 - 0.999**self.t) / (1.0 - self.beta1**self.t)
    for gradient, m, v, weights in zip(gradients, self.m, self.v, variables, strict=True):
      m.assign(self.beta1 * m + (1.0 - self.beta1) * gradient)
      v.assign(0.999 * v + 0.001 * gradient * gradient)
      weights.assign_sub(rate * m / (tf.sqrt(v) + 1e-8))


def _apply(optimizers, gradients, weights):
  optimizers['actor'].apply(gradients['actor'], weights['actor'])
  optimizers['critic'].apply(gradients['critic'], weights['critic'])


class TwoNetworks(tf2verify.EquivalenceCase, abc.ABC):
  """An actor and a critic, each with an optimizer of its own, and slow copies of both."""

  training_modes = (True,)
  training_steps_to_take = 3
  beta1 = 0.8  # of the critic's optimizer in the port
  copies_first = False

  def build_tf1_graph(self, inputs, training):
    outputs = {name: v1.layers.dense(inputs, 2, tf.tanh, name=name) for name in _PARTS}
    slow = {
      f'slow_{name}': v1.layers.dense(inputs, 2, tf.tanh, name=f'slow_{name}', trainable=False)
      for name in _PARTS
    }
    return {**outputs, **slow}

  def make_tf2_layer(self):
    features = keras.Input((4,))
    outputs = {
      name: keras.layers.Dense(2, 'tanh', name=name, trainable=not name.startswith('slow'))(
        features
      )
      for name in (*_PARTS, *(f'slow_{name}' for name in _PARTS))
    }
    return keras.Model(features, outputs)

  def make_inputs(self):
    return tf2verify.normal_inputs((6, 4))

  def make_labels(self):
    return np.full((6, 2), 0.5, np.float32)

  def tf1_loss(self, outputs, labels):
    return {name: tf.reduce_mean(tf.square(outputs[name] - labels)) for name in _PARTS}

  tf2_loss = tf1_loss

  def make_tf1_train_op(self, loss):
    step = v1.train.get_or_create_global_step()
    updates, copies = [], []
    for name, rate, beta1 in (('actor', 1e-2, 0.9), ('critic', 2e-2, 0.8)):
      weights = v1.trainable_variables(f'{name}/')
      gradients = tf.gradients(loss[name], weights)
      optimizer = v1.train.AdamOptimizer(rate, beta1)
      updates.append(optimizer.apply_gradients(zip(gradients, weights, strict=True)))
    with tf.control_dependencies(updates):
      for name in _PARTS:
        slow = v1.global_variables(f'slow_{name}/')
        for own, copy in zip(v1.trainable_variables(f'{name}/'), slow, strict=True):
          copies.append(v1.assign(copy, 0.95 * copy + 0.05 * own.read_value()))
    with tf.control_dependencies(copies):
      return v1.assign_add(step, 1)

  def make_tf2_optimizer(self):
    return {'actor': _Adam(1e-2, 0.9), 'critic': _Adam(2e-2, self.beta1)}

  def tf2_train_step(self, layer, inputs, labels, optimizer):
    def of(name):
      return [v.value for v in layer.get_layer(name).weights]

    with tf.GradientTape(persistent=True) as tape:
      losses = self.tf2_loss(layer(inputs, training=True), labels)
    gradients = {name: tape.gradient(losses[name], of(name)) for name in _PARTS}

    def copy():
      for name in _PARTS:
        for own, slow in zip(of(name), of(f'slow_{name}'), strict=True):
          slow.assign_add(0.05 * (own - slow))

    if self.copies_first:
      copy()
    _apply(optimizer, gradients, {name: of(name) for name in _PARTS})
    if not self.copies_first:
      copy()
    return losses


def _training(**hooks):
  verdict = tf2verify.verify(type('Case', (TwoNetworks,), hooks), ['training_steps'])
  return next(one for one in verdict.stages if one.stage == 'training_steps')


class EditsInTurnTest(parameterized.TestCase):
  def test_right_port(self):
    stage = _training()
    self.assertTrue(stage.passed, stage.to_text())

  def test_both_mistakes_are_proven(self):
    stage = _training(beta1=0.9, copies_first=True)
    causes = stage.diagnosis.causes
    self.assertLen(causes, 2, stage.to_text())
    self.assertTrue(all(one.is_proven for one in causes), stage.to_text())
    self.assertIn('as it is before its update in the port; as it is after', causes[0].text)
    # The other optimizer of the class has 0.9 in tf1 too.
    self.assertIn('have 0.9 and 0.1 in the port, 0.8 and 0.2 in tf1', causes[1].text)


if __name__ == '__main__':
  absltest.main()
