"""A tagger with a recurrent network of TF1, which the port keeps under the shim."""

import numpy as np
import tensorflow as tf

import tf2verify

v1 = tf.compat.v1


def tf1_tagger(inputs):
  lengths = tf.minimum(tf.maximum(inputs['lengths'], 1), 12)
  cell = v1.nn.rnn_cell.LSTMCell(6, cell_clip=50.0, num_proj=4, proj_clip=20.0)
  x = tf.clip_by_value(inputs['x'], -10.0, 10.0)
  outputs, state = v1.nn.dynamic_rnn(cell, x, lengths, dtype=tf.float32)
  tags = v1.layers.dense(outputs, 5, name='tags')
  last = tf.gather_nd(outputs, tf.stack([tf.range(4), lengths - 1], 1))
  steps = tf.cast(tf.math.floordiv(inputs['lengths'], 2), tf.float32)
  return {'tags': tags, 'last': last, 'c': state.c, 'steps': last * steps[:, None]}


class Tagger(tf.keras.layers.Layer):
  @v1.keras.utils.track_tf1_style_variables
  def call(self, inputs):
    lengths = tf.minimum(tf.maximum(inputs['lengths'], 1), 12)
    cell = v1.nn.rnn_cell.LSTMCell(6, cell_clip=50.0, num_proj=4, proj_clip=20.0)
    x = tf.clip_by_value(inputs['x'], -10.0, 10.0)
    outputs, state = v1.nn.dynamic_rnn(cell, x, lengths, dtype=tf.float32)
    tags = v1.layers.dense(outputs, 5, name='tags')
    last = tf.gather_nd(outputs, tf.stack([tf.range(4), lengths - 1], 1))
    steps = tf.cast(tf.math.floordiv(inputs['lengths'], 2), tf.float32)
    return {'tags': tags, 'last': last, 'c': state.c, 'steps': last * steps[:, None]}


class ModelCase(tf2verify.EquivalenceCase):
  other_sizes = ()

  def build_tf1_graph(self, inputs, training):
    return tf1_tagger(inputs)

  def make_tf2_layer(self):
    return Tagger()

  def make_inputs(self):
    return {'x': tf2verify.normal_inputs((4, 14, 3)), 'lengths': np.array([3, 9, 7, 2], np.int32)}

  def make_labels(self):
    return np.random.RandomState(0).randint(0, 5, (4, 14)).astype(np.int32)

  def tf1_loss(self, outputs, labels):
    each = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=outputs['tags'])
    return tf.reduce_mean(tf.minimum(each, 1000.0))

  def tf2_loss(self, outputs, labels):
    each = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=outputs['tags'])
    return tf.reduce_mean(tf.minimum(each, 1000.0))

  def make_tf1_train_op(self, loss):
    step = v1.train.get_or_create_global_step()
    rate = v1.train.polynomial_decay(0.01, step, 500, 0.001, cycle=False)
    optimizer = v1.train.GradientDescentOptimizer(rate)
    pairs = optimizer.compute_gradients(loss)
    pairs = [(tf.clip_by_norm(g, 300.0), v) for g, v in pairs]
    return optimizer.apply_gradients(pairs, step)

  def make_tf2_optimizer(self):
    schedules = tf.keras.optimizers.schedules
    rate = schedules.PolynomialDecay(0.01, 500, 0.001, cycle=False)
    return tf.keras.optimizers.SGD(rate)

  def tf2_train_step(self, layer, inputs, labels, optimizer):
    with tf.GradientTape() as tape:
      loss = self.tf2_total_loss(layer, layer(inputs), labels)
    variables = layer.trainable_variables
    grads = [tf.clip_by_norm(g, 300.0) for g in tape.gradient(loss, variables)]
    optimizer.apply_gradients(zip(grads, variables, strict=True))
    return loss
