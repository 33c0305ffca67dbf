"""Sums of losses."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tf2verify.tensorflow_internals import eager


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
