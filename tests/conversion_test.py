import contextlib
import io
import os
from unittest import mock

import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

from tests import console
from tf2verify.commands import cli
from tf2verify.commands.conversion import reading
from tf2verify.sides.tf1 import checkpoint as tf1_checkpoint

_CASES = """
import tf2verify
import tensorflow as tf
import tf_keras

v1 = tf.compat.v1


def dense(inputs):
  return inputs @ v1.get_variable('kernel', [3, 2]) + v1.get_variable('bias', [2])


class Port(tf.keras.layers.Layer):
  @v1.keras.utils.track_tf1_style_variables
  def call(self, inputs):
    return dense(inputs)


class RightCase(tf2verify.EquivalenceCase):
  def build_tf1_graph(self, inputs, training):
    return dense(inputs)

  def make_tf2_layer(self):
    return Port()

  def make_inputs(self):
    return tf2verify.normal_inputs((4, 3))


class ForgetfulCase(RightCase):
  def load_tf1_checkpoint(self, layer, path):
    layer.variables[0].assign(tf.train.load_checkpoint(path).get_tensor('bias'))


class LossyCase(RightCase):
  def load_tf2_checkpoint(self, layer, path):
    pass


class StrayCase(RightCase):
  def save_tf2_checkpoint(self, layer, path):
    return tf.train.Checkpoint(model=layer).write(path + '_elsewhere/model')


class NumberedCase(RightCase):
  def save_tf2_checkpoint(self, layer, path):
    return tf.train.Checkpoint(model=layer).save(path)

  def load_tf2_checkpoint(self, layer, path):
    tf.train.Checkpoint(model=layer).restore(path).assert_consumed()


class SavingCase(RightCase):
  def save_tf2_checkpoint(self, layer, path):
    return tf.train.Checkpoint(model=layer).save(path)


class CalledCase(RightCase):
  def call_tf2_layer(self, layer, inputs, training):
    return layer(inputs)


class SequentialCase(RightCase):
  # Not built before its first call.
  variable_names = {'kernel': 'd/kernel', 'bias': 'd/bias'}

  def make_tf2_layer(self):
    return tf_keras.Sequential([tf_keras.layers.Dense(2, name='d')])


class WrongCase(RightCase):
  def call_tf2_layer(self, layer, inputs, training):
    return 2.0 * layer(inputs)
"""
KERNEL = np.arange(6, dtype=np.float32).reshape(3, 2)
BIAS = np.array([0.5, -1.0], np.float32)


class CommandTestCase(parameterized.TestCase):
  def setUp(self):
    super().setUp()
    self.folder = console.own_folder(self)
    console.write_files(self.folder, dense_case=_CASES)
    self.file = str(self.folder / 'dense_case.py')
    (self.folder / 'tf1').mkdir()
    (self.folder / 'tf2').mkdir()
    self.out = str(self.folder / 'tf2' / 'dense')

  def write(self, **values):
    return tf1_checkpoint.write(str(self.folder / 'tf1' / 'model'), values)

  def run_command(self, *arguments):
    said, complained = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(complained):
      status = cli.main([str(argument) for argument in arguments])
    return status, said.getvalue(), complained.getvalue()

  def written(self):
    return sorted(os.listdir(self.folder / 'tf2'))


class ConvertTest(CommandTestCase):
  def _convert(self, case, source, out=None):
    target = f'{self.file}::{case}' if case else self.file
    return self.run_command('convert', target, '--tf1_checkpoint', source, '--out', out or self.out)

  def test_written(self):
    further = {'kernel/Adam': KERNEL, 'global_step': np.array(5)}
    source = self.write(kernel=KERNEL, bias=BIAS, **further)
    status, said, complained = self._convert('RightCase', source)
    self.assertEqual((status, complained), (0, ''), said)
    self.assertEqual(
      said,
      f'RightCase: {source}\n'
      '  keys of the TF1 checkpoint:\n'
      '    kind            keys  read\n'
      '    model variable  2     2\n'
      '    optimizer slot  1     0\n'
      '    global step     1     0\n'
      "  left out, since it is the optimizer's, and that is not converted: the case has no "
      'make_tf2_optimizer: kernel/Adam\n'
      '  left out, since it counts training steps, and the port has no variable for it: '
      'global_step\n'
      '  verified: 7 tensors, 40 elements\n'
      f'written: {self.out}\n'
      '  read it by:\n'
      '    # layer: a new one, as RightCase.make_tf2_layer returns it; '
      'inputs: like those that RightCase.make_inputs returns\n'
      '    layer(inputs)  # once: this makes the variables that are read\n'
      f'    tf.train.Checkpoint(model=layer).read({self.out!r}).assert_consumed()\n',
    )
    self.assertEqual(self.written(), ['dense.data-00000-of-00001', 'dense.index'])
    reader = tf.train.load_checkpoint(self.out)
    [key] = [key for key in reader.get_variable_to_shape_map() if '/kernel/' in key]
    np.testing.assert_array_equal(reader.get_tensor(key), KERNEL)

  def test_saver_of_the_case(self):
    status, said, _ = self._convert('NumberedCase', self.write(kernel=KERNEL, bias=BIAS))
    self.assertEqual(status, 0, said)
    self.assertIn(f'written: {self.out}-1\n', said)
    self.assertEqual(self.written(), ['dense-1.data-00000-of-00001', 'dense-1.index'])

  @parameterized.parameters(
    ('NumberedCase', 'layer(inputs)', 'case.load_tf2_checkpoint(layer, {path})'),
    # `save` counts, and nothing here has its counter.
    (
      'SavingCase',
      'layer(inputs)',
      'tf.train.Checkpoint(model=layer).read({path}).assert_existing_objects_matched()',
    ),
    (
      'CalledCase',
      'case.call_tf2_layer(layer, inputs, False)',
      'tf.train.Checkpoint(model=layer).read({path}).assert_consumed()',
    ),
  )
  def test_lines_that_read_it(self, case, call, read):
    status, said, _ = self._convert(case, self.write(kernel=KERNEL, bias=BIAS))
    self.assertEqual(status, 0, said)
    _, written, lines = said.partition('written: ')
    path = written and lines.splitlines()[0]
    head, _, lines = lines.partition('  read it by:\n    # ')[2].partition('\n')
    self.assertEqual(head.startswith(f'case: {case}()'), 'case.' in call + read)
    self.assertEqual(
      lines,
      f'    {call}  # once: this makes the variables that are read\n'
      f'    {read.replace("{path}", repr(path))}\n',
    )

  @parameterized.parameters('.weights.h5', '')
  def test_model_without_variables_before_its_first_call(self, suffix):
    source = self.write(kernel=KERNEL, bias=BIAS)
    status, said, _ = self._convert('SequentialCase', source, self.out + suffix)
    self.assertEqual(status, 0, said)
    self.assertIn('layer(inputs, training=False)  # once', said)

  @parameterized.parameters(
    ('pass', 'value read by the printed lines bias'),
    ('layer.no_such_method({path})', "has no attribute 'no_such_method'"),
  )
  def test_lines_that_read_nothing_are_not_printed(self, line, words):
    with mock.patch.object(reading, '_alternatives', return_value=[(line,)]):
      status, said, _ = self._convert('RightCase', self.write(kernel=KERNEL, bias=BIAS))
    self.assertEqual(status, 1, said)
    self.assertIn('what was written cannot be read back', said)
    self.assertIn(words, said)
    self.assertEqual(self.written(), [])

  @parameterized.parameters(
    ('ForgetfulCase', 'restored value kernel: presence differs'),
    ('LossyCase', 'load_tf2_checkpoint calls no tf.train.Checkpoint'),
    ('WrongCase', "stage 'zero_randomness' FAILED"),
  )
  def test_refused_for_the_case(self, case, words):
    status, said, complained = self._convert(case, self.write(kernel=KERNEL, bias=BIAS))
    self.assertEqual((status, complained), (1, ''))
    self.assertIn('REFUSED, nothing was written:', said)
    self.assertIn(words, said)
    self.assertEqual(self.written(), [])

  @parameterized.parameters(
    ({'kernel': KERNEL, 'bais': BIAS}, 'no key bias; closest: bais: was the variable renamed?'),
    ({'kernel': KERNEL}, 'no key bias, and no similar one that is unread: the Saver'),
    ({'kernel': KERNEL}, '    model: has the variable\n    checkpoint: has no such key\n'),
    ({'kernel': KERNEL, 'bias': BIAS[:1]}, '    model: (2,) float32\n    checkpoint: (1,) float32'),
    ({'kernel': KERNEL.T, 'bias': BIAS}, 'stored transposed'),
    ({'kernel': KERNEL, 'bias': BIAS, 'aux': BIAS}, 'the checkpoint holds more than the model'),
  )
  def test_refused_for_the_checkpoint(self, values, words):
    status, said, _ = self._convert('RightCase', self.write(**values))
    self.assertEqual(status, 1)
    self.assertIn(words, said)
    self.assertEqual(self.written(), [])

  @parameterized.parameters(
    ('RightCase', 'dense'),
    ('RightCase', 'dense.index'),
    ('RightCase', 'dense.data-00000-of-00002'),
    ('NumberedCase', 'dense-1.data-00000-of-00001'),
  )
  def test_never_overwrites(self, case, name):
    (self.folder / 'tf2' / name).write_text('kept')
    source = self.write(kernel=KERNEL, bias=BIAS)
    status, said, complained = self._convert(case, source)
    self.assertEqual((status, said), (2, ''))
    self.assertIn(f'{name} exists, and nothing is overwritten', complained)
    self.assertEqual(self.written(), [name])

  def test_others_of_like_names_do_not_matter(self):
    (self.folder / 'tf2' / 'dense2.index').write_text('kept')
    status, said, _ = self._convert('RightCase', self.write(kernel=KERNEL, bias=BIAS))
    self.assertEqual(status, 0, said)
    self.assertLen(self.written(), 3)

  def test_bad_input(self):
    source = self.write(kernel=KERNEL, bias=BIAS)
    for case, path, out, words in (
      ('RightCase', f'{source}.index', None, '--tf1_checkpoint: '),
      ('RightCase', source, self.folder / 'no' / 'dense', 'there is no folder'),
      ('RightCase', source, self.folder, 'is a folder; give the prefix'),
      ('', source, None, 'has 9 cases (RightCase, '),
      ('StrayCase', source, None, 'it has to write to the given path'),
      ('AbsentCase', source, None, 'has no case AbsentCase'),
    ):
      with self.subTest(words):
        status, said, complained = self._convert(case, path, out)
        self.assertEqual((status, said), (2, ''))
        self.assertIn(words, complained)
        self.assertEqual(self.written(), [])

  def test_values_that_are_not_finite_are_told(self):
    kernel = np.where(KERNEL == 2.0, np.nan, KERNEL).astype(np.float32)
    status, said, _ = self._convert('RightCase', self.write(kernel=kernel, bias=BIAS))
    self.assertEqual(status, 0, said)
    self.assertIn('has values that are NaN or infinite', said)
    self.assertRegex(said, 'verify nothing: .*kernel')
    _, said, _ = self._convert('RightCase', self.write(kernel=KERNEL, bias=BIAS), self.out + '2')
    self.assertNotIn('NaN', said)

  def test_another_model(self):
    status, _, complained = self._convert('RightCase', self.write(weights=KERNEL))
    self.assertEqual(status, 2)
    self.assertIn('is of a different model', complained)


if __name__ == '__main__':
  absltest.main()
