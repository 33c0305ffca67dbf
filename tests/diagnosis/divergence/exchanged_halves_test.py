"""Halves of a tensor exchanged in a port that is written in another layout than TF1."""

import keras
import numpy as np
import tensorflow as tf
from absl.testing import absltest

import tf2verify

v1 = tf.compat.v1
_SIZES = (6, 4)
_FIELDS, _WIDTH = 5, 4


def crossed(inputs):
  """Returns products of fields, as in xDeepFM (Lian et al. 2018): half of them goes on."""
  pieces = tf.split(inputs, _WIDTH * [1], 2)
  hidden, fields, pooled = inputs, _FIELDS, []
  for number, size in enumerate(_SIZES):
    others = tf.split(hidden, _WIDTH * [1], 2)
    products = tf.matmul(pieces, others, transpose_b=True)
    products = tf.transpose(tf.reshape(products, [_WIDTH, -1, _FIELDS * fields]), [1, 0, 2])
    filters = v1.get_variable(f'filter{number}', [1, fields * _FIELDS, size])
    net = v1.nn.conv1d(products, filters, stride=1, padding='VALID')
    net = tf.nn.relu(tf.nn.bias_add(net, v1.get_variable(f'bias{number}', [size])))
    net = tf.transpose(net, [0, 2, 1])
    if number == 0:
      hidden, net = tf.split(net, 2 * [size // 2], 1)
      fields = size // 2
    pooled.append(net)
  return v1.layers.dense(tf.reduce_sum(tf.concat(pooled, 1), -1), 1, name='out')


class Crossed(keras.layers.Layer):
  def __init__(self, exchanged):
    super().__init__()
    self.exchanged = exchanged
    self.out = keras.layers.Dense(1)

  def build(self, shape):
    self.filters = [
      self.add_weight(name=f'filter{n}', shape=(_FIELDS, (_FIELDS, _SIZES[0] // 2)[n], size))
      for n, size in enumerate(_SIZES)
    ]
    self.biases = [self.add_weight(name=f'bias{n}', shape=(size,)) for n, size in enumerate(_SIZES)]

  def call(self, inputs):
    hidden, pooled = inputs, []
    for number, size in enumerate(_SIZES):
      net = keras.ops.einsum('bfd,bhd,fho->bod', inputs, hidden, self.filters[number])
      net = keras.ops.relu(net + self.biases[number][:, None])
      if number == 0:
        hidden, net = net[:, : size // 2], net[:, size // 2 :]
        if self.exchanged:
          hidden, net = net, hidden
      pooled.append(keras.ops.sum(net, axis=-1))
    return self.out(keras.ops.concatenate(pooled, axis=-1))


class ExchangedHalvesTest(absltest.TestCase):
  def verified(self, exchanged):
    class Case(tf2verify.EquivalenceCase):
      variable_map = 'derive'

      def build_tf1_graph(self, inputs, training):
        return crossed(inputs)

      def make_tf2_layer(self):
        return Crossed(exchanged)

      def make_inputs(self):
        return np.random.RandomState(0).normal(size=(8, _FIELDS, _WIDTH)).astype('f')

    return tf2verify.verify(Case, stages=['variable_inventory', 'zero_randomness'])

  def test_the_right_port_passes(self):
    verdict = self.verified(exchanged=False)
    self.assertTrue(verdict.stages[-1].passed, verdict.to_text())

  def test_the_exchange_is_located(self):
    verdict = self.verified(exchanged=True)
    failed, text = verdict.stages[-1], verdict.to_text()
    self.assertIs(failed.status, tf2verify.Status.FAILED, text)
    self.assertNotIn('abandoned', text)
    lines = [one.tf2_source for one in failed.diagnosis.sources if one.experiment is not None]
    said = ' '.join(line.code for line in lines if line is not None)
    self.assertIn('net', said, text)


if __name__ == '__main__':
  absltest.main()
