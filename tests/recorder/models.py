"""Models of the recorder's tests; they run under TensorFlow 1.13 and newer."""

import numpy as np
import tensorflow as tf

v1 = tf.compat.v1


def inputs():
  """Returns a dictionary with a constant input, which is varied."""
  return {
    'ids': np.arange(12, dtype=np.int32).reshape(3, 4),
    'ones': np.ones((3, 2), np.float32),
  }


def build(inputs, training):
  """An embedding, batch statistics with an update op, dropout, a regularizer, strings."""
  table = v1.get_variable('embedding', [12, 8], initializer=v1.random_normal_initializer())
  net = tf.reduce_mean(tf.nn.embedding_lookup(table, inputs['ids']), 1)
  net = tf.concat([net, inputs['ones']], 1)
  with v1.variable_scope('dense'):
    kernel = v1.get_variable(
      'kernel',
      [net.shape[1].value if hasattr(net.shape[1], 'value') else net.shape[1], 6],
      regularizer=lambda weights: 0.01 * tf.reduce_sum(tf.square(weights)),
    )
    bias = v1.get_variable('bias', [6], initializer=v1.zeros_initializer())
  net = tf.matmul(net, kernel) + bias
  mean = v1.get_variable(
    'moving_mean', [6], initializer=v1.zeros_initializer(), trainable=False, use_resource=True
  )
  step = v1.train.get_or_create_global_step()
  if training:
    batch_mean = tf.reduce_mean(net, 0)
    v1.add_to_collection(v1.GraphKeys.UPDATE_OPS, v1.assign_sub(mean, 0.1 * (mean - batch_mean)).op)
    net = v1.nn.dropout(net - batch_mean, rate=0.5)
  else:
    net = net - mean
  return {'net': tf.nn.relu(net), 'texts': tf.as_string(inputs['ids']), 'step': step}


def build_large(inputs, training):
  """One large variable."""
  kernel = v1.get_variable('kernel', [6, 5000])
  return tf.matmul(inputs, kernel)


def build_layers(inputs, training):
  """Layers that draw by Keras in TensorFlow 2."""
  net = tf.keras.layers.Dense(4)(inputs)
  if training:
    net = tf.keras.layers.Dropout(0.5)(net, training=True)
  return net


def build_unseeded(inputs, training):
  """A random number of each call's own."""
  return inputs + tf.py_function(lambda: np.random.RandomState().standard_normal(), [], tf.float64)


def build_without_training(inputs):
  """A builder of one argument."""
  return inputs * v1.get_variable('scale', [])


def build_nothing(inputs, training):
  """The return is missing."""
  v1.get_variable('scale', [])


def build_in_own_graph(inputs, training):
  """Makes its own graph."""
  with tf.Graph().as_default():
    return tf.constant(1.0)


def build_mixing_graphs(inputs, training):
  """Makes its own graph, and uses the inputs there."""
  with tf.Graph().as_default():
    return inputs + tf.constant(1.0)


def build_number(inputs, training):
  """Returns no tensor."""
  return 3


def build_object(inputs, training):
  """Returns something else."""
  return {'a': inputs, 'b': object()}


def build_raising(inputs, training):
  """Fails in its own code."""
  raise ValueError('the depth is odd')


def build_interrupted(inputs, training):
  """Stopped by the user in training mode."""
  if training:
    raise KeyboardInterrupt
  return inputs * v1.get_variable('scale', [])


def build_killed(inputs, training):
  """Dies."""
  import os

  if training:
    os.kill(os.getpid(), 9)
  return inputs * v1.get_variable('scale', [])


def build_endless(inputs, training):
  """A graph whose one run takes hours."""
  square = tf.ones([800, 800])
  _, product = tf.while_loop(
    lambda number, _: number < 10**9,
    lambda number, product: (number + 1, tf.matmul(product, square) * 1e-3),
    [0, square],
  )
  return inputs + tf.reduce_mean(product)


def build_for_labels(features, labels):
  """What takes no training mode, as the model_fn of an Estimator."""
  return features if labels is None else features * 2.0
