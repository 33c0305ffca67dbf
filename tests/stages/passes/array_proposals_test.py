"""Arrays that a port computes in Python, and that are other ones in tf1."""

import abc

import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

import tf2verify
from tests.stages.first_failure import causes_of

v1 = tf.compat.v1
_WORDS, _SIZE, _VOCABULARY = 4, 6, 11


def _encoding(last_is_one):
  places = np.arange(1, _WORDS + 1)[:, np.newaxis] - (_WORDS + 1) / 2
  grid = 1 + 0.3 * places * (np.arange(1, _SIZE + 1) - (_SIZE + 1) / 2)
  if last_is_one:
    grid[-1] = 1
  return grid.astype(np.float32)


class _Port(tf.Module):
  def __init__(self, encoding, order):
    super().__init__(name='port')
    self.words = tf.Variable(tf.random.normal((_VOCABULARY, _SIZE)), name='words')
    self.encoding, self.order = tf.constant(encoding), np.asarray(order, np.int32)

  def __call__(self, inputs):
    bag = tf.einsum('bwe,we->be', tf.gather(self.words, inputs), self.encoding)
    return tf.tanh(tf.gather(bag, self.order, axis=1))


class _Case(tf2verify.EquivalenceCase, abc.ABC):
  """Words times a position encoding, summed up; the features in another order."""

  last_is_one = True  # in the port
  order = (3, 1, 0, 5, 2, 4)  # in the port

  def build_tf1_graph(self, inputs, training):
    words = v1.get_variable('words', [_VOCABULARY, _SIZE])
    bag = tf.reduce_sum(tf.nn.embedding_lookup(words, inputs) * _encoding(True), 1)
    features = tf.transpose(bag)
    return tf.tanh(tf.transpose(tf.gather(features, [3, 1, 0, 5, 2, 4])))

  def make_tf2_layer(self):
    return _Port(_encoding(self.last_is_one), self.order)

  def make_inputs(self):
    return np.random.RandomState(0).randint(_VOCABULARY, size=(3, _WORDS)).astype(np.int32)


class ArrayProposalsTest(parameterized.TestCase):
  def test_other_values_are_named(self):
    causes, text = causes_of(self, _Case, last_is_one=False)
    self.assertLen(causes, 1, text)
    said = r'\(Einsum\) reads an array of shape \[4, 6\] that has other values in tf1: 6 of 24 '
    self.assertRegex(causes[0], rf'{said}elements in \[3, :\], .* for 1 at \[3, 0\]')

  def test_another_order_is_named(self):
    causes, text = causes_of(self, _Case, order=(3, 1, 0, 5, 4, 2))
    self.assertLen(causes, 1, text)
    self.assertRegex(causes[0], r'GatherV2.*2 of 6 elements in \[4:6\], 4 for 2 at \[4\]')

  def test_right_port(self):
    verdict = tf2verify.verify(_Case, ['zero_randomness'])
    self.assertIsNone(verdict.first_failure, verdict.to_text())


if __name__ == '__main__':
  absltest.main()
