"""Conversions for native ports: into files of Keras, through a variable map."""

import os
import textwrap
import zipfile

import keras
import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

from tests import console
from tests.conversion_test import CommandTestCase
from tf2verify.sides.tf2.files import model_files

v1 = tf.compat.v1

_CASES = """
import keras
import tf2verify
import tensorflow as tf

v1 = tf.compat.v1


class Net(keras.Model):
  def __init__(self, name='net', **settings):
    super().__init__(name=name, **settings)
    self.head = keras.layers.Dense(2, name='head')
    self.drop = keras.layers.Dropout(0.5)

  def call(self, inputs, training=False):
    return self.drop(self.head(inputs), training=training)


class Stubborn(Net):
  def __init__(self):
    super().__init__()


class Unbuilt(keras.Model):
  def __init__(self, name='net', **settings):
    super().__init__(name=name, **settings)
    self.drop = keras.layers.Dropout(0.5)

  def build(self, shape):
    self.head = keras.layers.Dense(2, name='head')
    self.head.build(shape)

  def get_build_config(self):
    return None  # so that Keras does not build it when it reads a file

  def call(self, inputs, training=False):
    return self.drop(self.head(inputs), training=training)


class Unnamed(Net):
  def get_config(self):
    raise NotImplementedError('write get_config')


class Layer(keras.layers.Layer):
  def __init__(self):
    super().__init__(name='net')
    self.head = keras.layers.Dense(2, name='head')

  def call(self, inputs):
    return self.head(inputs)


class Hiding(Net):
  def save_weights(self, path, **settings):
    kept = self.head.bias.value + 0.0
    self.head.bias.assign(kept * 2.0)
    super().save_weights(path, **settings)
    self.head.bias.assign(kept)


class FullDisk(Net):
  def save_weights(self, path, **settings):
    open(path, 'w').write('half')
    raise OSError('No space left on device')


class Wild(Net):
  def call(self, inputs, training=False):
    return super().call(inputs, training=training) * (2.0 if training else 1.0)


class NativeCase(tf2verify.EquivalenceCase):
  training_modes = (False, True)
  variable_map = tf2verify.VariableMap(
    (
      tf2verify.MapEntry(('fc/kernel',), ('net/head/kernel',), 'o i -> i o'),
      tf2verify.MapEntry(('fc/bias',), ('net/head/bias',), 'o -> o', added={'o': 1.0}),
    ),
    tf1_only={'unused': 'nothing reads it'},
  )
  port = Net

  def build_tf1_graph(self, inputs, training):
    v1.get_variable('unused', [3])
    with v1.variable_scope('fc'):
      kernel, bias = v1.get_variable('kernel', [2, 3]), v1.get_variable('bias', [2])
    logits = tf.matmul(inputs, kernel, transpose_b=True) + bias + 1.0
    return v1.layers.dropout(logits, 0.5, training=training)

  def make_tf2_layer(self):
    return self.port()

  def make_inputs(self):
    return tf2verify.normal_inputs((4, 3))


class UnbuiltCase(NativeCase):
  port = Unbuilt


class UnnamedCase(NativeCase):
  port = Unnamed


class StubbornCase(NativeCase):
  port = Stubborn


class LayerCase(NativeCase):
  training_modes = (False,)
  port = Layer


class HidingCase(NativeCase):
  port = Hiding


class FullDiskCase(NativeCase):
  port = FullDisk


class NoCheckpointCase(NativeCase):
  port = Stubborn

  def save_tf2_checkpoint(self, layer, path):
    raise OSError('no checkpoint')


class WildCase(NativeCase):
  port = Wild


class SmallMapCase(NativeCase):
  variable_map = tf2verify.VariableMap(NativeCase.variable_map.entries[:1])


class OldKerasCase(tf2verify.EquivalenceCase):
  variable_names = {'kernel': 'head/kernel', 'bias': 'head/bias'}

  def build_tf1_graph(self, inputs, training):
    return inputs @ v1.get_variable('kernel', [3, 2]) + v1.get_variable('bias', [2])

  def make_tf2_layer(self):
    inputs = tf.keras.Input((3,))
    return tf.keras.Model(inputs, tf.keras.layers.Dense(2, name='head')(inputs))

  def make_inputs(self):
    return tf2verify.normal_inputs((4, 3))
"""
_KERNEL = np.arange(6, dtype=np.float32).reshape(2, 3)
_BIAS = np.array([0.1, -1.3], np.float32)
_VALUES = {'fc/kernel': _KERNEL, 'fc/bias': _BIAS, 'unused': np.zeros(3, np.float32)}


class _Net(keras.Model):
  """As a program has it that reads what was written."""

  def __init__(self):
    super().__init__()
    self.head = keras.layers.Dense(2)
    self.drop = keras.layers.Dropout(0.5)

  def call(self, inputs, training=False):
    return self.drop(self.head(inputs), training=training)


class NativeConversionTestCase(CommandTestCase):
  def setUp(self):
    super().setUp()
    console.write_files(self.folder, native_case=_CASES)
    self.file = str(self.folder / 'native_case.py')

  def convert(self, case, out, *options, **values):
    source = self.write(**(values or _VALUES))
    target, path = f'{self.file}::{case}', str(self.folder / 'tf2' / out)
    return self.run_command('convert', target, '--tf1_checkpoint', source, '--out', path, *options)

  def path(self, name):
    return str(self.folder / 'tf2' / name)


class WrittenTest(NativeConversionTestCase):
  def test_weights(self):
    status, said, complained = self.convert('NativeCase', 'net.weights.h5')
    self.assertEqual((status, complained), (0, ''), said)
    self.assertEqual(self.written(), ['net.weights.h5'])
    self.assertIn('left out, since the case leaves it to TF1 (nothing reads it): unused\n', said)
    self.assertIn('    layer(inputs, training=False)  # once: ', said)
    self.assertIn('    layer.load_weights(', said)

  def test_model(self):
    status, said, complained = self.convert('NativeCase', 'net.keras')
    self.assertEqual((status, complained), (0, ''), said)
    self.assertEqual(self.written(), ['net.keras'])
    self.assertIn("net.keras', {'Net': Net})\n", said)

  def test_checkpoint(self):
    status, said, _ = self.convert('NativeCase', 'net')
    self.assertEqual(status, 0, said)
    reader = tf.train.load_checkpoint(self.path('net'))
    values = [reader.get_tensor(key) for key in reader.get_variable_to_shape_map()]
    by_rank = {value.ndim: value for value in values if isinstance(value, np.ndarray)}
    np.testing.assert_array_equal(by_rank[2], _KERNEL.T)
    np.testing.assert_array_equal(by_rank[1], _BIAS + np.float32(1.0))

  def test_printed_lines(self):
    inputs = np.ones((4, 3), np.float32)
    for out in ('net', 'net.weights.h5'):
      with self.subTest(out):
        status, said, _ = self.convert('NativeCase', out)
        self.assertEqual(status, 0, said)
        _, _, lines = said.partition('  read it by:\n')
        meant, call, *reads = textwrap.dedent(lines).splitlines()
        self.assertStartsWith(meant, '# layer: a new one, as NativeCase.make_tf2_layer returns it')
        names = {'tf': tf, 'layer': _Net(), 'inputs': inputs}
        # Without the call nothing is read, which has to be an error.
        with self.assertRaises((AssertionError, ValueError)):
          exec('\n'.join(reads), dict(names))
        names['layer'] = _Net()
        exec('\n'.join([call, *reads]), names)
        expected = inputs @ _KERNEL.T + _BIAS + 1.0
        np.testing.assert_allclose(names['layer'](inputs), expected, rtol=1e-6)

  def test_model_of_tf_keras(self):
    values = {'kernel': _KERNEL.T, 'bias': _BIAS}
    for out in ('net.keras', 'net.weights.h5'):
      with self.subTest(out):
        status, said, complained = self.convert('OldKerasCase', out, **values)
        self.assertEqual((status, complained), (0, ''), said)
    model = tf.keras.models.load_model(self.path('net.keras'))
    np.testing.assert_array_equal(model.get_layer('head').get_weights()[0], _KERNEL.T)
    self.assertEqual(self.written(), ['net.keras', 'net.weights.h5'])

  def test_averages(self):
    name = 'fc/bias/ExponentialMovingAverage'
    status, said, _ = self.convert(
      'NativeCase', 'net', '--ema', **{**_VALUES, name: _BIAS, 'fc/bias': 7.0 * _BIAS}
    )
    self.assertEqual(status, 0, said)
    self.assertIn('left out, since the moving average is converted instead: fc/bias\n', said)
    reader = tf.train.load_checkpoint(self.path('net'))
    [key] = [key for key in reader.get_variable_to_shape_map() if 'bias' in key]
    np.testing.assert_array_equal(reader.get_tensor(key), _BIAS + np.float32(1.0))
    status, _, complained = self.convert('NativeCase', 'other', '--ema')
    self.assertEqual(status, 2)
    self.assertIn('has no key that ends in /ExponentialMovingAverage', complained)

  def test_overwrite(self):
    for name in ('net.keras', 'net.index', 'net.data-00000-of-00002'):
      with open(self.path(name), 'w') as file:
        file.write('old')
    for out in ('net.keras', 'net'):
      status, _, complained = self.convert('NativeCase', out)
      self.assertEqual(status, 2)
      self.assertIn('exists, and nothing is overwritten', complained)
      status, said, _ = self.convert('NativeCase', out, '--overwrite')
      self.assertEqual(status, 0, said)
    self.assertEqual(self.written(), ['net.data-00000-of-00001', 'net.index', 'net.keras'])
    self.assertGreater(os.path.getsize(self.path('net.keras')), 3)


class RefusedTest(NativeConversionTestCase):
  @parameterized.parameters(
    ('UnnamedCase', 'net.keras', 'write get_config'),
    ('StubbornCase', 'net.keras', 'Unable to revive model'),
    ('StubbornCase', 'net.keras', 'file: __init__ of Stubborn has to take **kwargs (name, dtype,'),
    (
      'UnbuiltCase',
      'net.keras',
      'load_model did not restore 2 weights, and Keras only',
    ),
    ('LayerCase', 'net.keras', 'make_tf2_layer returns a Layer, which is not a keras.Model'),
    ('LayerCase', 'net.weights.h5', 'which is not a keras.Model'),
    ('HidingCase', 'net.weights.h5', "value restored from the port's .weights.h5 file"),
    ('FullDiskCase', 'net.weights.h5', 'No space left on device'),
    ('FullDiskCase', 'net.weights.h5', 'file: write a checkpoint (--out PREFIX, without a suffix)'),
    ('StubbornCase', 'net.keras', '; or write the weights (--out FILE.weights.h5) or a checkpoint'),
    ('NoCheckpointCase', 'net.keras', '; or write the weights (--out FILE.weights.h5): this was t'),
    ('WildCase', 'net.keras', 'training'),
    ('SmallMapCase', 'net.keras', "stage 'variable_inventory' FAILED"),
  )
  def test_for_the_case(self, case, out, words):
    status, said, complained = self.convert(case, out)
    self.assertEqual((status, complained), (1, ''), said)
    self.assertIn('REFUSED, nothing was written:', said)
    self.assertIn(words, said)
    self.assertEqual(self.written(), [])

  def test_what_keras_needs_of_a_class_is_told_by_its_name(self):
    self.assertEqual(
      model_files.needed_to_build(_Net()),
      'give _Net a build(self, input_shape) that builds every layer in it',
    )
    self.assertIn('__init__ of _Net has to take **kwargs', model_files.needed_to_make(_Net()))
    self.assertNotIn('get_config', model_files.needed_to_make(_Net()))
    self.assertEqual(model_files.needed_to_build(keras.Sequential([keras.layers.Dense(2)])), '')

  def test_for_the_checkpoint(self):
    for changed, words in (
      ({'fc/kernel': _KERNEL.T}, 'stored transposed'),
      ({'fc/other': _BIAS}, 'the checkpoint holds more than the model'),
    ):
      with self.subTest(words):
        status, said, _ = self.convert('NativeCase', 'net.keras', **{**_VALUES, **changed})
        self.assertEqual(status, 1, said)
        self.assertIn(words, said)
    missing = {name: value for name, value in _VALUES.items() if name != 'fc/bias'}
    status, said, _ = self.convert('NativeCase', 'net.keras', **missing)
    self.assertEqual(status, 1, said)
    self.assertIn('no key fc/bias', said)
    self.assertEqual(self.written(), [])

  def test_names(self):
    for out, options, words in (
      ('net.h5', (), 'Is net.weights.h5 meant?'),
      ('net.kears', (), 'Is net.keras meant?'),
      ('net.h5', ('--format', 'weights'), 'has to end in .weights.h5'),
      ('../tf1/model', ('--overwrite',), 'is the TF1 checkpoint itself'),
    ):
      with self.subTest(out):
        status, said, complained = self.convert('NativeCase', out, *options)
        self.assertEqual((status, said), (2, ''))
        self.assertIn(words, complained)
        self.assertEqual(self.written(), [])


class BackTest(NativeConversionTestCase):
  def back(self, case, source, out='back', *options):
    target = f'{self.file}::{case}'
    return self.run_command(
      'convert', target, '--to_tf1', source, '--out', self.path(out), *options
    )

  def test_there_and_back(self):
    for out in ('net.keras', 'net.weights.h5', 'net'):
      with self.subTest(out):
        self.assertEqual(self.convert('NativeCase', out)[0], 0)
        status, said, complained = self.back('NativeCase', self.path(out), 'back', '--overwrite')
        self.assertEqual((status, complained), (0, ''), said)
        self.assertIn(
          'written with its initial value in TF1, since the case leaves it to TF1 (nothing reads '
          'it): unused\n',
          said,
        )
        reader = tf.train.load_checkpoint(self.path('back'))
        self.assertEqual(
          reader.get_variable_to_shape_map(), {'fc/kernel': [2, 3], 'fc/bias': [2], 'unused': [3]}
        )
        np.testing.assert_array_equal(reader.get_tensor('fc/kernel'), _KERNEL)
        np.testing.assert_allclose(reader.get_tensor('fc/bias'), _BIAS, rtol=1e-6)

  def test_restored_by_a_program(self):
    self.assertEqual(self.convert('NativeCase', 'net')[0], 0)
    self.assertEqual(self.back('NativeCase', self.path('net'))[0], 0)
    with tf.Graph().as_default(), v1.Session() as session:
      variables = [v1.get_variable(n, s) for n, s in (('fc/kernel', [2, 3]), ('fc/bias', [2]))]
      v1.train.Saver().restore(session, self.path('back'))
      np.testing.assert_array_equal(session.run(variables[0]), _KERNEL)

  def test_refused(self):
    self.assertEqual(self.convert('NativeCase', 'net.keras')[0], 0)
    self.assertEqual(self.convert('NativeCase', 'net')[0], 0)
    with zipfile.ZipFile(self.path('empty.keras'), 'w') as archive:
      archive.writestr('config.json', '{}')
    (self.folder / 'tf2' / 'text.keras').write_text('text')
    hiding = self.path('hiding')
    tf.train.Checkpoint(model=tf.Module()).write(hiding)
    before = self.written()
    for case, source, out, expected, words in (
      ('LayerCase', 'net.keras', 'back', 1, 'make_tf2_layer does not return one'),
      ('NativeCase', 'hiding', 'back', 1, 'kept its value: not in the file'),
      ('NativeCase', 'net.keras', 'back.keras', 2, '--to_tf1 writes a TF1 checkpoint'),
      ('NativeCase', 'none.keras', 'back', 2, 'there is no file'),
      ('NativeCase', 'text.keras', 'back', 2, 'is not a .keras file'),
      ('NativeCase', 'empty.keras', 'back', 2, 'holds no model.weights.h5'),
      ('NativeCase', 'none', 'back', 2, 'none.index does not exist'),
      ('NativeCase', '../tf1/model', 'back', 2, 'use --tf1_checkpoint'),
      ('NativeCase', 'net', 'net', 2, 'exists, and nothing is overwritten'),
    ):
      with self.subTest(words):
        status, said, complained = self.back(case, self.path(source), out)
        self.assertEqual(status, expected, said + complained)
        self.assertIn(words, said + complained)
        self.assertEqual(self.written(), before)


if __name__ == '__main__':
  absltest.main()
