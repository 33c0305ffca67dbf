"""Conversions that take the state of the optimizer along."""

import os
import warnings
import zipfile
from unittest import mock

import keras
import numpy as np
import tensorflow as tf
from absl.testing import absltest

import tf2verify
from examples.keras3_ranker import equivalence_test, model
from tests import console
from tests.conversion_test import CommandTestCase
from tf2verify.commands.conversion import to_port
from tf2verify.numerics.tolerance import VALUE_TOLERANCES
from tf2verify.records.tensor_key import TensorKey
from tf2verify.sides.tf1 import checkpoint as tf1_checkpoint
from tf2verify.sides.tf2.files import model_files

v1 = tf.compat.v1
_CASES = """
import keras
import tensorflow as tf

import tf2verify
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


class Net(keras.Model):
  # Its layers have no names of their own, and are of the same shape.

  def __init__(self, name='net', **settings):
    super().__init__(name=name, **settings)
    self.one, self.two = keras.layers.Dense(3), keras.layers.Dense(3)

  def call(self, inputs):
    return self.two(self.one(inputs))


class OwnCompile(Net):
  def compile(self, **settings):
    super().compile(**settings)


class NetCase(tf2verify.EquivalenceCase):
  port = Net
  variable_names = {
    'one/kernel': 'net/dense/kernel',
    'one/bias': 'net/dense/bias',
    'two/kernel': 'net/dense_1/kernel',
    'two/bias': 'net/dense_1/bias',
  }

  def build_tf1_graph(self, inputs, training):
    dense = tf.compat.v1.layers.dense
    return dense(dense(inputs, 3, name='one'), 3, name='two')

  def make_tf2_layer(self):
    return self.port()

  def make_inputs(self):
    return tf2verify.normal_inputs((4, 3))

  def make_labels(self):
    return tf2verify.normal_inputs((4, 3))

  def tf1_loss(self, outputs, labels):
    return tf.reduce_mean((outputs - labels) ** 2)

  tf2_loss = tf1_loss

  def make_tf1_optimizer(self):
    return tf.compat.v1.train.AdamOptimizer(0.01)

  def make_tf2_optimizer(self):
    return keras.optimizers.Adam(0.01, epsilon=1e-8)


class OwnCompileCase(NetCase):
  port = OwnCompile
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


def train_net(prefix):
  """Trains the TF1 model of NetCase for three steps, and saves it."""
  with tf.Graph().as_default(), v1.Session() as session, warnings.catch_warnings():
    warnings.simplefilter('ignore')
    v1.set_random_seed(3)
    outputs = tf.constant(tf2verify.normal_inputs((4, 3)))
    for name in ('one', 'two'):
      outputs = v1.layers.dense(outputs, 3, name=name)
    loss, count = tf.reduce_mean((outputs - 1.0) ** 2), v1.train.get_or_create_global_step()
    step = v1.train.AdamOptimizer(0.01).minimize(loss, count)
    session.run(v1.global_variables_initializer())
    for _ in range(3):
      session.run(step)
    v1.train.Saver().save(session, prefix, write_meta_graph=False)


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
    path = str(self.folder / 'tf2' / 'ranker')
    read = f'tf.train.Checkpoint(model=layer, optimizer=optimizer).read({path!r})'
    build = 'optimizer.build(layer.trainable_variables)'
    self.assertEndsWith(said, f'    {build}\n    {read}.assert_consumed()\n')
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
    self.assertIn('training does not continue with it as in TF1', said)
    self.assertRegex(said, r'optimizer slot +12 +12\n')  # it was converted, as is said
    self.assertIn('--no_optimizer converts only the weights', said)
    self.assertEqual(self.written(), [])

  def _net(self, case, out, *options):
    self.source = str(self.folder / 'tf1' / 'net-3')
    if not os.path.exists(self.source + '.index'):
      train_net(self.source)
    return self.convert(case, out, *options)

  def test_class_of_its_own(self):
    # Its variables and slots have other names when it is read: keras counts layers anew.
    status, said, complained = self._net('NetCase', 'net.keras')
    self.assertEqual((status, complained), (0, ''), said)
    with zipfile.ZipFile(self.folder / 'tf2' / 'net.keras') as archive:
      self.assertIn('model.weights.h5', archive.namelist())

  def test_reasons_after_a_refusal(self):
    # Nothing was looked at that a reason could be about.
    self.source = str(self.folder / 'tf1' / 'net-3')
    train_net(self.source)
    reader = tf.train.load_checkpoint(self.source)
    values = {key: reader.get_tensor(key) for key in reader.get_variable_to_shape_map()}
    tf1_checkpoint.write(self.source, {**values, 'one/bias': np.zeros(5, np.float32)})
    for out, words in (
      ('net.keras', 'not looked at, since the weights are refused already: beta1_power, beta2_'),
      ('net.weights.h5', 'a .weights.h5 file is for weights: beta1_power, beta2_power'),
    ):
      with self.subTest(out):
        status, said, _ = self._net('NetCase', out)
        self.assertEqual(status, 1, said)
        self.assertIn(
          'not read, since shape or dtype are not those of the variable: one/bias', said
        )
        self.assertIn(words, said)
        self.assertNotIn('moving average', said)
        self.assertNotIn('nothing of this meaning', said)
        self.assertIn('    model: (3,) float32\n    checkpoint: (5,) float32', said)

  def test_slots_that_are_swapped(self):
    def swapped(layer, path, compiled=False):
      model = load(layer, path, compiled)
      one, two = (v for v in model.optimizer.variables if v.path.endswith('kernel_velocity'))
      kept = one.numpy()
      one.assign(two.numpy())
      two.assign(kept)
      return model

    load = model_files.load_model
    with mock.patch.object(model_files, 'load_model', swapped):
      status, said, _ = self._net('NetCase', 'net.keras')
    self.assertEqual(status, 1, said)
    self.assertIn('restored state of the optimizer dense_kernel_velocity  (3, 3)', said)
    self.assertRegex(said, r'first at \(\d, \d\): written \S+, read \S+ \(must be equal\)')
    self.assertNotIn('tf1 ', said)

  def test_compile_of_its_own(self):
    status, said, _ = self._net('OwnCompileCase', 'net.keras')
    self.assertEqual(status, 1, said)
    self.assertIn('the model that was read has no optimizer', said)
    self.assertIn('overrides compile', said)
    self.assertIn('--no_optimizer writes only the weights', said)
    for out, options in (('net.keras', ['--no_optimizer']), ('net', [])):
      status, said, _ = self._net('OwnCompileCase', out, *options)
      self.assertEqual(status, 0, said)

  def test_slots_that_are_not_read(self):
    def unbuilt(layer, path, compiled=False):
      model = load(layer, path, compiled)
      model.optimizer = keras.optimizers.Adam(0.01)
      return model

    load = model_files.load_model
    with mock.patch.object(model_files, 'load_model', unbuilt):
      status, said, _ = self._net('NetCase', 'net.keras')
    self.assertEqual(status, 1, said)
    self.assertIn('likely cause: Keras does not restore the optimizer', said)
    self.assertIn('    written: a variable of the optimizer\n    read: none', said)
    self.assertNotIn('tf1:', said)

  def test_what_is_not_told(self):
    def undecided(*arguments):
      comparison = arguments[-1]
      comparison.blind_spots.append('planted')
      key = TensorKey('update of training', 'one/kernel')
      comparison.tensors(key, np.full(2, 1e-9, 'f4'), np.full(2, 2e-9, 'f4'), VALUE_TOLERANCES)
      return steps(*arguments)

    steps = to_port.check_steps
    with mock.patch.object(to_port, 'check_steps', undecided):
      status, said, _ = self._net('NetCase', 'net')
    self.assertEqual(status, 0, said)
    self.assertIn('  blind spot: planted\n', said)
    self.assertIn('; 1 inconclusive; 2 blind spots\n', said)
    self.assertIn('not equal: update of training one/kernel\n', said)

  def test_no_deprecation_warnings(self):
    with warnings.catch_warnings(record=True) as caught:
      warnings.simplefilter('always')
      status, said, complained = self._net('NetCase', 'net')
    self.assertEqual((status, complained), (0, ''), said)
    self.assertEqual([str(w.message) for w in caught if 'deprecated' in str(w.message)], [])

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
