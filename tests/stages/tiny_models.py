"""Right models of a few variables, whose subclasses in the tests change one thing."""

import abc
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

import tf2verify

v1 = tf.compat.v1
under_shim = v1.keras.utils.track_tf1_style_variables


class ShimLayer(tf.keras.layers.Layer):
  """Runs a TF1-style function under the modeling shim."""

  def __init__(self, forward: Callable[[Any, bool], Any]) -> None:
    super().__init__()
    self._forward = forward

  @under_shim
  def call(self, inputs: Any, training: bool = False) -> Any:
    return self._forward(inputs, training)


class ShimModule(tf.Module):
  """The same as a `tf.Module`."""

  def __init__(self, forward: Callable[[Any, bool], Any]) -> None:
    super().__init__()
    self._forward = forward

  @under_shim
  def __call__(self, inputs: Any, training: bool = False) -> Any:
    return self._forward(inputs, training)


class OneModel(tf2verify.EquivalenceCase, abc.ABC):
  """One TF1-style function on both sides; a fault is a `port` of its own."""

  def model(self, inputs: Any, training: bool) -> Any:
    raise NotImplementedError

  def port(self, inputs: Any, training: bool) -> Any:
    return self.model(inputs, training)

  def build_tf1_graph(self, inputs: Any, training: bool) -> Any:
    return self.model(inputs, training)

  def make_tf2_layer(self) -> Any:
    return ShimLayer(self.port)

  def make_inputs(self) -> Any:
    return tf2verify.normal_inputs((4, 3))


class OneImageModel(OneModel, abc.ABC):
  def make_inputs(self) -> Any:
    return tf2verify.normal_inputs((2, 6, 6, 3))


class Affine(OneModel, abc.ABC):
  """`inputs * kernel + bias` with a square kernel, so that every mistake keeps the shapes."""

  def model(self, inputs: Any, training: bool) -> Any:
    return tf.matmul(inputs, kernel()) + bias()


class Regularized(OneModel, abc.ABC):
  """A dense layer of `tf.layers` whose kernel has a weight decay."""

  weight_decay = 0.01

  def half_sum_of_squares(self, weights: Any) -> Any:
    return self.weight_decay * tf.nn.l2_loss(weights)

  def model(self, inputs: Any, training: bool) -> Any:
    return v1.layers.dense(inputs, 3, kernel_regularizer=self.half_sum_of_squares, name='fc')


class Dropped(OneModel, abc.ABC):
  """An affine map and a dropout that keeps 80 %."""

  def model(self, inputs: Any, training: bool) -> Any:
    net = tf.matmul(inputs, kernel()) + bias()
    return v1.nn.dropout(net, rate=0.2) if training else net


class Normalized(OneModel, abc.ABC):
  """Batch norm of `tf.layers` over the last axis."""

  def model(self, inputs: Any, training: bool) -> Any:
    return v1.layers.batch_normalization(inputs, training=training, name='norm')


class Embedded(OneModel, abc.ABC):
  """Looks three rows of an embedding up, one of them twice."""

  def model(self, inputs: Any, training: bool) -> Any:
    return tf.nn.embedding_lookup(v1.get_variable('embedding', [5, 4]), inputs)

  def make_inputs(self) -> Any:
    return np.array([3, 0, 3, 2], np.int32)


def kernel() -> Any:
  return v1.get_variable('kernel', [3, 3])


def bias() -> Any:
  return v1.get_variable('bias', [3], initializer=v1.zeros_initializer())
