"""Gradients and sums: spellings that are one function, and near ones that are not."""

import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

from tests.relation.proof.traced_functions import related, values

v1 = tf.compat.v1
raw = tf.raw_ops
X = (4, 6)
IMAGE = (3, 4, 4, 5)


def _positive(x):
  return tf.exp(x) + 0.5


def _gradient(function):
  """Returns the gradients of a function for its first arguments, weighted by the last one."""

  def gradients(*arguments):
    *inputs, weights = arguments
    with tf.GradientTape() as tape:
      tape.watch(inputs)
      loss = tf.reduce_sum(function(*inputs) * weights)
    return tape.gradient(loss, inputs[:3])

  return gradients


def _fused(epsilon=1e-3):
  def norm(x, scale, offset, *moving):
    mean, variance = (moving[0], tf.square(moving[1]) + 0.5) if moving else (None, None)
    return v1.nn.fused_batch_norm(
      x, scale, offset, mean, variance, epsilon=epsilon, is_training=not moving
    )[0]

  return norm


def _written_out(epsilon=1e-3):
  def norm(x, scale, offset, *moving):
    if moving:
      mean, variance = moving[0], tf.square(moving[1]) + 0.5
    else:
      mean, variance = tf.nn.moments(x, [0, 1, 2])
    return tf.nn.batch_normalization(x, mean, variance, offset, scale, epsilon)

  return norm


def _layer_norm(x, scale):
  mean = tf.reduce_mean(x, -1, keepdims=True)
  variance = tf.reduce_mean(tf.math.squared_difference(x, mean), -1, keepdims=True)
  return (x - mean) * tf.math.rsqrt(variance + 1e-5) * scale


def _layer_norm_by_squares(x, scale):
  mean = tf.reduce_mean(x, -1, keepdims=True)
  variance = tf.reduce_mean(tf.square(x), -1, keepdims=True) - tf.square(mean)
  inverse = scale / tf.sqrt(variance + 1e-5)
  return x * inverse - mean * inverse


def _labels(x):
  return tf.cast(tf.math.floormod(tf.abs(10.0 * x[:, 0]), 6.0), tf.int32)


def _sparse(x):
  made = raw.SparseSoftmaxCrossEntropyWithLogits(features=x, labels=tf.cast(_labels(x), tf.int64))
  return made.loss, made.backprop


def _dense(x):
  hot = tf.one_hot(_labels(x), 6)
  made = raw.SoftmaxCrossEntropyWithLogits(features=x, labels=hot)
  return made.loss, made.backprop


def _by_logarithms(x):
  hot = tf.one_hot(_labels(x), 6)
  return -tf.reduce_sum(hot * tf.nn.log_softmax(x), -1), tf.nn.softmax(x) - hot


def _indices(x):
  return tf.cast(tf.math.floormod(tf.abs(10.0 * x[:, 0]), 5.0), tf.int32)


def _segment_sum(x, count=5):
  return raw.UnsortedSegmentSum(data=x, segment_ids=_indices(x), num_segments=count)


def _of_unique_rows(rows_of):
  """What the sparse updates of TF1 do: rows with one index are added up, then scattered."""

  def scattered(x, table):
    unique = raw.Unique(x=_indices(x))
    count = tf.shape(unique.y)[0]
    summed = raw.UnsortedSegmentSum(data=x, segment_ids=unique.idx, num_segments=count)
    return tf.tensor_scatter_nd_add(table * 0.9, tf.expand_dims(unique.y, -1), rows_of(summed))

  return scattered


_BACK = [IMAGE, (5,), (5,), IMAGE]
_PROVEN = {
  'tanh': (
    lambda x, d: raw.TanhGrad(y=tf.tanh(x), dy=d),
    lambda x, d: d * (1.0 - tf.square(tf.tanh(x))),
    [X, X],
  ),
  'sigmoid': (
    lambda x, d: raw.SigmoidGrad(y=tf.sigmoid(x), dy=d),
    lambda x, d: tf.sigmoid(x) * (1.0 - tf.sigmoid(x)) * d,
    [X, X],
  ),
  'root': (
    lambda x, d: raw.SqrtGrad(y=_positive(x), dy=d),
    lambda x, d: 0.5 * d / _positive(x),
    [X, X],
  ),
  'inverse root': (
    lambda x, d: raw.RsqrtGrad(y=x, dy=d),
    lambda x, d: -0.5 * d * x**3.0,
    [X, X],
  ),
  'reciprocal': (lambda x, d: raw.ReciprocalGrad(y=x, dy=d), lambda x, d: -d * x * x, [X, X]),
  'relu, of input and of output': (
    lambda x, d: raw.ReluGrad(gradients=d, features=x),
    lambda x, d: raw.ReluGrad(gradients=d, features=tf.nn.relu(x)),
    [X, X],
  ),
  'bias': (
    lambda d: raw.BiasAddGrad(out_backprop=d),
    lambda d: tf.reduce_sum(d, [0, 1, 2]),
    [IMAGE],
  ),
  'division by a number': (
    lambda x: tf.math.divide_no_nan(x, 4.0),
    lambda x: 0.25 * x,
    [X],
  ),
  'labels as indices': (_sparse, _dense, [X]),
  'cross-entropy by logarithms': (_sparse, _by_logarithms, [X]),
  'batch norm in training': (_gradient(_fused()), _gradient(_written_out()), _BACK),
  'batch norm in inference': (
    _gradient(_fused()),
    _gradient(_written_out()),
    [*_BACK[:3], (5,), (5,), IMAGE],
  ),
  'layer norm': (_gradient(_layer_norm), _gradient(_layer_norm_by_squares), [X, (6,), X]),
  'variance by squares': (
    lambda x: tf.math.reduce_variance(x, 1),
    lambda x: tf.reduce_mean(x * x, 1) - tf.square(tf.reduce_mean(x, 1)),
    [X],
  ),
  'a factor that is not summed over': (
    lambda x, y: tf.reduce_sum(x * y[:, None], 1),
    lambda x, y: y * tf.reduce_sum(x, 1),
    [X, (4,)],
  ),
  'a sum of a sum': (
    lambda x, y: tf.reduce_sum(2.0 * x + y - 3.0, 1),
    lambda x, y: 2.0 * tf.reduce_sum(x, 1) + tf.reduce_sum(y, 1) - 18.0,
    [X, X],
  ),
  'the sum of a stack': (
    lambda x, y: tf.reduce_sum(tf.stack([tf.nn.l2_loss(x), tf.nn.l2_loss(y)])) * 2.0,
    lambda x, y: tf.reduce_sum(x * x) + tf.reduce_sum(y * y),
    [X, X],
  ),
  'a mask of two conditions': (
    lambda x, y: tf.cast((x > 0.0) & (y[:, :1] > 0.5), tf.float32) * x,
    lambda x, y: tf.cast(x > 0.0, tf.float32) * tf.cast(y[:, :1] > 0.5, tf.float32) * x,
    [X, X],
  ),
  'rows of a table': (lambda x: tf.gather(x, [1, 2]), lambda x: x[1:3], [X]),
  'the gradient of a slice': (
    lambda d: raw.StridedSliceGrad(shape=[7, 6], begin=[2, 0], end=[6, 6], strides=[1, 1], dy=d),
    lambda d: tf.pad(d, [[2, 1], [0, 0]]),
    [X],
  ),
  'rows added in order': (
    lambda x: raw.UnsortedSegmentSum(data=x, segment_ids=[1, 2, 3, 4], num_segments=6),
    lambda x: tf.pad(x, [[1, 1], [0, 0]]),
    [X],
  ),
  'rows times a number': (
    lambda x, y: raw.UnsortedSegmentSum(
      data=x * tf.reduce_sum(y), segment_ids=_indices(x), num_segments=5
    ),
    lambda x, y: tf.reduce_sum(y) * _segment_sum(x),
    [X, X],
  ),
  'all rows summed, of indices of a look-up': (
    lambda x, table: (tf.gather(table, _indices(x)), tf.reduce_sum(_segment_sum(x), 0)),
    lambda x, table: (tf.gather(table, _indices(x)), tf.reduce_sum(x, 0)),
    [X, (5, 2)],
  ),
  'unique rows': (
    _of_unique_rows(lambda rows: 0.1 * rows),
    lambda x, table: 0.9 * table + 0.1 * _segment_sum(x),
    [X, (5, 6)],
  ),
  'squares of unique rows': (
    _of_unique_rows(lambda rows: rows * rows * 0.1),
    lambda x, table: 0.9 * table + 0.1 * tf.square(_segment_sum(x)),
    [X, (5, 6)],
  ),
}
_NOT_PROVEN = {
  'tanh of another output': (
    lambda x, d: raw.TanhGrad(y=x, dy=d),
    lambda x, d: d * (1.0 - tf.square(tf.tanh(x))),
    [X, X],
  ),
  'relu and relu6': (
    lambda x, d: raw.ReluGrad(gradients=d, features=x),
    lambda x, d: raw.Relu6Grad(gradients=d, features=x),
    [X, X],
  ),
  'relu of the gradient': (
    lambda x, d: raw.ReluGrad(gradients=d, features=x),
    lambda x, d: raw.ReluGrad(gradients=x, features=d),
    [X, X],
  ),
  'labels that lose digits': (
    _sparse,
    lambda x: _dense(tf.concat([tf.cast(tf.cast(x[:, :1], tf.bfloat16), tf.float32), x[:, 1:]], 1)),
    [X],
  ),
  'bias of channels first': (
    lambda d: raw.BiasAddGrad(out_backprop=d, data_format='NCHW'),
    lambda d: tf.reduce_sum(d, [0, 1, 2]),
    [(2, 4, 4, 4)],
  ),
  'division that may be by zero': (
    lambda x, y: tf.math.divide_no_nan(x, tf.nn.relu(y)),
    lambda x, y: x / tf.nn.relu(y),
    [X, X],
  ),
  'another label': (
    _sparse,
    lambda x: (_dense(x)[0], tf.nn.softmax(x) - tf.one_hot(_labels(x) - 1, 6)),
    [X],
  ),
  'another epsilon of batch norm': (_gradient(_fused()), _gradient(_written_out(1e-5)), _BACK),
  'batch norm in the other mode': (
    _gradient(lambda x, scale, offset, *_: _fused()(x, scale, offset)),
    _gradient(_written_out()),
    [*_BACK[:3], (5,), (5,), IMAGE],
  ),
  'the unbiased variance': (
    lambda x: tf.math.reduce_variance(x, 1),
    lambda x: 1.2 * (tf.reduce_mean(x * x, 1) - tf.square(tf.reduce_mean(x, 1))),
    [X],
  ),
  'a sum over the other axis': (
    lambda x: tf.reduce_sum(x + 1.0, 0),
    lambda x: tf.reduce_sum(x + 1.0, 1),
    [(4, 4)],
  ),
  'a number once and not for each element': (
    lambda x: tf.reduce_sum(x + 1.0, 1),
    lambda x: tf.reduce_sum(x, 1) + 1.0,
    [X],
  ),
  'a slice one further': (
    lambda d: raw.StridedSliceGrad(shape=[7, 6], begin=[2, 0], end=[6, 6], strides=[1, 1], dy=d),
    lambda d: tf.pad(d, [[3, 0], [0, 0]]),
    [X],
  ),
  'rows that are squared before they are added up': (
    _of_unique_rows(lambda rows: rows * rows * 0.1),
    lambda x, table: (
      0.9 * table
      + 0.1 * raw.UnsortedSegmentSum(data=x * x, segment_ids=_indices(x), num_segments=5)
    ),
    [X, (5, 6)],
  ),
  'a number in the place of rows': (
    _of_unique_rows(lambda rows: rows * 0.0 + 0.1),
    lambda x, table: 0.9 * table + 0.1,
    [X, (5, 6)],
  ),
  'all rows summed, of which some may be dropped': (
    lambda x: tf.reduce_sum(_segment_sum(x), 0),
    lambda x: tf.reduce_sum(x, 0),
    [X],
  ),
  'a mask of either condition': (
    lambda x, y: tf.cast((x > 0.0) | (y > 0.5), tf.float32),
    lambda x, y: tf.cast(x > 0.0, tf.float32) * tf.cast(y > 0.5, tf.float32),
    [X, X],
  ),
  'rows in another order': (
    lambda x: raw.UnsortedSegmentSum(data=x, segment_ids=[2, 1, 0, 3], num_segments=4),
    lambda x: x,
    [X],
  ),
}


class GradientRulesTest(parameterized.TestCase):
  @parameterized.named_parameters((name.replace(' ', '_'), *c) for name, c in _PROVEN.items())
  def test_proven(self, one, other, shapes):
    self.assertEqual(related(one, other, shapes).tested, ())
    for seed in range(3):
      for first, second in zip(values(one, shapes, seed), values(other, shapes, seed), strict=True):
        np.testing.assert_allclose(first, second, rtol=1e-3, atol=1e-4)

  @parameterized.named_parameters((name.replace(' ', '_'), *c) for name, c in _NOT_PROVEN.items())
  def test_not_proven(self, one, other, shapes):
    self.assertNotEqual(related(one, other, shapes).tested, ())


if __name__ == '__main__':
  absltest.main()
