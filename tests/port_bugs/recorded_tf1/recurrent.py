"""Recurrent networks, as TensorFlow 1.x code."""

import tensorflow as tf


def lstm(inputs):
  cell = tf.nn.rnn_cell.BasicLSTMCell(3)
  _, state = tf.nn.dynamic_rnn(cell, inputs, dtype=tf.float32)
  return state.h


def keras_gru(inputs):
  return tf.keras.layers.GRU(3, name='gru')(inputs)
