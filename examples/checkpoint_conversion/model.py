"""A small convolutional classifier in `tf.layers`, and the function that trains and saves it."""

import os

import numpy as np
import tensorflow as tf

v1 = tf.compat.v1

_SIZE, _CLASSES = 8, 4


def classifier(images: tf.Tensor, is_training: bool) -> tf.Tensor:
  """Returns the logits, `[batch, 4]`, of `[batch, 8, 8, 1]` images."""
  with v1.variable_scope('classifier'):
    net = v1.layers.conv2d(images, 8, 3, padding='same', use_bias=False, name='conv1')
    net = v1.layers.batch_normalization(net, training=is_training, name='bn1')
    net = v1.layers.max_pooling2d(tf.nn.relu(net), 2, 2, name='pool1')
    return v1.layers.dense(v1.layers.flatten(net), _CLASSES, name='fc')


def _bars() -> tuple[np.ndarray, np.ndarray]:
  """Returns images of noise, each with a bright bar in one of four places, and the places."""
  random = np.random.RandomState(0)
  places = random.randint(0, _CLASSES, size=64)
  images = random.normal(size=(64, _SIZE, _SIZE, 1), scale=0.3).astype(np.float32)
  images[np.arange(64), 2 * places] += 1.0
  return images, places


def train(folder: str, steps: int = 20) -> str:
  """Trains the classifier and saves it with its optimizer.

  Returns:
    The checkpoint's prefix: `folder/classifier-20`.
  """
  images, places = _bars()
  with tf.Graph().as_default(), v1.Session() as session:
    logits = classifier(tf.constant(images), is_training=True)
    loss = v1.losses.sparse_softmax_cross_entropy(places, logits)
    global_step = v1.train.get_or_create_global_step()
    with tf.control_dependencies(v1.get_collection(v1.GraphKeys.UPDATE_OPS)):
      step = v1.train.AdamOptimizer(1e-2).minimize(loss, global_step=global_step)
    session.run(v1.global_variables_initializer())
    for _ in range(steps):
      session.run(step)
    prefix = os.path.join(folder, 'classifier')
    return v1.train.Saver().save(session, prefix, global_step=global_step)
