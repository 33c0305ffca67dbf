"""A small WaveNet, TF1 code: classes of mu-law, given a speaker and a spectrogram.

After van den Oord et al. 2016, 'WaveNet: A Generative Model for Raw Audio', with the weight
normalization of Salimans and Kingma 2016 in the dilated convolutions and the upsampled mel
spectrogram of Shen et al. 2018, 'Natural TTS Synthesis by Conditioning WaveNet'.
"""

import numpy as np
import tensorflow.compat.v1 as tf

HPARAMS = dict(
  quantization=16, mu=15.0, residual=8, gate=6, skip=10, hop=4, speakers=3, speaker_dim=5,
  width=2, dilations=[1, 2, 4], keep_prob=0.8, weight_decay=3e-3,
)


def receptive_field(hp):
  return (hp['width'] - 1) * sum(hp['dilations']) + hp['width']


def mu_law_encode(audio, mu):
  """[-1, 1] to 0..mu."""
  audio = tf.clip_by_value(audio, -1.0, 1.0)
  signal = tf.sign(audio) * tf.log1p(mu * tf.abs(audio)) / tf.log1p(mu)
  return tf.to_int32((signal + 1.0) / 2.0 * mu + 0.5)


def mu_law_decode(signal, mu):
  signal = 2.0 * signal / mu - 1.0
  return tf.sign(signal) / mu * (tf.pow(1.0 + mu, tf.abs(signal)) - 1.0)


def causal_conv(net, channels, width, dilation, name, weight_decay):
  """Weight normalized; the padding is at the left, so that no output sees the future."""
  with tf.variable_scope(name):
    v = tf.get_variable(
      'v', [width, int(net.shape[-1]), channels],
      initializer=tf.random_normal_initializer(stddev=0.2),
      regularizer=lambda w: weight_decay * tf.nn.l2_loss(w),
    )
    g = tf.get_variable('g', [channels], initializer=tf.constant_initializer(0.9))
    b = tf.get_variable('b', [channels], initializer=tf.zeros_initializer())
    kernel = g * tf.nn.l2_normalize(v, [0, 1])
    net = tf.pad(net, [[0, 0], [(width - 1) * dilation, 0], [0, 0]])
    net = tf.nn.convolution(net, kernel, padding='VALID', dilation_rate=[dilation])
    return tf.nn.bias_add(net, b)


def upsample(mel, hop):
  """Repeats each frame for the samples of its hop, and smooths across the edge."""
  with tf.variable_scope('upsample'):
    frames, bins = int(mel.shape[1]), int(mel.shape[2])
    net = tf.tile(mel[:, :, None], [1, 1, hop, 1])
    net = tf.reshape(net, [-1, frames * hop, bins])
    return tf.layers.conv1d(
      net, bins, 3, padding='same', activation=tf.nn.leaky_relu, name='smooth',
      kernel_initializer=tf.glorot_normal_initializer(),
    )


def residual_layer(net, speaker, mel, dilation, hp):
  """Returns the next layer's input and this layer's contribution to the skip connections."""
  both = causal_conv(net, 2 * hp['gate'], hp['width'], dilation, 'dilated', hp['weight_decay'])
  both += tf.layers.dense(speaker, 2 * hp['gate'], use_bias=False, name='speaker')[:, None]
  both += tf.layers.conv1d(mel, 2 * hp['gate'], 1, use_bias=False, name='mel')
  signal, gate = tf.split(both, 2, axis=2)
  out = tf.tanh(signal) * tf.sigmoid(gate)
  skip = tf.layers.conv1d(out, hp['skip'], 1, name='skip')
  residual = tf.layers.conv1d(out, hp['residual'], 1, name='residual')
  return (net + residual) * np.sqrt(0.5), skip


def wavenet(inputs, training, hp=HPARAMS):
  regularizer = lambda w: hp['weight_decay'] * tf.nn.l2_loss(w)
  with tf.variable_scope('wavenet'):
    speakers = tf.get_variable(
      'speakers', [hp['speakers'], hp['speaker_dim']],
      initializer=tf.random_normal_initializer(stddev=0.5),
    )
    speaker = tf.nn.embedding_lookup(speakers, inputs['speaker'])
    mel = upsample(inputs['mel'], hp['hop'])
    net = tf.one_hot(mu_law_encode(inputs['audio'], hp['mu']), hp['quantization'])
    net = causal_conv(net, hp['residual'], hp['width'], 1, 'causal', hp['weight_decay'])
    skips = []
    for i, dilation in enumerate(hp['dilations']):
      with tf.variable_scope('layer_%d' % i):
        net, skip = residual_layer(net, speaker, mel, dilation, hp)
        skips.append(skip)
    with tf.variable_scope('post'):
      net = tf.add_n(skips)
      net = tf.layers.batch_normalization(
        net, momentum=0.95, epsilon=1e-3, training=training, name='bn'
      )
      net = tf.nn.relu(net)
      net = tf.layers.conv1d(net, hp['skip'], 1, name='conv1', kernel_regularizer=regularizer)
      net = tf.nn.relu(net)
      if training:
        net = tf.nn.dropout(net, keep_prob=hp['keep_prob'])
      logits = tf.layers.conv1d(
        net, hp['quantization'], 1, name='conv2', kernel_regularizer=regularizer,
        kernel_initializer=tf.truncated_normal_initializer(stddev=0.1),
      )
  outputs = {'logits': logits}
  if not training:
    levels = tf.range(hp['quantization'], dtype=tf.float32)
    expected = tf.reduce_sum(tf.nn.softmax(logits) * levels, 2)
    outputs['audio'] = mu_law_decode(expected, hp['mu'])
  return outputs


def wavenet_loss(outputs, labels, hp=HPARAMS):
  """Of the samples that have a full receptive field and are within the utterance."""
  logits, targets = outputs['logits'], mu_law_encode(labels['audio'], hp['mu'])
  targets = tf.one_hot(targets, hp['quantization'])
  targets = targets * 0.95 + 0.05 / hp['quantization']
  each = tf.nn.softmax_cross_entropy_with_logits_v2(labels=targets, logits=logits)
  steps = tf.range(tf.shape(logits)[1])
  mask = tf.sequence_mask(labels['lengths'], tf.shape(logits)[1], dtype=tf.float32)
  mask *= tf.cast(steps >= receptive_field(hp) - 1, tf.float32)
  return tf.reduce_sum(each * mask) / tf.maximum(tf.reduce_sum(mask), 1.0)


def train_op(loss):
  step = tf.train.get_or_create_global_step()
  rate = tf.train.piecewise_constant(step, [1, 3], [0.01, 0.004, 0.001])
  optimizer = tf.train.AdamOptimizer(rate, beta1=0.9, beta2=0.98, epsilon=1e-6)
  gradients, variables = zip(*optimizer.compute_gradients(loss))
  gradients, _ = tf.clip_by_global_norm(gradients, 0.2)
  with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
    apply = optimizer.apply_gradients(zip(gradients, variables), global_step=step)
  ema = tf.train.ExponentialMovingAverage(0.9)
  with tf.control_dependencies([apply]):
    return ema.apply(tf.trainable_variables())
