"""Maps of variables that no place in the graphs tells: read twice, or by nothing in inference."""

import abc

import numpy as np
import tensorflow as tf
from absl.testing import absltest

import tf2verify
from tests.stages.first_failure import LadderTestCase

v1 = tf.compat.v1
SIZE = 4
_UP_TO = 'seeded_constant'


def _vector(name, dtype=tf.float32, shape=(SIZE,), start=0.0, trainable=True):
  start = v1.constant_initializer(start)
  return v1.get_variable(name, shape, dtype, start, trainable=trainable)


def _scores(inputs):
  x = inputs
  for n in range(2):
    with v1.variable_scope(f'cross_{n}'):
      w, b = _vector('w', start=0.1), _vector('b')
      x = inputs * tf.tensordot(tf.reshape(x, [-1, 1, SIZE]), w, 1) + b + x
  return tf.reduce_sum(x, 1)


class CrossPort(tf.Module):
  """Both calls of TF1 in one batch, and the product of three operands as one einsum."""

  def __init__(self, order, word):
    super().__init__()
    self.w = [tf.Variable(tf.fill([SIZE], 0.1), name=f'{word}_{n}_w') for n in range(2)]
    self.b = [tf.Variable(tf.zeros([SIZE]), name=f'{word}_{n}_b') for n in range(2)]
    self.order = order

  def __call__(self, inputs):
    x = both = tf.concat([inputs['pos'], inputs['neg']], 0)
    for n, m in enumerate(self.order):
      x = tf.einsum('bd,be,e->bd', both, x, self.w[m]) + self.b[n] + x
    pos, neg = tf.split(tf.reduce_sum(x, 1), 2)
    return {'pos': pos, 'neg': neg}


class Crossed(tf2verify.EquivalenceCase, abc.ABC):
  order = (0, 1)
  word = 'cross'

  def build_tf1_graph(self, inputs, training):
    with v1.variable_scope('dcn') as scope:
      pos = _scores(inputs['pos'])
      scope.reuse_variables()
      return {'pos': pos, 'neg': _scores(inputs['neg'])}

  def make_tf2_layer(self):
    return CrossPort(self.order, self.word)

  def make_inputs(self):
    drawn = np.random.RandomState(0).randn(2, 3, SIZE).astype(np.float32)
    return {'pos': drawn[0], 'neg': drawn[1]}


class CalledTwiceTest(LadderTestCase):
  def test_both_calls_in_one_batch(self):
    for word in ('cross', 'c'):
      self.assert_passes(type('Case', (Crossed,), {'word': word}), _UP_TO)

  def test_kernels_that_are_exchanged(self):
    class Case(Crossed):
      order = (1, 0)

    self.assert_first_failure(Case, 'zero_randomness')


class StackedRows(Crossed, abc.ABC):
  """All weights of TF1's layers are rows of one variable, and so are all biases."""

  def build_tf1_graph(self, inputs, training):
    w, b = _vector('w', shape=(2, SIZE), start=0.1), _vector('b', shape=(2, SIZE))
    x = both = tf.concat([inputs['pos'], inputs['neg']], 0)
    for n in range(2):
      x = both * tf.matmul(x, tf.reshape(w[n], [-1, 1])) + x + b[n]
    pos, neg = tf.split(tf.reduce_sum(x, 1), 2)
    return {'pos': pos, 'neg': neg}


class StackedRowsTest(LadderTestCase):
  def test_right_port(self):
    self.assert_passes(StackedRows, _UP_TO)

  def test_rows_that_are_exchanged(self):
    self.assert_first_failure(type('Case', (StackedRows,), {'order': (1, 0)}), 'zero_randomness')


def _norm(x, name, training):
  """A shift that the first call in training sets."""
  with v1.variable_scope(name):
    shift = _vector('shift')
    flag = _vector('initialized', tf.int32, (), 0, trainable=False)
    set_now = []
    if training:
      mean = tf.reduce_mean(x, 0)

      def start():
        return tf.group(v1.assign(shift, -mean), v1.assign(flag, 1))

      set_now = [tf.cond(tf.equal(flag, 0), start, tf.no_op)]
    with tf.control_dependencies(set_now):
      return x + shift.read_value()


class NormPort(tf.Module):
  """Norms in the scopes of TF1's, and flags of another name."""

  def __init__(self, own_flags, word, start):
    super().__init__()
    self.shifts = [tf.Variable(tf.zeros([SIZE]), name=f'norm{n}/shift') for n in range(2)]
    self.flags = [tf.Variable(start, trainable=False, name=f'norm{n}/{word}') for n in range(2)]
    self.kernel = tf.Variable(tf.eye(SIZE), name='kernel')
    self.own_flags = own_flags

  def __call__(self, x, training=False):
    for n, shift in enumerate(self.shifts):
      if training:
        flag = self.flags[n if self.own_flags else 0]
        fresh = tf.equal(flag, 0)
        shift.assign(tf.where(fresh, -tf.reduce_mean(x, 0), shift))
        flag.assign(1)
      x = x + shift
      if not n:
        x = tf.nn.relu(x @ self.kernel)
    return x


class Initialized(tf2verify.EquivalenceCase, abc.ABC):
  own_flags, word, start = True, 'initialized', 0

  def build_tf1_graph(self, inputs, training):
    with v1.variable_scope('model'):
      x = _norm(inputs, 'norm0', training)
      kernel = v1.get_variable('w', initializer=tf.eye(SIZE))
      return _norm(tf.nn.relu(tf.matmul(x, kernel)), 'norm1', training)

  def make_tf2_layer(self):
    return NormPort(self.own_flags, self.word, self.start)

  def make_inputs(self):
    return tf2verify.normal_inputs((5, SIZE))


class FlagsTest(LadderTestCase):
  def test_flags_by_their_scopes(self):
    for word in ('initialized', 'done'):
      case = type('Case', (Initialized,), {'word': word})
      derived = tf2verify.derive_variable_map(case)
      pairs = {entry.tf1[0]: entry.tf2[0] for entry in derived.entries}
      for n in range(2):
        self.assertEqual(pairs[f'model/norm{n}/initialized'], f'norm{n}/{word}')
      self.assert_passes(case, _UP_TO)

  def test_one_flag_for_both(self):
    class Case(Initialized):
      own_flags = False

    self.assert_first_failure(Case, _UP_TO)

  def test_flags_that_start_set(self):
    class Case(Initialized):
      start = 1

    self.assert_first_failure(Case, _UP_TO)


class SaturatedPort(tf.Module):
  def __init__(self, least):
    super().__init__()
    self.kernel = tf.Variable(tf.eye(SIZE), name='kernel')
    self.least = least

  def __call__(self, x):
    made = x @ self.kernel
    return {'made': made, 'log': tf.math.log(self.least + 0.0 * made)}


class Saturated(tf2verify.EquivalenceCase, abc.ABC):
  """Besides an output, the logarithm of zero."""

  variable_map = 'derive'
  least = 0.0

  def build_tf1_graph(self, x, training):
    made = tf.matmul(x, v1.get_variable('one', initializer=tf.eye(SIZE)))
    return {'made': made, 'log': tf.math.log(0.0 * made)}

  def make_tf2_layer(self):
    return SaturatedPort(self.least)

  def make_inputs(self):
    return tf2verify.normal_inputs((5, SIZE))


class SaturatedTest(LadderTestCase):
  def test_infinities_of_both_sides_agree_and_those_of_one_do_not(self):
    for least, words in ((0.0, 'outputs agree'), (1.0, 'outputs do not agree')):
      case = type('Case', (Saturated,), {'least': least})
      found = ' '.join(tf2verify.verify(case, ('variable_inventory',)).to_text().split())
      self.assertIn(words, found)


if __name__ == '__main__':
  absltest.main()
