"""Models whose gradients are not those of a plain rewriting, as TensorFlow 1.x code."""

import tensorflow as tf


def distilled(inputs):
  labels = tf.nn.softmax(tf.layers.dense(inputs, 3, name='teacher'))
  student = tf.layers.dense(inputs, 3, name='student')
  return tf.nn.softmax_cross_entropy_with_logits(labels=labels, logits=student)


@tf.RegisterGradient('GuidedRelu')
def _guided_relu_gradient(op, upstream):
  gate = tf.cast(op.outputs[0] > 0, tf.float32)
  return tf.where(upstream > 0, upstream, tf.zeros_like(upstream)) * gate


def guided(inputs):
  net = tf.layers.dense(inputs, 3, name='fc')
  with tf.get_default_graph().gradient_override_map({'Relu': 'GuidedRelu'}):
    net = tf.nn.relu(net)
  return net * tf.constant([1.0, -1.0, 1.0])


def q_learning(inputs):
  online = tf.layers.dense(inputs['state'], 2, name='online')
  target = tf.layers.dense(inputs['next_state'], 2, name='target')
  aim = inputs['reward'] + 0.9 * tf.reduce_max(target, axis=1)
  return tf.square(tf.stop_gradient(aim) - tf.reduce_max(online, axis=1))
