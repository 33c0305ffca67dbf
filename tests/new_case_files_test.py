"""`python -m tf2verify new`: awkward names of files, and what TF1 code imports."""

import ast
import contextlib
import importlib
import io
import os
import pathlib
import textwrap
from unittest import mock

from absl.testing import absltest, parameterized

from tests import console
from tf2verify.commands import cli, new_case
from tf2verify.commands.tf1_code import contrib, installed
from tf2verify.commands.tf1_code.replacements import replacements_of
from tf2verify.commands.tf1_code.source import read_source
from tf2verify.errors import UsageError

_NET = """
import tensorflow.compat.v1 as tf


def net(x):
  with tf.variable_scope('net'):
    return tf.layers.dense(x, 3, name='dense')


def loss_fn(logits, labels):
  return tf.losses.mean_squared_error(labels, logits)
"""
_HELPER = """
import tensorflow as tf
from .deeper import scaled


def linear(x):
  x = tf.layers.flatten(x)
  return scaled(tf.layers.dense(x, 3, kernel_regularizer=tf.contrib.layers.l2_regularizer(0.1)))
"""


class _FilesTest(parameterized.TestCase):
  def setUp(self) -> None:
    super().setUp()
    self.folder = console.own_folder(self)

  def _write(self, name: str, text: str) -> str:
    path = self.folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(textwrap.dedent(text), encoding='utf-8')
    return str(path)

  def _command(self, *arguments: str) -> tuple[int, str]:
    with (
      contextlib.redirect_stdout(io.StringIO()) as said,
      contextlib.redirect_stderr(io.StringIO()) as complained,
    ):
      status = cli.main([*arguments])
    return status, said.getvalue() + complained.getvalue()

  def _advice(self, text: str) -> dict[str, str]:
    """Returns code to advice, of what has to be replaced."""
    path = self._write('old_model.py', text)
    found = replacements_of(read_source(f'{path}:net'))
    return {one.code: one.advice for one in found if not one.in_port}


class NamesTest(_FilesTest):
  @parameterized.parameters(
    'my-model.py', '2net.py', 'class.py', 'ünï cödé.py', 'my-nets/small.py', 'u\u0308n.py', "a'b.py"
  )
  def test_names_that_import_does_not_take(self, name):
    if os.sep in name:
      self._write(os.path.join(os.path.dirname(name), '__init__.py'), '')
    path = self._write(name, _NET)
    out = str(self.folder / 'net_case.py')
    status, said = self._command('new', f'{path}:net', '--out', out)
    self.assertEqual(status, 0, said)
    text = pathlib.Path(out).read_text(encoding='utf-8')
    ast.parse(text)
    self.assertIn('\nloss_fn = _module.loss_fn\nnet = _module.net\n', text)
    status, said = self._command('run', out, '--stages', 'zero_randomness')
    self.assertEqual(status, 0, said)

  def test_a_plain_name_is_imported_by_the_statement(self):
    text = new_case.new_case(f'{self._write("größe.py", _NET)}:net')
    self.assertIn('\nfrom größe import loss_fn, net\n', text)
    self.assertNotIn('importlib', text)

  def test_a_dot_in_a_name_is_refused(self):
    path = self._write('net.v2.py', _NET)
    with self.assertRaisesRegex(UsageError, r'the dot in net\.v2 for .*; rename it, .* net_v2'):
      new_case.new_case(f'{path}:net')

  def test_what_is_no_python_file_is_refused(self):
    path = self._write('net.txt', _NET)
    with self.assertRaisesRegex(UsageError, r'net\.txt cannot be imported: .* end in \.py'):
      new_case.new_case(f'{path}:net')

  def test_quotes_and_line_breaks_in_a_name_stay_out_of_the_code(self):
    for name in ('a"""b.py', 'a\nb.py', 'a\\x.py'):
      with self.subTest(name):
        path = self._write(name, _NET.replace('tensorflow.compat.v1', 'tensorflow'))
        ast.parse(new_case.new_case(f'{path}:net'))

  def test_a_function_named_as_a_class_is_not_hidden_by_the_port(self):
    path = self._write('nets.py', _NET.replace('net(x)', 'Net(x)'))
    self.assertIn('class NetPort(', new_case.new_case(f'{path}:Net'))

  @parameterized.parameters(
    ('model_case.txt', 'model_case.py'),
    ('sub', 'sub_case.py'),
    ('net.v2_case.py', 'net_v2_case.py'),
    ('model.', 'model_case.py'),
  )
  def test_a_file_that_cannot_be_run_is_not_written(self, name, suggested):
    path = self._write('nets.py', _NET)
    status, said = self._command('new', f'{path}:net', '--out', f'{self.folder}/{name}')
    self.assertEqual(status, 2)
    self.assertIn(f'such as --out {self.folder}/{suggested}', said)
    self.assertFalse((self.folder / name).exists())

  def test_the_command_to_run_is_quoted(self):
    path = self._write('nets.py', _NET)
    _, said = self._command('new', f'{path}:net', '--out', f'{self.folder}/a case.py')
    self.assertIn(f"python -m tf2verify run '{self.folder}/a case.py'", said)

  def test_python_2_is_named_with_one_line(self):
    path = self._write('nets.py', 'def net(x):\n  print x\n')
    with self.assertRaises(UsageError) as caught:
      read_source(f'{path}:net')
    self.assertNotIn('unknown', str(caught.exception))
    self.assertIn('nets.py, line 2 is not Python 3: Missing parentheses', str(caught.exception))


class ImportsTest(_FilesTest):
  @parameterized.parameters(
    ('from tensorflow.contrib.slim.nets import resnet_v1', 'from tf_slim.nets import resnet_v1'),
    ('from tensorflow.contrib.slim import nets', 'from tf_slim import nets'),
    ('import tensorflow.contrib.slim.nets as nets', 'import tf_slim.nets as nets'),
    ('import tensorflow.contrib.slim.nets', 'import tf_slim.nets as nets'),
    (
      'from tensorflow.contrib.slim.python.slim.nets import vgg as v',
      'from tf_slim.nets import vgg as v',
    ),
    (
      'from tensorflow.contrib.slim.nets.inception import inception_v3',
      'from tf_slim.nets.inception import inception_v3',
    ),
    (
      'from tensorflow.contrib.layers.python.layers import utils',
      'from tf_slim.layers import utils',
    ),
    (
      'from tensorflow.contrib.layers.python.layers import batch_norm as bn',
      'from tf_slim import batch_norm as bn',
    ),
    (
      'from tensorflow.contrib.framework.python.ops import add_arg_scope',
      'from tf_slim import add_arg_scope',
    ),
    ('from tensorflow.contrib.rnn import GRUCell as G', 'G = tf.nn.rnn_cell.GRUCell'),
    ('from tensorflow.contrib.seq2seq.python import ops', contrib.RECORD),
    ('from tensorflow.contrib.slim import *', 'from tf_slim import *'),
    (
      'from tensorflow.contrib.layers import *',
      'from tf_slim import flatten, fully_connected (the names that are used here)',
    ),
    (
      'from tensorflow.contrib.rnn import *',
      'LSTMCell = tf.nn.rnn_cell.LSTMCell (the names that are used here)',
    ),
    ('from tensorflow.contrib.crf import *', contrib.RECORD),
    (
      'import tensorflow.contrib.slim as slim, numpy as np',
      'import tf_slim as slim; import numpy as np',
    ),
    ('import tensorflow as tf, os', 'import tensorflow.compat.v1 as tf; import os'),
    ('from tensorflow import contrib', 'its names are in several places: see below'),
    ('from tensorflow import placeholder', 'from tensorflow.compat.v1 import placeholder'),
    ('from tensorflow.nn import rnn_cell', 'from tensorflow.compat.v1.nn import rnn_cell'),
    ('from tensorflow.app import *', 'from tensorflow.compat.v1.app import *'),
    ('import tensorflow.app as app', 'import tensorflow.compat.v1.app as app'),
    (
      'from tensorflow.models.rnn import rnn_cell',
      'rnn_cell = tf.nn.rnn_cell, after import tensorflow.compat.v1 as tf',
    ),
    ('from tensorflow.models.rnn.ptb import reader', contrib.RECORD),
  )
  def test_where_imports_are_now(self, code, advice):
    text = 'def net(x):\n  return fully_connected(flatten(x), LSTMCell, tf.log(x))\n'
    self.assertIn(advice, self._advice(f'{code}\n{text}').values())

  @parameterized.parameters(
    'import tensorflow.compat.v1 as tf',
    'from tensorflow import keras',
    'from tensorflow.keras.layers import Dense',
    'from tensorflow.python.ops import rnn_cell',
    'from tensorflow.python.framework.ops import Graph',
    'from tensorflow.nn import relu',
    'from .models import rnn',
  )
  def test_imports_that_stay(self, code):
    self.assertEmpty(self._advice(f'{code}\ndef net(x):\n  return x\n'))

  def test_nothing_is_said_to_be_gone_if_tensorflow_is_not_found(self):
    with mock.patch.object(installed.importlib.machinery.PathFinder, 'find_spec') as found:
      found.return_value = None
      self.assertTrue(installed.is_there.__wrapped__('tensorflow.placeholder'))

  def test_nets_have_to_be_imported(self):
    found = self._advice("""
      import tf_slim
      import tensorflow.contrib.slim as slim
      def net(x):
        return slim.nets.vgg.vgg_16(slim.flatten(x))
      """)
    self.assertEqual(found['slim.nets'], 'tf_slim.nets (import tf_slim.nets)')
    self.assertNotIn('slim.flatten', found)

  def test_modules_of_tf_slim_are_there(self):
    for folder, names in contrib.FILES.items():
      for name in names:
        with self.subTest(name):
          importlib.import_module(f'{folder}.{name}')

  def test_data_of_tutorials_and_what_a_script_does(self):
    found = self._advice("""
      from tensorflow.examples.tutorials.mnist import input_data
      mnist = input_data.read_data_sets('MNIST_data', one_hot=True)
      arguments = parser.parse_args()
      def net(x):
        return input_data.read_data_sets('other')
      if __name__ == '__main__':
        tf.app.run()
      """)
    self.assertLen(found, 3)
    self.assertIn(
      'tf.keras.datasets.mnist',
      found['from tensorflow.examples.tutorials.mnist import input_data'],
    )
    for code in (
      "input_data.read_data_sets('MNIST_data', one_hot=True)",
      'parser.parse_args()',
    ):
      self.assertIn('runs when the module is imported', found[code])


class HelpersTest(_FilesTest):
  def _package(self) -> str:
    for name, text in (
      ('pkg/__init__.py', ''),
      ('pkg/sub/__init__.py', ''),
      ('pkg/ops.py', _HELPER),
      ('pkg/deeper.py', 'from tensorflow.contrib import slim\nfrom . import ops, broken\n'),
      ('pkg/broken.py', 'print x\n'),
      ('pkg/unused.py', 'from tensorflow.contrib import slim\n'),
      ('beside.py', 'import tensorflow.contrib.slim as slim\n'),
    ):
      self._write(name, text)
    imports = 'import beside\nfrom .. import ops\nfrom ..ops import linear\n'
    return self._write('pkg/sub/gan.py', f'{imports}\n\ndef net(x):\n  return linear(x)\n')

  def test_modules_of_the_same_package_are_read(self):
    path = self._package()
    out = str(self.folder / 'gan_case.py')
    status, said = self._command('new', f'{path}:net', '--out', out)
    self.assertEqual(status, 0, said)
    places = 'beside.py:1, pkg/ops.py:2, pkg/ops.py:8'
    self.assertIn(f', 4 to replace first ({places}, …, listed at its top)', said)
    text = pathlib.Path(out).read_text()
    self.assertIn('"""Compares net of pkg/sub/gan.py with its port."""', text)
    self.assertIn(
      '#   pkg/deeper.py:1: from tensorflow.contrib import slim -> import tf_slim', text
    )
    self.assertNotIn('unused', text)

  def test_once_all_is_replaced_there_the_case_runs(self):
    path = self._package()
    out = str(self.folder / 'gan_case.py')
    self._command('new', f'{path}:net', '--out', out)
    status, said = self._command('run', out, '--stages', 'zero_randomness')
    self.assertNotEqual(status, 0, said)
    self._write('beside.py', 'import tf_slim as slim\n')
    self._write('pkg/deeper.py', 'import tf_slim as slim\n\n\ndef scaled(x):\n  return x * 2.0\n')
    helper = _HELPER.replace(
      'import tensorflow as tf', 'import tensorflow.compat.v1 as tf, tf_slim'
    )
    helper = helper.replace('tf.contrib.layers.l2_regularizer', 'tf_slim.l2_regularizer')
    self._write('pkg/ops.py', helper.replace('x, 3,', "x, 3, name='dense',"))
    status, said = self._command('run', out, '--stages', 'zero_randomness')
    self.assertEqual(status, 0, said)

  def test_a_file_is_named_as_seen_from_the_working_folder(self):
    self._write('models/nets.py', 'import ops\ndef net(x):\n  return x\n')
    self._write('models/ops.py', 'from tensorflow.contrib import slim\n')
    [found] = replacements_of(read_source(f'{self.folder}/models/nets.py:net'))
    self.assertEqual(found.place, 'ops.py:1')
    self.addCleanup(os.chdir, os.getcwd())
    os.chdir(self.folder)
    [found] = replacements_of(read_source('models/nets.py:net'))
    self.assertEqual(found.place, 'models/ops.py:1')

  def test_files_of_what_is_not_shown_are_named(self):
    many = ''.join(f'from tensorflow.contrib import slim as slim{n}\n' for n in range(25))
    self._write('ops.py', many)
    path = self._write('nets.py', 'import ops\ndef net(x):\n  return x\n')
    self.assertIn('#   and 5 more in ops.py\n', new_case.new_case(f'{path}:net'))


if __name__ == '__main__':
  absltest.main()
