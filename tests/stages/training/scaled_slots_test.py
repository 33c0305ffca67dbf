"""Own state in another unit: a mean of gradients for their sum."""

import keras
import tensorflow as tf
from absl.testing import absltest

import tf2verify
from tests.stages.training.further_steps.other_gradients_test import Trained
from tf2verify import Status

v1 = tf.compat.v1
_STAGE = 'training_steps'
_KEPT = 0.5


class _Sums:
  """Adds up gradients, and moves by the sum."""

  def __init__(self, rate, decays):
    self.rate, self.decays = rate, decays
    self.totals = []

  def step(self, gradients, variables):
    if not self.totals:
      self.totals = [tf.Variable(tf.zeros_like(v), name='total') for v in variables]
    for gradient, variable, total in zip(gradients, variables, self.totals, strict=True):
      total.assign(_KEPT * gradient + (0.5 * total if self.decays else total))
      variable.assign_sub(self.rate * total)


class ScaledSlotsTest(absltest.TestCase):
  def _found(self, rate, decays=False):
    class Case(Trained):
      make_tf1_optimizer = tf2verify.EquivalenceCase.make_tf1_optimizer
      slot_names = {'total': 'total'}

      def make_tf1_train_op(self, loss):
        variables = v1.trainable_variables()
        moves = []
        for gradient, variable in zip(tf.gradients(loss, variables), variables, strict=True):
          name = variable.op.name + '/total'
          total = v1.get_variable(
            name, variable.shape, initializer=v1.zeros_initializer(), trainable=False
          )
          added = total.assign_add(gradient)
          moves.append(variable.assign_sub(0.05 * added))
        return tf.group(*moves)

      def make_tf2_optimizer(self):
        return _Sums(rate, decays)

      def tf2_train_step(self, layer, inputs, labels, optimizer):
        with tf.GradientTape() as tape:
          loss = self.tf2_loss(layer(inputs), labels)
        variables = [one.value for one in layer.trainable_variables]
        optimizer.step(tape.gradient(loss, variables), variables)
        return loss

      def make_tf2_layer(self):
        return keras.Sequential([keras.layers.Dense(3, name='dense')])

    return tf2verify.verify(Case, [_STAGE]).stages[-1]

  def test_the_same_updates(self):
    found = self._found(0.1)
    self.assertIs(found.status, Status.PASSED, found.to_text())
    said = next(one for one in found.blind_spots if one.startswith('total of'))
    self.assertIn('is 0.5 times as large in the port as in TF1 after steps 1, 2, ', said)
    self.assertIn('and all updates agree', said)

  def test_what_differs_in_a_later_step(self):
    found = self._found(0.1, decays=True)
    self.assertIs(found.status, Status.FAILED, found.to_text())
    said = next(note for note in found.notes if note.startswith('total of'))
    self.assertIn('after step 1, before step 2, the first one that differs otherwise', said)
    self.assertNotIn('all updates agree', said)
    ((*_, counted), *_) = found.tables[0].rows
    self.assertEqual(counted, '2')

  def test_averaged_weights_have_no_other_unit(self):
    class Kept:
      def __init__(self):
        self.optimizer = keras.optimizers.SGD(0.05)
        self.averages = []

    class Case(Trained):
      make_tf1_optimizer = tf2verify.EquivalenceCase.make_tf1_optimizer
      slot_names = {'average': 'average'}

      def make_tf1_train_op(self, loss):
        variables = v1.trainable_variables()
        with tf.control_dependencies([v1.train.GradientDescentOptimizer(0.05).minimize(loss)]):
          after = [variable.read_value() for variable in variables]
        zeros, kept = v1.zeros_initializer(), []
        for variable, value in zip(variables, after, strict=True):
          name = variable.op.name + '/average'
          average = v1.get_variable(name, variable.shape, initializer=zeros, trainable=False)
          kept.append(average.assign(value))
        return tf.group(*kept)

      def make_tf2_optimizer(self):
        return Kept()

      def tf2_train_step(self, layer, inputs, labels, optimizer):
        variables = layer.trainable_variables
        with tf.GradientTape() as tape:
          loss = self.tf2_loss(layer(inputs), labels)
        optimizer.optimizer.apply(tape.gradient(loss, variables), variables)
        if not optimizer.averages:
          zeros = [tf.zeros_like(v) for v in variables]
          optimizer.averages = [tf.Variable(zero, name='average') for zero in zeros]
        for average, variable in zip(optimizer.averages, variables, strict=True):
          average.assign(0.5 * variable)
        return loss

    found = tf2verify.verify(Case, [_STAGE]).stages[-1]
    self.assertIs(found.status, Status.FAILED, found.to_text())

  def test_other_updates(self):
    found = self._found(0.11)
    self.assertIs(found.status, Status.FAILED, found.to_text())


if __name__ == '__main__':
  absltest.main()
