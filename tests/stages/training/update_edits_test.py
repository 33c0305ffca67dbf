"""Updates that a port writes itself, in another order than TF1: what is moved is proven."""

import abc

import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

import tf2verify
from tests.sides.trained_sides import Trained

v1 = tf.compat.v1
BETA1, BETA2, EPSILON, DECAY, RATE = 0.9, 0.99, 1e-6, 0.05, 0.1


def adamw(gradient, weights, m, v):
  """Returns what an update of BERT's optimizer makes of a variable and its slots."""
  next_m = BETA1 * m + (1.0 - BETA1) * gradient
  next_v = BETA2 * v + (1.0 - BETA2) * tf.square(gradient)
  update = next_m / (tf.sqrt(next_v) + EPSILON) + DECAY * weights
  return weights - RATE * update, next_m, next_v


class Own:
  """The port's optimizer, of which a subclass changes a line."""

  def __init__(self):
    self.slots = []

  def apply(self, gradients, variables):
    if not self.slots:
      for variable in variables:
        zeros = [tf.zeros_like(variable)] * 2
        self.slots.append([tf.Variable(one, trainable=False) for one in zeros])
    for gradient, variable, (m, v) in zip(gradients, variables, self.slots, strict=True):
      self.update(gradient, variable, m, v)

  def update(self, gradient, variable, m, v):
    m.assign_add((1.0 - BETA1) * (gradient - m))
    v.assign_add((1.0 - BETA2) * (gradient * gradient - v))
    step = m / (tf.sqrt(v) + EPSILON) + DECAY * variable
    variable.assign_sub(RATE * step)


class DecaysBeforeDividing(Own):
  def update(self, gradient, variable, m, v):
    m.assign_add((1.0 - BETA1) * (gradient - m))
    v.assign_add((1.0 - BETA2) * (gradient * gradient - v))
    variable.assign(variable - RATE * (m + DECAY * variable) / (tf.sqrt(v) + EPSILON))


class DecaysWithoutRate(Own):
  def update(self, gradient, variable, m, v):
    m.assign_add((1.0 - BETA1) * (gradient - m))
    v.assign_add((1.0 - BETA2) * (gradient * gradient - v))
    variable.assign_sub(RATE * m / (tf.sqrt(v) + EPSILON) + DECAY * variable)


class ReadsOldSquares(Own):
  def update(self, gradient, variable, m, v):
    m.assign_add((1.0 - BETA1) * (gradient - m))
    variable.assign_sub(RATE * (m / (tf.sqrt(v) + EPSILON) + DECAY * variable))
    v.assign_add((1.0 - BETA2) * (gradient * gradient - v))


class ReadsOldMoment(Own):
  def update(self, gradient, variable, m, v):
    v.assign_add((1.0 - BETA2) * (gradient * gradient - v))
    variable.assign_sub(RATE * (m / (tf.sqrt(v) + EPSILON) + DECAY * variable))
    m.assign(BETA1 * m + (1.0 - BETA1) * gradient)


class ClipsForOneSlot(Own):
  def update(self, gradient, variable, m, v):
    m.assign_add((1.0 - BETA1) * (tf.clip_by_norm(gradient, 0.3) - m))
    v.assign_add((1.0 - BETA2) * (gradient * gradient - v))
    variable.assign_sub(RATE * (m / (tf.sqrt(v) + EPSILON) + DECAY * variable))


class Written(Trained, abc.ABC):
  training_steps_to_take = 3
  optimizer = Own

  def make_tf1_train_op(self, loss):
    step = v1.train.get_or_create_global_step()
    variables, ops = v1.trainable_variables(), []
    for gradient, variable in zip(tf.gradients(loss, variables), variables, strict=True):
      kept = [_slot(f'{variable.op.name}/adam_{name}', variable) for name in 'mv']
      values = adamw(gradient, variable, *kept)
      ops += [one.assign(value) for one, value in zip([variable, *kept], values, strict=True)]
    with tf.control_dependencies(ops):
      return step.assign_add(1)

  def make_tf2_optimizer(self):
    return self.optimizer()

  def tf2_train_step(self, layer, inputs, labels, optimizer):
    with tf.GradientTape() as tape:
      loss = self.tf2_loss(layer(inputs), labels)
    variables = layer.trainable_variables
    optimizer.apply(tape.gradient(loss, variables), variables)
    return loss


def _slot(name, variable):
  zeros = v1.zeros_initializer()
  return v1.get_variable(name, variable.shape, initializer=zeros, trainable=False)


class Momentum:
  """The port's optimizer for two halves of a batch, clipped and decayed in some order."""

  rate, limit, decay = 0.1, 0.05, 0.04

  def __init__(self):
    self.slots = []

  def apply(self, halves, variables):
    if not self.slots:
      self.slots = [tf.Variable(tf.zeros_like(one), trainable=False) for one in variables]
    gradients = self.combined(halves, variables)
    for gradient, variable, slot in zip(gradients, variables, self.slots, strict=True):
      slot.assign(0.9 * slot + gradient)
      variable.assign_sub(self.rate * slot)

  def combined(self, halves, variables):
    means = [tf.add_n(both) / 2.0 for both in zip(*halves, strict=True)]
    decayed = [g + self.decay * v for g, v in zip(means, variables, strict=True)]
    return [tf.clip_by_value(g, -self.limit, self.limit) for g in decayed]


class ClipsEachHalf(Momentum):
  def combined(self, halves, variables):
    halves = [[tf.clip_by_value(g, -self.limit, self.limit) for g in half] for half in halves]
    means = [tf.add_n(both) / 2.0 for both in zip(*halves, strict=True)]
    return [g + self.decay * v for g, v in zip(means, variables, strict=True)]


class ByNorm(Momentum):
  """Decays before it clips by the norm of all."""

  def combined(self, halves, variables):
    means = [tf.add_n(both) / 2.0 for both in zip(*halves, strict=True)]
    decayed = [g + self.decay * v for g, v in zip(means, variables, strict=True)]
    norm = tf.sqrt(tf.add_n([tf.reduce_sum(g * g) for g in decayed]))
    return [g * (self.limit / tf.maximum(norm, self.limit)) for g in decayed]


class DecaysAfterNorm(ByNorm):
  def combined(self, halves, variables):
    means = [tf.add_n(both) / 2.0 for both in zip(*halves, strict=True)]
    norm = tf.sqrt(tf.add_n([tf.reduce_sum(g * g) for g in means]))
    scale = self.limit / tf.maximum(norm, self.limit)
    return [scale * g + self.decay * v for g, v in zip(means, variables, strict=True)]


class Halves(Trained, abc.ABC):
  """Both sides differentiate the two halves of a batch apart."""

  training_steps_to_take = 3
  optimizer = Momentum
  share = 1.0

  def combined_by_tf1(self, halves, variables):
    decayed = [sum(both) / 2.0 + 0.04 * v for *both, v in zip(*halves, variables, strict=True)]
    return [tf.clip_by_value(g, -0.05, 0.05) for g in decayed]

  def make_tf1_train_op(self, loss, outputs, labels):
    step = v1.train.get_or_create_global_step()
    variables, halves = v1.trainable_variables(), []
    for one, other in zip(tf.split(outputs, 2), tf.split(labels, 2), strict=True):
      halves.append(tf.gradients(self.tf1_loss(one, other), variables))
    gradients = self.combined_by_tf1(halves, variables)
    optimizer = v1.train.MomentumOptimizer(0.1, 0.9)
    return optimizer.apply_gradients(zip(gradients, variables, strict=True), global_step=step)

  def make_tf2_optimizer(self):
    return self.optimizer()

  def tf2_train_step(self, layer, inputs, labels, optimizer):
    halves, losses = [], []
    variables = None
    for one, other in zip(tf.split(inputs, 2), tf.split(labels, 2), strict=True):
      with tf.GradientTape() as tape:
        losses.append(self.tf2_loss(layer(one), other))
      variables = layer.trainable_variables
      halves.append(tape.gradient(losses[-1], variables))
    optimizer.apply(halves, variables)
    return tf.add_n(losses) / 2.0


class NormOfHalves(Halves, abc.ABC):
  optimizer = ByNorm

  def combined_by_tf1(self, halves, variables):
    decayed = [sum(both) / 2.0 + 0.04 * v for *both, v in zip(*halves, variables, strict=True)]
    return tf.clip_by_global_norm(decayed, 0.05)[0]


class Adagrad:
  """The port's, which makes a gradient of rows dense."""

  def __init__(self):
    self.slots = []

  def apply(self, gradients, variables):
    if not self.slots:
      self.slots = [tf.Variable(tf.fill(v.shape, 0.1), trainable=False) for v in variables]
    for gradient, variable, slot in zip(gradients, variables, self.slots, strict=True):
      self.update(tf.convert_to_tensor(gradient), variable, slot)

  def update(self, gradient, variable, slot):
    slot.assign_add(gradient * gradient)
    variable.assign_sub(0.1 * gradient * tf.math.rsqrt(slot))


class ReadsOldRows(Adagrad):
  def update(self, gradient, variable, slot):
    variable.assign_sub(0.1 * gradient * tf.math.rsqrt(slot))
    slot.assign_add(gradient * gradient)


class Table(tf.keras.layers.Layer):
  def build(self, shape):
    self.table = self.add_weight(name='table', shape=(5, 3))
    self.kernel = self.add_weight(name='kernel', shape=(3, 3))

  def call(self, ids, training=False):
    return tf.gather(self.table, ids) @ self.kernel


class OfRows(Trained, abc.ABC):
  """TF1 updates the rows of a table that are read; the port all of them."""

  training_steps_to_take = 3
  variable_names = {'table': 'port/table', 'kernel': 'port/kernel'}
  optimizer = Adagrad

  def make_inputs(self):
    return np.array([0, 2, 2, 4], np.int32)

  def build_tf1_graph(self, inputs, training):
    table = v1.get_variable('table', [5, 3])
    return tf.matmul(tf.nn.embedding_lookup(table, inputs), v1.get_variable('kernel', [3, 3]))

  def make_tf2_layer(self):
    return Table(name='port')

  def make_tf1_train_op(self, loss):
    step = v1.train.get_or_create_global_step()
    return v1.train.AdagradOptimizer(0.1, 0.1).minimize(loss, step)

  def make_tf2_optimizer(self):
    return self.optimizer()

  tf2_train_step = Written.tf2_train_step


class Shared(Halves, abc.ABC):
  """The losses of both halves, and a penalty that counts once."""

  share = 1.0

  def combined_by_tf1(self, halves, variables):
    penalties = [0.06 * v for v in variables]
    means = [sum(both) / 2.0 + p for *both, p in zip(*halves, penalties, strict=True)]
    return [tf.clip_by_value(g, -0.5, 0.5) for g in means]

  def tf2_train_step(self, layer, inputs, labels, optimizer):
    with tf.GradientTape() as tape:
      parts = [
        self.tf2_loss(layer(one), other)
        for one, other in zip(tf.split(inputs, 2), tf.split(labels, 2), strict=True)
      ]
      penalty = 0.03 * tf.add_n([tf.reduce_sum(v * v) for v in layer.trainable_variables])
      loss = (parts[0] + parts[1]) / 2.0 + penalty * self.share
    variables = layer.trainable_variables
    optimizer.apply(tape.gradient(loss, variables), variables)
    return (parts[0] + parts[1]) / 2.0


class Plain(Momentum):
  limit = 0.5

  def combined(self, halves, variables):
    return [tf.clip_by_value(g, -self.limit, self.limit) for g in halves]


def _step(base, **members):
  verdict = tf2verify.verify(type('Case', (base,), members), ['training_steps'])
  return next(one for one in verdict.stages if one.stage == 'training_steps')


class UpdateEditsTest(parameterized.TestCase):
  @parameterized.parameters(
    (Written, Own), (Halves, Momentum), (NormOfHalves, ByNorm), (Shared, Plain), (OfRows, Adagrad)
  )
  def test_right(self, base, optimizer):
    found = _step(base, optimizer=optimizer)
    self.assertTrue(found.passed, found.to_text())

  @parameterized.parameters(
    (
      Written,
      DecaysBeforeDividing,
      'computes RealDiv (truediv) after AddV2 (add) → Mul(x=0.1) (mul_4); tf1 computes it before',
    ),
    (Written, DecaysWithoutRate, 'before RealDiv (truediv) → AddV2 (add_1); tf1 computes it after'),
    (Written, ReadsOldSquares, 'the port from the values before it'),
    (Written, ReadsOldMoment, 'the port from the values before it'),
    (OfRows, ReadsOldRows, 'as it is before its update in the port'),
    (
      Written,
      ClipsForOneSlot,
      'computes Mul(y=0.3) → RealDiv (clip_by_norm), which tf1 does not have',
    ),
    (Halves, ClipsEachHalf, 'tf1 once'),
    (NormOfHalves, DecaysAfterNorm, 'for all that reads it'),
  )
  def test_other_order(self, base, optimizer, said):
    found = _step(base, optimizer=optimizer)
    self.assertIs(found.status, tf2verify.Status.FAILED)
    text = found.to_text()
    (cause,) = found.diagnosis.causes
    self.assertTrue(cause.is_proven or cause.numbers, text)
    self.assertIn(said, cause.text)

  def test_part_of_a_loss_that_counts_half(self):
    found = _step(Shared, optimizer=Plain, share=0.5)
    text = found.to_text()
    (cause,) = found.diagnosis.causes
    self.assertTrue(cause.is_proven, text)
    self.assertIn('counts 2 times as much in tf1', cause.text)


if __name__ == '__main__':
  absltest.main()
