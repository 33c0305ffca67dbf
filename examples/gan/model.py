"""A small DCGAN: one generator, and one discriminator that is applied twice.

Radford, Metz, Chintala: "Unsupervised Representation Learning with Deep
Convolutional Generative Adversarial Networks", arXiv:1511.06434.
"""

from typing import Any

import tensorflow as tf

v1 = tf.compat.v1


def _normal() -> Any:
  return v1.random_normal_initializer(stddev=0.02)


def generator(noise: tf.Tensor, is_training: bool) -> tf.Tensor:
  """Draws images, `[batch, 16, 16, 1]` in (-1, 1), from noise, `[batch, size]`."""
  with v1.variable_scope('generator'):
    net = v1.layers.dense(noise, 4 * 4 * 32, kernel_initializer=_normal(), name='project')
    net = tf.reshape(net, [-1, 4, 4, 32])
    net = v1.layers.batch_normalization(net, training=is_training, name='norm1')
    net = v1.layers.conv2d_transpose(
      tf.nn.relu(net), 16, 5, 2, 'same', kernel_initializer=_normal(), name='deconv1'
    )
    net = v1.layers.batch_normalization(net, training=is_training, name='norm2')
    net = v1.layers.conv2d_transpose(
      tf.nn.relu(net), 1, 5, 2, 'same', kernel_initializer=_normal(), name='deconv2'
    )
    return tf.tanh(net)


def discriminator(images: tf.Tensor, is_training: bool, reuse: bool = False) -> tf.Tensor:
  """Returns logits, `[batch, 1]`, above zero for real images.

  It has no batch norm: applied twice in a graph, the two updates of one moving
  average would run in no defined order.
  """
  with v1.variable_scope('discriminator', reuse=reuse):
    net = v1.layers.conv2d(images, 16, 5, 2, 'same', kernel_initializer=_normal(), name='conv1')
    net = v1.layers.conv2d(
      tf.nn.leaky_relu(net), 32, 5, 2, 'same', kernel_initializer=_normal(), name='conv2'
    )
    net = v1.layers.flatten(tf.nn.leaky_relu(net))
    net = v1.layers.dropout(net, rate=0.3, training=is_training, name='dropout')
    return v1.layers.dense(net, 1, name='logits')


def gan(noise: tf.Tensor, real_images: tf.Tensor, is_training: bool) -> dict[str, tf.Tensor]:
  """Builds both networks.

  Args:
    noise: `[batch, size]` float32.
    real_images: `[batch, 16, 16, 1]` float32.
    is_training: whether batch statistics and dropout are used.

  Returns:
    'fake_images', 'real_logits' and 'fake_logits'.
  """
  fake_images = generator(noise, is_training)
  real_logits = discriminator(real_images, is_training)
  fake_logits = discriminator(fake_images, is_training, reuse=True)
  return {'fake_images': fake_images, 'real_logits': real_logits, 'fake_logits': fake_logits}
