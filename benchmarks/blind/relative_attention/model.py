"""A language model block with relative position attention and memory, TF1 code.

After Dai et al. 2019, 'Transformer-XL: Attentive Language Models beyond a Fixed-Length Context'.
"""

import tensorflow.compat.v1 as tf

VOCAB = 19
DIM = 12
HEADS = 3
HEAD = 4
FILTER = 20
CLAMP = 6
KEEP_PROB = 0.8

PEAK = 0.01
WARMUP = 2
TOTAL = 8


def dropout(x, training):
  return tf.nn.dropout(x, keep_prob=KEEP_PROB) if training else x


def layer_norm(x, name, epsilon=1e-6):
  with tf.variable_scope(name):
    size = x.shape.as_list()[-1]
    gamma = tf.get_variable('gamma', [size], initializer=tf.ones_initializer())
    beta = tf.get_variable('beta', [size], initializer=tf.zeros_initializer())
    mean, variance = tf.nn.moments(x, [-1], keep_dims=True)
    return (x - mean) * tf.rsqrt(variance + epsilon) * gamma + beta


def relative_positions(klen):
  pos = tf.cast(tf.range(klen - 1, -1, -1), tf.float32)
  pos = tf.minimum(pos, float(CLAMP))
  inv_freq = 1.0 / (10000.0 ** (tf.range(0.0, DIM, 2.0) / DIM))
  angles = pos[:, None] * inv_freq[None, :]
  return tf.concat([tf.sin(angles), tf.cos(angles)], -1)


def rel_shift(x):
  b, h, q, k = tf.unstack(tf.shape(x))
  x = tf.pad(x, [[0, 0], [0, 0], [0, 0], [1, 0]])
  x = tf.reshape(x, [b, h, k + 1, q])[:, :, 1:, :]
  return tf.reshape(x, [b, h, q, k])


def split_heads(x):
  shape = tf.shape(x)
  return tf.transpose(tf.reshape(x, [shape[0], shape[1], HEADS, HEAD]), [0, 2, 1, 3])


def relative_attention(x, memory, memory_mask, training):
  normal = tf.random_normal_initializer(stddev=0.02)
  with tf.variable_scope('attention', initializer=normal):
    qlen, mlen = tf.shape(x)[1], tf.shape(memory)[1]
    context = tf.concat([memory, x], 1)
    pos = dropout(relative_positions(qlen + mlen), training)

    heads = tf.layers.dense(context, 3 * HEADS * HEAD, use_bias=False, name='qkv')
    q, k, v = tf.split(heads, 3, -1)
    q, k, v = split_heads(q[:, -qlen:]), split_heads(k), split_heads(v)
    r = tf.layers.dense(pos, HEADS * HEAD, use_bias=False, name='r')
    r = tf.reshape(r, [-1, HEADS, HEAD])

    r_w_bias = tf.get_variable('r_w_bias', [HEADS, HEAD])
    r_r_bias = tf.get_variable('r_r_bias', [HEADS, HEAD])
    content = tf.matmul(q + r_w_bias[None, :, None, :], k, transpose_b=True)
    position = tf.einsum('bhid,jhd->bhij', q + r_r_bias[None, :, None, :], r)
    scores = (content + rel_shift(position)) * HEAD**-0.5

    future = 1.0 - tf.matrix_band_part(tf.ones([qlen, qlen]), -1, 0)
    hidden = tf.tile((1.0 - memory_mask)[:, None, :], [1, qlen, 1])
    mask = tf.concat([hidden, tf.tile(future[None], [tf.shape(x)[0], 1, 1])], 2)[:, None]
    scores = scores * (1.0 - mask) - 1e30 * mask

    weights = dropout(tf.nn.softmax(scores), training)
    out = tf.transpose(tf.matmul(weights, v), [0, 2, 1, 3])
    out = tf.reshape(out, [tf.shape(x)[0], qlen, HEADS * HEAD])
    out = tf.layers.dense(out, DIM, use_bias=False, name='o')
    return layer_norm(x + dropout(out, training), 'layer_norm')


def feed_forward(x, training):
  with tf.variable_scope('ffn'):
    decay = lambda w: 0.01 * tf.nn.l2_loss(w)
    out = tf.layers.dense(x, FILTER, tf.nn.relu, kernel_regularizer=decay, name='layer_1')
    out = dropout(out, training)
    out = tf.layers.dense(out, DIM, kernel_regularizer=decay, name='layer_2')
    return layer_norm(x + dropout(out, training), 'layer_norm')


def language_model(ids, previous, memory_mask, training):
  with tf.variable_scope('transformer'):
    initializer = tf.random_normal_initializer(stddev=DIM**-0.5)
    table = tf.get_variable('embedding', [VOCAB, DIM], initializer=initializer)
    x = dropout(tf.nn.embedding_lookup(table, ids) * DIM**0.5, training)
    memory = tf.stop_gradient(tf.nn.embedding_lookup(table, previous) * DIM**0.5)
    new_memory = tf.concat([memory, x], 1)[:, -tf.shape(memory)[1]:]

    x = relative_attention(x, memory, memory_mask, training)
    x = feed_forward(x, training)
    bias = tf.get_variable('softmax_bias', [VOCAB], initializer=tf.zeros_initializer())
    logits = tf.einsum('btd,vd->btv', x, table) + bias
    return {'logits': logits, 'memory': tf.stop_gradient(new_memory)}


def lm_loss(logits, targets, weights):
  return tf.losses.sparse_softmax_cross_entropy(targets, logits, weights=weights)


def train_op(loss):
  step = tf.train.get_or_create_global_step()
  rate = tf.cond(
    step < WARMUP,
    lambda: PEAK * tf.cast(step + 1, tf.float32) / WARMUP,
    lambda: tf.train.cosine_decay(PEAK, step - WARMUP, TOTAL - WARMUP, alpha=0.1),
  )
  optimizer = tf.train.AdamOptimizer(rate, beta1=0.9, beta2=0.98, epsilon=1e-8)
  grads, tvars = zip(*optimizer.compute_gradients(loss))
  grads, _ = tf.clip_by_global_norm(grads, 0.25)
  update = optimizer.apply_gradients(zip(grads, tvars), global_step=step)
  with tf.control_dependencies([update]):
    ema = tf.train.ExponentialMovingAverage(0.999, num_updates=step)
    return ema.apply(tvars)
