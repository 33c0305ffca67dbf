"""A case of one dense layer: right, and with every part open to replacement."""

from typing import Any

import numpy as np

import tf2verify

# isort: split
import tensorflow as tf

v1 = tf.compat.v1
tracked = v1.keras.utils.track_tf1_style_variables


def dense(inputs: Any, trainable: bool = True) -> Any:
  """A TF1 dense layer, `(batch, 3)` to `(batch, 2)`, with weight decay and dropout."""
  with v1.variable_scope('dense'):
    kernel = v1.get_variable(
      'kernel', (3, 2), trainable=trainable, regularizer=lambda w: 0.1 * tf.nn.l2_loss(w)
    )
    bias = v1.get_variable('bias', (2,), trainable=trainable)
    return tf.matmul(inputs, kernel) + bias


def model(inputs: Any, training: bool) -> Any:
  """`dense`, with dropout in training."""
  return v1.layers.dropout(dense(inputs), rate=0.5, training=training, name='dropout')


class Port(tf.keras.layers.Layer):  # type: ignore[misc]
  """`model` under the modeling shim."""

  @tracked
  def call(self, inputs: Any, training: bool = False) -> Any:
    return model(inputs, training)


class SmallCase(tf2verify.EquivalenceCase):
  """`model` against its port, which passes every stage."""

  def build_tf1_graph(self, inputs: Any, training: bool) -> Any:
    return model(inputs, training)

  def make_tf2_layer(self) -> Any:
    return Port()

  def make_inputs(self) -> Any:
    return np.linspace(-1.0, 1.0, 12, dtype=np.float32).reshape(4, 3)


class PlainPort(tf.keras.layers.Layer):  # type: ignore[misc]
  """`dense` under the modeling shim: a call without `training`."""

  @tracked
  def call(self, inputs: Any) -> Any:
    return dense(inputs)
