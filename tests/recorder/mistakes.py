"""Builders and functions that a user may give to the recorder by mistake."""

import tensorflow as tf

v1 = tf.compat.v1


def build(inputs, training):
  """A right one."""
  kernel = v1.get_variable('kernel', [3, 2])
  net = tf.matmul(inputs, kernel)
  return v1.nn.dropout(net, rate=0.5) if training else net


def build_of_queue(inputs, training):
  """Reads its batches by a queue, as a model of an input pipeline does."""
  queue = v1.train.shuffle_batch([tf.zeros([3])], 4, capacity=8, min_after_dequeue=2)
  return build(queue, training) + 0 * tf.reduce_sum(inputs)


def build_of_files(inputs, training):
  """Reads its batches out of files."""
  names = v1.train.string_input_producer(['absent.txt'])
  _, line = v1.TextLineReader().read(names)
  return build(inputs, training) + tf.cast(tf.strings.length(line), tf.float32)


def build_of_placeholder(inputs, training):
  """Takes none of its inputs."""
  features = v1.placeholder(tf.float32, [None, 3], name='features')
  return build(features, training)


def build_with_keep_prob(inputs, training):
  """A setting that is fed."""
  keep_prob = v1.placeholder(tf.float32, [], name='keep_prob')
  return build(inputs, False) * keep_prob


def build_with_defaults(inputs, training):
  """Placeholders that nobody has to feed."""
  scale = v1.placeholder_with_default(2.0, [], name='scale')
  unread = v1.placeholder(tf.float32, [], name='unread')
  queue = v1.FIFOQueue(2, [tf.float32], [[]])
  queue.enqueue(unread)
  return build(inputs, training) * scale


def build_after_reset(inputs, training):
  """Starts as a script does."""
  v1.reset_default_graph()
  return build(inputs, training)


def build_of_classes(inputs, num_classes, is_training):
  """Takes one argument more."""
  return v1.layers.dense(inputs, num_classes)


def build_of_nothing():
  """Takes nothing."""
  return v1.get_variable('scale', [])


def build_of_keys(inputs, training):
  """Takes a dictionary."""
  return build(inputs['images'], training)


def build_ignoring(inputs, training):
  """Does the same in training."""
  return build(inputs, False)


def loss(outputs, labels):
  """Takes labels."""
  return tf.reduce_mean(tf.square(outputs - labels))


def loss_of_queue(outputs, labels):
  """Reads its labels by a queue."""
  queue = v1.train.batch([tf.zeros([2])], 4)
  return loss(outputs, queue)


def train_op(total):
  """Takes the loss."""
  return v1.train.GradientDescentOptimizer(0.1).minimize(total)


def optimizer():
  """Takes nothing."""
  return v1.train.GradientDescentOptimizer(0.1)
