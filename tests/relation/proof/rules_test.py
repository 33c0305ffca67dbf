"""Every rule: two spellings that are one function, and near ones that are not.

A pair that is proven has to yield the same numbers, for random ones; a pair that is not the same
function has to be left unproven, however near it is.
"""

import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

from tests.relation.proof.traced_functions import related, values

v1 = tf.compat.v1
raw = tf.raw_ops

X, Y = (4, 6), (4, 6)
ROW = (6,)
IMAGE = (2, 5, 5, 3)


def _long_sum(x):
  """Has too many terms for its square to be multiplied out."""
  return x + 3.0 * tf.tanh(x) + x * tf.tanh(x) + x**3 + tf.sin(x)


def _gradient(function):
  def gradient(*read):
    with tf.GradientTape() as tape:
      tape.watch(read)
      result = function(*read)
    return tape.gradient(result, read)

  return gradient


def _conv(padding, strides=1, dilations=1):
  return lambda x, k: tf.nn.conv2d(x, k, strides, padding, dilations=dilations)


def _norm(epsilon, mean=0.1):
  def norm(x):
    scale, offset = tf.constant([1.5, 0.5, 2.0]), tf.constant([0.1, 0.2, 0.3])
    return v1.nn.fused_batch_norm(x, scale, offset, epsilon=epsilon)[0]

  return norm


def _written_out(epsilon):
  def norm(x):
    scale, offset = tf.constant([1.5, 0.5, 2.0]), tf.constant([0.1, 0.2, 0.3])
    mean, variance = tf.nn.moments(x, [0, 1, 2])
    return tf.nn.batch_normalization(x, mean, variance, offset, scale, epsilon)

  return norm


def _loop(steps, factor):
  def loop(x):
    return tf.while_loop(
      lambda n, _: n < steps, lambda n, v: (n + 1, v * factor + 1.0), (tf.constant(0), x)
    )[1]

  return loop


def _condition(first, second):
  return lambda x: tf.cond(tf.reduce_sum(x) > 0.0, lambda: x * first, lambda: x + second)


def _places(x):
  return tf.cast(tf.math.floormod(10.0 * x, 4.0), tf.int32)


def _wrapped(limit, size):
  """Keras 3's look-up."""

  def look_up(x, table):
    places = _places(x)
    return tf.gather(table, tf.where(places < limit, places + size, places), axis=0)

  return look_up


def _look_up(x, table):
  return tf.gather(table, _places(x))


def _counts(x):
  """Integers of either sign."""
  return tf.cast(10.0 * x, tf.int32)


def _softmax(x, axis=-1):
  powers = tf.exp(x - tf.reduce_max(x, axis, keepdims=True))
  return powers / tf.reduce_sum(powers, axis, keepdims=True)


CUBE = (3, 4, 5)
# Name, two functions, shapes of their arguments.
SAME = (
  (
    'complementary_error_function',
    lambda x: 0.5 * x * tf.math.erfc(-0.70710678 * x),
    lambda x: x * 0.5 * (1.0 + tf.math.erf(x / np.float32(np.sqrt(2.0)))),
    [X],
  ),
  ('place_of_the_least', lambda x: tf.argmax(-x, 1), lambda x: tf.argmin(x, 1), [X]),
  ('softmax', tf.nn.softmax, _softmax, [CUBE]),
  (
    'shares_of_groups',
    lambda x: tf.reduce_sum(tf.nn.softmax(x) * (tf.nn.log_softmax(x) - tf.math.log(0.2)), [1, 2]),
    lambda x: (
      tf.reduce_sum(tf.exp(tf.nn.log_softmax(x)) * tf.nn.log_softmax(x), [1, 2])
      + 4.0 * np.log(5.0).astype('float32')
    ),
    [CUBE],
  ),
  ('logarithm_of_a_number', lambda x: x + tf.math.log(0.25), lambda x: x - 1.3862944, [X]),
  ('bound_of_shares', lambda x: tf.clip_by_value(tf.sigmoid(x), 0.0, 1.0), tf.sigmoid, [X]),
  ('relu_of_squares', lambda x: tf.nn.relu(tf.square(x) + 0.5), lambda x: x * x + 0.5, [X]),
  ('relu_twice', lambda x: tf.nn.relu(tf.nn.relu(x)), tf.nn.relu, [X]),
  (
    'bound_within_another',
    lambda x: tf.clip_by_value(tf.clip_by_value(x, -0.5, 0.5), -1.0, 2.0),
    lambda x: tf.clip_by_value(x, -0.5, 0.5),
    [X],
  ),
  (
    'bound_of_a_mean',
    lambda x: tf.minimum(0.25 * tf.tanh(x) + 0.5, 0.75),
    lambda x: 0.5 + tf.tanh(x) / 4.0,
    [X],
  ),
  ('softmax_of_middle', lambda x: tf.nn.softmax(x, 1), lambda x: _softmax(x, 1), [CUBE]),
  ('log_of_softmax', lambda x: tf.math.log(_softmax(x)), tf.nn.log_softmax, [CUBE]),
  ('power_of_softmax', lambda x: tf.exp(tf.nn.log_softmax(x)), tf.nn.softmax, [X]),
  (
    'normalized_by_hand',
    lambda x: x - tf.reduce_logsumexp(x, -1, keepdims=True),
    tf.nn.log_softmax,
    [CUBE],
  ),
  ('shifted', lambda x, y: tf.nn.softmax(x + y[:, :1]), lambda x, y: tf.nn.softmax(x), [X, Y]),
  (
    'normalized_before',
    lambda x, y: tf.nn.softmax((tf.nn.log_softmax(x) + y) / 0.5),
    lambda x, y: _softmax(2.0 * (x + y)),
    [X, Y],
  ),
  (
    'shares_add_up',
    lambda x: tf.reduce_sum(tf.nn.softmax(x), -1) + x[:, 0],
    lambda x: x[:, 0] + 1.0,
    [X],
  ),
  (
    'cross_entropy',
    lambda x, y: -tf.reduce_sum(tf.nn.sigmoid(y) * tf.math.log(_softmax(x)), 1),
    lambda x, y: tf.nn.softmax_cross_entropy_with_logits(tf.nn.sigmoid(y), x),
    [X, Y],
  ),
  ('factor_of_power', lambda x: tf.math.log(2.0 * tf.exp(x)), lambda x: x + np.log(2.0), [X]),
  (
    'sum_of_transposed',
    lambda x: tf.reduce_sum(tf.transpose(x, [0, 2, 1]), 2),
    lambda x: tf.reduce_sum(x, 1),
    [CUBE],
  ),
  (
    'greatest_of_transposed',
    lambda x: tf.reduce_max(tf.transpose(x, [2, 0, 1]), [0, 2]),
    lambda x: tf.reduce_max(x, [1, 2]),
    [CUBE],
  ),
  ('diagonal', tf.linalg.tensor_diag_part, tf.linalg.diag_part, ((4, 4),)),
  ('halves_upwards', lambda x: -(-_counts(x) // 2), lambda x: (_counts(x) + 1) // 2, [X]),
  ('thirds_upwards', lambda x: -(-_counts(x) // 3), lambda x: (_counts(x) - 1) // 3 + 1, [X]),
  ('multiples', lambda x: (_counts(x) + 9) // 4, lambda x: (_counts(x) + 1) // 4 + 2, [X]),
  ('negated', lambda x: (5 - _counts(x)) // 3, lambda x: -((_counts(x) - 3) // 3), [X]),
  ('look_up_of_keras3', _look_up, _wrapped(0, 4), [(5,), (4, 2)]),
  ('commutative', lambda x, y: x * y + x, lambda x, y: x + y * x, [X, Y]),
  ('associative', lambda x, y: (x + y) + 1.0, lambda x, y: x + (1.0 + y), [X, Y]),
  ('multiplied_out', lambda x, y: (x - y) * x, lambda x, y: x * x - x * y, [X, Y]),
  ('difference_as_sum', lambda x, y: x - y, lambda x, y: -y + x, [X, Y]),
  ('quotient', lambda x: x / 4.0, lambda x: 0.25 * x, [X]),
  ('square', lambda x: tf.square(x), lambda x: x * x, [X]),
  (
    'square of a long difference',
    lambda x: tf.square(_long_sum(x) - 1.0),
    lambda x: tf.math.squared_difference(1.0, _long_sum(x)),
    [X],
  ),
  ('variance', lambda x: tf.exp(x), lambda x: tf.square(tf.exp(0.5 * x)), [X]),
  ('deviation', lambda x, y: y * tf.exp(x / 2.0), lambda x, y: tf.sqrt(tf.exp(x)) * y, [X, Y]),
  ('precision', lambda x: 1.0 / tf.sqrt(tf.exp(x)), lambda x: tf.exp(-0.5 * x), [X]),
  ('ratio', lambda x, y: tf.exp(x) / tf.exp(y), lambda x, y: tf.exp(x - y), [X, Y]),
  ('ratio_of_rows', lambda x, b: tf.exp(x) * tf.exp(b), lambda x, b: tf.exp(x + b), [X, ROW]),
  ('no_exponential', lambda x, y: tf.exp(x) * y * tf.exp(-x), lambda x, y: y, [X, Y]),
  (
    'projections_at_once',
    lambda x, w, b: tf.split(tf.matmul(x, w) + b, 2, 1),
    lambda x, w, b: [x @ w[:, :3] + b[:3], b[3:] + x @ w[:, 3:]],
    [X, (6, 6), ROW],
  ),
  (
    'first_row_of_a_product',
    lambda x, w: tf.tanh(tf.matmul(2.0 * x, w)[0]),
    lambda x, w: tf.tanh(2.0 * tf.matmul(x[:1], w))[0],
    [X, (6, 6)],
  ),
  ('power', lambda x: tf.pow(x, 3.0), lambda x: x * x * x, [X]),
  ('root', lambda x: 1.0 / tf.sqrt(x * x + 1.0), lambda x: tf.math.rsqrt(1.0 + x**2), [X]),
  ('bias', lambda x, b: tf.nn.bias_add(x, b), lambda x, b: x + b, [IMAGE, (3,)]),
  (
    'nearest_pixel_from_its_corner_and_its_middle',
    lambda x: v1.image.resize_nearest_neighbor(x, (10, 15)),
    lambda x: tf.image.resize(x, (10, 15), 'nearest'),
    [IMAGE],
  ),
  (
    'nearest_pixel_and_its_copies',
    lambda x: v1.image.resize_nearest_neighbor(x, (10, 5)),
    lambda x: tf.repeat(x, 2, 1),
    [IMAGE],
  ),
  ('bias_of_row', lambda x, b: x + b, lambda x, b: x + tf.reshape(b, [1, 6]), [X, ROW]),
  ('relu', lambda x: tf.nn.relu(x), lambda x: tf.maximum(0.0, x), [X]),
  ('relu6', lambda x: tf.nn.relu6(x), lambda x: tf.minimum(tf.nn.relu(x), 6.0), [X]),
  ('leaky', lambda x: tf.nn.leaky_relu(x, 0.2), lambda x: tf.maximum(0.2 * x, x), [X]),
  (
    'clip',
    lambda x: tf.clip_by_value(x, -1.0, 2.0),
    lambda x: tf.maximum(tf.minimum(2.0, x), -1.0),
    [X],
  ),
  ('flipped', lambda x, y: tf.where(x < y, x, y), lambda x, y: tf.where(y > x, x, y), [X, Y]),
  ('mean', lambda x: tf.reduce_mean(x, -1), lambda x: tf.reduce_sum(x, 1) / 6.0, [X]),
  (
    'mean_of_image',
    lambda x: tf.reduce_mean(x, [1, 2]),
    lambda x: tf.reshape(tf.nn.avg_pool2d(x, 5, 1, 'VALID'), [2, 3]),
    [IMAGE],
  ),
  ('kept_axes', lambda x: tf.reduce_max(x, 0, True), lambda x: tf.reduce_max(x, -2)[None], [X]),
  ('l2', lambda x: tf.nn.l2_loss(x), lambda x: tf.reduce_sum(tf.square(x)) / 2.0, [X]),
  (
    'reshapes',
    lambda x: tf.reshape(tf.reshape(x, [2, 12]), [8, 3]),
    lambda x: tf.reshape(x, [8, 3]),
    [X],
  ),
  ('squeezed', lambda x: tf.squeeze(x[:, None], 1), lambda x: x, [X]),
  (
    'of_reshaped',
    lambda x: tf.tanh(tf.reshape(x, [24])),
    lambda x: tf.reshape(tf.tanh(x), [24]),
    [X],
  ),
  (
    'transposes',
    lambda x: tf.transpose(tf.transpose(x, [2, 0, 1]), [1, 2, 0]),
    lambda x: x,
    [(2, 3, 4)],
  ),
  (
    'transposed_in_parts',
    lambda x: tf.transpose(tf.reshape(tf.transpose(x), [2, 3, 4]), [2, 0, 1]),
    lambda x: tf.reshape(x, [4, 2, 3]),
    [X],
  ),
  (
    'axes_from_the_end',
    lambda x, y: tf.concat([x, y], -1),
    lambda x, y: tf.concat([x, y], 1),
    [X, Y],
  ),
  ('parts', lambda x: tf.concat(tf.split(x, 3, 1), 1), lambda x: x, [X]),
  ('sliced_twice', lambda x: x[1:][:, 2:][1:], lambda x: x[2:4, -4:], [X]),
  ('stacked', lambda x, y: tf.stack([x, y])[1], lambda x, y: y, [X, Y]),
  (
    'greatest_of_negatives',
    lambda x, y: tf.maximum(-x * tf.exp(y), -x * tf.clip_by_value(tf.exp(y), 0.8, 1.2)),
    lambda x, y: -tf.minimum(tf.exp(y) * x, tf.clip_by_value(tf.exp(y), 0.8, 1.2) * x),
    [X, Y],
  ),
  (
    'least_of_negatives',
    lambda x, y: tf.minimum(-x, -2.0 * y),
    lambda x, y: -tf.maximum(x, 2.0 * y),
    [X, Y],
  ),
  (
    'greatest_of_negative_sums',
    lambda x, y: tf.reduce_mean(tf.maximum((y - x) * tf.exp(y), (y - x) * tf.sin(x))),
    lambda x, y: -tf.reduce_mean(tf.minimum(tf.exp(y) * (x - y), tf.sin(x) * (x - y))),
    [X, Y],
  ),
  (
    'greatest_of_a_negative_and_another',
    lambda x, y: tf.maximum(-x, y),
    lambda x, y: -tf.minimum(x, -y),
    [X, Y],
  ),
  (
    'least_of_multiples',
    lambda x, y: -0.5 * tf.minimum(x, 3.0 * y),
    lambda x, y: tf.maximum(-0.5 * x, -1.5 * y),
    [X, Y],
  ),
  (
    'which_negative_is_greater',
    lambda x, y: tf.where(-2.0 * x >= 2.0 * y, x, y),
    lambda x, y: tf.where(x <= -y, x, y),
    [X, Y],
  ),
  (
    'gradient_of_the_greatest_of_negatives',
    _gradient(lambda x, y: tf.reduce_mean(tf.maximum(-x * tf.exp(y), -x * tf.sin(y)))),
    _gradient(lambda x, y: -tf.reduce_mean(tf.minimum(tf.exp(y) * x, tf.sin(y) * x))),
    [X, Y],
  ),
  ('unstacked', lambda x: tf.unstack(x, axis=1)[2], lambda x: x[:, 2], [X]),
  (
    'stack_of_steps_turned',
    lambda x, y: tf.transpose(tf.stack([tf.tanh(x), tf.sin(y), x * y]), [1, 0, 2]),
    lambda x, y: tf.stack([tf.tanh(x), tf.sin(y), x * y], 1),
    [X, Y],
  ),
  (
    'stack_of_steps_turned_back',
    lambda x, y: tf.transpose(tf.stack([tf.tanh(x), tf.sin(y)], 2), [2, 0, 1]),
    lambda x, y: tf.stack([tf.tanh(x), tf.sin(y)]),
    [X, Y],
  ),
  (
    'sizes',
    lambda x: tf.reshape(x, [tf.shape(x)[0] * 2, -1]),
    lambda x: tf.reshape(x, [8, 3]),
    [X],
  ),
  ('ones', lambda x: x * tf.ones_like(x) + tf.zeros([6]), lambda x: x, [X]),
  (
    'tensordot',
    lambda x, w: tf.tensordot(x, w, [[2], [0]]),
    lambda x, w: tf.einsum('abc,cd->abd', x, w),
    [(2, 3, 4), (4, 5)],
  ),
  (
    'dense',
    lambda x, w: tf.tensordot(x, w, 1),
    lambda x, w: tf.reshape(tf.matmul(tf.reshape(x, [6, 4]), w), [2, 3, 5]),
    [(2, 3, 4), (4, 5)],
  ),
  (
    'transposed_product',
    lambda x, w: tf.matmul(x, w, transpose_b=True),
    lambda x, w: tf.transpose(tf.matmul(w, tf.transpose(x))),
    [X, (5, 6)],
  ),
  (
    'scaled_product',
    lambda x, w: tf.matmul(x * 0.5, w),
    lambda x, w: tf.matmul(x, w) / 2.0,
    [X, (6, 5)],
  ),
  (
    'heads',
    lambda q, k: tf.einsum('btnh,bsnh->bnts', q, k),
    lambda q, k: tf.matmul(tf.transpose(q, [0, 2, 1, 3]), tf.transpose(k, [0, 2, 3, 1])),
    [(2, 3, 4, 5), (2, 3, 4, 5)],
  ),
  (
    'ellipsis',
    lambda x, w: tf.einsum('...c,cd->...d', x, w),
    lambda x, w: tf.tensordot(x, w, 1),
    [(2, 3, 4), (4, 5)],
  ),
  (
    'product_in_parts',
    lambda x, y, w: tf.matmul(tf.concat([x, y], 1), w),
    lambda x, y, w: tf.matmul(x, w[:6]) + tf.matmul(y, w[6:]),
    [X, Y, (12, 5)],
  ),
  ('pixelwise', _conv('SAME'), lambda x, k: tf.tensordot(x, k[0, 0], 1), [IMAGE, (1, 1, 3, 4)]),
  ('padding_of_one', _conv('SAME'), _conv('VALID'), [IMAGE, (1, 1, 3, 4)]),
  (
    'explicit_padding',
    _conv('SAME', 2),
    lambda x, k: tf.nn.conv2d(tf.pad(x, [[0, 0], [1, 1], [1, 1], [0, 0]]), k, 2, 'VALID'),
    [IMAGE, (3, 3, 3, 4)],
  ),
  ('batch_norm', _norm(1e-3), _written_out(1e-3), [IMAGE]),
  ('look_up', lambda x: tf.gather(x, [2, 0]), lambda x: tf.gather(x, [[2, 0]], axis=0)[0], [X]),
  ('loop', _loop(3, 2.0), _loop(3, 2.0), [X]),
  ('condition', _condition(2.0, 3.0), _condition(2.0, 3.0), [X]),
  (
    'before_a_transpose',
    lambda x: tf.tanh(tf.transpose(x) / 2.0) + 1.0,
    lambda x: tf.transpose(tf.tanh(x * 0.5) + 1.0),
    [X],
  ),
  (
    'scaled_before_a_transpose',
    lambda x, b: tf.transpose(x * 2.0) + b,
    lambda x, b: 2.0 * (tf.transpose(x) + b / 2.0),
    [X, (4,)],
  ),
  (
    'lower_triangle',
    lambda x: x * tf.linalg.band_part(tf.ones([4, 6]), -1, 0),
    lambda x: x * np.tri(4, 6, dtype='float32'),
    [X],
  ),
  ('cast_to_itself', lambda x: tf.cast(x, tf.float32), lambda x: x, [X]),
  ('folded', lambda x: x * tf.constant(1.0 - 0.9), lambda x: x * (1.0 - tf.constant(0.9)), [X]),
)

# The same with a condition of a rule, or a detail, violated.
DIFFERENT = (
  ('logarithm_of_a_number', lambda x: x + tf.math.log(0.25), lambda x: x - 1.386, [X]),
  (
    'shares_of_one_group',
    lambda x: tf.reduce_sum(tf.nn.softmax(x), [1, 2]) + x[:, 0, 0],
    lambda x: x[:, 0, 0] + 1.0,
    [CUBE],
  ),
  ('bound_that_is_reached', lambda x: tf.minimum(tf.sigmoid(x), 0.9), tf.sigmoid, [X]),
  ('relu_of_a_product', lambda x, y: tf.nn.relu(x * y), lambda x, y: x * y, [X, Y]),
  ('relu_of_squares_and_less', lambda x: tf.nn.relu(x * x - 0.1), lambda x: x * x - 0.1, [X]),
  (
    'relu_of_opposite_squares',
    lambda x: tf.nn.relu(x * x - tf.abs(x)),
    lambda x: x * x - tf.abs(x),
    [X],
  ),
  (
    'integers_cast_from_less',
    lambda x: tf.maximum(tf.cast(2.0 * tf.tanh(x), tf.int32), 0),
    lambda x: tf.cast(2.0 * tf.tanh(x), tf.int32),
    [X],
  ),
  ('softmax_by_columns', tf.nn.softmax, lambda x: _softmax(x, 0), [(6, 6)]),
  (
    'shifted_by_columns',
    lambda x, y: tf.nn.softmax(x + y[:1]),
    lambda x, y: tf.nn.softmax(x),
    [X, Y],
  ),
  ('softmax_of_double', lambda x: tf.nn.softmax(2.0 * x), lambda x: tf.nn.softmax(x), [X]),
  ('softmax_and_epsilon', lambda x: tf.math.log(tf.nn.softmax(x) + 1e-3), tf.nn.log_softmax, [X]),
  (
    'complementary_error_function_of_the_negative',
    lambda x: 0.5 * x * tf.math.erfc(0.70710678 * x),
    lambda x: x * 0.5 * (1.0 + tf.math.erf(x / np.float32(np.sqrt(2.0)))),
    [X],
  ),
  ('place_of_the_greatest', lambda x: tf.argmax(x, 1), lambda x: tf.argmin(x, 1), [X]),
  (
    'normalized_by_other_axis',
    lambda x: x - tf.reduce_logsumexp(x, 0, keepdims=True),
    tf.nn.log_softmax,
    [(6, 6)],
  ),
  (
    'sum_of_powers',
    lambda x: tf.reduce_sum(tf.exp(x), 1),
    lambda x: tf.exp(tf.reduce_sum(x, 1)),
    [X],
  ),
  ('factor_of_power', lambda x: tf.math.log(2.0 * tf.exp(x)), lambda x: x, [X]),
  (
    'masked_powers',
    lambda x, y: tf.reduce_sum(y * tf.exp(x), 1),
    lambda x, y: tf.reduce_sum(tf.exp(x), 1),
    [X, Y],
  ),
  (
    'sum_of_other_axis_of_transposed',
    lambda x: tf.reduce_sum(tf.transpose(x, [0, 2, 1]), 1),
    lambda x: tf.reduce_sum(x, 1),
    [(3, 4, 4)],
  ),
  (
    'nearest_pixel_of_another_size',
    lambda x: v1.image.resize_nearest_neighbor(x, (8, 10)),
    lambda x: tf.image.resize(x, (8, 10), 'nearest'),
    [IMAGE],
  ),
  (
    'nearest_pixel_and_copies_of_the_image',
    lambda x: v1.image.resize_nearest_neighbor(x, (10, 15)),
    lambda x: tf.tile(x, [1, 2, 3, 1]),
    [IMAGE],
  ),
  ('root_of_exponential', lambda x: tf.sqrt(tf.exp(x)), lambda x: tf.exp(x), [X]),
  ('exponentials', lambda x, y: tf.exp(x) * tf.exp(y), lambda x, y: tf.exp(x * y), [X, Y]),
  ('ratio', lambda x, y: tf.exp(x) / tf.exp(y), lambda x, y: tf.exp(y - x), [X, Y]),
  (
    'projections_exchanged',
    lambda x, w: tf.split(tf.matmul(x, w), 2, 1),
    lambda x, w: [x @ w[:, 3:], x @ w[:, :3]],
    [X, (6, 6)],
  ),
  (
    'another_diagonal',
    lambda x: tf.linalg.tensor_diag_part(x)[1:],
    lambda x: tf.linalg.diag_part(x, k=1),
    ((4, 4),),
  ),
  ('halves_downwards', lambda x: -(-_counts(x) // 2), lambda x: _counts(x) // 2, [X]),
  ('thirds_by_one', lambda x: -(-_counts(x) // 3), lambda x: (_counts(x) + 1) // 3, [X]),
  ('other_multiples', lambda x: (_counts(x) + 9) // 4, lambda x: (_counts(x) + 2) // 4 + 2, [X]),
  ('over_less_than_zero', lambda x: _counts(x) // -2, lambda x: -(_counts(x) // 2), [X]),
  ('sum_for_product', lambda x, y: x * y, lambda x, y: x + y, [X, Y]),
  ('operands_exchanged', lambda x, y: x - y, lambda x, y: y - x, [X, Y]),
  ('quotient_exchanged', lambda x, y: x / y, lambda x, y: y / x, [X, Y]),
  ('other_factor', lambda x: x * 0.25, lambda x: x * 0.2501, [X]),
  ('quotient_by_itself', lambda x: x / x, lambda x: tf.ones_like(x), [X]),
  ('root_of_square', lambda x: tf.sqrt(x * x), lambda x: x, [X]),
  ('other_power', lambda x: tf.pow(x, 3.0), lambda x: tf.pow(x, 2.0), [X]),
  ('epsilon', lambda x: tf.math.rsqrt(x * x + 1e-3), lambda x: tf.math.rsqrt(x * x + 1e-5), [X]),
  ('bias_on_other_axis', lambda x, b: x + b, lambda x, b: x + b[:, None], [(6, 6), ROW]),
  ('relu6_for_relu', lambda x: tf.nn.relu(x), lambda x: tf.nn.relu6(x), [X]),
  ('other_slope', lambda x: tf.nn.leaky_relu(x, 0.2), lambda x: tf.nn.leaky_relu(x, 0.3), [X]),
  ('steep_slope', lambda x: tf.nn.leaky_relu(x, 1.5), lambda x: tf.maximum(x, 1.5 * x), [X]),
  (
    'other_bound',
    lambda x: tf.clip_by_value(x, -20.0, 2.0),
    lambda x: tf.clip_by_value(x, -5.0, 2.0),
    [X],
  ),
  (
    'comparison_with_equality',
    lambda x, y: tf.where(x < y, x, y * 2.0),
    lambda x, y: tf.where(x <= y, x, y * 2.0),
    [X, Y],
  ),
  ('other_axis', lambda x: tf.reduce_mean(x, 0), lambda x: tf.reduce_mean(x, 1), [(6, 6)]),
  ('sum_for_mean', lambda x: tf.reduce_sum(x, 0), lambda x: tf.reduce_mean(x, 0), [X]),
  ('whole_l2', lambda x: tf.nn.l2_loss(x), lambda x: tf.reduce_sum(x * x), [X]),
  ('reshape_for_transpose', lambda x: tf.reshape(x, [6, 4]), lambda x: tf.transpose(x), [X]),
  (
    'transposed_the_other_way',
    lambda x: tf.transpose(x, [1, 2, 0]),
    lambda x: tf.transpose(x, [2, 0, 1]),
    [(3, 3, 3)],
  ),
  (
    'merged_other_axes',
    lambda x: tf.reshape(tf.transpose(x, [0, 2, 1]), [4, 9]),
    lambda x: tf.reshape(x, [4, 9]),
    [(4, 3, 3)],
  ),
  (
    'concatenated_in_other_order',
    lambda x, y: tf.concat([x, y], 1),
    lambda x, y: tf.concat([y, x], 1),
    [X, Y],
  ),
  (
    'concatenated_along_other_axis',
    lambda x, y: tf.concat([x, y], 0),
    lambda x, y: tf.reshape(tf.concat([x, y], 1), [8, 6]),
    [X, Y],
  ),
  ('parts_in_other_order', lambda x: tf.concat(tf.split(x, 3, 1)[::-1], 1), lambda x: x, [X]),
  ('parts_with_a_gap', lambda x: tf.concat([x[:, :2], x[:, 3:]], 1), lambda x: x[:, :5], [X]),
  ('shifted_slice', lambda x: x[1:3], lambda x: x[:2], [X]),
  ('other_step', lambda x: x[:, ::2], lambda x: x[:, :3], [X]),
  ('reversed', lambda x: x[::-1], lambda x: x, [X]),
  (
    'greatest_of_negatives_kept',
    lambda x, y: tf.maximum(-x, -y),
    lambda x, y: -tf.maximum(x, y),
    [X, Y],
  ),
  (
    'greatest_of_one_negative',
    lambda x, y: tf.maximum(-x, y),
    lambda x, y: -tf.minimum(x, y),
    [X, Y],
  ),
  (
    'least_of_other_multiples',
    lambda x, y: -0.5 * tf.minimum(x, 3.0 * y),
    lambda x, y: tf.maximum(-0.5 * x, -y),
    [X, Y],
  ),
  (
    'greatest_of_negative_sums_kept',
    lambda x, y: tf.maximum((y - x) * tf.exp(y), (y - x) * tf.sin(x)),
    lambda x, y: -tf.maximum(tf.exp(y) * (x - y), tf.sin(x) * (x - y)),
    [X, Y],
  ),
  (
    'which_negative_is_greater_kept',
    lambda x, y: tf.where(-x >= -y, x, y),
    lambda x, y: tf.where(x >= y, x, y),
    [X, Y],
  ),
  (
    'which_negative_is_greater_strictly',
    lambda x, y: tf.where(-x > -y, x, y + 1.0),
    lambda x, y: tf.where(x <= y, x, y + 1.0),
    [X, Y],
  ),
  (
    'gradient_of_the_greatest_of_negatives_of_one',
    _gradient(lambda x, y: tf.maximum(-x, -y)),
    _gradient(lambda x, y: -tf.maximum(x, y)),
    [X, Y],
  ),
  ('other_row', lambda x: tf.unstack(x)[1], lambda x: tf.unstack(x)[2], [X]),
  (
    'stack_of_steps_turned_otherwise',
    lambda x, y: tf.transpose(tf.stack([tf.tanh(x), tf.sin(y)]), [1, 2, 0]),
    lambda x, y: tf.reshape(tf.stack([tf.tanh(x), tf.sin(y)], 1), [4, 6, 2]),
    [X, Y],
  ),
  (
    'stack_in_another_order_turned',
    lambda x, y: tf.transpose(tf.stack([tf.tanh(x), tf.sin(y)]), [1, 0, 2]),
    lambda x, y: tf.stack([tf.sin(y), tf.tanh(x)], 1),
    [X, Y],
  ),
  (
    'stack_of_squares_turned_inside',
    lambda x, y: tf.transpose(tf.stack([tf.tanh(x), tf.sin(y)]), [0, 2, 1]),
    lambda x, y: tf.stack([tf.tanh(x), tf.sin(y)]),
    [(4, 4), (4, 4)],
  ),
  (
    'product_exchanged',
    lambda x, w: tf.matmul(x, w),
    lambda x, w: tf.matmul(w, x),
    [(6, 6), (6, 6)],
  ),
  (
    'product_not_transposed',
    lambda x, w: tf.matmul(x, w),
    lambda x, w: tf.matmul(x, w, transpose_b=True),
    [X, (6, 6)],
  ),
  (
    'heads_exchanged',
    lambda q, k: tf.einsum('btnh,bsnh->bnts', q, k),
    lambda q, k: tf.einsum('btnh,bsnh->bnst', q, k),
    [(2, 3, 4, 5), (2, 3, 4, 5)],
  ),
  (
    'other_part',
    lambda x, y, w: tf.matmul(tf.concat([x, y], 1), w),
    lambda x, y, w: tf.matmul(x, w[6:]) + tf.matmul(y, w[:6]),
    [X, Y, (12, 5)],
  ),
  (
    'padding',
    _conv('SAME', 2),
    lambda x, k: tf.nn.conv2d(x, k, 2, [[0, 0], [1, 0], [1, 0], [0, 0]]),
    [(2, 5, 5, 3), (2, 2, 3, 4)],
  ),
  (
    'padding_of_even_size',
    _conv('SAME', 2),
    lambda x, k: tf.nn.conv2d(tf.pad(x, [[0, 0], [1, 1], [1, 1], [0, 0]]), k, 2, 'VALID'),
    [(2, 6, 6, 3), (3, 3, 3, 4)],
  ),
  (
    'padded_with_ones',
    _conv('SAME'),
    lambda x, k: tf.nn.conv2d(
      tf.pad(x, [[0, 0], [1, 1], [1, 1], [0, 0]], constant_values=1.0), k, 1, 'VALID'
    ),
    [IMAGE, (3, 3, 3, 4)],
  ),
  ('strides', _conv('SAME', 2), _conv('SAME', 1), [(2, 1, 1, 3), (3, 3, 3, 4)]),
  ('dilations', _conv('SAME', 1, 2), _conv('SAME'), [IMAGE, (3, 3, 3, 4)]),
  (
    'pooling',
    lambda x: tf.nn.max_pool2d(x, 2, 2, 'SAME'),
    lambda x: tf.nn.avg_pool2d(x, 2, 2, 'SAME'),
    [IMAGE],
  ),
  (
    'padded_pooling',
    lambda x: tf.nn.avg_pool2d(x, 5, 5, 'SAME'),
    lambda x: tf.reduce_mean(x, [1, 2], True),
    [(2, 4, 4, 3)],
  ),
  ('epsilon_of_norm', _norm(1e-3), _norm(1e-4), [IMAGE]),
  ('epsilon_written_out', _norm(1e-3), _written_out(1e-5), [IMAGE]),
  ('look_up_from_another_end', _look_up, _wrapped(0, 3), [(5,), (4, 2)]),
  ('look_up_of_others_from_the_end', _look_up, _wrapped(1, 3), [(5,), (4, 2)]),
  ('other_index', lambda x: tf.gather(x, [2, 0]), lambda x: tf.gather(x, [2, 1]), [X]),
  (
    'look_up_along_other_axis',
    lambda x: tf.gather(x, [2, 0]),
    lambda x: tf.gather(x, [2, 0], axis=1),
    [(4, 4)],
  ),
  ('longer_loop', _loop(3, 2.0), _loop(4, 2.0), [X]),
  ('other_body', _loop(3, 2.0), _loop(3, 2.5), [X]),
  ('other_branch', _condition(2.0, 3.0), _condition(2.0, 3.5), [X]),
  (
    'branches_exchanged',
    lambda x: tf.cond(tf.reduce_sum(x) > 0.0, lambda: x, lambda: -x),
    lambda x: tf.cond(tf.reduce_sum(x) > 0.0, lambda: -x, lambda: x),
    [X],
  ),
  ('rounded', lambda x: tf.cast(tf.cast(x, tf.float16), tf.float32), lambda x: x, [X]),
  (
    'safe_logarithm',
    lambda x: tf.where(x > 0.0, tf.math.log(x), 0.0),
    lambda x: tf.math.log(x) * tf.cast(x > 0.0, tf.float32),
    [X],
  ),
  ('softmax_of_other_axis', lambda x: tf.nn.softmax(x), lambda x: tf.nn.softmax(x, 0), [(6, 6)]),
  (
    'large_constants',
    lambda x: x + np.arange(6000.0, dtype='float32'),
    lambda x: x + np.arange(6000.0, dtype='float32')[::-1],
    [(2, 6000)],
  ),
  (
    'drawn_twice',
    lambda x: (x + v1.random_normal([6]), x),
    lambda x: (x + v1.random_normal([6]) * 2.0, x),
    [X],
  ),
)


def _draws(fresh):
  def draws(x):
    noise = v1.random_normal([6], seed=1)
    again = v1.random_normal([6], seed=1) if fresh else noise
    return x + noise, x * again

  return draws


class RulesTest(parameterized.TestCase):
  @parameterized.named_parameters(*SAME)
  def test_proven(self, one, other, shapes):
    for seed in range(3):
      for first, second in zip(values(one, shapes, seed), values(other, shapes, seed), strict=True):
        np.testing.assert_allclose(first, second, rtol=1e-4, atol=1e-4)
    proof = related(one, other, shapes)
    self.assertEqual(proof.tested, ())
    self.assertFalse(proof.tf1.tested | proof.tf2.tested)

  @parameterized.named_parameters(*DIFFERENT)
  def test_not_proven(self, one, other, shapes):
    self.assertIn('output [0]', related(one, other, shapes).tested)

  @parameterized.named_parameters((name, one, shapes) for name, one, _, shapes in DIFFERENT)
  def test_to_itself(self, one, shapes):
    self.assertEqual(related(one, one, shapes).tested, ())

  def test_draws(self):
    self.assertEqual(related(_draws(False), _draws(False), [X]).tested, ())
    self.assertEqual(related(_draws(True), _draws(True), [X]).tested, ())
    # The same seed in both operations, and yet a second draw is another number.
    self.assertEqual(related(_draws(False), _draws(True), [X]).tested, ('output [1]',))


if __name__ == '__main__':
  absltest.main()
