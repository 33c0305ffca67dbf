"""The right port of the speech recognizer: a native model of Keras 3."""

import keras
import tensorflow as tf
from keras import ops

CONVOLUTIONS = ((4, (5, 3)), (6, (3, 3)))
STRIDE = 2
CELLS = 8
PROJECTED = 5
CELL_LIMIT = 0.4
BLANK = 6
DROPPED = 0.3
L2 = 2e-3
CLIP_NORM = 0.25


def l2():
  """Half the sum of squares."""
  return keras.regularizers.L2(L2 / 2.0)


def uniform():
  return keras.initializers.RandomUniform(-0.3, 0.3)


def time_mask(lengths, x):
  """[batch, time]: whether a frame is of the utterance."""
  return ops.arange(x.shape[1], dtype='int32') < lengths[:, None]


def normalize(features, lengths):
  mask = ops.cast(time_mask(lengths, features), 'float32')[:, :, None]
  count = ops.cast(lengths, 'float32')[:, None, None]
  mean = ops.sum(features * mask, axis=1, keepdims=True) / count
  centered = (features - mean) * mask
  variance = ops.sum(ops.square(centered), axis=1, keepdims=True) / count
  return centered * ops.rsqrt(variance + 1e-3)


class BatchNorm(keras.layers.Layer):
  """TF1's fused batch norm: the moving variance is that of the unbiased one."""

  def __init__(self, momentum=0.95, epsilon=1e-5, **kwargs):
    super().__init__(**kwargs)
    self.momentum = momentum
    self.epsilon = epsilon

  def build(self, input_shape):
    shape = (input_shape[-1],)
    self.gamma = self.add_weight(shape=shape, initializer='ones', name='gamma')
    self.beta = self.add_weight(shape=shape, initializer='zeros', name='beta')
    self.mean = self.add_weight(shape=shape, initializer='zeros', trainable=False, name='mean')
    self.variance = self.add_weight(
      shape=shape, initializer='ones', trainable=False, name='variance'
    )

  def average(self, moving, value):
    moving.assign(self.momentum * moving + (1.0 - self.momentum) * value)

  def call(self, inputs, training=False):
    mean, variance = self.mean, self.variance
    if training:
      mean, variance = ops.moments(inputs, axes=(0, 1, 2))
      count = inputs.shape[0] * inputs.shape[1] * inputs.shape[2]
      self.average(self.mean, mean)
      self.average(self.variance, variance * (count / (count - 1)))
    scale = self.gamma * ops.rsqrt(variance + self.epsilon)
    return (inputs - mean) * scale + self.beta


class ConvBlock(keras.layers.Layer):
  def __init__(self, filters, size, **kwargs):
    super().__init__(**kwargs)
    self.conv = keras.layers.Conv2D(
      filters,
      size,
      strides=STRIDE,
      padding='same',
      use_bias=False,
      kernel_regularizer=l2(),
      name='conv',
    )
    self.norm = BatchNorm(name='norm')

  def build(self, input_shape):
    self.conv.build(input_shape)
    self.norm.build(self.conv.compute_output_shape(input_shape))

  def call(self, inputs, lengths, training=False):
    x = ops.relu6(self.norm(self.conv(inputs), training=training))
    lengths = (lengths + STRIDE - 1) // STRIDE
    mask = ops.cast(time_mask(lengths, x), x.dtype)
    return x * mask[:, :, None, None], lengths


class ProjectedLSTMCell(keras.layers.Layer):
  """tf.nn.rnn_cell.LSTMCell(num_proj=..., cell_clip=...): gates in the order i, j, f, o."""

  def __init__(self, units, projected, **kwargs):
    super().__init__(**kwargs)
    self.units = units
    self.projected = projected
    self.state_size = [units, projected]
    self.output_size = projected

  def build(self, input_shape):
    rows = input_shape[-1] + self.projected
    self.kernel = self.add_weight(
      shape=(rows, 4 * self.units), initializer=uniform(), name='kernel'
    )
    self.bias = self.add_weight(shape=(4 * self.units,), initializer='zeros', name='bias')
    self.projection = self.add_weight(
      shape=(self.units, self.projected),
      initializer=uniform(),
      name='projection',
    )

  def call(self, inputs, states):
    carry, hidden = states
    both = ops.concatenate([inputs, hidden], axis=-1)
    i, j, f, o = ops.split(ops.matmul(both, self.kernel) + self.bias, 4, axis=-1)
    carry = ops.sigmoid(f + 1.0) * carry + ops.sigmoid(i) * ops.tanh(j)
    carry = ops.clip(carry, -CELL_LIMIT, CELL_LIMIT)
    hidden = ops.matmul(ops.sigmoid(o) * ops.tanh(carry), self.projection)
    return hidden, [carry, hidden]


class BothDirections(keras.layers.Layer):
  def __init__(self, **kwargs):
    super().__init__(**kwargs)
    self.ahead = self.direction('ahead')
    self.back = self.direction('back')

  def direction(self, name):
    return keras.layers.RNN(
      ProjectedLSTMCell(CELLS, PROJECTED, name='cell'),
      return_sequences=True,
      zero_output_for_mask=True,
      name=name,
    )

  def build(self, input_shape):
    self.ahead.build(input_shape)
    self.back.build(input_shape)

  def call(self, inputs, lengths):
    mask = time_mask(lengths, inputs)
    ahead = self.ahead(inputs, mask=mask)
    turned = tf.reverse_sequence(inputs, lengths, seq_axis=1)
    back = self.back(turned, mask=mask)
    back = tf.reverse_sequence(back, lengths, seq_axis=1)
    return ops.concatenate([ahead, back], axis=-1)


class Recognizer(keras.Model):
  def __init__(self, **kwargs):
    super().__init__(**kwargs)
    self.blocks = [
      ConvBlock(filters, size, name=f'block_{i}') for i, (filters, size) in enumerate(CONVOLUTIONS)
    ]
    self.recurrent = BothDirections(name='recurrent')
    self.dropout = keras.layers.Dropout(DROPPED, noise_shape=(None, 1, None))
    self.head = keras.layers.Dense(BLANK + 1, kernel_regularizer=l2(), name='head')

  def build(self, input_shape):
    shape = (*input_shape['features'], 1)
    for block in self.blocks:
      block.build(shape)
      shape = block.conv.compute_output_shape(shape)
    batch, time, frequencies, channels = shape
    self.recurrent.build((batch, time, frequencies * channels))
    self.head.build((batch, time, 2 * PROJECTED))
    self.built = True

  def call(self, inputs, training=False):
    lengths = inputs['lengths']
    x = normalize(inputs['features'], lengths)[..., None]
    for block in self.blocks:
      x, lengths = block(x, lengths, training=training)
    x = ops.reshape(x, (*x.shape[:2], x.shape[2] * x.shape[3]))
    x = self.recurrent(x, lengths)
    x = self.dropout(x, training=training)
    logits = ops.transpose(self.head(x), (1, 0, 2))
    outputs = {'logits': logits, 'lengths': lengths}
    if not training:
      outputs['probabilities'] = ops.softmax(logits, axis=-1)
    return outputs


def recognizer_loss(outputs, labels):
  symbols, sizes = labels['symbols'], labels['lengths']
  collapsed, collapsed_sizes = tf.nn.collapse_repeated(symbols, sizes)
  each = tf.nn.ctc_loss(
    labels=tf.RaggedTensor.from_tensor(collapsed, lengths=collapsed_sizes).to_sparse(),
    logits=outputs['logits'],
    label_length=None,
    logit_length=outputs['lengths'],
    blank_index=BLANK,
  )
  return ops.mean(each / ops.cast(sizes, 'float32'))


def make_optimizer():
  rate = keras.optimizers.schedules.ExponentialDecay(0.02, 2, 0.7, staircase=True)
  return keras.optimizers.Adam(rate, epsilon=1e-8)


def train_step(model, inputs, labels, optimizer):
  with tf.GradientTape() as tape:
    outputs = model(inputs, training=True)
    loss = recognizer_loss(outputs, labels)
    total = loss + sum(model.losses)
  variables = model.trainable_variables
  gradients, _ = tf.clip_by_global_norm(tape.gradient(total, variables), CLIP_NORM)
  optimizer.apply_gradients(zip(gradients, variables))
  return total
