"""`python -m tf2verify new`: what it reads of TF1 code, and that what it writes runs."""

import ast
import contextlib
import functools
import io
import os
import pathlib
import re
import sys
import textwrap
from unittest import mock

import tensorflow as tf
import tf_slim
from absl.testing import absltest, parameterized

from tests import console
from tf2verify.commands import cli, new_case
from tf2verify.commands.tf1_code import contrib
from tf2verify.commands.tf1_code.inputs import inputs_of
from tf2verify.commands.tf1_code.replacements import replacements_of
from tf2verify.commands.tf1_code.source import read_source
from tf2verify.commands.tf1_code.training import optional_hooks_of
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
_CLASS = """
import tensorflow.compat.v1 as tf


class Net(object):
  def __init__(self, hps, images, labels, mode):
    self.hps = hps
    self._images = images
    self.mode = mode

  def build_graph(self):
    self.step = 0
    self._build_model()

  def _build_model(self):
    net = tf.layers.conv2d(self._images, self.hps.filters, 3, name='conv')
    net = tf.layers.batch_normalization(net, training=self.mode == 'train', name='norm')
    self.logits = tf.layers.dense(self._pooled(net), self.hps.num_classes, name='logits')
    self.loss = None

  def _pooled(self, net):
    return tf.reduce_mean(net, [1, 2])

  @lazy_property
  def squared(self):
    return tf.square(self._images)


class Head(object):
  def __init__(self, units):
    self.units = units

  def apply(self, rows):
    return tf.layers.dense(rows, self.units, name='head')

  def __call__(self, rows, scale=1.0):
    return self.apply(rows) * scale


class Ready(object):
  def __init__(self, word_ids, vocab_size):
    self.table = tf.get_variable('table', [vocab_size, 4])
    self.vectors = tf.nn.embedding_lookup(self.table, word_ids)
"""
# What `network` was before it is replaced, and one that runs as it is.
_TRAINED = """
import tensorflow.compat.v1 as tf


def net(images):
  net = tf.layers.flatten(tf.layers.conv2d(images, 2, 3, strides=8, name='conv'))
  return tf.layers.dense(net, 3, name='dense')


def loss_fn(logits, labels):
  return tf.losses.sparse_softmax_cross_entropy(labels, logits)


def train_op(loss):
  return tf.train.AdamOptimizer(1e-3).minimize(loss, tf.train.get_or_create_global_step())
"""
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

_RUNS_BESIDE = """\"\"\"A model, its loss and its training.\"\"\"
import tensorflow as tf


def rate(ids):
  with tf.variable_scope('rate'):
    return tf.nn.embedding_lookup(tf.get_variable('table', [9, 4]), ids)


def loss_fn(logits, labels):
  return tf.losses.mean_squared_error(labels, logits)


def train_op(loss):
  return tf.train.AdamOptimizer().minimize(loss)
"""


_SIZED = """
import tensorflow as tf


def network(images):
  decay = tf.contrib.layers.l2_regularizer(1e-3)
  net = tf.reshape(images, [-1, images.shape[1].value * 3])
  with tf.variable_scope('net'):
    return tf.layers.dense(net, 2, kernel_regularizer=decay, name='logits')
"""


class NewCaseTest(parameterized.TestCase):
  def setUp(self) -> None:
    super().setUp()
    self.folder = console.own_folder(self)

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

  def test_what_is_to_be_replaced_first_is_said(self):
    (self.folder / 'old_model.py').write_text(_RUNS_BESIDE)
    out = str(self.folder / 'old_case.py')
    _, said = self._command('new', f'{self.folder}/old_model.py:rate', '--out', out)
    self.assertIn(', 1 to replace first (old_model.py:2, listed at its top), then: ', said)
    _, said = self._command('run', out, '--stages', 'no_new_variables')
    line = '`import tensorflow.compat.v1 as tf` in old_model.py:2'
    self.assertIn(line, ' '.join(said.split()))  # of the port, before the TF1 side runs

  def test_placeholder_runs_once_all_is_replaced(self):
    (self.folder / 'sized_model.py').write_text(_SIZED)
    out = self.folder / 'sized_case.py'
    _, said = self._command('new', f'{self.folder}/sized_model.py:network', '--out', str(out))
    self.assertIn('3 to replace first (sized_model.py:2, sized_model.py:6, sized_model.py:7', said)
    self.assertIn('tf_slim.l2_regularizer (import tf_slim)', ' '.join(out.read_text().split()))
    replaced = _SIZED
    for old, new in (
      ('import tensorflow as tf', 'import tensorflow.compat.v1 as tf, tf_slim'),
      ('tf.contrib.layers.l2', 'tf_slim.l2'),
      ('images.shape[1].value', 'tf.compat.dimension_value(images.shape[1])'),
    ):
      replaced = replaced.replace(old, new)
    (self.folder / 'sized_model.py').write_text(replaced)
    status, said = self._command('run', str(out), '--stages', 'zero_randomness')
    self.assertEqual(status, 0, said)

  @parameterized.parameters(
    ('tf.get_variable("table", [VOCAB, 4])', 'tf.nn.embedding_lookup(table, ids)', 30),
    ('tf.get_variable("table", shape=(12, 4))', 'tf.gather(table, ids)', 12),
    ('None', 'tf.one_hot(ids, VOCAB)', 30),
    ('None', 'tf.one_hot(ids, depth=5)', 5),
    ('tf.get_variable("table", [size(), 4])', 'tf.nn.embedding_lookup(table, ids)', 8),
    ('tf.get_variable("other", [VOCAB, 4])', 'tf.nn.embedding_lookup(tables[0], ids)', 8),
  )
  def test_ids_are_of_the_table(self, table, lookup, end):
    text = f"""
      VOCAB = 30

      def network(ids):
        table = {table}
        return {lookup}
    """
    (found,) = inputs_of(self._source(text))
    self.assertIn(f'.integers(0, {end}, (2, 7)', found.text)

  def test_loss_and_train_op_of_the_module(self):
    text = optional_hooks_of(self._source(_RUNS_BESIDE, 'rate'))
    text = new_case.new_case(f'{self.folder}/old_model.py:rate')
    self.assertIn('\nfrom old_model import loss_fn, rate, train_op\n', text)
    text = optional_hooks_of(self._source(_RUNS_BESIDE, 'rate'))
    self.assertIn(
      '# def tf1_loss(self, outputs, labels):\n#   return loss_fn(outputs, labels)\n', text
    )
    self.assertIn('# def make_tf1_train_op(self, loss):\n#   return train_op(loss)\n', text)
    self.assertNotIn('make_tf1_optimizer', text)

  def test_losses_and_optimizers_are_those_of_the_module(self):
    text = optional_hooks_of(self._source(_RUNS_BESIDE, 'rate'))
    self.assertIn('#   loss = tf.keras.losses.MeanSquaredError()\n', text)
    self.assertIn('#   return tf.keras.optimizers.Adam(1e-3, epsilon=1e-8)\n', text)
    text = _RUNS_BESIDE.replace('mean_squared_error', 'hinge_loss')
    text = text.replace('AdamOptimizer()', 'AdagradOptimizer(learning_rate=0.1)')
    text = optional_hooks_of(self._source(text, 'rate'))
    self.assertIn('#   loss = tf.keras.losses.Hinge()\n', text)
    self.assertIn('Adagrad(0.1, initial_accumulator_value=0.1, epsilon=0.0)\n', text)
    # In the function of the model itself.
    trained = 'def network(x):\n  tf.train.MomentumOptimizer(rate, 0.9).minimize(x)\n  return x\n'
    text = optional_hooks_of(self._source(trained))
    self.assertIn('#   return tf.compat.v1.train.MomentumOptimizer(1e-3, momentum=0.9)\n', text)
    self.assertIn('#   return tf.keras.optimizers.SGD(1e-3, momentum=0.9)\n', text)

  @parameterized.parameters(
    'def loss_fn(logits, labels, weights):\n  pass',  # of what nobody passes
    'def loss_fn(a, b):\n  pass',
    'def lossy(logits, labels):\n  pass',
    'def train(images):\n  pass',
  )
  def test_other_functions_are_left_alone(self, function):
    text = optional_hooks_of(self._source(f'def network(x):\n  return x\n\n\n{function}\n'))
    self.assertIn('sparse_softmax_cross_entropy(labels, outputs)', text)
    self.assertIn('make_tf1_optimizer', text)
    self.assertNotIn('import ', text)

  def test_labels_first(self):
    text = 'def network(x):\n  return x\n\n\ndef cost(targets, logits, name=None):\n  pass\n'
    self.assertIn('#   return cost(labels, outputs)', optional_hooks_of(self._source(text)))

  def test_what_is_written_runs_and_passes(self):
    (self.folder / 'runs_model.py').write_text(_RUNS.format(raising=False))
    out = str(self.folder / 'tagger_case.py')
    status, said = self._command('new', f'{self.folder}/runs_model.py:tagger', '--out', out)
    self.assertEqual(status, 0, said)
    self.assertEqual(
      said, f'wrote {out}: 6 lines to check (# CHECK), then: python -m tf2verify run {out}\n'
    )
    self.assertIn('  is_placeholder = True', pathlib.Path(out).read_text())
    status, said = self._command('run', out, '--stages', 'gradients')
    self.assertEqual(status, 0, said)
    self.assertIn('TaggerCase: PASSED, 5 of 5 stages passed', said)
    self.assertIn('blind spot, no_new_variables: the port is still the placeholder', said)
    text = pathlib.Path(out).read_text()
    pathlib.Path(out).write_text(text.replace('  is_placeholder = True', '  pass'))
    _, said = self._command('run', out, '--stages', 'no_new_variables')
    self.assertNotIn('placeholder', said)
    # Nothing is overwritten.
    status, said = self._command('new', f'{self.folder}/runs_model.py:tagger', '--out', out)
    self.assertEqual(status, 2)
    self.assertIn('tagger_case.py exists already; name a different file', said)

  def test_the_hooks_that_are_comments_run(self):
    (self.folder / 'trained_model.py').write_text(_TRAINED)
    path = self.folder / 'trained_case.py'
    status, said = self._command('new', f'{self.folder}/trained_model.py:net', '--out', str(path))
    self.assertEqual(status, 0, said)
    text = path.read_text()
    head, mark, hooks = text.partition('docs/writing_a_case.md):\n')
    hooks = hooks.partition('  # def tf1_checkpoint')[0]  # there is none
    main = text[text.index("if __name__ == '__main__'") :]
    path.write_text(head + mark + re.sub(r'(?m)^  #( |$)', '  ', hooks) + '\n\n' + main)
    status, said = self._command('run', str(path), '--stages', 'training_steps')
    self.assertEqual(status, 0, said)
    self.assertRegex(said, 'training_steps +PASSED')

  @parameterized.parameters(
    ('Net.build_graph', ('logits', 'normal_inputs((2, 32, 32, 3))', 'filters=8, num_classes=10')),
    ('Head.apply', ('return model.apply(inputs)', 'normal_inputs((2, 8))')),
    ('Head', ('return model(inputs)',)),
    ('Ready', ('return model.vectors', 'integers(0, 8, (2, 7)', 'it sets vectors, table')),
  )
  def test_classes(self, name, parts):
    """A model that is a class of TF1 has a case that runs."""
    path = self.folder / f'model_{name.lower().replace(".", "_")}.py'
    path.write_text(_CLASS.replace('@lazy_property', '@property'))
    out = str(path).replace('model_', 'case_')
    status, said = self._command('new', f'{path}:{name}', '--out', out)
    self.assertEqual(status, 0, said)
    written = pathlib.Path(out).read_text()
    for part in parts:
      self.assertIn(part, written)
    status, said = self._command('run', out, '--stages', 'zero_randomness')
    self.assertEqual(status, 0, said)

  def test_a_property_is_read_and_a_class_without_a_method_names_them(self):
    (self.folder / 'old_model.py').write_text(_CLASS)
    text = new_case.new_case(f'{self.folder}/old_model.py:Net.squared')
    self.assertIn('  return model.squared\n', text)
    (self.folder / 'old_model.py').write_text(_CLASS.replace('def __call__', 'def call'))
    for name, said in (
      ('Head', 'Head is a class; give the method that builds the outputs: Head.apply, Head.call'),
      ('Head.aply', 'Head has no method aply; give the method'),
    ):
      with self.assertRaisesRegex(UsageError, said):
        new_case.new_case(f'{self.folder}/old_model.py:{name}')

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
      (16, 'tf.nn.rnn_cell.LSTMCell', False),
      (17, 'HParams: a dataclass or types.SimpleNamespace', False),
      (18, 'take it as a parameter: inputs are given', False),
      (19, 'make_tf1_optimizer', False),
      (20, 'take it as a parameter: flags', False),
      (
        14,
        'in the port: net.shape[0]; on both sides: tf.compat.dimension_value(net.shape[0])',
        True,
      ),
      (15, 'a name of your own, since eager tensors have none', True),
    ):
      with self.subTest(advice):
        hits = [one for one in found if one[0] == line and advice in one[1]]
        self.assertNotEmpty(hits, found)
        self.assertIs(hits[0][2], in_port)
    # `sc.name` is of a scope.
    self.assertLen([one for one in found if 'a name of your own' in one[1]], 1)

  def test_names_of_contrib_have_a_place_each(self):
    source = self._source("""
      import tensorflow.compat.v1 as tf
      import tensorflow.contrib.layers as layers
      from tensorflow.contrib import framework, rnn
      from tensorflow.contrib.framework import arg_scope
      from tensorflow.contrib.rnn import GRUCell
      slim = tf.contrib.slim
      def network(x):
        net = layers.fully_connected(x, 3)
        net = layers.embed_sequence(net)
        cell = rnn.LSTMCell(3), rnn.LayerNormBasicLSTMCell(3), rnn.static_rnn
        step = framework.get_or_create_global_step()
        return slim.flatten(net), tf.contrib.layers.xavier_initializer()
      """)
    self.assertCountEqual(
      [(one.line, one.advice[:50]) for one in replacements_of(source) if not one.in_port],
      [
        (3, 'import tf_slim as layers'),
        (4, 'its names are in several places: see below'),
        (4, 'rnn = tf.nn.rnn_cell, after import tensorflow.comp'),
        (5, 'from tf_slim import arg_scope'),
        (6, 'GRUCell = tf.nn.rnn_cell.GRUCell'),
        (7, 'import tf_slim as slim'),
        (10, contrib.RECORD[:50]),
        (11, contrib.RECORD[:50]),
        (11, 'tf.nn.static_rnn'),
        (12, 'tf.train.get_or_create_global_step'),
        (13, 'tf_slim.xavier_initializer (import tf_slim)'),
      ],
    )

  def test_the_places_of_contrib_are_there(self):
    for names in contrib.PLACES.values():
      for name, place in names.items():
        with self.subTest(name):
          found = {'tf': tf.compat.v1, 'tf_slim': tf_slim}
          first, *rest = place.format(name=name).split('.')
          if first in found:
            functools.reduce(getattr, rest, found[first])

  def test_what_runs_at_import_is_named(self):
    source = self._source("""
      import tensorflow.compat.v1 as tf
      x = tf.placeholder(tf.float32, [None, width])
      w = tf.Variable(tf.zeros([3]))
      width = 12
      def network(x):
        v = tf.Variable(1.0)
        return x * w * v
      with tf.Session() as session:
        pass
      if __name__ == '__main__':
        tf.train.AdamOptimizer().minimize(network(x))
      """)
    found = replacements_of(source)
    self.assertEqual(
      [(one.line, one.advice.split(':')[0], one.in_port) for one in found],
      [
        (3, 'runs when the module is imported, outside of a graph', False),
        (4, 'make it in the function', False),
        (9, 'runs when the module is imported, outside of a graph', False),
        (7, 'in the port', True),
      ],
    )
    [shape] = inputs_of(source)
    self.assertIn('(2, 12)', shape.text)

  def test_layers_without_names_and_mode_keys(self):
    source = self._source("""
      import tensorflow.compat.v1 as tf
      import tf_slim as slim
      def network(x, mode):
        training = mode == tf.estimator.ModeKeys.TRAIN
        x = tf.layers.dense(x, 3)
        x = tf.layers.dense(x, 3, name='named')
        x = slim.fully_connected(x, 3, scope='named')
        with tf.variable_scope('scope'):
          x = tf.layers.dense(x, 3)
        return slim.batch_norm(tf.layers.dropout(x, training=training))
      """)
    self.assertEqual(
      [(one.line, one.advice[:12], one.in_port) for one in replacements_of(source)],
      [(5, "'train': tf.", False), (6, 'in the port:', True), (11, 'in the port:', True)],
    )

  def test_an_input_that_is_joined_to_vectors_of_words(self):
    source = self._source("""
      def network(word_ids, features, dropout):
        words = tf.nn.embedding_lookup(table, word_ids)
        return tf.nn.dropout(tf.concat([words, features], axis=-1), dropout)
      """)
    self.assertEqual([one.name for one in inputs_of(source)], ['word_ids', 'features'])
    self.assertIn('normal_inputs((2, 7, 8), seed=1)', inputs_of(source)[1].text)

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
      found['ids'].text, 'np.random.default_rng(2).integers(0, 8, (2, 5), dtype=np.int64)'
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
    (
      'old_model.py:netwrk',
      r'no function or class netwrk .*\(did you mean network\?\); it has block, net',
    ),
    ('old_model.py:Model', 'no function or class Model outside of other ones'),
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
