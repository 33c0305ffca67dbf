"""The right port of the detector: its network under the shim, loss and step rewritten in TF2."""

import numpy as np
import tensorflow as tf

v1 = tf.compat.v1
ANCHORS = np.array([[0.8, 1.1], [2.0, 1.4]], np.float32)
GRID, CLASSES = 4, 3


def block(x, filters, size, training, name):
  with v1.variable_scope(name):
    x = v1.layers.conv2d(
      x,
      filters,
      size,
      padding='same',
      use_bias=False,
      name='conv',
      kernel_regularizer=tf.keras.regularizers.l2(5e-4),
    )
    x = v1.layers.batch_normalization(x, momentum=0.9, epsilon=1e-5, training=training, name='bn')
    return tf.nn.leaky_relu(x, alpha=0.1)


class Detector(tf.keras.layers.Layer):
  @v1.keras.utils.track_tf1_style_variables
  def call(self, images, training=False):
    with v1.variable_scope('darknet'):
      x = block(images, 6, 3, training, 'conv1')
      x = tf.nn.max_pool2d(x, 2, 2, 'VALID')
      x = block(x, 8, 3, training, 'conv2')
      x = tf.nn.max_pool2d(x, 2, 2, 'VALID')
      fine = block(x, 10, 3, training, 'conv3')
      coarse = tf.nn.max_pool2d(fine, 2, 2, 'VALID')
      coarse = block(coarse, 12, 3, training, 'conv4')
      fine = block(fine, 4, 1, training, 'conv5_pass')
      fine = tf.nn.space_to_depth(fine, 2)
      x = tf.concat([fine, coarse], axis=-1)
      x = block(x, 12, 3, training, 'conv6')
      x = v1.layers.conv2d(x, len(ANCHORS) * (5 + CLASSES), 1, name='head')
    return tf.reshape(x, [-1, GRID, GRID, len(ANCHORS), 5 + CLASSES])


def box_iou(a_xy, a_wh, b_xy, b_wh):
  top_left = tf.maximum(a_xy - 0.5 * a_wh, b_xy - 0.5 * b_wh)
  bottom_right = tf.minimum(a_xy + 0.5 * a_wh, b_xy + 0.5 * b_wh)
  size = tf.nn.relu(bottom_right - top_left)
  inter = size[..., 0] * size[..., 1]
  area = a_wh[..., 0] * a_wh[..., 1] + b_wh[..., 0] * b_wh[..., 1]
  return inter / (area - inter + 1e-6)


def detector_loss(net, labels):
  obj, boxes = labels['object'], labels['boxes']
  t_xy, t_wh, t_conf, t_class = tf.split(net, [2, 2, 1, CLASSES], axis=-1)
  xy = tf.sigmoid(t_xy)
  wh = ANCHORS * tf.exp(t_wh)
  conf = tf.sigmoid(tf.squeeze(t_conf, -1))
  true_xy, true_wh = tf.split(boxes, 2, axis=-1)
  overlap = tf.stop_gradient(box_iou(xy, wh, true_xy, true_wh))
  noobj = (1.0 - obj) * tf.cast(overlap < 0.5, tf.float32)
  count = tf.reduce_sum(obj) + 1e-6

  def mean_over_objects(value):
    return tf.reduce_sum(obj * value) / count

  xy_loss = mean_over_objects(tf.reduce_sum((xy - true_xy) ** 2, -1))
  wh_loss = mean_over_objects(tf.reduce_sum((tf.sqrt(wh) - tf.sqrt(true_wh)) ** 2, -1))
  obj_loss = mean_over_objects((conf - overlap) ** 2)
  noobj_loss = tf.reduce_sum(noobj * conf**2) / (tf.reduce_sum(noobj) + 1e-6)
  class_loss = mean_over_objects(
    tf.keras.losses.sparse_categorical_crossentropy(labels['classes'], t_class, from_logits=True)
  )
  return 5.0 * (xy_loss + wh_loss) + obj_loss + 0.5 * noobj_loss + class_loss


def make_optimizer():
  rate = tf.keras.optimizers.schedules.PiecewiseConstantDecay([1, 3], [1e-3, 5e-3, 1e-3])
  return tf.keras.optimizers.Adam(rate, epsilon=1e-8)


def train_step(net, images, labels, optimizer):
  with tf.GradientTape() as tape:
    loss = detector_loss(net(images, training=True), labels)
    loss += tf.add_n(net.losses)
  weights = net.trainable_variables
  optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))
  return loss
