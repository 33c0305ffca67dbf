"""The right port of the U-Net: a functional model of tf.keras with its own training step."""

import tensorflow as tf

layers = tf.keras.layers

CLASSES = 3
VOID = 255
CLASS_WEIGHTS = (0.3, 1.0, 2.0)
WEIGHT_DECAY = 0.002


class ResizeLike(layers.Layer):
  """tf.image.resize_bilinear of TF1: pixel corners are not at half a pixel."""

  def call(self, inputs):
    x, reference = inputs
    return tf.raw_ops.ResizeBilinear(
      images=x, size=tf.shape(reference)[1:3], align_corners=False, half_pixel_centers=False
    )


class RemoveMean(layers.Layer):
  def call(self, images):
    return images - tf.reduce_mean(images, axis=(1, 2), keepdims=True)


def conv_bn_relu(x, filters, name, dilation=1):
  x = layers.Conv2D(
    filters,
    3,
    padding='same',
    dilation_rate=dilation,
    use_bias=False,
    kernel_initializer=tf.keras.initializers.VarianceScaling(2.0, mode='fan_out'),
    kernel_regularizer=tf.keras.regularizers.L2(WEIGHT_DECAY / 2),
    name=name + '_conv',
  )(x)
  x = layers.BatchNormalization(momentum=0.95, epsilon=1e-4, name=name + '_bn')(x)
  return layers.ReLU(name=name + '_relu')(x)


def double_conv(x, filters, name):
  x = conv_bn_relu(x, filters, name + '_a')
  x = conv_bn_relu(x, filters, name + '_b')
  return x


def upsample(x, skip, filters, name):
  x = layers.Conv2DTranspose(
    filters,
    3,
    strides=2,
    padding='same',
    activation='elu',
    kernel_initializer=tf.keras.initializers.TruncatedNormal(stddev=0.1),
    bias_initializer=tf.keras.initializers.Constant(0.05),
    name=name + '_deconv',
  )(x)
  x = layers.Concatenate(name=name + '_concat')([skip, x])
  return double_conv(x, filters, name + '_merge')


def build_unet(shape=(16, 16, 2)):
  images = tf.keras.Input(shape, name='images')
  x = RemoveMean(name='remove_mean')(images)
  skip1 = double_conv(x, 4, 'down1')
  x = layers.MaxPooling2D(2, 2, name='pool1')(skip1)
  skip2 = double_conv(x, 6, 'down2')
  x = layers.MaxPooling2D(3, 2, padding='same', name='pool2')(skip2)
  x = conv_bn_relu(x, 8, 'bridge1')
  x = conv_bn_relu(x, 8, 'bridge2', dilation=2)
  x = layers.SpatialDropout2D(0.3, name='dropout')(x)
  x = upsample(x, skip2, 6, 'up2')
  side = layers.Conv2D(CLASSES, 1, name='side')(x)
  side = ResizeLike(name='side_resized')([side, images])
  x = upsample(x, skip1, 4, 'up1')
  prior = tf.keras.initializers.Constant([1.0, -0.5, -0.5])
  logits = layers.Conv2D(CLASSES, 1, bias_initializer=prior, name='logits')(x)
  return tf.keras.Model(images, {'logits': logits, 'side': side}, name='unet')


def dice_loss(logits, labels, valid):
  valid = valid[..., None]
  probabilities = tf.nn.softmax(logits, axis=-1) * valid
  target = tf.one_hot(labels, CLASSES) * valid
  intersection = tf.reduce_sum(probabilities * target, axis=(1, 2))
  union = tf.reduce_sum(probabilities**2, axis=(1, 2)) + tf.reduce_sum(target, axis=(1, 2))
  dice = (2.0 * intersection + 1.0) / (union + 1.0)
  return 1.0 - tf.reduce_mean(dice[:, 1:])


def cross_entropy(logits, labels, valid):
  weights = tf.gather(tf.constant(CLASS_WEIGHTS), labels) * valid
  losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
  present = tf.reduce_sum(tf.cast(weights != 0, tf.float32))
  return tf.math.divide_no_nan(tf.reduce_sum(losses * weights), present)


def segmentation_loss(outputs, labels):
  valid = tf.cast(labels != VOID, tf.float32)
  labels = tf.where(labels == VOID, 0, labels)
  entropy = cross_entropy(outputs['logits'], labels, valid)
  dice = dice_loss(outputs['logits'], labels, valid)
  side = cross_entropy(outputs['side'], labels, valid)
  return {'loss': entropy + 0.5 * dice + 0.4 * side, 'dice': dice, 'cross_entropy': entropy}


class Momentum(tf.keras.optimizers.Optimizer):
  """tf.train.MomentumOptimizer: the rate is not part of the accumulator, as it is in Keras' SGD."""

  def __init__(self, learning_rate, momentum, name='Momentum', **kwargs):
    super().__init__(name=name, **kwargs)
    self._learning_rate = self._build_learning_rate(learning_rate)
    self.momentum = momentum

  def build(self, var_list):
    super().build(var_list)
    if getattr(self, 'momentums', None):
      return  # Keras calls this at every step
    self.momentums = [
      self.add_variable_from_reference(model_variable=v, variable_name='m') for v in var_list
    ]

  def update_step(self, gradient, variable):
    rate = tf.cast(self.learning_rate, variable.dtype)
    accumulator = self.momentums[self._index_dict[self._var_key(variable)]]
    accumulator.assign(self.momentum * accumulator + gradient)
    variable.assign_sub(rate * (gradient + self.momentum * accumulator))  # Nesterov


def make_optimizer():
  schedule = tf.keras.optimizers.schedules.ExponentialDecay(
    0.1, decay_steps=2, decay_rate=0.7, staircase=True
  )
  return Momentum(schedule, momentum=0.9)


def train_step(model, images, labels, optimizer):
  with tf.GradientTape() as tape:
    outputs = model(images, training=True)
    loss = segmentation_loss(outputs, labels)['loss']
    loss += tf.add_n(model.losses)
  gradients = tape.gradient(loss, model.trainable_variables)
  gradients, _ = tf.clip_by_global_norm(gradients, 0.2)
  optimizer.apply_gradients(zip(gradients, model.trainable_variables))
  return loss
