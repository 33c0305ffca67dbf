"""The right port of the small GPT: native layers of Keras 3."""

import math

import keras
import tensorflow as tf
from keras import ops

VOCAB, CONTEXT, WIDTH, HEADS, LAYERS = 31, 10, 16, 4, 2
DROPOUT = 0.1
PAD = 0


def normal(stddev):
  return keras.initializers.RandomNormal(stddev=stddev)


class CausalSelfAttention(keras.layers.Layer):
  def __init__(self, width, heads, dropout, **kwargs):
    super().__init__(**kwargs)
    self.width, self.heads = width, heads
    self.c_attn = keras.layers.Conv1D(
      3 * width, 1, kernel_initializer=normal(0.02), name='c_attn'
    )
    self.c_proj = keras.layers.Conv1D(
      width, 1, kernel_initializer=normal(0.02 / math.sqrt(2 * LAYERS)), name='c_proj'
    )
    self.attn_dropout = keras.layers.Dropout(dropout, name='attn_dropout')
    self.resid_dropout = keras.layers.Dropout(dropout, name='resid_dropout')

  def split_heads(self, x):
    batch, length = ops.shape(x)[0], ops.shape(x)[1]
    x = ops.reshape(x, (batch, length, self.heads, self.width // self.heads))
    return ops.transpose(x, (0, 2, 1, 3))

  def call(self, x, training=False):
    batch, length = ops.shape(x)[0], ops.shape(x)[1]
    query, key, value = ops.split(self.c_attn(x), 3, axis=-1)
    query, key, value = self.split_heads(query), self.split_heads(key), self.split_heads(value)
    scores = ops.matmul(query, ops.transpose(key, (0, 1, 3, 2)))
    scores = scores / math.sqrt(self.width // self.heads)
    positions = ops.arange(length)
    causal = positions[:, None] >= positions[None, :]
    scores = ops.where(causal, scores, -1e10)
    weights = ops.softmax(scores, axis=-1)
    weights = self.attn_dropout(weights, training=training)
    x = ops.transpose(ops.matmul(weights, value), (0, 2, 1, 3))
    x = ops.reshape(x, (batch, length, self.width))
    return self.resid_dropout(self.c_proj(x), training=training)


class Mlp(keras.layers.Layer):
  def __init__(self, width, dropout, **kwargs):
    super().__init__(**kwargs)
    self.c_fc = keras.layers.Conv1D(4 * width, 1, kernel_initializer=normal(0.02), name='c_fc')
    self.c_proj = keras.layers.Conv1D(
      width, 1, kernel_initializer=normal(0.02 / math.sqrt(2.0 * LAYERS)), name='c_proj'
    )
    self.dropout = keras.layers.Dropout(dropout, name='dropout')

  def call(self, x, training=False):
    x = keras.activations.gelu(self.c_fc(x), approximate=True)
    return self.dropout(self.c_proj(x), training=training)


class Block(keras.layers.Layer):
  def __init__(self, width, heads, dropout, **kwargs):
    super().__init__(**kwargs)
    self.ln_1 = keras.layers.LayerNormalization(epsilon=1e-5, name='ln_1')
    self.attn = CausalSelfAttention(width, heads, dropout, name='attn')
    self.ln_2 = keras.layers.LayerNormalization(epsilon=1e-5, name='ln_2')
    self.mlp = Mlp(width, dropout, name='mlp')

  def call(self, x, training=False):
    x = x + self.attn(self.ln_1(x), training=training)
    x = x + self.mlp(self.ln_2(x), training=training)
    return x


class GPT(keras.Model):
  def __init__(self, **kwargs):
    super().__init__(**kwargs)
    self.embedding_dropout = keras.layers.Dropout(DROPOUT)
    self.blocks = [Block(WIDTH, HEADS, DROPOUT, name=f'h{i}') for i in range(LAYERS)]
    self.ln_f = keras.layers.LayerNormalization(epsilon=0.00001, name='ln_f')

  def build(self, input_shape):
    self.wpe = self.add_weight(
      name='wpe', shape=(CONTEXT, WIDTH), initializer=normal(0.01)
    )
    self.wte = self.add_weight(
      name='wte', shape=(VOCAB, WIDTH), initializer=keras.initializers.RandomNormal(0.0, 0.02)
    )
    self.tokens_seen = self.add_weight(
      name='tokens_seen', shape=(), initializer='zeros', trainable=False
    )
    self.built = True

  def call(self, tokens, training=False):
    if training:
      count = ops.sum(ops.cast(ops.not_equal(tokens, PAD), 'float32'))
      self.tokens_seen.assign_add(count)
    length = ops.shape(tokens)[1]
    x = ops.take(self.wte, tokens, axis=0) + self.wpe[:length]
    x = self.embedding_dropout(x, training=training)
    for block in self.blocks:
      x = block(x, training=training)
    x = self.ln_f(x)
    return ops.matmul(x, ops.transpose(self.wte))


def lm_loss(logits, tokens):
  targets = tokens[:, 1:]
  logits = logits[:, :-1]
  losses = keras.losses.sparse_categorical_crossentropy(targets, logits, from_logits=True)
  mask = ops.cast(ops.not_equal(targets, PAD), 'float32')
  lengths = ops.maximum(ops.sum(mask, axis=1), 1.0)
  per_sequence = ops.sum(losses * mask, axis=1) / lengths
  log_z = ops.logsumexp(logits, axis=-1)
  z_loss = 1e-2 * ops.sum(ops.square(log_z) * mask) / ops.maximum(ops.sum(mask), 1.0)
  return {'loss': ops.mean(per_sequence) + z_loss, 'z_loss': z_loss}


class WarmupCosine(keras.optimizers.schedules.LearningRateSchedule):
  def __init__(self, base=0.02, warmup=2, total=8):
    self.base, self.warmup = base, warmup
    self.cosine = keras.optimizers.schedules.CosineDecay(base, total - warmup, alpha=0.1)

  def __call__(self, step):
    step = ops.cast(step, 'float32')
    warm = self.base * (step + 1.0) / self.warmup
    return ops.where(step < self.warmup, warm, self.cosine(step - self.warmup))


def make_optimizer():
  optimizer = keras.optimizers.AdamW(
    WarmupCosine(),
    weight_decay=0.1,
    beta_1=0.9,
    beta_2=0.95,
    epsilon=1e-8,
    global_clipnorm=0.5,
  )
  optimizer.exclude_from_weight_decay(var_names=['bias', 'gamma', 'beta', 'wte', 'wpe'])
  return optimizer


def train_step(model, tokens, labels, optimizer):
  with tf.GradientTape() as tape:
    logits = model(tokens, training=True)
    loss = lm_loss(logits, labels)['loss']
  gradients = tape.gradient(loss, model.trainable_variables)
  optimizer.apply_gradients(zip(gradients, model.trainable_variables))
  return loss
