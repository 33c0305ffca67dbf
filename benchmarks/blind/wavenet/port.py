"""The right port of the WaveNet: under the shim (track_tf1_style_variables), training in Keras."""

import math

import tensorflow as tf

v1 = tf.compat.v1

CLASSES = 16
MU = 15.0
RESIDUAL = 8
GATE = 6
SKIP = 10
HOP = 4
SPEAKERS = (3, 5)
WIDTH = 2
DILATIONS = (1, 2, 4)
DROP_RATE = 0.2
WEIGHT_DECAY = 3e-3
SMOOTHING = 0.05
NORM = {'momentum': 0.95, 'epsilon': 0.001}
ADAM = {'beta_1': 0.9, 'beta_2': 0.98, 'epsilon': 1e-6}
SCHEDULE = {'boundaries': [1, 3], 'values': [0.01, 0.004, 0.001]}
AVERAGE = {'use_ema': True, 'ema_momentum': 0.9}


def l2(weights):
  return WEIGHT_DECAY * tf.nn.l2_loss(weights)


def receptive_field():
  return (WIDTH - 1) * sum(DILATIONS) + WIDTH


def mu_law_encode(audio):
  audio = tf.clip_by_value(audio, -1.0, 1.0)
  compressed = tf.sign(audio) * tf.math.log1p(MU * tf.abs(audio)) / tf.math.log1p(MU)
  return tf.cast((compressed + 1.0) / 2.0 * MU + 0.5, tf.int32)


def mu_law_decode(levels):
  compressed = 2.0 * levels / MU - 1.0
  return tf.sign(compressed) / MU * ((1.0 + MU) ** tf.abs(compressed) - 1.0)


def normalized_kernel(direction, gain):
  return gain * tf.math.l2_normalize(direction, axis=[0, 1])


def causal_conv(x, channels, dilation, name):
  with v1.variable_scope(name):
    direction = v1.get_variable(
      'v',
      [WIDTH, x.shape[-1], channels],
      initializer=v1.random_normal_initializer(stddev=0.2),
      regularizer=l2,
    )
    gain = v1.get_variable('g', [channels], initializer=v1.constant_initializer(0.9))
    bias = v1.get_variable('b', [channels], initializer=v1.zeros_initializer())
  x = tf.pad(x, [[0, 0], [(WIDTH - 1) * dilation, 0], [0, 0]])
  x = tf.nn.conv1d(
    x, normalized_kernel(direction, gain), stride=1, padding='VALID', dilations=dilation
  )
  return x + bias


def pointwise(x, channels, name, **kwargs):
  return v1.layers.conv1d(x, channels, 1, name=name, **kwargs)


class WaveNet(tf.keras.layers.Layer):
  """With the variables of TF1."""

  def upsample(self, mel):
    with v1.variable_scope('upsample'):
      mel = tf.repeat(mel, HOP, axis=1)
      return v1.layers.conv1d(
        mel,
        mel.shape[-1],
        3,
        padding='same',
        activation=tf.nn.leaky_relu,
        kernel_initializer=v1.glorot_normal_initializer(),
        name='smooth',
      )

  def gated(self, x, speaker, mel, dilation):
    both = causal_conv(x, 2 * GATE, dilation, 'dilated')
    speaker = v1.layers.dense(speaker, 2 * GATE, use_bias=False, name='speaker')
    both = both + speaker[:, tf.newaxis] + pointwise(mel, 2 * GATE, 'mel', use_bias=False)
    return tf.tanh(both[..., :GATE]) * tf.sigmoid(both[..., GATE:])

  def post(self, x, training):
    with v1.variable_scope('post'):
      x = v1.layers.batch_normalization(x, training=training, name='bn', **NORM)
      x = tf.nn.relu(x)
      x = tf.nn.relu(pointwise(x, SKIP, 'conv1', kernel_regularizer=l2))
      if training:
        x = tf.nn.dropout(x, rate=DROP_RATE)
      return pointwise(
        x,
        CLASSES,
        'conv2',
        kernel_regularizer=l2,
        kernel_initializer=v1.truncated_normal_initializer(stddev=0.1),
      )

  @v1.keras.utils.track_tf1_style_variables
  def call(self, inputs, training=False):
    with v1.variable_scope('wavenet'):
      speakers = v1.get_variable(
        'speakers', SPEAKERS, initializer=v1.random_normal_initializer(stddev=0.5)
      )
      speaker = tf.gather(speakers, inputs['speaker'])
      mel = self.upsample(inputs['mel'])
      x = tf.one_hot(mu_law_encode(inputs['audio']), CLASSES)
      x = causal_conv(x, RESIDUAL, 1, 'causal')
      total = 0.0
      for i, dilation in enumerate(DILATIONS):
        with v1.variable_scope(f'layer_{i}'):
          out = self.gated(x, speaker, mel, dilation)
          total += pointwise(out, SKIP, 'skip')
          x = (x + pointwise(out, RESIDUAL, 'residual')) * math.sqrt(0.5)
      logits = self.post(total, training)
    outputs = {'logits': logits}
    if not training:
      outputs['audio'] = expected_audio(logits)
    return outputs


def expected_audio(logits):
  levels = tf.range(CLASSES, dtype=tf.float32)
  return mu_law_decode(tf.reduce_sum(tf.nn.softmax(logits) * levels, axis=-1))


def loss_mask(lengths, steps):
  inside = tf.sequence_mask(lengths, steps)
  informed = tf.range(steps) >= receptive_field() - 1
  return tf.cast(inside & informed, tf.float32)


def wavenet_loss(outputs, labels):
  logits = outputs['logits']
  targets = tf.one_hot(mu_law_encode(labels['audio']), CLASSES)
  each = tf.keras.losses.categorical_crossentropy(
    targets, logits, from_logits=True, label_smoothing=SMOOTHING
  )
  mask = loss_mask(labels['lengths'], logits.shape[1])
  return tf.reduce_sum(each * mask) / tf.maximum(tf.reduce_sum(mask), 1.0)


def make_optimizer():
  rate = tf.keras.optimizers.schedules.PiecewiseConstantDecay(**SCHEDULE)
  return tf.keras.optimizers.Adam(rate, **ADAM, **AVERAGE)


def train_step(model, inputs, labels, optimizer):
  with tf.GradientTape() as tape:
    outputs = model(inputs, training=True)
    loss = wavenet_loss(outputs, labels) + tf.add_n(model.losses)
  variables = model.trainable_variables
  gradients = tape.gradient(loss, variables)
  gradients, _ = tf.clip_by_global_norm(gradients, 0.2)
  optimizer.apply_gradients(zip(gradients, variables))
  return loss
