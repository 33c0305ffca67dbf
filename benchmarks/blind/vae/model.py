"""A variational autoencoder of small images with a warm-up of the KL term, TF1 code.

After Kingma & Welling 2013, 'Auto-Encoding Variational Bayes'; the warm-up is that of
Sonderby et al. 2016, 'Ladder Variational Autoencoders'.
"""

import tensorflow.compat.v1 as tf

LATENT = 5
WARMUP = 3.0


def l2(scale):
  return lambda w: scale * tf.nn.l2_loss(w)


def batch_norm(x, training, name):
  return tf.layers.batch_normalization(
    x, momentum=0.9, epsilon=1e-5, training=training, name=name
  )


def encoder(x, training):
  he = tf.variance_scaling_initializer(2.0)
  with tf.variable_scope('encoder'):
    h = 2.0 * x - 1.0
    h = tf.layers.conv2d(h, 4, 3, 2, 'same', kernel_initializer=he, name='conv1')
    h = tf.nn.leaky_relu(batch_norm(h, training, 'bn1'))
    h = tf.layers.conv2d(h, 6, 3, 2, 'same', kernel_initializer=he, name='conv2')
    h = tf.nn.leaky_relu(h)
    h = tf.layers.flatten(h)
    h = tf.layers.dense(h, 10, tf.nn.softplus, name='hidden')
    h = tf.layers.dropout(h, 0.2, training=training)
    mean = tf.layers.dense(
      h, LATENT, kernel_initializer=tf.random_normal_initializer(stddev=0.1), name='mean'
    )
    log_var = tf.layers.dense(
      h, LATENT, bias_initializer=tf.constant_initializer(-1.0), name='log_var'
    )
    return mean, tf.clip_by_value(log_var, -4.0, 4.0)


def decoder(z, training):
  he = tf.variance_scaling_initializer(2.0)
  with tf.variable_scope('decoder'):
    h = tf.layers.dense(
      z, 4 * 4 * 6, tf.nn.tanh, kernel_regularizer=l2(0.02), name='hidden'
    )
    h = tf.reshape(h, [-1, 4, 4, 6])
    h = tf.layers.conv2d_transpose(h, 4, 3, 2, 'same', kernel_initializer=he, name='deconv')
    h = tf.nn.leaky_relu(batch_norm(h, training, 'bn2'))
    return tf.layers.conv2d(h, 1, 3, padding='same', name='logits')


def kl_weight(training):
  with tf.variable_scope('warmup'):
    step = tf.get_variable(
      'step', [], initializer=tf.zeros_initializer(), trainable=False
    )
    beta = tf.minimum(1.0, step / WARMUP)
    if training:
      with tf.control_dependencies([beta]):
        tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, tf.assign_add(step, 1.0))
    return beta


def vae(x, training):
  with tf.variable_scope('vae'):
    beta = kl_weight(training)
    mean, log_var = encoder(x, training)
    z = mean
    if training:
      z = mean + tf.exp(0.5 * log_var) * tf.random_normal(tf.shape(mean))
    logits = decoder(z, training)
    return {'logits': logits, 'mean': mean, 'log_var': log_var, 'z': z, 'beta': beta}


def vae_loss(outputs, images, weights):
  cross_entropy = tf.nn.sigmoid_cross_entropy_with_logits(
    labels=images, logits=outputs['logits']
  )
  reconstruction = tf.reduce_sum(cross_entropy, [1, 2, 3])
  mean, log_var = outputs['mean'], outputs['log_var']
  kl = -0.5 * tf.reduce_sum(1.0 + log_var - tf.square(mean) - tf.exp(log_var), 1)
  total = tf.maximum(tf.reduce_sum(weights), 1e-6)
  reconstruction = tf.reduce_sum(reconstruction * weights) / total
  kl = tf.reduce_sum(kl * weights) / total
  loss = reconstruction + outputs['beta'] * kl
  return {'loss': loss, 'reconstruction': reconstruction, 'kl': kl}


def train_op(loss):
  step = tf.train.get_or_create_global_step()
  rate = tf.train.exponential_decay(0.05, step, 3, 0.5, staircase=True)
  optimizer = tf.train.AdagradOptimizer(rate, initial_accumulator_value=0.1)
  with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
    pairs = optimizer.compute_gradients(loss)
    pairs = [(tf.clip_by_norm(g, 1.0), v) for g, v in pairs if g is not None]
    return optimizer.apply_gradients(pairs, global_step=step)
