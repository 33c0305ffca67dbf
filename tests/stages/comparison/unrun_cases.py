"""Cases of which nothing is run."""

from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from tests.stages.comparison import proven_cases
from tests.stages.tiny_models import OneModel, ShimModule

v1 = tf.compat.v1
_HUGE = 1 << 20


class Huge(OneModel):
  """A table of 4 TiB, which no machine allocates by accident."""

  def make_inputs(self):
    return np.arange(6, dtype=np.int32).reshape(2, 3)

  def model(self, inputs, training):
    table = v1.get_variable('table', (_HUGE, _HUGE), initializer=v1.ones_initializer())
    return tf.reduce_sum(tf.nn.embedding_lookup(table, inputs), -1)


class Looked(tf.keras.layers.Layer):
  def __init__(self):
    super().__init__()
    self.table = tf.keras.layers.Embedding(_HUGE, _HUGE, name='embedding')

  def call(self, inputs, training=False):
    return tf.reduce_sum(self.table(inputs), 2)


class HugeInKeras(Huge):
  def variable_names(self, name):
    return 'looked/embedding/embeddings'

  def make_tf2_layer(self):
    return Looked()


class UnpairedInKeras(HugeInKeras):
  def variable_names(self, name):
    return name


class Made(tf.Module):
  """Variables made in every way, with initial values of every kind."""

  def __init__(self):
    super().__init__()
    self.array = tf.Variable(np.ones(3, 'float32'), name='array')
    self.tensor = tf.Variable(tf.ones([3]), name='tensor')
    self.number = tf.Variable(2.0, name='number')
    self.drawn = tf.Variable(lambda: tf.random.normal([3]), name='drawn', trainable=False)
    self.counter = tf.Variable(0, dtype=tf.int64, name='counter')

  def __call__(self, inputs, training=False):
    if training:
      self.counter.assign_add(1)
    return (inputs + self.array) * self.tensor * self.number + self.drawn


class EveryKind(OneModel):
  def variable_names(self, name):
    return name

  def model(self, inputs, training):
    made = {
      name: v1.get_variable(name, shape, trainable=name != 'drawn')
      for name, shape in (('array', 3), ('tensor', 3), ('number', ()), ('drawn', 3))
    }
    counter = v1.get_variable(
      'counter', (), tf.int64, initializer=v1.zeros_initializer(), trainable=False
    )
    if training:
      v1.add_to_collection(v1.GraphKeys.UPDATE_OPS, v1.assign_add(counter, 1))
    return (inputs + made['array']) * (made['number'] * made['tensor']) + made['drawn']

  def make_tf2_layer(self):
    return Made()


class ReadsItsValues(proven_cases.Dense):
  """A port that is made of the initial value of a variable, which it reads as a number."""

  def port(self, inputs, training):
    kernel = v1.get_variable('d/kernel', (int(inputs.shape[-1]), 4))
    bias = v1.get_variable('d/bias', (4,), initializer=v1.zeros_initializer())
    with tf.init_scope():
      if not np.isfinite(bias.numpy()).all():
        raise ValueError
    net = tf.nn.bias_add(tf.matmul(inputs, kernel), bias)
    return self.activation(v1.layers.dropout(net, 0.25, training=training))


class OneMore(proven_cases.Dense):
  def port(self, inputs, training):
    more = v1.get_variable('more', (4,))
    return self.model(inputs, training) + more


class Raising(proven_cases.Dense):
  def make_tf2_layer(self):
    raise ValueError('not made')


class MadeInNumpy(proven_cases.NativeDense):
  """A right port whose layer is built where it is made, and whose values are used there."""

  def used(self, model):
    raise NotImplementedError

  def make_tf2_layer(self):
    model = super().make_tf2_layer()
    model.build((None, 3))
    self.used(model)
    return model


class ReadsNumpy(MadeInNumpy):
  def used(self, model):
    for variable in model.variables:
      variable.numpy()


class SetsWeights(MadeInNumpy):
  def used(self, model):
    model.set_weights([np.ones(weight.shape, 'float32') for weight in model.weights])


class SetsItsWeights(MadeInNumpy):
  def used(self, model):
    model.set_weights([2.0 * weight for weight in model.get_weights()])


class AssignsOther(MadeInNumpy):
  def used(self, model):
    other = tf.Variable(tf.ones((3, 4)), name='other')
    model.weights[0].assign(other)


class TakesNorm(MadeInNumpy):
  def used(self, model):
    if not tf.reduce_sum(model.weights[0] ** 2, axis=[0, 1]) > 0:
      raise ValueError


class AsksForValues(MadeInNumpy):
  """Raises without values although it reads none."""

  def used(self, model):
    if not model.weights[0].is_initialized():
      raise ValueError('no values')


class RaisesItself(MadeInNumpy):
  """Reads values, and raises whatever they are."""

  def used(self, model):
    model.get_weights()
    raise ValueError('not made at all')


class OtherSizes(proven_cases.Dense):
  def port(self, inputs, training):
    net = v1.layers.dense(inputs, 5, name='d')
    return self.activation(v1.layers.dropout(net, 0.25, training=training))


class UnreadOfOtherSize(proven_cases.Dense):
  """A variable that nothing is computed from has another shape, and another dtype."""

  size, dtype = 3, tf.float32

  def model(self, inputs, training):
    v1.get_variable('unread', (self.size,), self.dtype, initializer=v1.zeros_initializer())
    return super().model(inputs, training)

  def port(self, inputs, training):
    v1.get_variable('unread', (2,), tf.float64, initializer=v1.zeros_initializer())
    return super().model(inputs, training)


class UnreadOfOneKind(UnreadOfOtherSize):
  size, dtype = 2, tf.float64


class Point(NamedTuple):
  first: Any


class Place(NamedTuple):
  first: Any


class OtherOutputs(proven_cases.Dense):
  """Both sides compute the same, and return it differently."""

  def of_tf1(self, output, training):
    return output

  def of_port(self, output, training):
    return {'a': output}

  def build_tf1_graph(self, inputs, training):
    return self.of_tf1(self.model(inputs, training), training)

  def call_tf2_layer(self, layer, inputs, training):
    return self.of_port(layer(inputs, training=training), training)


class OtherOutputsInTraining(OtherOutputs):
  def of_port(self, output, training):
    return {'a': output} if training else output


class OneMoreNone(OtherOutputs):
  """The names of the outputs that there are do not show it."""

  def of_tf1(self, output, training):
    return (output,)

  def of_port(self, output, training):
    return (output, None)


class OtherTuple(OtherOutputs):
  def of_tf1(self, output, training):
    return Point(output)

  def of_port(self, output, training):
    return Place(output)


class SameTuple(OtherTuple):
  def of_port(self, output, training):
    return Point(output)


class OtherTupleWithValues(OtherTuple, ReadsItsValues):
  """The port is made with values."""


class ChoosesInHook(OneModel):
  """The hook has an `if` of Python, which AutoGraph rewrites."""

  def model(self, inputs, training):
    return inputs * v1.get_variable('scale', [3])

  def make_tf2_layer(self):
    return ShimModule(self.port)

  def build_tf1_graph(self, inputs, training):
    net = self.model(inputs, training)
    return tf.cond(tf.reduce_sum(inputs) > 0, lambda: net + 1.0, lambda: net)

  def call_tf2_layer(self, layer, inputs, training):
    net = layer(inputs, training)
    if tf.reduce_sum(inputs) > 0:
      net = net + 1.0
    return net


class Unchanged(OneModel):
  """A model without an operation."""

  def model(self, inputs, training):
    return inputs


class NumpyInTraining(proven_cases.Dense):
  """A port that leaves TensorFlow on its way in training alone."""

  def port(self, inputs, training):
    net = self.model(inputs, training)
    return net + 0.0 * float(tf.reduce_sum(net)) if training else net


class SaysMuch(proven_cases.Dense):
  """A port that cannot be traced, and says so in more words than a reason has."""

  def port(self, inputs, training):
    if not tf.executing_eagerly():
      raise NotImplementedError('word ' * 300)
    return self.model(inputs, training)


class RaisesOtherwise(proven_cases.Dense):
  """A port that raises one thing without values, and another one with them: out of memory, say."""

  def port(self, inputs, training):
    raise ValueError('called' if tf.executing_eagerly() else 'traced')
