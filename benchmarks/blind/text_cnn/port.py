"""The right port of the text CNN: a native model of Keras 3, with TF1's momentum."""
import keras
import tensorflow as tf
from keras import layers, ops

VOCAB, EMBED, CLASSES = 50, 8, 4
FILTER_SIZES, NUM_FILTERS = (2, 3, 4), 6
L2_LAMBDA, KEEP_PROB = 0.01, 0.6


class TextCNN(keras.Model):
  def __init__(self):
    super().__init__(name='textcnn')
    self.embedding = layers.Embedding(VOCAB, EMBED, embeddings_initializer=keras.initializers.RandomUniform(-1.0, 1.0))
    self.convs = [
      layers.Conv1D(
        NUM_FILTERS, size, activation='relu', name=f'conv_{size}',
        kernel_initializer=keras.initializers.TruncatedNormal(stddev=0.1),
        bias_initializer=keras.initializers.Constant(0.1),
      )
      for size in FILTER_SIZES
    ]
    self.pool = layers.GlobalMaxPooling1D()
    size = NUM_FILTERS * len(FILTER_SIZES)
    self.highway_h = layers.Dense(size, 'tanh', name='highway_h')
    self.highway_t = layers.Dense(size, 'sigmoid', bias_initializer=keras.initializers.Constant(-2.0), name='highway_t')
    self.dropout = layers.Dropout(1.0 - KEEP_PROB)
    self.out = layers.Dense(CLASSES, kernel_regularizer=keras.regularizers.L2(L2_LAMBDA / 2), name='output')

  def call(self, tokens, training=False):
    mask = ops.cast(ops.not_equal(tokens, 0), 'float32')
    x = self.embedding(tokens) * ops.expand_dims(mask, -1)
    net = ops.concatenate([self.pool(conv(x)) for conv in self.convs], axis=-1)
    t = self.highway_t(net)
    net = t * self.highway_h(net) + (1.0 - t) * net
    net = self.dropout(net, training=training)
    return self.out(net)


def loss(logits, labels):
  each = keras.losses.CategoricalCrossentropy(from_logits=True, label_smoothing=0.1)
  weights = 1.0 + ops.cast(ops.equal(labels, 3), 'float32')
  return each(ops.one_hot(labels, CLASSES), logits, sample_weight=weights)


class WarmupDecay(keras.optimizers.schedules.LearningRateSchedule):
  def __init__(self):
    self.decay = keras.optimizers.schedules.ExponentialDecay(0.05, 2, 0.7, staircase=True)

  def __call__(self, step):
    return self.decay(step) * ops.minimum(1.0, ops.cast(step + 1, 'float32') / 3.0)

  def get_config(self):
    return {}


class TF1Momentum(keras.optimizers.SGD):
  def update_step(self, gradient, variable, learning_rate):
    rate = ops.cast(learning_rate, variable.dtype)
    if isinstance(gradient, tf.IndexedSlices):  # only the rows of the batch move, as in TF1
      momentum = self.momentums[self._get_variable_index(variable)].value
      rows, where = tf.unique(gradient.indices)
      gradient = tf.math.unsorted_segment_sum(gradient.values, where, tf.size(rows))
      moved = self.momentum * tf.gather(momentum, rows) + gradient
      momentum.scatter_update(tf.IndexedSlices(moved, rows))
      variable.scatter_sub(tf.IndexedSlices(rate * (gradient + self.momentum * moved), rows))
      return
    momentum = self.momentums[self._get_variable_index(variable)]
    self.assign(momentum, self.momentum * momentum + gradient)
    self.assign_sub(variable, rate * (gradient + self.momentum * momentum))


def optimizer():
  return TF1Momentum(WarmupDecay(), momentum=0.9, nesterov=True, clipnorm=0.5)
