"""Mistakes of ports that are written differently, each told as one small edit of a line."""

import abc

import keras
import numpy as np
import tensorflow as tf
from absl.testing import absltest

import tf2verify
from tests.stages.first_failure import causes_of

v1 = tf.compat.v1
_HEADS, _SIZE, _WIDTH = 2, 3, 6


def _heads(net):
  return tf.transpose(tf.reshape(net, [-1, 5, _HEADS, _SIZE]), [0, 2, 1, 3])


def _positions(by, to):
  """Returns which row of a table belongs to each pair of positions: 0 to 3."""
  distance = -(by[None, :] - to[:, None])
  return 2 * tf.cast(distance < 0, tf.int32) + tf.minimum(tf.abs(distance), 1)


class Attention(keras.layers.Layer):
  """Self-attention with one kernel for queries, keys and values."""

  def __init__(self, wrong, **settings):
    super().__init__(**settings)
    self.wrong = wrong
    self.qkv = keras.layers.Dense(3 * _WIDTH, use_bias=False, name='qkv')
    self.out = keras.layers.Dense(_WIDTH, use_bias=False, name='out')

  def build(self, shape):
    self.qkv.build(shape)
    self.out.build(shape)

  def call(self, net, bias):
    parts = keras.ops.reshape(self.qkv(net), (-1, 5, 3, _HEADS, _SIZE))
    q, k, v = parts[:, :, 0], parts[:, :, 1], parts[:, :, 2]
    if self.wrong == 'exchanged':
      q, k = k, q
    scores = keras.ops.einsum('bqhd,bkhd->bhqk', q, k) * (0.5 if self.wrong == 'scaled' else 0.25)
    net = keras.ops.einsum('bhqk,bkhd->bqhd', keras.ops.softmax(scores + bias), v)
    return self.out(keras.ops.reshape(net, (-1, 5, _WIDTH)))


class Encoder(keras.Model):
  def __init__(self, wrong):
    super().__init__(name='encoder')
    self.wrong = wrong
    self.table = keras.layers.Embedding(4, _HEADS, name='table')
    self.parts = [Attention(wrong, name=f'attention_{n}') for n in range(2)]

  def rows(self):
    distance = keras.ops.arange(5)[None, :] - keras.ops.arange(5)[:, None]
    if self.wrong == 'sign':
      distance = -distance
    return keras.ops.where(distance > 0, 2, 0) + keras.ops.minimum(keras.ops.abs(distance), 1)

  def call(self, net):
    bias = keras.ops.transpose(self.table(self.rows()), (2, 0, 1))[None]
    for part in self.parts:
      net = net + part(net, bias)
    return net


class Attending(tf2verify.EquivalenceCase, abc.ABC):
  variable_map = 'derive'
  wrong = ''

  def build_tf1_graph(self, inputs, training):
    table = v1.get_variable('table', [_HEADS, 4])
    bias = tf.gather(table, _positions(tf.range(5), tf.range(5)), axis=1)[None]
    net = inputs
    for n in range(2):
      with v1.variable_scope(f'layer_{n}'):
        read = (tf.tensordot(net, v1.get_variable(name, [_WIDTH, _WIDTH]), 1) for name in 'qkv')
        q, k, v = (_heads(one) for one in read)
        scores = tf.nn.softmax(tf.matmul(q, k, transpose_b=True) * 0.25 + bias)
        made = tf.reshape(tf.transpose(tf.matmul(scores, v), [0, 2, 1, 3]), [-1, 5, _WIDTH])
        net += tf.tensordot(made, v1.get_variable('out', [_WIDTH, _WIDTH]), 1)
    return net

  def make_tf2_layer(self):
    return Encoder(self.wrong)

  def make_inputs(self):
    return tf2verify.normal_inputs((3, 5, _WIDTH))


class Columns(keras.Model):
  """One table for each column of ids, where TF1 has two with all rows."""

  def __init__(self, order):
    super().__init__(name='columns')
    self.order = order
    self.wide = [keras.layers.Embedding(4, 3, name=f'wide_{n}') for n in range(3)]
    self.deep = [keras.layers.Embedding(4, 2, name=f'deep_{n}') for n in range(3)]

  def call(self, ids):
    wide = [part(ids[:, n]) for part, n in zip(self.wide, self.order, strict=True)]
    deep = [part(ids[:, n]) for part, n in zip(self.deep, self.order, strict=True)]
    return keras.ops.concatenate([keras.ops.tanh(wide[0] + 2 * wide[1] + 3 * wide[2]), *deep], 1)


class Looking(tf2verify.EquivalenceCase, abc.ABC):
  variable_map = tf2verify.VariableMap(
    tuple(
      tf2verify.MapEntry((f'{kind}_{n}',), (f'columns/{kind}_{n}/embeddings',))
      for kind in ('wide', 'deep')
      for n in range(3)
    )
  )
  order = (0, 1, 2)

  def build_tf1_graph(self, inputs, training):
    rows = inputs + np.array([0, 4, 8], np.int32)
    tables = [
      tf.concat([v1.get_variable(f'{kind}_{n}', [4, width]) for n in range(3)], 0)
      for kind, width in (('wide', 3), ('deep', 2))
    ]
    wide, deep = (tf.nn.embedding_lookup(table, rows) for table in tables)
    weighted = tf.reduce_sum(wide * np.array([[1.0], [2.0], [3.0]], np.float32), 1)
    return tf.concat([tf.tanh(weighted), tf.reshape(deep, [-1, 6])], 1)

  def make_tf2_layer(self):
    return Columns(self.order)

  def make_inputs(self):
    return np.random.RandomState(0).randint(0, 4, (6, 3)).astype(np.int32)


class ExchangedOperandsTest(absltest.TestCase):
  def test_right(self):
    for parent in (Attending, Looking):
      found, text = causes_of(self, parent)
      self.assertEmpty(found, text)
      self.assertNotIn('FAILED', text)

  def test_queries_and_keys_of_all_layers(self):
    [found], text = causes_of(self, Attending, wrong='exchanged')
    self.assertRegex(found, r'the port has .*strided_slice_1 .* and .*strided_slice ', text)
    self.assertRegex(found, r'in place of each other at .*, each of the 2 times that it runs')
    self.assertIn('proven', text)

  def test_another_mistake_of_that_line_is_no_exchange(self):
    [found], text = causes_of(self, Attending, wrong='scaled')
    self.assertIn('is 0.5 in the port, 0.25 in tf1', found, text)

  def test_a_negative_distance_is_no_order_of_axes(self):
    [found], text = causes_of(self, Attending, wrong='sign')
    self.assertRegex(found, r'the port has Neg \(.*Neg\), which tf1 does not have there', text)

  def test_two_columns_that_several_lines_read(self):
    [found], text = causes_of(self, Looking, order=(1, 0, 2))
    self.assertRegex(
      found, r'StridedSlice\[:, 1\]\) and .*StridedSlice\[:, 0\]\) in place of', text
    )


if __name__ == '__main__':
  absltest.main()
