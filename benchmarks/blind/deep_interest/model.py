"""The deep interest network, TF1 code of 2018 with `tf.layers`.

After Zhou, Zhu, Song and others 2018, 'Deep Interest Network for Click-Through Rate Prediction':
attention of the candidate over the user's history, Dice and PReLU, and Adagrad with weight decay of
the tables alone.
"""

import tensorflow.compat.v1 as tf

ITEMS, CATS, USERS, DIM = 20, 6, 8, 4


def dice(x, training, name):
  with tf.variable_scope(name):
    alphas = tf.get_variable('alpha', [x.shape[-1]], initializer=tf.constant_initializer(0.0))
    normed = tf.layers.batch_normalization(
      x, center=False, scale=False, epsilon=1e-9, training=training, name='bn'
    )
    p = tf.sigmoid(normed)
    return alphas * (1.0 - p) * x + p * x


def prelu(x, name):
  with tf.variable_scope(name):
    alphas = tf.get_variable('alpha', [x.shape[-1]], initializer=tf.constant_initializer(0.25))
    return tf.maximum(0.0, x) + alphas * tf.minimum(0.0, x)


def attention(query, keys, lengths):
  """query [B, H], keys [B, T, H], lengths [B]."""
  t = tf.shape(keys)[1]
  q = tf.tile(tf.expand_dims(query, 1), [1, t, 1])
  net = tf.concat([q, keys, q - keys, q * keys], axis=-1)
  net = tf.layers.dense(net, 8, activation=tf.nn.sigmoid, name='f1_att')
  net = tf.layers.dense(net, 5, activation=tf.nn.sigmoid, name='f2_att')
  scores = tf.reshape(tf.layers.dense(net, 1, name='f3_att'), [-1, 1, t])
  mask = tf.expand_dims(tf.sequence_mask(lengths, t), 1)
  scores = tf.where(mask, scores, tf.ones_like(scores) * (-(2.0**32) + 1))
  scores = tf.nn.softmax(scores / (int(keys.shape[-1]) ** 0.5))
  return tf.squeeze(tf.matmul(scores, keys), 1)


def din(inputs, training):
  init = tf.random_uniform_initializer(-0.1, 0.1)
  with tf.variable_scope('din'):
    user_w = tf.get_variable('user_w', [USERS, 2 * DIM], initializer=init)
    item_w = tf.get_variable('item_w', [ITEMS, DIM], initializer=init)
    cate_w = tf.get_variable('cate_w', [CATS, DIM], initializer=init)
    item_b = tf.get_variable('item_b', [ITEMS], initializer=tf.constant_initializer(0.0))
    user = tf.nn.embedding_lookup(user_w, inputs['user'])
    query = tf.concat(
      [
        tf.nn.embedding_lookup(item_w, inputs['item']),
        tf.nn.embedding_lookup(cate_w, inputs['cate']),
      ],
      1,
    )
    keys = tf.concat(
      [
        tf.nn.embedding_lookup(item_w, inputs['hist_item']),
        tf.nn.embedding_lookup(cate_w, inputs['hist_cate']),
      ],
      2,
    )
    hist = attention(query, keys, inputs['hist_len'])
    hist = tf.layers.batch_normalization(hist, training=training, name='hist_bn')
    hist = tf.layers.dense(hist, 2 * DIM, name='hist_fcn')
    net = tf.concat([user, hist, query, hist * query], -1)
    net = tf.layers.batch_normalization(net, training=training, name='b1')
    net = dice(tf.layers.dense(net, 12, name='f1'), training, 'dice')
    net = prelu(tf.layers.dense(net, 6, name='f2'), 'prelu')
    net = tf.layers.dense(net, 1, name='f3')
    return tf.squeeze(net, 1) + tf.gather(item_b, inputs['item'])


def loss(logits, clicks):
  return tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(logits=logits, labels=clicks))


def total_loss(data_loss):
  tables = [
    v
    for v in tf.trainable_variables()
    if v.op.name.split('/')[-1] in ('user_w', 'item_w', 'cate_w', 'item_b')
  ]
  return data_loss + 1e-3 * tf.add_n([tf.nn.l2_loss(v) for v in tables])


def train_op(loss):
  step = tf.train.get_or_create_global_step()
  rate = tf.train.polynomial_decay(0.1, step, 4, 0.02, power=1.0)
  optimizer = tf.train.AdagradOptimizer(rate)
  tvars = tf.trainable_variables()
  grads, _ = tf.clip_by_global_norm(tf.gradients(loss, tvars), 0.3)
  with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
    return optimizer.apply_gradients(zip(grads, tvars), global_step=step)
