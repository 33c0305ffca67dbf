"""`python -m tf2verify new`: what it reads of TF1 code, and that what it writes runs."""

import ast
import contextlib
import io
import os
import pathlib
import sys
import tempfile
import textwrap
from unittest import mock

from absl.testing import absltest, parameterized

from tf2verify.commands import cli, new_case
from tf2verify.commands.tf1_inputs import inputs_of
from tf2verify.commands.tf1_replacements import replacements_of
from tf2verify.commands.tf1_source import read_source
from tf2verify.errors import UsageError

_OLD = """
import tensorflow as tf
from tensorflow.contrib import slim
from tensorflow.contrib.seq2seq import dynamic_decode


def block(x, units):
  return tf.layers.conv2d(x, units, 3, name='conv')


def network(images, num_classes, is_training, hparams, keep_prob=0.5, scope='net'):
  with tf.variable_scope(scope) as sc:
    net = block(images, hparams.filters)
    batch = net.shape[0].value
    end_points = {net.op.name: net, sc.name: batch}
    cell = tf.contrib.rnn.LSTMCell(8)
    defaults = tf.contrib.training.HParams(units=8)
    x = tf.placeholder(tf.float32, [None, 3])
    train = tf.train.AdamOptimizer(1e-3).minimize(net)
    return tf.layers.dense(slim.flatten(net), num_classes) * FLAGS.scale
"""
# What `network` was before it is replaced, and one that runs as it is.
_RUNS = """
import tensorflow.compat.v1 as tf

raise_if_imported = {raising}


def tagger(input_ids, lengths, num_tags, config, training, scope='tagger'):
  with tf.variable_scope(scope):
    table = tf.get_variable('table', [config.vocab_size, config.hidden_size])
    net = tf.nn.embedding_lookup(table, input_ids)
    mask = tf.cast(tf.sequence_mask(lengths, 7), tf.float32)
    net = tf.layers.dropout(net * tf.expand_dims(mask, -1), training=training)
    return tf.layers.dense(net, num_tags, name='logits')
"""


class NewCaseTest(parameterized.TestCase):
  def setUp(self) -> None:
    super().setUp()
    folder = tempfile.TemporaryDirectory()
    self.addCleanup(folder.cleanup)
    self.folder = pathlib.Path(folder.name).resolve()

  def _source(self, text: str, function: str = 'network'):
    path = self.folder / 'old_model.py'
    path.write_text(textwrap.dedent(text))
    return read_source(f'{path}:{function}')

  def _command(self, *arguments: str) -> tuple[int, str]:
    with (
      contextlib.redirect_stdout(io.StringIO()) as said,
      contextlib.redirect_stderr(io.StringIO()) as complained,
    ):
      status = cli.main([*arguments])
    return status, said.getvalue() + complained.getvalue()

  def test_what_is_written_runs_and_passes(self):
    (self.folder / 'runs_model.py').write_text(_RUNS.format(raising=False))
    out = str(self.folder / 'tagger_case.py')
    status, said = self._command('new', f'{self.folder}/runs_model.py:tagger', '--out', out)
    self.assertEqual(status, 0, said)
    self.assertEqual(
      said, f'wrote {out}: 6 lines to check (# CHECK), then: python -m tf2verify run {out}\n'
    )
    status, said = self._command('run', out, '--stages', 'gradients')
    self.assertEqual(status, 0, said)
    self.assertIn('TaggerCase: PASSED, 5 of 5 stages passed', said)
    # Nothing is overwritten.
    status, said = self._command('new', f'{self.folder}/runs_model.py:tagger', '--out', out)
    self.assertEqual(status, 2)
    self.assertIn('tagger_case.py exists already; name a different file', said)

  def test_the_module_is_read_and_not_imported(self):
    (self.folder / 'runs_model.py').write_text(_RUNS.format(raising='1 / 0'))
    with mock.patch.object(sys, 'path', [str(self.folder)]):
      status, said = self._command('new', 'runs_model:tagger')
    self.assertEqual(status, 0)
    self.assertIn('from runs_model import tagger', said)
    settings = 'types.SimpleNamespace(vocab_size=8, hidden_size=8),'
    self.assertIn(f'# CHECK: set as in production\n      {settings}', said)
    self.assertIn("'input_ids': np.random.default_rng(0).integers(0, 8, (2, 7), dtype=", said)
    self.assertIn("'lengths': np.array([7, 4], np.int32)", said)
    ast.parse(said)
    self.assertNotIn('runs_model', sys.modules)

  def test_a_module_of_a_package(self):
    (self.folder / 'nets').mkdir()
    (self.folder / 'nets' / '__init__.py').touch()
    (self.folder / 'nets' / 'small.py').write_text('def net(x):\n  return x\n')
    text = new_case.new_case(f'{self.folder}/nets/small.py:net')
    self.assertIn('from nets.small import net', text)
    self.assertIn('# CHECK: nothing in the code shows its shape: a guess', text)

  def test_what_has_to_be_replaced_is_named_with_its_line(self):
    found = [(one.line, one.advice, one.in_port) for one in replacements_of(self._source(_OLD))]
    for line, advice, in_port in (
      (2, 'import tensorflow.compat.v1 as tf', False),
      (3, 'import tf_slim as slim', False),
      (4, 'record the model under TensorFlow 1.x', False),
      (16, 'tf.compat.v1.nn.rnn_cell', False),
      (17, 'HParams: a dataclass or types.SimpleNamespace', False),
      (18, 'take it as a parameter: inputs are given', False),
      (19, 'make_tf1_optimizer', False),
      (20, 'take it as a parameter: flags', False),
      (14, 'in the port: net.shape[0]', True),
      (15, 'a name of your own, since eager tensors have none', True),
    ):
      with self.subTest(advice):
        hits = [one for one in found if one[0] == line and advice in one[1]]
        self.assertNotEmpty(hits, found)
        self.assertIs(hits[0][2], in_port)
    # `sc.name` is of a scope.
    self.assertLen([one for one in found if 'a name of your own' in one[1]], 1)

  def test_nothing_is_named_where_nothing_is_to_be_replaced(self):
    source = self._source(_RUNS.format(raising=False), 'tagger')
    self.assertEmpty(replacements_of(source))
    plain = 'import tensorflow as tf\ndef network(x):\n  return tf.nn.relu(x)\n'
    self.assertEmpty(replacements_of(self._source(plain)))

  @parameterized.parameters(
    ('tf.layers.conv2d(x, 8, 3)', 'normal_inputs((2, 32, 32, 3))', 'from line 2: tf.layers.conv2d'),
    ('slim.fully_connected(inputs=x)', 'normal_inputs((2, 8))', 'from line 2'),
    ('tf.matmul(tf.identity(x), w)', 'normal_inputs((2, 8))', 'nothing in the code'),
    ('tf.reshape(x, [-1, 28, 28, 1])', 'normal_inputs((2, 784))', 'from line 2'),
    ('tf.nn.dynamic_rnn(cell, x)', 'normal_inputs((2, 7, 8))', 'from line 2'),
    ('tf.nn.embedding_lookup(table, x)', 'integers(0, 8, (2, 7)', 'from line 2'),
    ('tf.nn.dynamic_rnn(cell, tf.nn.relu(x))', 'normal_inputs((2, 8))', 'nothing in the code'),
    ('tf.nn.embedding_lookup(x, ids)', 'normal_inputs((2, 8))', 'nothing in the code'),
  )
  def test_inputs_of_operations(self, operation, text, reason):
    source = self._source(f'def network(x):\n  return {operation}\n')
    [found] = inputs_of(source)
    self.assertIn(text, found.text)
    self.assertStartsWith(found.reason, reason)

  def test_inputs_of_placeholders_names_and_keys(self):
    source = self._source("""
      x = tf.placeholder(tf.int64, [None, 5])
      def network(features, ids, image, table):
        return features['words'], features['mask'], ids
      network(f, x, i, t)
      """)
    found = {one.name: one for one in inputs_of(source)}
    self.assertIn("'words': np.random.default_rng(0).integers", found['features'].text)
    self.assertIn("'mask': np.array([[1", found['features'].text)
    self.assertEqual(
      found['ids'].text, 'np.random.default_rng(1).integers(0, 8, (2, 5), dtype=np.int64)'
    )
    self.assertEqual(found['ids'].reason, 'its shape is that of the placeholder in line 2')
    self.assertIn('(2, 32, 32, 3)', found['image'].text)
    for one in found.values():
      ast.parse(one.text, mode='eval')

  def test_inputs_that_are_unpacked(self):
    source = self._source("""
      def network(inputs, is_training):
        steps, lengths = inputs
        steps = tf.nn.dropout(steps, 0.9)
        return tf.nn.bidirectional_dynamic_rnn(a, b, steps), tf.sequence_mask(lengths)
      """)
    [found] = inputs_of(source)
    self.assertEqual(found.text, '(tf2verify.normal_inputs((2, 7, 8)), np.array([7, 4], np.int32))')
    self.assertRegex(found.reason, 'steps: from line 5: .*; lengths: from line 5')

  def test_settings_are_told_by_annotations_and_by_what_other_functions_read(self):
    source = self._source("""
      def inner(net, hps):
        return net * hps.scale
      def network(net, weird: int, decay_steps: int, label_text: str, hparams, is_training: bool):
        return inner(net, hparams) * hparams.width
      """)
    roles = {one.name: one.role for one in source.parameters}
    self.assertEqual(
      roles,
      {
        'net': 'input', 'weird': 'number', 'decay_steps': 'number', 'label_text': 'text',
        'hparams': 'object', 'is_training': 'training',
      },
    )  # fmt: skip
    text = new_case.new_case(f'{self.folder}/old_model.py:network')
    self.assertIn('types.SimpleNamespace(scale=1.0, width=8)', text)
    self.assertNotIn('1e-4,', text.partition('# To compare')[0])
    ast.parse(text)

  @parameterized.parameters(
    ('old_model.py', 'names no function; give MODULE:FUNCTION'),
    ('absent.py:network', 'absent.py does not exist'),
    ('absent_module:network', 'no module absent_module'),
    ('old_model.py:netwrk', r'no function netwrk .*\(did you mean network\?\); it has block, net'),
    ('old_model.py:Model', 'no function Model outside of classes'),
    ('python_2.py:network', r'python_2.py, line 2 is not Python 3: .*; code of Python 2'),
    ('no_inputs.py:network', r'network \(.*no_inputs.py, line 1\) has no parameter that takes ten'),
  )
  def test_what_cannot_be(self, target, said):
    (self.folder / 'old_model.py').write_text(_OLD)
    (self.folder / 'python_2.py').write_text('def network(x):\n  print x\n')
    (self.folder / 'no_inputs.py').write_text('def network(training):\n  pass\n')
    target = target if target.startswith('absent_module') else f'{self.folder}{os.sep}{target}'
    with self.assertRaisesRegex(UsageError, said):
      new_case.new_case(target)


if __name__ == '__main__':
  absltest.main()
