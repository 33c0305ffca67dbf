"""A YOLOv2-like detector, TF1 code of 2017 with `tf.layers`.

After Redmon, Farhadi 2017, 'YOLO9000: Better, Faster, Stronger': convolutions with batch norm and
leaky ReLU, a passthrough of the finer features, anchors, and a loss of boxes, objects and classes.
"""

import numpy as np
import tensorflow.compat.v1 as tf

ANCHORS = np.array([[0.8, 1.1], [2.0, 1.4]], np.float32)
GRID, CLASSES = 4, 3
LAMBDA_COORD, LAMBDA_NOOBJ, IOU_THRESHOLD = 5.0, 0.5, 0.5


def conv_bn(x, filters, size, training, name):
  with tf.variable_scope(name):
    x = tf.layers.conv2d(
      x,
      filters,
      size,
      padding='same',
      use_bias=False,
      name='conv',
      kernel_regularizer=tf.keras.regularizers.l2(5e-4),
    )
    x = tf.layers.batch_normalization(x, momentum=0.9, epsilon=1e-5, training=training, name='bn')
    return tf.nn.leaky_relu(x, alpha=0.1)


def darknet(images, training):
  with tf.variable_scope('darknet'):
    x = conv_bn(images, 6, 3, training, 'conv1')
    x = tf.layers.max_pooling2d(x, 2, 2)
    x = conv_bn(x, 8, 3, training, 'conv2')
    x = tf.layers.max_pooling2d(x, 2, 2)
    x = conv_bn(x, 10, 3, training, 'conv3')
    passthrough = x
    x = tf.layers.max_pooling2d(x, 2, 2)
    x = conv_bn(x, 12, 3, training, 'conv4')
    p = conv_bn(passthrough, 4, 1, training, 'conv5_pass')
    p = tf.space_to_depth(p, 2)
    x = tf.concat([p, x], axis=-1)
    x = conv_bn(x, 12, 3, training, 'conv6')
    x = tf.layers.conv2d(x, len(ANCHORS) * (5 + CLASSES), 1, name='head')
  return tf.reshape(x, [-1, GRID, GRID, len(ANCHORS), 5 + CLASSES])


def iou(xy_a, wh_a, xy_b, wh_b):
  low = tf.maximum(xy_a - wh_a / 2, xy_b - wh_b / 2)
  high = tf.minimum(xy_a + wh_a / 2, xy_b + wh_b / 2)
  inter = tf.reduce_prod(tf.maximum(high - low, 0.0), -1)
  union = tf.reduce_prod(wh_a, -1) + tf.reduce_prod(wh_b, -1) - inter
  return inter / (union + 1e-6)


def yolo_loss(net, labels):
  """labels: boxes [B,S,S,A,4] (offset in cell, size in cells), object and classes [B,S,S,A]."""
  obj = labels['object']
  xy = tf.sigmoid(net[..., 0:2])
  wh = tf.exp(net[..., 2:4]) * ANCHORS
  conf = tf.sigmoid(net[..., 4])
  true_xy, true_wh = labels['boxes'][..., 0:2], labels['boxes'][..., 2:4]
  overlap = iou(xy, wh, true_xy, true_wh)
  target = tf.stop_gradient(overlap)
  quiet = tf.to_float(overlap < IOU_THRESHOLD) * (1.0 - obj)
  n_obj = tf.reduce_sum(obj) + 1e-6
  loss_xy = tf.reduce_sum(tf.expand_dims(obj, -1) * tf.square(xy - true_xy)) / n_obj
  loss_wh = (
    tf.reduce_sum(tf.expand_dims(obj, -1) * tf.square(tf.sqrt(wh) - tf.sqrt(true_wh))) / n_obj
  )
  loss_obj = tf.reduce_sum(obj * tf.square(conf - target)) / n_obj
  loss_noobj = tf.reduce_sum(quiet * tf.square(conf)) / (tf.reduce_sum(quiet) + 1e-6)
  ce = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels['classes'], logits=net[..., 5:])
  loss_class = tf.reduce_sum(obj * ce) / n_obj
  return LAMBDA_COORD * (loss_xy + loss_wh) + loss_obj + LAMBDA_NOOBJ * loss_noobj + loss_class


def train_op(loss):
  step = tf.train.get_or_create_global_step()
  rate = tf.train.piecewise_constant(step, [1, 3], [1e-3, 5e-3, 1e-3])
  with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
    return tf.train.AdamOptimizer(rate).minimize(loss, global_step=step)
