"""Ports that look wrong and are right."""

import tensorflow as tf
import tf_slim as slim

import tf2verify
from tests.port_bugs.port_bug import Control
from tests.stages import tiny_models

v1 = tf.compat.v1


class KerasBatchNorm(tiny_models.Normalized):
  def make_tf2_layer(self):
    return tf.keras.Sequential([tf.keras.layers.BatchNormalization(name='norm')])

  def make_inputs(self):
    return tf2verify.normal_inputs((8, 3))


class KerasBatchNormOfImages(KerasBatchNorm):
  def make_inputs(self):
    return tf2verify.normal_inputs((2, 5, 5, 3))


class ResizedArea(tiny_models.OneImageModel):
  def scaled(self, inputs):
    return inputs * v1.get_variable('scale', [3])

  def model(self, inputs, training):
    # Area resizing has no gradient: a variable behind it has one.
    return self.scaled(v1.image.resize_area(inputs, [4, 9]))

  def port(self, inputs, training):
    return self.scaled(tf.image.resize(inputs, [4, 9], 'area'))


class ResizedBilinear(tiny_models.OneImageModel):
  def model(self, inputs, training):
    net = v1.layers.conv2d(inputs, 2, 3, name='conv')
    return v1.image.resize_images(net, [7, 7])

  def make_tf2_layer(self):
    resize = tf.keras.layers.Lambda(lambda net: v1.image.resize_bilinear(net, [7, 7]))
    return tf.keras.Sequential([tf.keras.layers.Conv2D(2, 3, name='conv'), resize])


class LstmOfKeras(tf.keras.layers.Layer):
  """Keeps TF1's variables and gives Keras' cell what it makes of them."""

  def build(self, shape):
    self.kernel = self.add_weight('kernel', [6, 12])
    self.bias = self.add_weight('bias', [12], initializer='zeros')
    self.cell = tf.keras.layers.LSTMCell(3)
    self.cell.built = True  # so that it makes no variables of its own

  def call(self, inputs):
    i, j, f, o = tf.split(self.kernel, 4, axis=1)
    kernel = tf.concat([i, f, j, o], 1)
    i, j, f, o = tf.split(self.bias, 4)
    self.cell.kernel, self.cell.recurrent_kernel = kernel[:3], kernel[3:]
    self.cell.bias = tf.concat([i, f + 1.0, j, o], 0)
    states = [tf.zeros([tf.shape(inputs)[0], 3])] * 2
    for step in tf.unstack(inputs, axis=1):
      output, states = self.cell(step, states)
    return output


class PermutedLstm(tiny_models.OneModel):
  def model(self, inputs, training):
    cell = v1.nn.rnn_cell.LSTMCell(3)
    return v1.nn.dynamic_rnn(cell, inputs, dtype=tf.float32)[1].h

  def make_tf2_layer(self):
    return LstmOfKeras(name='port')

  def variable_names(self, name):
    return name.replace('rnn/lstm_cell', 'port')

  def make_inputs(self):
    return tf2verify.normal_inputs((2, 4, 3))


class GruOfKeras(tf.keras.layers.Layer):
  """The same for TF1's two kernels of a GRU, whose gates are (r, u)."""

  def build(self, shape):
    self.gates = self.add_weight('gates/kernel', [6, 6])
    self.gates_bias = self.add_weight('gates/bias', [6], initializer='ones')
    self.candidate = self.add_weight('candidate/kernel', [6, 3])
    self.candidate_bias = self.add_weight('candidate/bias', [3], initializer='zeros')
    self.cell = tf.keras.layers.GRUCell(3, reset_after=False)
    self.cell.built = True  # so that it makes no variables of its own

  def call(self, inputs):
    reset, update = tf.split(self.gates, 2, axis=1)
    kernel = tf.concat([update, reset, self.candidate], 1)
    reset, update = tf.split(self.gates_bias, 2)
    self.cell.kernel, self.cell.recurrent_kernel = kernel[:3], kernel[3:]
    self.cell.bias = tf.concat([update, reset, self.candidate_bias], 0)
    states = [tf.zeros([tf.shape(inputs)[0], 3])]
    for step in tf.unstack(inputs, axis=1):
      output, states = self.cell(step, states)
    return output


class SwappedGru(PermutedLstm):
  def model(self, inputs, training):
    cell = v1.nn.rnn_cell.GRUCell(3)
    return v1.nn.dynamic_rnn(cell, inputs, dtype=tf.float32)[1]

  def make_tf2_layer(self):
    return GruOfKeras(name='port')

  def variable_names(self, name):
    return name.replace('rnn/gru_cell', 'port')


class SlimUnderShim(tiny_models.OneImageModel):
  def model(self, inputs, training):
    with slim.arg_scope([slim.batch_norm, slim.dropout], is_training=training):
      net = slim.conv2d(inputs, 4, 3, normalizer_fn=slim.batch_norm, scope='conv')
      net = slim.dropout(slim.flatten(net), 0.5)
      return slim.fully_connected(net, 2, activation_fn=None, scope='fc')


CONTROLS = (
  Control('batch norm of tf.layers and of Keras, rank 2', KerasBatchNorm),
  Control('batch norm of tf.layers and of Keras, rank 4', KerasBatchNormOfImages),
  Control('area resizing of TF1 and of TF2', ResizedArea),
  Control('bilinear resizing by compat.v1 in the port', ResizedBilinear),
  Control('LSTM of Keras with permuted gates and the forget bias in its bias', PermutedLstm),
  Control('GRU of Keras with reset_after=False and swapped gates', SwappedGru),
  Control('slim with dropout under the shim', SlimUnderShim),
)
