"""Steps of which values decide what runs: what one side alone has in branches that are taken."""

import abc
import functools

import keras
import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

import tf2verify
from tests.stages.losses.loss_lines_test import line_of
from tf2verify import Status

v1 = tf.compat.v1
_RATE = 0.05
_SAID = 'make the port the same as tf1'


class Accumulated(tf2verify.EquivalenceCase, abc.ABC):
  """An update in each second step, by the ratio of two norms, clipped; the port is eager.

  Attributes:
    threshold: of a norm, in the port.
    most: of the norm of a gradient, likewise.
    least: likewise.
    every: which steps update.
    reads: whether Python asks for numbers.
  """

  training_steps_to_take = 4
  threshold, most, least, every, reads = 0.0, 50.0, 1e-3, 2, False

  def build_tf1_graph(self, inputs, training):
    return v1.layers.dense(inputs, 3, name='q')

  def make_tf2_layer(self):
    return keras.Sequential([keras.layers.Dense(3, name='q')])

  def make_inputs(self):
    return tf2verify.normal_inputs((6, 4))

  def make_labels(self):
    return np.ones(6, np.float32)

  def tf1_loss(self, outputs, labels):
    return tf.reduce_mean(tf.square(tf.reduce_sum(outputs, 1) - labels))

  tf2_loss = tf1_loss

  def make_tf1_train_op(self, loss):
    variables = v1.trainable_variables()
    gradients = tf.gradients(loss, variables)
    zeros = {'initializer': v1.zeros_initializer(), 'trainable': False}
    sums = [v1.get_variable(f'{v.op.name}/sum', v.shape, **zeros) for v in variables]
    count = v1.train.get_or_create_global_step()
    added = [v1.assign_add(a, g) for a, g in zip(sums, gradients, strict=True)]
    with tf.control_dependencies([*added, v1.assign_add(count, 1)]):
      is_due = tf.equal(tf.math.floormod(count.read_value(), self.every), 0)

    def apply():
      updates = []
      for variable, total in zip(variables, sums, strict=True):
        value, gradient = variable.read_value(), total.read_value()
        norm, length = tf.norm(value), tf.norm(gradient)
        trust = tf.where(norm > 0.0, norm / tf.maximum(length, 1e-3), 1.0)
        change = _RATE * trust * tf.clip_by_norm(gradient, 50.0)
        with tf.control_dependencies([change]):
          updates += [v1.assign_sub(variable, change), v1.assign(total, tf.zeros_like(total))]
      with tf.control_dependencies(updates):
        return tf.constant(True)

    return tf.cond(is_due, apply, lambda: tf.constant(False))

  def make_tf2_optimizer(self):
    return {'count': tf.Variable(0, dtype=tf.int64), 'sums': []}

  def tf2_train_step(self, layer, inputs, labels, optimizer):
    with tf.GradientTape() as tape:
      loss = self.tf2_loss(layer(inputs, training=True), labels)
    variables = [one.value for one in layer.trainable_variables]
    if not optimizer['sums']:
      optimizer['sums'] = [tf.Variable(tf.zeros_like(one)) for one in variables]
    for total, gradient in zip(optimizer['sums'], tape.gradient(loss, variables), strict=True):
      total.assign_add(gradient)
    optimizer['count'].assign_add(1)
    if optimizer['count'] % self.every:
      return loss
    for variable, total in zip(variables, optimizer['sums'], strict=True):
      variable.assign_sub(self.change(variable, tf.convert_to_tensor(total)))
      total.assign(tf.zeros_like(total))
    return loss

  def change(self, variable, gradient):
    norm, length = tf.sqrt(tf.reduce_sum(variable**2)), tf.norm(gradient)
    if length > self.most:
      gradient *= self.most / length
    rate = tf.constant(_RATE)
    if (float(norm) if self.reads else norm) > self.threshold:
      rate *= norm / tf.maximum(length, self.least)
    return rate * gradient


class Chosen(Accumulated, abc.ABC):
  """A gradient that is shortened in a branch, which no step takes.

  Attributes:
    length: to which it is shortened in the port.
  """

  length = 50.0

  def make_tf1_train_op(self, loss):
    variables = v1.trainable_variables()
    updates = []
    for gradient, variable in zip(tf.gradients(loss, variables), variables, strict=True):
      norm = tf.norm(gradient)
      short = functools.partial(lambda one, norm: one * (50.0 / norm), gradient, norm)
      shorter = tf.cond(norm > 50.0, short, functools.partial(tf.identity, gradient))
      updates.append(v1.assign_sub(variable, _RATE * shorter))
    return tf.group(*updates)

  def tf2_train_step(self, layer, inputs, labels, optimizer):
    with tf.GradientTape() as tape:
      loss = self.tf2_loss(layer(inputs, training=True), labels)
    variables = [one.value for one in layer.trainable_variables]
    for variable, gradient in zip(variables, tape.gradient(loss, variables), strict=True):
      norm = tf.norm(gradient)
      if norm > 50.0:
        gradient = gradient * (self.length / norm)
      variable.assign_sub(_RATE * gradient)
    return loss


def _found(base=Accumulated, **changed):
  case = type('Case', (base,), changed)
  return tf2verify.verify(case, ['training_steps']).stages[-1]


class StepsAsTakenTest(parameterized.TestCase):
  @parameterized.named_parameters(('as_rewritten', False), ('as_python_reads_numbers', True))
  def test_a_right_port_has_another_spelling(self, reads):
    found = _found(reads=reads)
    self.assertIs(found.status, Status.PASSED, found.to_text())
    self.assertNotIn(_SAID, ' '.join(found.blind_spots))
    self.assertFalse(found.proven.is_whole)
    self.assertTrue(found.proven.reason)

  @parameterized.named_parameters(
    (
      'threshold',
      {'threshold': 0.01},
      'tf1 has > 0 at',
      'the port has > 0.01 at',
      'self.threshold',
    ),
    ('far_threshold', {'threshold': 0.4}, 'tf1 has > 0 at', 'has > 0.4 at', 'self.threshold'),
    (
      'bound',
      {'least': 1e-5},
      'of Maximum is 0.001 in tf1 at',
      'and 1e-05 in the port at',
      'self.least',
    ),
    (
      'step_that_is_not_the_second',
      {'threshold': 0.01, 'every': 3},
      'tf1 has > 0 at',
      'has > 0.01 at',
      'self.threshold',
    ),
    ('clipping', {'most': 60.0}, 'tf1 has Maximum with 50 at', 'has > 60 at', 'self.most:'),
  )
  def test_another_number_in_a_branch_is_named(self, changed, tf1, port, text):
    found = _found(**changed)
    self.assertIs(found.status, Status.PASSED, found.to_text())
    (said,) = (one for one in found.blind_spots if _SAID in one)
    self.assertIn(tf1, said)
    self.assertIn(port, said)
    self.assertIn(f'steps_as_taken_test.py:{line_of(Accumulated.change, text)}', said)

  def test_branches_that_write_nothing_are_related_both(self):
    found = _found(Chosen)
    self.assertIs(found.status, Status.PASSED, found.to_text())
    self.assertTrue(found.proven.is_whole, found.to_text())
    found = _found(Chosen, length=40.0)
    self.assertIs(found.status, Status.PASSED, found.to_text())
    self.assertFalse(found.proven.is_whole)
    (said,) = (one for one in found.blind_spots if _SAID in one)
    self.assertIn('is 50 in tf1 at', said)
    self.assertIn('40 in the port at', said)


if __name__ == '__main__':
  absltest.main()
