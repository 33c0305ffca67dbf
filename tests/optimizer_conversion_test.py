"""Conversions that take the state of the optimizer along."""

import keras
import numpy as np
import tensorflow as tf
from absl.testing import absltest

from examples.keras3_ranker import equivalence_test, model
from tests import console
from tests.conversion_test import CommandTestCase

v1 = tf.compat.v1
_CASES = """
import keras
import tensorflow as tf

from examples.keras3_ranker import equivalence_test, port


class AdamCase(equivalence_test.Keras3RankerCase):
  training_modes = (False, True)


class WrongBetaCase(AdamCase):
  def make_tf2_optimizer(self):
    made = port.optimizer()
    made.beta_2 = 0.9
    return made


class MomentumCase(AdamCase):
  def make_tf1_train_op(self, loss):
    step = tf.compat.v1.train.get_or_create_global_step()
    return tf.compat.v1.train.MomentumOptimizer(0.1, 0.9).minimize(loss, step)

  def make_tf2_optimizer(self):
    return keras.optimizers.SGD(0.1, momentum=0.9)
"""


def train(prefix, train_op=model.train_op):
  """Trains the TF1 model for three steps, saves it, and returns the variables' values."""
  case = equivalence_test.Keras3RankerCase()
  with tf.Graph().as_default(), v1.Session() as session:
    v1.set_random_seed(3)
    features = {name: tf.constant(value) for name, value in case.make_inputs().items()}
    loss = model.loss(model.ranker(features), tf.constant(case.make_labels()))
    step = train_op(loss)
    session.run(v1.global_variables_initializer())
    for _ in range(3):
      session.run(step)
    v1.train.Saver().save(session, prefix, write_meta_graph=False)
    return {variable.op.name: session.run(variable) for variable in v1.global_variables()}


def _momentum(loss):
  step = v1.train.get_or_create_global_step()
  return v1.train.MomentumOptimizer(0.1, 0.9).minimize(loss, step)


class OptimizerTest(CommandTestCase):
  def setUp(self):
    super().setUp()
    console.write_files(self.folder, ranker_case=_CASES)
    self.file = str(self.folder / 'ranker_case.py')
    self.source = str(self.folder / 'tf1' / 'ranker-3')

  def convert(self, case, out, *options):
    path = str(self.folder / 'tf2' / out)
    arguments = ('--tf1_checkpoint', self.source, '--out', path, *options)
    return self.run_command('convert', f'{self.file}::{case}', *arguments)

  def test_model(self):
    values = train(self.source)
    status, said, complained = self.convert('AdamCase', 'ranker.keras')
    self.assertEqual((status, complained), (0, ''), said)
    self.assertRegex(said, r'optimizer slot +12 +12\n')
    self.assertRegex(said, r'optimizer state +2 +2\n')
    self.assertRegex(said, r'global step +1 +1\n')
    self.assertNotIn('left out', said)
    read = keras.saving.load_model(self.folder / 'tf2' / 'ranker.keras')
    self.assertEqual(int(read.optimizer.iterations), 3)
    [slot] = [one for one in read.optimizer.variables if 'click_kernel_velocity' in one.path]
    np.testing.assert_array_equal(slot.numpy(), values['ranker/click/kernel/Adam_1'])

  def test_checkpoint(self):
    values = train(self.source)
    status, said, complained = self.convert('AdamCase', 'ranker')
    self.assertEqual((status, complained), (0, ''), said)
    self.assertIn(', optimizer=optimizer).read(', said)
    reader = tf.train.load_checkpoint(str(self.folder / 'tf2' / 'ranker'))
    held = [reader.get_tensor(key) for key in reader.get_variable_to_shape_map()]
    wanted = values['ranker/items/Adam']
    self.assertTrue(any(np.array_equal(one, wanted) for one in held))

  def test_left_out(self):
    train(self.source)
    for out, options, words in (
      ('a.keras', ('--no_optimizer',), '--no_optimizer says so'),
      ('a.weights.h5', (), 'a .weights.h5 file is for weights'),
    ):
      with self.subTest(out):
        status, said, _ = self.convert('AdamCase', out, *options)
        self.assertEqual(status, 0, said)
        self.assertIn(words, said)

  def test_other_optimizer(self):
    train(self.source)
    status, said, _ = self.convert('WrongBetaCase', 'ranker.keras')
    self.assertEqual(status, 1, said)
    self.assertIn('training does not go on as in TF1', said)
    self.assertIn('--no_optimizer converts the weights alone', said)
    self.assertEqual(self.written(), [])

  def test_momentum_in_another_unit(self):
    values = train(self.source, _momentum)
    status, said, _ = self.convert('MomentumCase', 'ranker.keras')
    self.assertEqual(status, 0, said)
    read = keras.saving.load_model(self.folder / 'tf2' / 'ranker.keras')
    [slot] = [one for one in read.optimizer.variables if 'click_kernel' in one.path]
    expected = np.float32(-0.1) * values['ranker/click/kernel/Momentum']
    np.testing.assert_allclose(slot.numpy(), expected, rtol=1e-6)


if __name__ == '__main__':
  absltest.main()
