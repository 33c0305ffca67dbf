"""The default loss: a fixed linear functional of the outputs."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tf2verify.sides import nests
from tf2verify.tensorflow_internals import eager

# Odd multipliers of a Weyl sequence modulo 2**31 (H. Weyl 1916; the multipliers
# are those of two well-known linear congruential generators).
_MODULUS = 2**31
_MAGNITUDE_STEP = 1103515245
_SIGN_STEP = 1664525
_OUTPUT_STEP = 1013904223


def _weights(size: tf.Tensor, position: int, dtype: tf.DType) -> tf.Tensor:
  """Returns `size` weights of magnitude 0.5 to 1 and either sign, no two alike nearby.

  They are computed from the element's index by exact integer arithmetic: the
  same in a graph and eagerly, for shapes known or not, without a random op.
  """
  index = tf.range(1, size + 1, dtype=tf.int64)
  salt = (position * _OUTPUT_STEP + 12345) % _MODULUS
  magnitude = tf.math.floormod(index * _MAGNITUDE_STEP + salt, _MODULUS)
  sign = tf.math.floormod(index * _SIGN_STEP + salt, _MODULUS) >= _MODULUS // 2
  weight = 0.5 + tf.cast(magnitude, tf.float64) / (2.0 * _MODULUS)
  return tf.cast(tf.where(sign, weight, -weight), dtype)


def weighted_sum(outputs: Any) -> tf.Tensor | None:
  """Returns the sum over all floating outputs of weight times element.

  Every element of every output has its own weight, so that no gradient cancels
  by symmetry (a mean, or a sum of a softmax, does). Each output is divided by
  the square root of its size: the loss is of the order of one element, and the
  gradient with respect to an output has a norm near 0.76 (the root mean square
  of the weights).

  Args:
    outputs: any nest of tensors.

  Returns:
    A scalar in float32, float64 where an output is float64; None when no output
    is floating.
  """
  leaves = list(nests.floating_leaves(outputs))
  if not leaves:
    return None
  wide = any(leaf.dtype == tf.float64 for _, leaf in leaves)
  total = tf.float64 if wide else tf.float32
  terms = []
  for position, (_, leaf) in enumerate(leaves):
    flat = tf.cast(tf.reshape(leaf, [-1]), total)
    size = tf.size(flat, out_type=tf.int64)
    norm = tf.sqrt(tf.cast(tf.maximum(size, 1), total))
    terms.append(tf.reduce_sum(flat * _weights(size, position, total)) / norm)
  return tf.add_n(terms)


def total(losses: Sequence[Any]) -> np.ndarray | None:
  """Returns the sum of regularization losses as TensorFlow adds it up, in this order.

  The last bit depends on the order. The figures of TensorFlow's guide are, to the
  last of their eight digits, those of `tf.add_n` over the losses from the last to
  the first (TF1) and from the first to the last (TF2).

  Args:
    losses: tensors or arrays.

  Returns:
    A scalar; None without a loss. numpy's sum where dtypes or shapes differ.
  """
  arrays = [np.asarray(loss) for loss in losses]
  if not arrays:
    return None
  if len({(array.dtype, array.shape) for array in arrays}) > 1:
    return np.asarray(sum(float(array.sum()) for array in arrays))
  with eager.eager_mode():  # the tf1 side asks inside its graph
    return np.asarray(tf.reduce_sum(tf.add_n(arrays)))
