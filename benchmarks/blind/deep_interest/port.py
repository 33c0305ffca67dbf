"""The right port of the deep interest network: a native model of Keras 3."""

import keras
import tensorflow as tf
from keras import layers, ops

ITEMS, CATS, USERS, DIM = 20, 6, 8, 4


class Dice(layers.Layer):
  def __init__(self, **kwargs):
    super().__init__(**kwargs)
    self.norm = layers.BatchNormalization(center=False, scale=False, epsilon=1e-9)

  def build(self, shape):
    self.norm.build(shape)
    self.slope = self.add_weight(shape=(shape[-1],), initializer='zeros', name='slope')

  def call(self, x, training=False):
    gate = ops.sigmoid(self.norm(x, training=training))
    return x * (gate + self.slope * (1 - gate))


class InterestPool(layers.Layer):
  """Attention of the candidate over the user's history."""

  def __init__(self, **kwargs):
    super().__init__(**kwargs)
    self.scorer = keras.Sequential(
      [layers.Dense(8, 'sigmoid'), layers.Dense(5, 'sigmoid'), layers.Dense(1)]
    )

  def call(self, candidate, history, lengths):
    steps = ops.shape(history)[1]
    candidate = ops.repeat(candidate[:, None], steps, axis=1)
    features = ops.concatenate([candidate, history, candidate - history, candidate * history], -1)
    scores = self.scorer(features)[..., 0]
    valid = ops.arange(steps)[None] < lengths[:, None]
    scores = ops.where(valid, scores, -(2.0**32) + 1)
    weights = ops.softmax(scores / history.shape[-1] ** 0.5, axis=-1)
    return ops.einsum('bt,bth->bh', weights, history)


class DIN(keras.Model):
  def __init__(self):
    super().__init__(name='ctr')
    uniform = keras.initializers.RandomUniform
    self.users = layers.Embedding(USERS, 2 * DIM, uniform(-0.1, 0.1), name='users')
    self.items = layers.Embedding(ITEMS, DIM, uniform(-0.1, 0.1), name='items')
    self.cats = layers.Embedding(CATS, DIM, uniform(-0.1, 0.1), name='cats')
    self.popularity = layers.Embedding(ITEMS, 1, 'zeros', name='popularity')
    self.pool = InterestPool(name='interest')
    self.hist_norm = layers.BatchNormalization(name='hist_norm')
    self.hist_dense = layers.Dense(2 * DIM, name='hist_dense')
    self.norm = layers.BatchNormalization(name='norm')
    self.hidden1, self.dice = layers.Dense(12, name='hidden1'), Dice(name='dice')
    self.hidden2 = layers.Dense(6, name='hidden2')
    self.prelu = layers.PReLU(alpha_initializer=keras.initializers.Constant(0.25), name='prelu')
    self.click = layers.Dense(1, name='click')

  def call(self, inputs, training=False):
    candidate = ops.concatenate([self.items(inputs['item']), self.cats(inputs['cate'])], -1)
    history = ops.concatenate([self.items(inputs['hist_item']), self.cats(inputs['hist_cate'])], -1)
    interest = self.pool(candidate, history, inputs['hist_len'])
    interest = self.hist_dense(self.hist_norm(interest, training=training))
    x = ops.concatenate([self.users(inputs['user']), interest, candidate, interest * candidate], -1)
    x = self.norm(x, training=training)
    x = self.dice(self.hidden1(x), training=training)
    x = self.prelu(self.hidden2(x))
    logits = self.click(x) + self.popularity(inputs['item'])
    return logits[:, 0]


def data_loss(logits, clicks):
  return keras.losses.BinaryCrossentropy(from_logits=True)(clicks, logits)


def table_decay(model):
  tables = [model.users, model.items, model.cats, model.popularity]
  return 1e-3 * sum(tf.nn.l2_loss(table.embeddings) for table in tables)


def make_optimizer():
  rate = keras.optimizers.schedules.PolynomialDecay(0.1, 4, 0.02, power=1.0)
  return keras.optimizers.Adagrad(rate, initial_accumulator_value=0.1, epsilon=0.0)


def train_step(model, inputs, clicks, optimizer):
  with tf.GradientTape() as tape:
    loss = data_loss(model(inputs, training=True), clicks) + table_decay(model)
  weights = model.trainable_variables
  gradients, _ = tf.clip_by_global_norm(tape.gradient(loss, weights), 0.3)
  optimizer.apply_gradients(zip(gradients, weights))
  return loss
