"""A text CNN with a highway layer, TF1 code of 2017.

After Kim 2014, 'Convolutional Neural Networks for Sentence Classification', and Srivastava, Greff,
Schmidhuber 2015, 'Highway Networks'. Written by a new user of tf2verify for a first case.
"""
import tensorflow.compat.v1 as tf

VOCAB, EMBED, CLASSES = 50, 8, 4
FILTER_SIZES, NUM_FILTERS = (2, 3, 4), 6
L2_LAMBDA, KEEP_PROB = 0.01, 0.6


def text_cnn(tokens, is_training):
  """tokens: [batch, length] int32, 0 is padding."""
  with tf.variable_scope('textcnn'):
    table = tf.get_variable('embedding', [VOCAB, EMBED], initializer=tf.random_uniform_initializer(-1.0, 1.0))
    mask = tf.to_float(tf.not_equal(tokens, 0))
    embedded = tf.nn.embedding_lookup(table, tokens) * tf.expand_dims(mask, -1)
    embedded = tf.expand_dims(embedded, -1)  # [batch, length, embed, 1]
    pooled = []
    for size in FILTER_SIZES:
      with tf.variable_scope('conv-maxpool-%d' % size):
        w = tf.get_variable('W', [size, EMBED, 1, NUM_FILTERS], initializer=tf.truncated_normal_initializer(stddev=0.1))
        b = tf.get_variable('b', [NUM_FILTERS], initializer=tf.constant_initializer(0.1))
        conv = tf.nn.conv2d(embedded, w, strides=[1, 1, 1, 1], padding='VALID')
        h = tf.nn.relu(tf.nn.bias_add(conv, b))
        pooled.append(tf.reduce_max(h, [1, 2]))
    net = tf.concat(pooled, 1)
    # highway
    size = NUM_FILTERS * len(FILTER_SIZES)
    g = tf.layers.dense(net, size, tf.nn.tanh, name='highway_h')
    t = tf.layers.dense(net, size, tf.sigmoid, bias_initializer=tf.constant_initializer(-2.0), name='highway_t')
    net = t * g + (1.0 - t) * net
    net = tf.layers.dropout(net, 1.0 - KEEP_PROB, training=is_training)
    return tf.layers.dense(net, CLASSES, name='output', kernel_regularizer=lambda w: L2_LAMBDA * tf.nn.l2_loss(w))


def loss(logits, labels):
  """labels: [batch] int32; label smoothing 0.1, weights by class (the rare class 3 counts twice)."""
  weights = 1.0 + tf.to_float(tf.equal(labels, 3))
  return tf.losses.softmax_cross_entropy(tf.one_hot(labels, CLASSES), logits, weights=weights, label_smoothing=0.1)


def train_op(total_loss):
  step = tf.train.get_or_create_global_step()
  rate = tf.train.exponential_decay(0.05, step, 2, 0.7, staircase=True)
  rate = rate * tf.minimum(1.0, tf.to_float(step + 1) / 3.0)  # warm-up
  optimizer = tf.train.MomentumOptimizer(rate, 0.9, use_nesterov=True)
  pairs = [(tf.clip_by_norm(g, 0.5), v) for g, v in optimizer.compute_gradients(total_loss)]
  return optimizer.apply_gradients(pairs, global_step=step)
