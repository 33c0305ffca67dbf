"""A small decoder-only transformer with tied softmax, TF1 code in the style of OpenAI's release.

After Radford et al. 2019, 'Language Models are Unsupervised Multitask Learners'; decoupled weight
decay after Loshchilov & Hutter 2017.
"""

import re

import numpy as np
import tensorflow.compat.v1 as tf

VOCAB, CONTEXT, WIDTH, HEADS, LAYERS = 31, 10, 16, 4, 2
PDROP = 0.1
PAD = 0


def shape_list(x):
  static = x.shape.as_list()
  dynamic = tf.shape(x)
  return [dynamic[i] if s is None else s for i, s in enumerate(static)]


def gelu(x):
  return 0.5 * x * (1 + tf.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * tf.pow(x, 3))))


def norm(x, scope, *, axis=-1, epsilon=1e-5):
  with tf.variable_scope(scope):
    n_state = shape_list(x)[-1]
    g = tf.get_variable('g', [n_state], initializer=tf.constant_initializer(1))
    b = tf.get_variable('b', [n_state], initializer=tf.constant_initializer(0))
    u = tf.reduce_mean(x, axis=axis, keepdims=True)
    s = tf.reduce_mean(tf.square(x - u), axis=axis, keepdims=True)
    x = (x - u) * tf.rsqrt(s + epsilon)
    return x * g + b


def dropout(x, pdrop, training):
  if training and pdrop > 0:
    x = tf.nn.dropout(x, keep_prob=1 - pdrop)
  return x


def conv1d(x, scope, nf, *, w_init_stdev=0.02):
  with tf.variable_scope(scope):
    *start, nx = shape_list(x)
    w = tf.get_variable(
      'w', [1, nx, nf], initializer=tf.random_normal_initializer(stddev=w_init_stdev)
    )
    b = tf.get_variable('b', [nf], initializer=tf.constant_initializer(0))
    c = tf.matmul(tf.reshape(x, [-1, nx]), tf.reshape(w, [-1, nf])) + b
    return tf.reshape(c, start + [nf])


def attention_mask(nd, ns, *, dtype):
  i = tf.range(nd)[:, None]
  j = tf.range(ns)
  return tf.cast(i >= j - ns + nd, dtype)


def split_heads(x):
  *start, m = shape_list(x)
  return tf.transpose(tf.reshape(x, start + [HEADS, m // HEADS]), [0, 2, 1, 3])


def merge_heads(x):
  x = tf.transpose(x, [0, 2, 1, 3])
  *start, a, b = shape_list(x)
  return tf.reshape(x, start + [a * b])


def attn(x, scope, training):
  with tf.variable_scope(scope):
    c = conv1d(x, 'c_attn', 3 * WIDTH)
    q, k, v = map(split_heads, tf.split(c, 3, axis=2))
    w = tf.matmul(q, k, transpose_b=True)
    w = w * tf.rsqrt(tf.cast(shape_list(v)[-1], w.dtype))
    _, _, nd, ns = shape_list(w)
    b = tf.reshape(attention_mask(nd, ns, dtype=w.dtype), [1, 1, nd, ns])
    w = w * b - tf.cast(1e10, w.dtype) * (1 - b)
    w = dropout(tf.nn.softmax(w), PDROP, training)
    a = merge_heads(tf.matmul(w, v))
    a = conv1d(a, 'c_proj', WIDTH, w_init_stdev=0.02 / np.sqrt(2 * LAYERS))
    return dropout(a, PDROP, training)


def mlp(x, scope, training):
  with tf.variable_scope(scope):
    h = gelu(conv1d(x, 'c_fc', 4 * WIDTH))
    h = conv1d(h, 'c_proj', WIDTH, w_init_stdev=0.02 / np.sqrt(2 * LAYERS))
    return dropout(h, PDROP, training)


def block(x, scope, training):
  with tf.variable_scope(scope):
    x = x + attn(norm(x, 'ln_1'), 'attn', training)
    return x + mlp(norm(x, 'ln_2'), 'mlp', training)


def gpt(tokens, training):
  with tf.variable_scope('model'):
    wpe = tf.get_variable(
      'wpe', [CONTEXT, WIDTH], initializer=tf.random_normal_initializer(stddev=0.01)
    )
    wte = tf.get_variable(
      'wte', [VOCAB, WIDTH], initializer=tf.random_normal_initializer(stddev=0.02)
    )
    seen = tf.get_variable(
      'tokens_seen', [], initializer=tf.zeros_initializer(), trainable=False
    )
    if training:
      count = tf.reduce_sum(tf.cast(tf.not_equal(tokens, PAD), tf.float32))
      tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, tf.assign_add(seen, count))
    batch, length = shape_list(tokens)
    h = dropout(tf.gather(wte, tokens) + wpe[:length], PDROP, training)
    for layer in range(LAYERS):
      h = block(h, 'h%d' % layer, training)
    h = norm(h, 'ln_f')
    h_flat = tf.reshape(h, [batch * length, WIDTH])
    logits = tf.matmul(h_flat, wte, transpose_b=True)
    return tf.reshape(logits, [batch, length, VOCAB])


def lm_loss(logits, tokens):
  targets = tokens[:, 1:]
  losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=targets, logits=logits[:, :-1])
  mask = tf.cast(tf.not_equal(targets, PAD), tf.float32)
  per_sequence = tf.reduce_sum(losses * mask, 1) / tf.maximum(tf.reduce_sum(mask, 1), 1.0)
  log_z = tf.reduce_logsumexp(logits[:, :-1], axis=-1)
  z_loss = 1e-2 * tf.reduce_sum(tf.square(log_z) * mask) / tf.maximum(tf.reduce_sum(mask), 1.0)
  return {'loss': tf.reduce_mean(per_sequence) + z_loss, 'z_loss': z_loss}


def learning_rate(step, base=0.02, warmup=2, total=8):
  warm = base * (tf.cast(step, tf.float32) + 1.0) / warmup
  cosine = tf.train.cosine_decay(base, step - warmup, total - warmup, alpha=0.1)
  return tf.where(step < warmup, warm, cosine)


def train_op(loss):
  step = tf.train.get_or_create_global_step()
  rate = learning_rate(step)
  variables = tf.trainable_variables()
  with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
    grads = tf.gradients(loss, variables)
  grads, _ = tf.clip_by_global_norm(grads, 0.5)
  with tf.control_dependencies(grads):
    decayed = [v for v in variables if re.search(r'/w:0$', v.name)]
    decay = [v.assign_sub(rate * 0.1 * v) for v in decayed]
  optimizer = tf.train.AdamOptimizer(rate, beta1=0.9, beta2=0.95, epsilon=1e-8)
  with tf.control_dependencies(decay):
    return optimizer.apply_gradients(zip(grads, variables), global_step=step)
