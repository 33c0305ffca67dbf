"""`python -m tf2verify new`: inputs and settings of classes, by key, and behind placeholders."""

import contextlib
import io
import textwrap

from absl.testing import absltest, parameterized

from tests import console
from tf2verify.commands import cli, new_case
from tf2verify.commands.tf1_code.inputs import inputs_of
from tf2verify.commands.tf1_code.replacements import replacements_of
from tf2verify.commands.tf1_code.source import read_source
from tf2verify.errors import UsageError

_INHERITED = """
import tensorflow.compat.v1 as tf


class Scaled(object):
  def __init__(self, scale_by):
    self.scale_by = scale_by


class Base(Scaled):
  def __init__(self, settings, config, scale_by=2.0):
    {call}
    self.config = config

  def inference(self, x, is_training):
    pass

  def dense(self, x, units, name):
    return tf.layers.dense(x, units, name=name)


class MLP(Base):
  def inference(self, x, is_training):
    x = tf.layers.conv2d(x, 2, 3, strides=16, name='conv') * self.scale_by
    x = self.dense(tf.layers.flatten(x), 8, 'h')
    return self.dense(x, self.config['classes'], 'out')
"""
# A network as of tutorials, whose variables are passed to it.
_PASSED = """
import tensorflow.compat.v1 as tf


def conv2d(x, w, b):
  return tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(x, w, strides=[1, 2, 2, 1], padding='SAME'), b))


def network(x, weights, biases):
  x = tf.reshape(x, shape=[-1, 28, 28, 1])
  one = conv2d(x, weights['wc1'], biases['bc1'])
  two = conv2d(one, weights['wc2'], biases['bc2'])
  flat = tf.reshape(two, [-1, weights['wd1'].get_shape().as_list()[0]])
  return tf.add(tf.matmul(flat, weights['wd1']), biases['bd1'])
"""
_CLASSIFIER = """
import tensorflow.compat.v1 as tf


class TextRNN(object):
  def __init__(self, num_classes, sequence_length, vocab_size, is_training{parameters}):
    self.num_classes = num_classes
    self.sequence_length = sequence_length
    self.vocab_size = vocab_size
    self.input_x = {input_x}
    self.input_y = {input_y}
    self.logits = self.inference()
    if is_training:
      self.loss_val = self.loss()

  def inference(self):
    table = tf.get_variable('table', [self.vocab_size, 4])
    words = tf.nn.embedding_lookup(table, self.input_x)
    return tf.layers.dense(tf.reduce_mean(words, 1), self.num_classes, name='logits')

  def loss(self):
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(
      labels=self.input_y, logits=self.logits)
    return tf.reduce_mean(losses)

  def train(self):
    return tf_slim.optimize_loss(self.loss_val, None, 0.1, 'Adam')
"""


class _InputsTest(parameterized.TestCase):
  def setUp(self) -> None:
    super().setUp()
    self.folder = console.own_folder(self)

  def _source(self, text: str, name: str = 'network'):
    path = self.folder / 'old_inputs.py'
    path.write_text(textwrap.dedent(text))
    return read_source(f'{path}:{name}')

  def _runs(self, text: str, name: str) -> str:
    """Returns the case for a function, which passes."""
    path, out = self.folder / 'old_inputs.py', self.folder / 'inputs_case.py'
    path.write_text(textwrap.dedent(text))
    for arguments in (
      ('new', f'{path}:{name}', '--out', str(out)),
      ('run', str(out), '--stages', 'zero_randomness'),
    ):
      with (
        contextlib.redirect_stdout(io.StringIO()) as said,
        contextlib.redirect_stderr(io.StringIO()),
      ):
        status = cli.main([*arguments])
      self.assertEqual(status, 0, said.getvalue())
    return out.read_text()


class ClassesTest(_InputsTest):
  @parameterized.parameters(
    'super().__init__(settings.factor)',
    'super(Base, self).__init__(scale_by=settings.factor)',
    'Scaled.__init__(self, settings.factor)',
  )
  def test_inherited_constructor(self, call):
    text = self._runs(_INHERITED.format(call=call).replace(', scale_by=2.0', ''), 'MLP.inference')
    self.assertIn(
      'types.SimpleNamespace(factor=1.0),\n    # CHECK: set as in production\n'
      "    {'classes': 10},\n",
      text,
    )

  def test_what_a_base_class_keeps_is_an_input(self):
    source = self._source(
      """
      class Base:
        def __init__(self, words):
          self.ids = words
      class Net(Base):
        def __init__(self, given, more):
          Base.__init__(self, given)
          self.more = more
        def build(self):
          return tf.nn.embedding_lookup(table, self.ids), tf.layers.dense(self.more, 3)
      """,
      'Net.build',
    )
    ids, more = inputs_of(source)
    self.assertIn('.integers(0, 8, (2, 7)', ids.text)
    self.assertIn('from line 10', more.reason)

  def test_constructor_of_another_module_and_bases_in_a_circle(self):
    source = self._source(
      """
      class A(B, other.Base):
        def __init__(self, x):
          super().__init__(x)
          self.x = x
        def build(self):
          return tf.layers.dense(self.x, 3)
      class B(A):
        pass
      """,
      'B.build',
    )
    self.assertEqual([one.name for one in inputs_of(source)], ['x'])

  def test_what_a_base_class_must_not_do_is_named(self):
    source = self._source(
      """
      class Base:
        def inputs(self):
          self.x = tf.placeholder(tf.float32)
      class Net(Base):
        def build(self, y):
          return y
      """,
      'Net.build',
    )
    [found] = replacements_of(source)
    self.assertEqual((found.line, found.advice[:22]), (4, 'take it as a parameter'))


class PlaceholdersTest(_InputsTest):
  def test_placeholders_in_a_constructor_are_to_be_parameters(self):
    text = _CLASSIFIER.format(
      parameters='',
      input_x='tf.placeholder(tf.int32, [None, self.sequence_length])',
      input_y='tf.placeholder(tf.int32, [None])',
    )
    said = (
      r'TextRNN\.__init__ \(.*, line 6\) has no parameter that takes tensors, but placeholders '
      r'inside: input_x \(line 10\), input_y \(line 11\); a case .*: turn the placeholders into '
      r'parameters of TextRNN\.__init__, then run this command again'
    )
    with self.assertRaisesRegex(UsageError, said):
      self._source(text, 'TextRNN')
      new_case.new_case(f'{self.folder}/old_inputs.py:TextRNN')

  def test_once_they_are_the_case_runs(self):
    text = self._runs(
      _CLASSIFIER.format(parameters=', input_x, input_y', input_x='input_x', input_y='input_y'),
      'TextRNN',
    )
    self.assertIn("'input_y': np.array([1, 0], np.int32)", text)
    self.assertNotIn("'sequence_length'", text)
    advice = 'leave it out here, and return it in make_tf1_optimizer'
    self.assertIn(f'{advice}', ' '.join(text.replace('#', '').split()))

  def test_placeholders_in_a_function_and_in_what_it_calls(self):
    (self.folder / 'old_inputs.py').write_text(
      textwrap.dedent("""
      keep = tf.placeholder_with_default(1.0, ())
      unread = tf.placeholder(tf.float32)
      def more():
        return tf.placeholder(tf.float32)
      def other():
        z = tf.placeholder(tf.float32)
      def network(learning_rate):
        x = tf.placeholder(tf.float32, [None, 20])
        return tf.nn.dropout(x, keep) * more()
      """)
    )
    said = (
      r'inside: keep \(line 2\), placeholder \(line 5\), x \(line 9\); .*parameters of network,'
    )
    with self.assertRaisesRegex(UsageError, said):
      new_case.new_case(f'{self.folder}/old_inputs.py:network')

  @parameterized.parameters(
    ('return tf.placeholder(tf.float32, [None, length])', 'number'),
    ("return tf.get_variable('w', shape=(3, length * 2))", 'number'),
    ('return [x for _ in range(length)]', 'number'),
    ('return inner(x, length)', 'number'),
    ('return tf.nn.dynamic_rnn(cell, x, sequence_length=length)', 'input'),
    ('return inner(x, y=length)', 'input'),
  )
  def test_lengths_that_are_settings(self, code, role):
    source = self._source(f"""
      def inner(x, size=None, y=None):
        return tf.get_variable('v', [size]), tf.sequence_mask(y)
      def network(x, length):
        {code}
      """)
    self.assertEqual({one.name: one.role for one in source.parameters}['length'], role)


class KeysTest(_InputsTest):
  def test_operations_on_what_is_read_by_key(self):
    source = self._source("""
      def encoded(more):
        return tf.nn.embedding_lookup(table, more['any'])
      def network(features, labels, mode):
        net = tf.reshape(features["x"], [-1, 28, 28, 1])
        return tf.layers.conv2d(net, 3, 3), encoded(features), features['mask'], features['any']
      """)
    [found] = inputs_of(source)
    self.assertIn("'x': tf2verify.normal_inputs((2, 784))", found.text)
    self.assertIn("'any': np.random.default_rng(1).integers(0, 8, (2, 7)", found.text)
    self.assertIn("'mask': np.array([[1", found.text)
    self.assertStartsWith(found.reason, "x: from line 5: tf.reshape(features['x'], [-1")

  def test_variables_that_are_passed(self):
    text = self._runs(_PASSED, 'network')
    for part in (
      "'x': tf2verify.normal_inputs((2, 784)),",
      "'wc1': tf2verify.normal_inputs((3, 3, 1, 8), seed=1),",
      "'wc2': tf2verify.normal_inputs((3, 3, 8, 8), seed=2),",
      "'wd1': tf2verify.normal_inputs((8, 8), seed=3),",
      "'bc1': tf2verify.normal_inputs((8,), seed=4),",
      "'bd1': tf2verify.normal_inputs((8,), seed=6),",
    ):
      self.assertIn(part, text)
    self.assertLessEqual(max(map(len, text.splitlines())), 100)

  @parameterized.parameters(
    ('tf.nn.conv2d(x, w, 1, "SAME")', '(3, 3, 3, 8)'),
    ('tf.nn.conv2d(tf.reshape(x, [-1, 4, 4, 6]), filter=w)', '(3, 3, 6, 8)'),
    ('tf.nn.conv2d(tf.reshape(x, [-1, 4, 4, 6]), w)', '(3, 3, 6, 8)'),
    ('tf.nn.depthwise_conv2d(x, w, 1, "SAME")', '(3, 3, 3, 1)'),
    ('tf.nn.conv1d(x, w, 1, "SAME")', '(3, 8, 8)'),
    ('tf.nn.xw_plus_b(x, w, b)', '(8, 8)'),
    ('tf.nn.bias_add(x, w)', '(8,)'),
    ('tf.layers.conv2d(x, w, 3)', '(2, 8)'),  # no filter
  )
  def test_variables_of_operations(self, operation, shape):
    found = inputs_of(self._source(f'def network(x, w):\n  return {operation}\n'))
    self.assertIn(f'normal_inputs({shape}, seed=1)', found[1].text)

  def test_no_two_inputs_have_one_seed(self):
    found = inputs_of(
      self._source("""
      def network(pair, by_key, other):
        one, two = pair
        return one, two, by_key['p'], by_key['q'], other
      """)
    )
    text = ''.join(one.text for one in found)
    for seed in range(1, 5):
      self.assertEqual(text.count(f'(2, 8), seed={seed})'), 1, text)


if __name__ == '__main__':
  absltest.main()
