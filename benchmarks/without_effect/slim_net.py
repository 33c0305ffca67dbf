"""Features of an image by TF-Slim, normalized; the port keeps slim under the shim."""

import tensorflow as tf
import tf_slim as slim

import tf2verify

v1 = tf.compat.v1


def tf1_features(images, training):
  with slim.arg_scope([slim.batch_norm], is_training=training, decay=0.9, epsilon=1e-3):
    net = slim.conv2d(images, 4, 3, normalizer_fn=slim.batch_norm, scope='first')
    net = slim.max_pool2d(net, 3, 2, padding='SAME', scope='pool')
    net = slim.conv2d(net, 6, 3, stride=2, activation_fn=tf.nn.relu6, scope='second')
  net = tf.squeeze(tf.reduce_mean(net, [1, 2], keepdims=True), [1, 2])
  net = slim.fully_connected(net, 5, activation_fn=None, scope='features')
  features = tf.nn.l2_normalize(net, 1, epsilon=1e-12)
  scale = tf.clip_by_value(slim.model_variable('scale', [], tf.float32), -100.0, 100.0)
  return {'features': features, 'similarity': scale * tf.matmul(features, features, False, True)}


def features(images, training):
  with slim.arg_scope([slim.batch_norm], is_training=training, decay=0.9, epsilon=1e-3):
    net = slim.conv2d(images, 4, 3, normalizer_fn=slim.batch_norm, scope='first')
    net = slim.max_pool2d(net, 3, 2, padding='SAME', scope='pool')
    net = slim.conv2d(net, 6, 3, stride=2, activation_fn=tf.nn.relu6, scope='second')
  net = tf.squeeze(tf.reduce_mean(net, [1, 2], keepdims=True), [1, 2])
  net = slim.fully_connected(net, 5, activation_fn=None, scope='features')
  unit = tf.nn.l2_normalize(net, 1, epsilon=1e-12)
  scale = tf.clip_by_value(slim.model_variable('scale', [], tf.float32), -100.0, 100.0)
  return {'features': unit, 'similarity': scale * tf.matmul(unit, unit, False, True)}


class Features(tf.keras.layers.Layer):
  @v1.keras.utils.track_tf1_style_variables
  def call(self, images, training=False):
    return features(images, training)


class ModelCase(tf2verify.EquivalenceCase):
  def build_tf1_graph(self, inputs, training):
    return tf1_features(inputs, training)

  def make_tf2_layer(self):
    return Features()

  def make_inputs(self):
    return tf2verify.normal_inputs((3, 15, 15, 3))

  def tf1_loss(self, outputs, labels):
    return tf.reduce_mean(tf.square(outputs['similarity'] - tf.eye(3)))

  def tf2_loss(self, outputs, labels):
    return tf.reduce_mean(tf.square(outputs['similarity'] - tf.eye(3)))

  def make_tf1_train_op(self, loss):
    step = v1.train.get_or_create_global_step()
    optimizer = v1.train.RMSPropOptimizer(0.001, 0.9, epsilon=1.0)
    train = optimizer.minimize(loss, step)
    average = tf.train.ExponentialMovingAverage(0.9999, num_updates=step)
    with tf.control_dependencies([train, *v1.get_collection(v1.GraphKeys.UPDATE_OPS)]):
      return average.apply(v1.trainable_variables())

  def make_tf2_optimizer(self):
    rmsprop = v1.train.RMSPropOptimizer(0.001, 0.9, epsilon=1.0)
    return {'rmsprop': rmsprop, 'step': tf.Variable(0.0), 'averages': {}}

  def tf2_train_step(self, layer, inputs, labels, optimizer):
    with tf.GradientTape() as tape:
      loss = self.tf2_total_loss(layer, layer(inputs, training=True), labels)
    variables, averages = layer.trainable_variables, optimizer['averages']
    for variable in variables:
      averages.setdefault(variable.name, tf.Variable(variable.read_value(), trainable=False))
    grads = tape.gradient(loss, variables)
    optimizer['rmsprop'].apply_gradients(zip(grads, variables, strict=True))
    step = optimizer['step'].assign_add(1.0)
    decay = tf.minimum(0.9999, (1.0 + step) / (10.0 + step))
    for variable in variables:
      average = averages[variable.name]
      average.assign_sub((1.0 - decay) * (average - variable))
    return loss
