"""The loss of a case that declares none: a fixed linear functional of the outputs."""

from typing import Any

import tensorflow as tf

from .nests import floating_leaves
from .private_tensorflow import v1

# Odd multipliers of a Weyl sequence modulo 2**31 (H. Weyl 1916; the multipliers
# are those of two well-known linear congruential generators).
_MODULUS = 2**31
_MAGNITUDE_STEP = 1103515245
_SIGN_STEP = 1664525
_OUTPUT_STEP = 1013904223


def weighted_sum(outputs: Any) -> Any:
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
  leaves = [leaf for _, leaf in floating_leaves(outputs)]
  if not leaves:
    return None
  total = tf.float64 if any(leaf.dtype == tf.float64 for leaf in leaves) else tf.float32
  terms = []
  for position, leaf in enumerate(leaves):
    flat = tf.cast(tf.reshape(leaf, [-1]), total)
    size = tf.size(flat, out_type=tf.int64)
    norm = tf.sqrt(tf.cast(tf.maximum(size, tf.constant(1, tf.int64)), total))
    terms.append(tf.reduce_sum(flat * _weights(size, position, total)) / norm)
  return tf.add_n(terms)


def _weights(size: Any, position: int, dtype: Any) -> Any:
  """Returns `size` weights of magnitude 0.5 to 1 and either sign, no two alike nearby.

  They are computed from the element's index by exact integer arithmetic: the
  same in a graph and eagerly, for shapes known or not, without a random op.
  """
  index = tf.range(1, size + 1, dtype=tf.int64)
  salt = (position * _OUTPUT_STEP + 12345) % _MODULUS
  magnitude = v1.floormod(index * _MAGNITUDE_STEP + salt, _MODULUS)
  positive = v1.floormod(index * _SIGN_STEP + salt, _MODULUS) >= _MODULUS // 2
  weight = 0.5 + tf.cast(magnitude, tf.float64) / (2.0 * _MODULUS)
  return tf.cast(tf.where(positive, weight, -weight), dtype)
