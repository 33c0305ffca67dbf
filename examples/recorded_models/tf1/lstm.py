"""A recurrent classifier of sequences: an LSTM with peepholes, Adam with clipped gradients."""

import tensorflow as tf


class SequenceClassifier(object):
  def __init__(self, num_units, num_classes):
    self.num_units = num_units
    self.num_classes = num_classes

  def cell(self):
    return tf.nn.rnn_cell.LSTMCell(self.num_units, use_peepholes=True, forget_bias=1.0)

  def __call__(self, features, is_training):
    steps, lengths = features['steps'], features['lengths']
    with tf.variable_scope('classifier', initializer=tf.random_uniform_initializer(-0.5, 0.5)):
      outputs, state = tf.nn.dynamic_rnn(
        self.cell(), steps, sequence_length=lengths, dtype=tf.float32
      )
      last = state.h
      if is_training:
        last = tf.nn.dropout(last, keep_prob=0.5)
      logits = tf.layers.dense(last, self.num_classes, name='logits')
    return {'logits': logits, 'outputs': outputs}


def build(features, is_training):
  return SequenceClassifier(6, 3)(features, is_training)


def loss(outputs, labels):
  return tf.reduce_mean(
    tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=outputs['logits'])
  )


def train_op(total_loss):
  variables = tf.trainable_variables()
  gradients, _ = tf.clip_by_global_norm(tf.gradients(total_loss, variables), 0.5)
  optimizer = tf.train.AdamOptimizer(0.01)
  return optimizer.apply_gradients(
    zip(gradients, variables), global_step=tf.train.get_or_create_global_step()
  )
