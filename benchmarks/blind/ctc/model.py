"""A small speech recognizer, TF1 code of 2017.

After Amodei et al. 2015, 'Deep Speech 2' (strided convolutions with batch norm before recurrent
layers), Graves et al. 2006, 'Connectionist Temporal Classification', and Sak et al. 2014, 'Long
Short-Term Memory Recurrent Neural Network Architectures' (cells with a recurrent projection).
"""

import tensorflow.compat.v1 as tf

FLAGS = {
    'filters': (4, 6),
    'cells': 8,
    'projected': 5,
    'cell_clip': 0.4,
    'symbols': 6,  # without the blank, which is the last one
    'dropout': 0.3,
    'l2': 2e-3,
    'clip': 0.25,
    'rate': 0.02,
}


def l2(weights):
  return FLAGS['l2'] * tf.nn.l2_loss(weights)


def time_mask(lengths, like):
  return tf.sequence_mask(lengths, tf.shape(like)[1], dtype=tf.float32)


def normalize(features, lengths):
  """Cepstral mean and variance of each utterance."""
  mask = time_mask(lengths, features)[:, :, None]
  count = tf.to_float(lengths)[:, None, None]
  mean = tf.reduce_sum(features * mask, 1, keepdims=True) / count
  centered = (features - mean) * mask
  variance = tf.reduce_sum(tf.square(centered), 1, keepdims=True) / count
  return centered * tf.rsqrt(variance + 1e-3)


def conv(net, lengths, filters, size, strides, name, training):
  with tf.variable_scope(name):
    net = tf.layers.conv2d(
        net, filters, size, strides=strides, padding='same', use_bias=False,
        kernel_regularizer=l2, name='conv')
    net = tf.layers.batch_normalization(
        net, momentum=0.95, epsilon=1e-5, training=training, name='bn')
    lengths = (lengths + strides[0] - 1) // strides[0]
    net = tf.nn.relu6(net) * time_mask(lengths, net)[:, :, None, None]
    return net, lengths


def cell():
  return tf.nn.rnn_cell.LSTMCell(
      FLAGS['cells'], num_proj=FLAGS['projected'], cell_clip=FLAGS['cell_clip'])


def recognizer(inputs, training):
  lengths = inputs['lengths']
  with tf.variable_scope('recognizer'):
    net = normalize(inputs['features'], lengths)[:, :, :, None]
    net, lengths = conv(net, lengths, FLAGS['filters'][0], (5, 3), (2, 2), 'conv_0', training)
    net, lengths = conv(net, lengths, FLAGS['filters'][1], (3, 3), (2, 2), 'conv_1', training)
    shape = tf.shape(net)
    net = tf.reshape(net, [shape[0], shape[1], int(net.shape[2]) * int(net.shape[3])])
    with tf.variable_scope('rnn', initializer=tf.random_uniform_initializer(-0.3, 0.3)):
      both, _ = tf.nn.bidirectional_dynamic_rnn(
          cell(), cell(), net, sequence_length=lengths, dtype=tf.float32)
    net = tf.concat(both, 2)
    # the same units for the whole utterance
    net = tf.layers.dropout(
        net, FLAGS['dropout'], noise_shape=[shape[0], 1, 2 * FLAGS['projected']], training=training)
    logits = tf.layers.dense(net, FLAGS['symbols'] + 1, kernel_regularizer=l2, name='logits')
  outputs = {'logits': tf.transpose(logits, [1, 0, 2]), 'lengths': lengths}
  if not training:
    outputs['probabilities'] = tf.nn.softmax(outputs['logits'])
  return outputs


def recognizer_loss(outputs, labels):
  """By symbol of the transcript; repetitions are not told apart."""
  present = tf.where(tf.sequence_mask(labels['lengths'], int(labels['symbols'].shape[1])))
  sparse = tf.SparseTensor(
      present, tf.gather_nd(labels['symbols'], present),
      tf.shape(labels['symbols'], out_type=tf.int64))
  each = tf.nn.ctc_loss(
      sparse, outputs['logits'], outputs['lengths'], preprocess_collapse_repeated=True)
  return tf.reduce_mean(each / tf.to_float(labels['lengths']))


def train_op(loss):
  step = tf.train.get_or_create_global_step()
  rate = tf.train.exponential_decay(FLAGS['rate'], step, 2, 0.7, staircase=True)
  optimizer = tf.train.AdamOptimizer(rate)
  gradients, variables = zip(*optimizer.compute_gradients(loss))
  gradients, _ = tf.clip_by_global_norm(gradients, FLAGS['clip'])
  with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
    return optimizer.apply_gradients(zip(gradients, variables), global_step=step)
