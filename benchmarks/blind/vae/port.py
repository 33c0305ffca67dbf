"""The right port of the variational autoencoder: native layers of Keras."""

import tensorflow as tf

layers = tf.keras.layers

LATENT = 5
CHANNELS = 6


def norm(name):
  return layers.BatchNormalization(
    momentum=0.9,
    epsilon=1e-5,
    name=name,
  )


class Encoder(layers.Layer):
  def __init__(self, **kwargs):
    super().__init__(**kwargs)
    self.conv1 = layers.Conv2D(
      4, 3, strides=2, padding='same', kernel_initializer='he_normal', name='conv1'
    )
    self.bn1 = norm('bn1')
    self.conv2 = layers.Conv2D(
      CHANNELS, 3, 2, 'same', kernel_initializer=tf.keras.initializers.HeNormal(), name='conv2'
    )
    self.activation = layers.LeakyReLU(alpha=0.2)
    self.flatten = layers.Flatten()
    self.hidden = layers.Dense(10, name='hidden')
    self.dropout = layers.Dropout(0.2)
    self.mean = layers.Dense(
      LATENT,
      kernel_initializer=tf.keras.initializers.RandomNormal(stddev=0.1),
      name='mean',
    )
    self.log_var = layers.Dense(
      LATENT,
      bias_initializer=tf.keras.initializers.Constant(-1.0),
      name='log_var',
    )

  def call(self, images, training=False):
    x = images * 2.0 - 1.0
    x = self.conv1(x)
    x = self.bn1(x, training=training)
    x = self.activation(x)
    x = self.conv2(x)
    x = self.activation(x)
    x = self.flatten(x)
    x = tf.nn.softplus(self.hidden(x))
    x = self.dropout(x, training=training)
    mean, log_var = self.mean(x), self.log_var(x)
    log_var = tf.clip_by_value(log_var, -4.0, 4.0)
    return mean, log_var


class Decoder(layers.Layer):
  def __init__(self, **kwargs):
    super().__init__(**kwargs)
    self.hidden = layers.Dense(
      4 * 4 * CHANNELS,
      activation='tanh',
      kernel_regularizer=tf.keras.regularizers.L2(0.01),
      name='hidden',
    )
    self.deconv = layers.Conv2DTranspose(
      4, 3, strides=2, padding='same', kernel_initializer='he_normal', name='deconv'
    )
    self.bn2 = norm('bn2')
    self.logits = layers.Conv2D(1, 3, padding='same', name='logits')

  def call(self, z, training=False):
    x = self.hidden(z)
    x = tf.reshape(x, [-1, 4, 4, CHANNELS])
    x = self.deconv(x)
    x = self.bn2(x, training=training)
    x = tf.nn.leaky_relu(x, alpha=0.2)
    return self.logits(x)


class Warmup(layers.Layer):
  """The weight of the KL term, which rises with every training step."""

  def build(self, shape):
    self.step = self.add_weight('step', (), initializer='zeros', trainable=False)

  def call(self, inputs, training=False):
    beta = self.step / 3.0
    beta = tf.minimum(beta, 1.0)
    if training:
      self.step.assign_add(1.0)
    return beta


class VariationalAutoencoder(tf.keras.Model):
  def __init__(self):
    super().__init__(name='vae')
    self.warmup = Warmup(name='warmup')
    self.encoder = Encoder(name='encoder')
    self.decoder = Decoder(name='decoder')

  def call(self, inputs, training=False):
    beta = self.warmup(inputs, training=training)
    mean, log_var = self.encoder(inputs, training=training)
    if training:
      noise = tf.random.normal(tf.shape(mean))
      z = mean + noise * tf.exp(log_var / 2.0)
    else:
      z = mean
    logits = self.decoder(z, training=training)
    return {'logits': logits, 'mean': mean, 'log_var': log_var, 'z': z, 'beta': beta}


def vae_loss(outputs, images, weights):
  pixels = tf.keras.losses.BinaryCrossentropy(from_logits=True, reduction='none')(
    images[..., None], outputs['logits'][..., None]
  )
  reconstruction = tf.reduce_sum(pixels, axis=(1, 2, 3))
  mean, log_var = outputs['mean'], outputs['log_var']
  divergence = tf.square(mean) + tf.exp(log_var) - 1.0 - log_var
  kl = 0.5 * tf.reduce_sum(divergence, axis=-1)
  count = tf.maximum(tf.reduce_sum(weights), 1e-6)
  reconstruction = tf.reduce_sum(weights * reconstruction) / count
  kl = tf.reduce_sum(weights * kl) / count
  loss = reconstruction + outputs['beta'] * kl
  return {'loss': loss, 'reconstruction': reconstruction, 'kl': kl}


def make_optimizer():
  rate = tf.keras.optimizers.schedules.ExponentialDecay(
    0.05, decay_steps=3, decay_rate=0.5, staircase=True
  )
  return tf.keras.optimizers.Adagrad(
    rate,
    initial_accumulator_value=0.1,
    epsilon=0.0,
    clipnorm=1.0,
  )


def train_step(model, images, labels, optimizer):
  with tf.GradientTape() as tape:
    outputs = model(images, training=True)
    loss = vae_loss(outputs, labels['images'], labels['weights'])['loss']
    loss += tf.add_n(model.losses)
  variables = model.trainable_variables
  gradients = tape.gradient(loss, variables)
  optimizer.apply_gradients(zip(gradients, variables))
  return loss
