"""A ranker of clicks: raw variables and tf.layers; the port keeps them under the shim."""

import numpy as np
import tensorflow as tf

import tf2verify

v1 = tf.compat.v1


def tf1_ranker(inputs):
  counts = tf.math.log(tf.maximum(inputs['counts'], 0.0) + 1.0)
  with v1.variable_scope('words'):
    table = v1.get_variable('table', [50, 8])
  words = tf.nn.embedding_lookup(table, tf.minimum(inputs['ids'], 49))
  net = v1.layers.dense(tf.concat([counts, words], 1), 16, tf.nn.relu6, name='hidden')
  net = v1.layers.dense(net, 1, name='logit')
  logit = tf.clip_by_value(net[:, 0], -30.0, 30.0)
  return {'logit': logit, 'shown': tf.cast(inputs['rank'] > 3, tf.float32) * logit}


class Ranker(tf.keras.layers.Layer):
  @v1.keras.utils.track_tf1_style_variables
  def call(self, inputs):
    counts = tf.math.log(tf.maximum(inputs['counts'], 0.0) + 1.0)
    with v1.variable_scope('words'):
      table = v1.get_variable('table', [50, 8])
    words = tf.nn.embedding_lookup(table, tf.minimum(inputs['ids'], 49))
    features = tf.concat([counts, words], 1)
    net = v1.layers.dense(features, 16, tf.nn.relu6, name='hidden')
    net = v1.layers.dense(net, 1, name='logit')
    logit = tf.clip_by_value(net[:, 0], -30.0, 30.0)
    return {'logit': logit, 'shown': tf.cast(inputs['rank'] > 3, tf.float32) * logit}


class ModelCase(tf2verify.EquivalenceCase):
  def build_tf1_graph(self, inputs, training):
    return tf1_ranker(inputs)

  def make_tf2_layer(self):
    return Ranker()

  def make_inputs(self):
    random = np.random.RandomState(0)
    return {
      'counts': random.poisson(2, (6, 4)).astype(np.float32),
      'ids': random.randint(0, 40, 6).astype(np.int32),
      'rank': np.array([1, 2, 5, 6, 9, 1], np.int32),
    }

  def make_labels(self):
    clicked = np.array([0, 1, 1, 0, 0, 1], np.float32)
    return {'clicked': clicked, 'weight': np.array([1, 2, 1, 0.5, 1, 1], np.float32)}

  def tf1_loss(self, outputs, labels):
    clicked, weight = labels['clicked'], labels['weight']
    shown = tf.clip_by_value(tf.sigmoid(outputs['logit']), 1e-5, 1 - 1e-5)
    each = -clicked * tf.math.log(shown) - (1 - clicked) * tf.math.log(1 - shown)
    return tf.reduce_sum(each * weight) / tf.maximum(tf.reduce_sum(weight), 1.0)

  def tf2_loss(self, outputs, labels):
    clicked, weight = labels['clicked'], labels['weight']
    chance = tf.clip_by_value(tf.sigmoid(outputs['logit']), 1e-5, 1 - 1e-5)
    each = -clicked * tf.math.log(chance) - (1 - clicked) * tf.math.log(1 - chance)
    return tf.reduce_sum(each * weight) / tf.maximum(tf.reduce_sum(weight), 1.0)

  def make_tf1_train_op(self, loss):
    step = v1.train.get_or_create_global_step()
    rate = v1.train.piecewise_constant(step, [1000, 2000], [0.1, 0.01, 0.001])
    optimizer = v1.train.GradientDescentOptimizer(rate)
    grads, variables = zip(*optimizer.compute_gradients(loss), strict=True)
    grads, _ = tf.clip_by_global_norm(grads, 500.0)
    return optimizer.apply_gradients(zip(grads, variables, strict=True), step)

  def make_tf2_optimizer(self):
    boundaries = [1000, 2000]
    rate = tf.keras.optimizers.schedules.PiecewiseConstantDecay(boundaries, [0.1, 0.01, 0.001])
    return tf.keras.optimizers.SGD(rate)

  def tf2_train_step(self, layer, inputs, labels, optimizer):
    with tf.GradientTape() as tape:
      loss = self.tf2_total_loss(layer, layer(inputs), labels)
    variables = layer.trainable_variables
    grads, _ = tf.clip_by_global_norm(tape.gradient(loss, variables), 500.0)
    optimizer.apply_gradients(zip(grads, variables, strict=True))
    return loss
