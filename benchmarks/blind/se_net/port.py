"""The right port of the small SE-ResNet, in layers of Keras 2."""

import tensorflow as tf

layers = tf.keras.layers

WEIGHT_DECAY = 1e-2


def he():
  return tf.keras.initializers.VarianceScaling(2.0, mode='fan_out', distribution='truncated_normal')


def decay():
  return tf.keras.regularizers.L2(0.5 * WEIGHT_DECAY)


def conv(filters, size, name, strides=1, padding='same'):
  return layers.Conv2D(
    filters,
    size,
    strides=strides,
    padding=padding,
    use_bias=False,
    kernel_initializer=he(),
    kernel_regularizer=decay(),
    name=name,
  )


def dense(units, name, **settings):
  return layers.Dense(
    units, kernel_regularizer=decay(), bias_regularizer=decay(), name=name, **settings
  )


def batch_norm(name, gamma='ones'):
  return layers.BatchNormalization(
    momentum=0.9, epsilon=1e-5, gamma_initializer=gamma, name=name
  )


class DropBlock(layers.Layer):
  def __init__(self, survival):
    super().__init__()
    self.survival = survival

  def call(self, x, training=False):
    if not training:
      return x
    draw = tf.random.uniform([tf.shape(x)[0], 1, 1, 1])
    return x / self.survival * tf.floor(self.survival + draw)


class Block(layers.Layer):
  def __init__(self, filters, name, survival, strides=1, project=False):
    super().__init__(name=name)
    self.project = project
    if project:
      self.pool = layers.AveragePooling2D(2, strides, padding='same')
      self.conv0 = conv(filters, 1, 'conv0')
      self.bn0 = batch_norm('bn0')
    self.pad = layers.ZeroPadding2D(1)
    self.conv1 = conv(filters, 3, 'conv1', strides, padding='valid')
    self.bn1 = batch_norm('bn1')
    self.conv2 = conv(filters, 3, 'conv2')
    self.bn2 = batch_norm('bn2', gamma='zeros')
    self.mean = layers.GlobalAveragePooling2D(keepdims=True)
    self.squeeze = dense(filters // 4, 'squeeze', activation='relu', kernel_initializer=he())
    self.excite = dense(filters, 'excite', activation='sigmoid', bias_initializer='ones')
    self.drop = DropBlock(survival)

  def call(self, x, training=False):
    shortcut = x
    if self.project:
      shortcut = self.bn0(self.conv0(self.pool(x)), training=training)
    x = self.conv1(self.pad(x))
    x = tf.nn.relu(self.bn1(x, training=training))
    x = self.bn2(self.conv2(x), training=training)
    gate = self.excite(self.squeeze(self.mean(x)))
    x = self.drop(x * gate, training=training)
    return tf.nn.relu(x + shortcut)


class SeNet(tf.keras.Model):
  def __init__(self):
    super().__init__(name='se_net')
    self.averages = None
    self.pad = layers.ZeroPadding2D(2)
    self.stem = conv(8, 5, 'stem', strides=2, padding='valid')
    self.stem_bn = batch_norm('stem_bn')
    self.pool = layers.MaxPooling2D(3, 2, padding='same')
    self.block1 = Block(8, 'block1', survival=0.9)
    self.block2 = Block(12, 'block2', survival=0.8, strides=2, project=True)
    self.block3 = Block(12, 'block3', survival=0.7)
    self.mean = layers.GlobalAveragePooling2D()
    self.dropout = layers.Dropout(0.2)
    self.logits = dense(
      5, 'logits', kernel_initializer=tf.keras.initializers.RandomNormal(stddev=0.01)
    )

  def call(self, images, training=False):
    x = images - [123.68, 116.78, 103.94]
    x = self.stem(self.pad(x))
    x = tf.nn.relu(self.stem_bn(x, training=training))
    x = self.pool(x)
    x = self.block1(x, training=training)
    x = self.block2(x, training=training)
    x = self.block3(x, training=training)
    x = self.dropout(self.mean(x), training=training)
    return self.logits(x)


def loss(logits, labels):
  each = tf.keras.losses.CategoricalCrossentropy(from_logits=True, label_smoothing=0.1)
  return each(tf.one_hot(labels['label'], 5), logits, sample_weight=labels['weight'])


class Schedule(tf.keras.optimizers.schedules.LearningRateSchedule):
  def __call__(self, step):
    step = tf.cast(step, tf.float32)
    rate = 0.02 * 0.94 ** tf.floor(step / 2.0)
    return rate * tf.minimum(1.0, (step + 1.0) / 3.0)

  def get_config(self):
    return {}


def make_optimizer():
  return tf.keras.optimizers.Adam(
    Schedule(), beta_1=0.9, beta_2=0.99, epsilon=1e-4, global_clipnorm=1.0
  )


def train_step(net, images, labels, optimizer):
  with tf.GradientTape() as tape:
    total = loss(net(images, training=True), labels) + tf.add_n(net.losses)
  weights = net.trainable_variables
  if net.averages is None:
    net.averages = tf.train.ExponentialMovingAverage(0.999, num_updates=optimizer.iterations)
    net.averages.apply(weights)  # makes the shadows, before the first update
  gradients = tape.gradient(total, weights)
  optimizer.apply_gradients(zip(gradients, weights))
  net.averages.apply(weights)
  return total
