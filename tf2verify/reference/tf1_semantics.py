"""TF1's meaning of tensors and shapes, under any version."""

import contextlib
from typing import Iterator

import tensorflow as tf

from .private_tensorflow import tensor_shape, v1


@contextlib.contextmanager
def tf1_semantics(v2_tensorshape: bool) -> Iterator[None]:
  """Gives TF1's meaning to `==` on tensors and to the items of a shape, under any version."""
  equality = getattr(tf.Tensor, '_USE_EQUALITY', False)
  shapes = getattr(tensor_shape, '_TENSORSHAPE_V2_OVERRIDE', None)
  try:
    if equality:
      v1.disable_tensor_equality()
    if not v2_tensorshape:
      v1.disable_v2_tensorshape()
    yield
  finally:
    if equality:
      v1.enable_tensor_equality()
    tensor_shape._TENSORSHAPE_V2_OVERRIDE = shapes
