"""The loss of a case that declares none."""

from typing import Any

import tensorflow as tf

from .nests import flatten
from .private_tensorflow import v1


def weighted_sum(outputs: Any) -> Any:
  """Returns the sum over all floating outputs of weight times element; None without one.

  Every element has a weight of its own of magnitude 0.5 to 1, by integer arithmetic on
  its index; each output is divided by the square root of its size.
  """
  leaves = [t for _, t in flatten(outputs)[1] if isinstance(t, tf.Tensor) and t.dtype.is_floating]
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
  modulus = 2**31
  index = tf.range(1, size + 1, dtype=tf.int64)
  salt = (position * 1013904223 + 12345) % modulus
  magnitude = v1.floormod(index * 1103515245 + salt, modulus)
  positive = v1.floormod(index * 1664525 + salt, modulus) >= modulus // 2
  weight = 0.5 + tf.cast(magnitude, tf.float64) / (2.0 * modulus)
  return tf.cast(tf.where(positive, weight, -weight), dtype)
