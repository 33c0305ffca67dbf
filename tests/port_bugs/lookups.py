"""Mistakes in embeddings, vocabularies and feature columns."""

import abc

import numpy as np
import tensorflow as tf

import tf2verify
from tests.port_bugs.port_bug import PortBug
from tests.stages import tiny_models

v1 = tf.compat.v1
_ZERO = 'zero_randomness'


class Sharded(tiny_models.OneModel):
  """An embedding in two shards, whose rows TF1 deals out in turn."""

  def shards(self):
    return [v1.get_variable(f'embedding/part_{n}', [3, 2]) for n in range(2)]

  def model(self, inputs, training):
    return tf.compat.v1.nn.embedding_lookup(self.shards(), inputs)

  def port(self, inputs, training):
    rows = tf.reshape(tf.stack(self.shards(), axis=1), [6, 2])
    return tf.nn.embedding_lookup(rows, inputs)

  def make_inputs(self):
    return np.arange(6, dtype=np.int32)


class ShardedInBlocks(Sharded):
  def port(self, inputs, training):
    return tf.nn.embedding_lookup(self.shards(), inputs)


class Columns(tiny_models.OneModel):
  """A tower over feature columns."""

  order = ('age', 'kind', 'price')

  def model(self, inputs, training):
    kind = tf.feature_column.categorical_column_with_identity('kind', 2)
    columns = [
      tf.feature_column.numeric_column('price'),
      tf.feature_column.indicator_column(kind),
      tf.feature_column.numeric_column('age'),
    ]
    return v1.layers.dense(v1.feature_column.input_layer(inputs, columns), 3, name='tower')

  def make_tf2_layer(self):
    inputs = {
      'price': tf.keras.Input([1]),
      'kind': tf.keras.Input([1], dtype=tf.int32),
      'age': tf.keras.Input([1]),
    }
    features = {**inputs, 'kind': tf.one_hot(inputs['kind'][:, 0], 2)}
    net = tf.concat([features[name] for name in self.order], 1)
    return tf.keras.Model(inputs, tf.keras.layers.Dense(3, name='tower')(net))

  def make_inputs(self):
    return {
      'price': tf2verify.normal_inputs((4, 1), seed=1),
      'kind': np.array([[0], [1], [1], [0]], np.int32),
      'age': tf2verify.normal_inputs((4, 1), seed=2),
    }


class ColumnsAsListed(Columns):
  order = ('price', 'kind', 'age')


class WordsPort(tf.keras.layers.Layer):
  def __init__(self, offset):
    super().__init__(name='port')
    self.offset = offset
    self.index = tf.keras.layers.StringLookup(vocabulary=['cat', 'dog'])
    self.tower = tf.keras.layers.Dense(3, name='tower')

  def call(self, inputs):
    words = self.index(inputs['word'][:, 0]) + self.offset
    return self.tower(tf.one_hot(words, 2))


class Words(tiny_models.OneModel):
  """One-hot words; one that is not in the vocabulary has no one at all."""

  offset = -1

  def model(self, inputs, training):
    words = tf.feature_column.categorical_column_with_vocabulary_list('word', ['cat', 'dog'])
    columns = [tf.feature_column.indicator_column(words)]
    return v1.layers.dense(v1.feature_column.input_layer(inputs, columns), 3, name='tower')

  def make_tf2_layer(self):
    return WordsPort(self.offset)

  def variable_names(self, name):
    return f'port/{name}'

  def make_inputs(self):
    return {'word': np.array([['dog'], ['cat'], ['emu']], 'S')}


class WordsFromOne(Words):
  offset = 0


class Bags(tiny_models.OneModel, abc.ABC):
  """Means over bags of words, padded with -1; one bag is empty."""

  def embedding(self):
    return v1.get_variable('embedding', [5, 3])

  def model(self, inputs, training):
    places = tf.where(inputs >= 0)
    bags = tf.SparseTensor(places, tf.gather_nd(inputs, places), inputs.shape.as_list())
    return v1.nn.safe_embedding_lookup_sparse([self.embedding()], bags, combiner='mean')

  def summed(self, inputs):
    mask = tf.cast(inputs >= 0, tf.float32)[:, :, tf.newaxis]
    rows = tf.nn.embedding_lookup(self.embedding(), tf.maximum(inputs, 0))
    return tf.reduce_sum(rows * mask, 1), tf.reduce_sum(mask, 1)

  def make_inputs(self):
    return np.array([[1, 4, -1], [-1, -1, -1], [0, 2, 3]], np.int64)


class BagsWithEmptyOnes(Bags):
  def port(self, inputs, training):
    return tf.math.divide_no_nan(*self.summed(inputs))


class BagsWithoutEmptyOnes(Bags):
  def port(self, inputs, training):
    total, count = self.summed(inputs)
    return total / count


PORT_BUGS = (
  PortBug(
    'B48',
    'partitioning of an embedding',
    tf1="tf.nn.embedding_lookup deals ids out to shards in turn, partition_strategy='mod'",
    mistake="that of TF2 gives each shard a contiguous block of ids, 'div'",
    stage=_ZERO,
    wrong=ShardedInBlocks,
    right=Sharded,
    words=('mod', 'div', 'shards'),
    causes=('embedding_partition',),
  ),
  PortBug(
    'B86',
    'order of feature columns',
    tf1='input_layer sorts the columns by name',
    mistake='concatenates them as they are listed',
    stage=_ZERO,
    wrong=ColumnsAsListed,
    right=Columns,
    words=('order of the inputs', 'sorted by name'),
    causes=('concat_order',),
  ),
  PortBug(
    'B87',
    'index of unknown words',
    tf1='a vocabulary column counts from 0; an unknown word is -1, a row of zeros',
    mistake='StringLookup counts from 1; an unknown word is 0',
    stage=_ZERO,
    wrong=WordsFromOne,
    right=Words,
    words=('OneHot', 'index', 'by 1'),
  ),
  PortBug(
    'B88',
    'embedding of empty rows',
    tf1='safe_embedding_lookup_sparse gives an empty row zeros',
    mistake='a masked mean divides by zero',
    stage=_ZERO,
    wrong=BagsWithoutEmptyOnes,
    right=BagsWithEmptyOnes,
    words=('nan', 'divide_no_nan'),
    causes=('division_by_zero',),
  ),
)
