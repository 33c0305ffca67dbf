"""Rules at random shapes, dtypes and attributes; and with each of their conditions violated."""

import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

from tests.relation.proof.traced_functions import related, values

raw = tf.raw_ops
_TRIALS = 4


def _sizes(random, rank, least=2):
  return tuple(int(size) for size in random.randint(least, 6, rank))


def _shape_error(x, y):
  return raw.NotEqual(x=x, y=y, incompatible_shape_error=False)


def _as_float(made):
  return tf.cast(made, tf.float32)


# Each takes random numbers and returns two functions and the shapes of their arguments.
def _axis(random):
  rank = random.randint(1, 5)
  axis = random.randint(rank)
  name = random.choice(['argmax', 'argmin', 'cumsum', 'cumprod', 'exclusive', 'reverse'])
  functions = {
    'argmax': tf.argmax,
    'argmin': lambda x, a: tf.argmin(x, a, output_type=tf.int32),
    'cumsum': tf.cumsum,
    'cumprod': tf.math.cumprod,
    'exclusive': lambda x, a: tf.cumsum(x, a, exclusive=True),
    'reverse': lambda x, a: tf.reverse(x, [a]),
  }
  made = functions[name]
  shape = _sizes(random, rank)
  return lambda x: _as_float(made(x, axis)), lambda x: _as_float(made(x, axis - rank)), [shape]


def _reversed(random):
  shape = _sizes(random, 3)
  return lambda x: tf.reverse(x, [0, 2]), lambda x: x[::-1, :, ::-1], [shape]


def _hot(random):
  rank, depth = random.randint(1, 4), random.randint(2, 5)

  def hot(axis):
    return lambda x: tf.one_hot(tf.cast(tf.abs(x), tf.int32), depth, axis=axis)

  return hot(-1), hot(rank), [_sizes(random, rank)]


def _pixel(random):
  batch, channels = _sizes(random, 2)
  height, width = _sizes(random, 2)
  corners = bool(random.randint(2))
  kind = random.choice(['ResizeBilinear', 'ResizeNearestNeighbor'])
  resize = getattr(raw, kind)

  def resized(x):
    half = not corners and bool(random.randint(2))
    return resize(images=x, size=[height, width], align_corners=corners, half_pixel_centers=half)

  return resized, lambda x: tf.tile(x, [1, height, width, 1]), [(batch, 1, 1, channels)]


def _own_size(random):
  shape = _sizes(random, 4)
  return lambda x: tf.image.resize(x, shape[1:3]), lambda x: x, [shape]


def _tiled(random):
  first, second = _sizes(random, 2)
  return (
    lambda x, y: tf.tile(x, [1, second]) * y,
    lambda x, y: tf.broadcast_to(x, [first, second]) * y,
    [(first, 1), (first, second)],
  )


def _added_to_tiled(random):
  first, second = _sizes(random, 2)
  return (
    lambda x, y: y + tf.tile(x[None], [first, 1]),
    lambda x, y: x + y,
    [(second,), (first, second)],
  )


def _unequal(random):
  shape = _sizes(random, 3)
  own = shape[random.randint(1, 3) :]
  return (
    lambda x, y: _as_float(tf.not_equal(x, y)),
    lambda x, y: _as_float(_shape_error(x, y)),
    [shape, own],
  )


def _outer(random):
  one, other = _sizes(random, 2)
  return (
    lambda x, y: tf.einsum('i,j->ij', x, y),
    lambda x, y: x[:, None] * y[None],
    [(one,), (other,)],
  )


def _by_one(random):
  b, i, j = _sizes(random, 3)
  return lambda x, y: tf.matmul(x, y), lambda x, y: x * y, [(b, i, 1), (b, 1, j)]


def _dot(random):
  b, n, d = _sizes(random, 3)
  return (
    lambda x, y: tf.einsum('bd,bnd->bn', x, y),
    lambda x, y: tf.reduce_sum(x[:, None] * y, -1),
    [(b, d), (b, n, d)],
  )


def _product_as_sum(random):
  i, j, k = _sizes(random, 3)
  keep = bool(random.randint(2))
  return (
    lambda x, y: tf.matmul(x, y, transpose_b=True)[..., None] * 0.5 / k,
    lambda x, y: tf.reshape(tf.reduce_mean(0.5 * x[:, None] * y, -1, keepdims=keep), [i, j, 1]),
    [(i, k), (j, k)],
  )


def _weighted(random):
  b, n, d = _sizes(random, 3)
  return (
    lambda w, v: tf.reduce_sum(w[..., None] * v, 1),
    lambda w, v: tf.squeeze(tf.matmul(w[:, None], v), 1),
    [(b, n), (b, n, d)],
  )


_SAME = (
  *(_axis, _reversed, _hot, _pixel, _own_size, _tiled, _added_to_tiled, _unequal, _outer),
  *(_by_one, _dot, _product_as_sum, _weighted),
)

_X = (4, 4)
# Name, two functions that are not the same, shapes of their arguments.
_DIFFERENT = (
  ('argmax_along_other', lambda x: tf.argmax(x, 0), lambda x: tf.argmax(x, 1), [_X]),
  ('argmin_for_argmax', lambda x: tf.argmin(x, 1), lambda x: tf.argmax(x, 1), [_X]),
  ('cumsum_along_other', lambda x: tf.cumsum(x, 0), lambda x: tf.cumsum(x, 1), [_X]),
  ('cumsum_exclusive', lambda x: tf.cumsum(x), lambda x: tf.cumsum(x, exclusive=True), [_X]),
  ('cumsum_reversed', lambda x: tf.cumsum(x), lambda x: tf.cumsum(x, reverse=True), [_X]),
  ('cumprod_for_cumsum', lambda x: tf.cumsum(x), lambda x: tf.math.cumprod(x), [_X]),
  ('reversed_along_other', lambda x: tf.reverse(x, [0]), lambda x: tf.reverse(x, [1]), [_X]),
  ('reversed_once_more', lambda x: tf.reverse(x, [0, 1]), lambda x: x[::-1], [_X]),
  (
    'one_hot_along_other',
    lambda x: tf.one_hot(tf.cast(x, tf.int32), 4, axis=0),
    lambda x: tf.one_hot(tf.cast(x, tf.int32), 4, axis=1),
    [_X],
  ),
  (
    'other_depth_value',
    lambda x: tf.one_hot(tf.cast(x, tf.int32), 4, on_value=2.0),
    lambda x: tf.one_hot(tf.cast(x, tf.int32), 4),
    [_X],
  ),
  (
    'resized_from_two_pixels',
    lambda x: tf.image.resize(x, [2, 2]),
    lambda x: tf.tile(x, [1, 2, 1, 1]),
    [(2, 1, 2, 3)],
  ),
  (
    'corners',
    lambda x: raw.ResizeBilinear(images=x, size=[5, 5], align_corners=True),
    lambda x: raw.ResizeBilinear(images=x, size=[5, 5], align_corners=False),
    [(1, 3, 3, 1)],
  ),
  (
    'tiled_rows',
    lambda x: tf.tile(x, [2, 1]),
    lambda x: tf.reshape(tf.tile(x[:, None], [1, 2, 1]), [8, 4]),
    [_X],
  ),
  (
    'tiled_along_other',
    lambda x: tf.tile(x[None], [4, 1]),
    lambda x: tf.tile(x[:, None], [1, 4]),
    [(4,)],
  ),
  (
    'shapes_that_do_not_fit',
    lambda x, y: _as_float(_shape_error(x, y)) + x[0, 0],
    lambda x, y: _as_float(_shape_error(y, y)) + x[0, 0],
    [(2, 3), (2, 2)],
  ),
  (
    'outer_exchanged',
    lambda x, y: tf.einsum('i,j->ij', x, y),
    lambda x, y: tf.einsum('i,j->ij', y, x),
    [(4,), (4,)],
  ),
  (
    'outer_of_three_exchanged',
    lambda x, y, z: tf.einsum('ij,i,j->ij', x, y, z),
    lambda x, y, z: tf.einsum('ij,i,j->ij', x, z, y),
    [_X, (4,), (4,)],
  ),
  (
    'three_and_a_sum',
    lambda x, y, z: tf.einsum('ij,i,j->i', x, y, z),
    lambda x, y, z: tf.einsum('ij,i,j->j', x, y, z),
    [_X, (4,), (4,)],
  ),
  (
    'summed_along_other',
    lambda x, y: tf.reduce_sum(x * y, 0),
    lambda x, y: tf.reduce_sum(x * y, 1),
    [_X, _X],
  ),
  (
    'sum_of_products_transposed',
    lambda x, y: tf.matmul(x, y, transpose_b=True),
    lambda x, y: tf.reduce_sum(x[:, None] * tf.transpose(y), -1),
    [_X, _X],
  ),
  (
    'axis_of_one_operand',
    lambda x, y: tf.reduce_sum(x[:, None] * y, [0, 2]),
    lambda x, y: tf.reduce_sum(x * y[0], 1),
    [_X, (1, 4, 4)],
  ),
  (
    'dot_with_itself',
    lambda x, y: tf.reduce_sum(x * x, -1) + 0.0 * y,
    lambda x, y: tf.reduce_sum(x * tf.reverse(x, [1]), -1) + 0.0 * y,
    [_X, (4,)],
  ),
  ('mean_for_sum', lambda x, y: tf.reduce_mean(x * y, 1), lambda x, y: tf.reduce_sum(x * y, 1),
   [_X, _X]),
)  # fmt: skip


class RandomRulesTest(parameterized.TestCase):
  @parameterized.named_parameters((rule.__name__.lstrip('_'), rule) for rule in _SAME)
  def test_proven(self, rule):
    for trial in range(_TRIALS):
      random = np.random.RandomState(trial)
      one, other, shapes = rule(random)
      for first, second in zip(
        values(one, shapes, trial), values(other, shapes, trial), strict=True
      ):
        np.testing.assert_allclose(first, second, rtol=1e-4, atol=1e-4)
      self.assertEqual(related(one, other, shapes).tested, (), str(shapes))

  @parameterized.named_parameters(*_DIFFERENT)
  def test_not_proven(self, one, other, shapes):
    self.assertIn('output [0]', related(one, other, shapes).tested)
    self.assertEqual(related(one, one, shapes).tested, ())
    self.assertEqual(related(other, other, shapes).tested, ())


if __name__ == '__main__':
  absltest.main()
