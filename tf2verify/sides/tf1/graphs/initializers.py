"""The initializer of TF1-style layers that are given none, as TensorFlow 1.x has it."""

import contextlib
from collections.abc import Iterator
from typing import Any
from unittest import mock

import tensorflow as tf

from tf2verify.tensorflow_internals import keras

v1 = tf.compat.v1


@contextlib.contextmanager
def as_in_tf1() -> Iterator[None]:
  """Lets `tf.layers` and RNN cells without an initializer draw as TensorFlow 1.x does.

  Both take the Glorot uniform one. TensorFlow 1.x draws it by a stateful random op, which
  takes part in the count of op seeds; tf-keras by a stateless op with a seed of Keras: the
  same distribution in other numbers, and in another order beside dropout. A port that was
  recorded nowhere is compared with a graph that tf-keras has drawn for, too; one compared
  with numbers of TensorFlow 1.x needs its op.

  An initializer that is given, also by the variable scope, stays; so do Keras' own layers.
  """
  add_weight = keras.TF1_LAYER.add_weight

  def with_initializer(layer: Any, name: str, shape: Any, *rest: Any, **keywords: Any) -> Any:
    # `rest` begins with dtype and initializer.
    given = rest[1] if len(rest) > 1 else keywords.get('initializer')
    dtype = rest[0] if rest else keywords.get('dtype')
    dtype = tf.as_dtype(dtype or layer.dtype or tf.float32)
    asked = given is None and dtype.is_floating and not keras.is_keras_style(layer)
    if asked and keras.default_initializer_of(layer) is None:
      rest = rest[:1]
      keywords['initializer'] = v1.glorot_uniform_initializer()
    return add_weight(layer, name, shape, *rest, **keywords)

  with mock.patch.object(keras.TF1_LAYER, 'add_weight', with_initializer):
    yield
