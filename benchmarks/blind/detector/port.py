"""The right port of the detector: tf-slim under the shim, loss and training step of TF2."""

import math

import numpy as np
import tensorflow as tf
import tf_slim as slim

v1 = tf.compat.v1

CLASSES = 3
STRIDES = (4, 8)
ASPECTS = (0.5, 1.0, 2.0)
ANCHOR_SCALE = 2.0
SCALE_FACTORS = (10.0, 10.0, 5.0, 5.0)


def generate_anchors(size):
  """Centre and extent of each anchor, [cy, cx, h, w] in pixels."""
  levels = []
  for stride in STRIDES:
    centres = (np.arange(size // stride) + 0.5) * stride
    cy, cx = np.meshgrid(centres, centres, indexing='ij')
    aspects = np.array(ASPECTS)
    h = ANCHOR_SCALE * stride / np.sqrt(aspects)
    w = ANCHOR_SCALE * stride * np.sqrt(aspects)
    grid = np.stack([cy, cx], -1)[:, :, None, :]
    extent = np.stack([h, w], -1)[None, None]
    shape = cy.shape + (len(aspects), 2)
    level = np.concatenate([np.broadcast_to(grid, shape), np.broadcast_to(extent, shape)], -1)
    levels.append(level.reshape(-1, 4))
  return tf.constant(np.concatenate(levels), tf.float32)


def to_corners(boxes):
  centre, extent = boxes[..., :2], boxes[..., 2:]
  return tf.concat([centre - extent / 2, centre + extent / 2], axis=-1)


def arg_scope(training, weight_decay=0.004):
  batch_norm = {
    'is_training': training,
    'decay': 0.9,
    'epsilon': 0.001,
    'scale': True,
  }
  with slim.arg_scope(
    [slim.conv2d],
    weights_regularizer=slim.l2_regularizer(weight_decay),
    weights_initializer=v1.truncated_normal_initializer(stddev=0.09),
    activation_fn=tf.nn.relu6,
    normalizer_fn=slim.batch_norm,
    normalizer_params=batch_norm,
  ) as scope:
    return scope


class Detector(tf.keras.layers.Layer):
  """Backbone, pyramid and heads, with the variables of TF1."""

  def backbone(self, images):
    with v1.variable_scope('backbone'):
      x = images / 127.5 - 1.0
      x = slim.conv2d(x, 6, 3, stride=2, scope='conv1')
      x = slim.conv2d(x, 8, 3, stride=2, scope='conv2')
      residual = slim.conv2d(x, 8, 3, activation_fn=None, scope='conv2_res')
      c2 = tf.nn.relu6(x + residual)
      c3 = slim.conv2d(c2, 10, 3, stride=2, scope='conv3')
    return c2, c3

  def pyramid(self, c2, c3):
    with v1.variable_scope('fpn'):
      with slim.arg_scope([slim.conv2d], activation_fn=None, normalizer_fn=None):
        p3 = slim.conv2d(c3, 8, 1, scope='lateral3')
        p2 = slim.conv2d(c2, 8, 1, scope='lateral2')
        p2 = p2 + tf.repeat(tf.repeat(p3, 2, axis=1), 2, axis=2)
        p2 = slim.conv2d(p2, 8, 3, scope='smooth2')
        p3 = slim.conv2d(p3, 8, 3, scope='smooth3')
    return p2, p3

  def head(self, x, depth, name, bias, training):
    with v1.variable_scope(name, reuse=v1.AUTO_REUSE):
      x = slim.conv2d(
        x, 8, 3, normalizer_fn=None, activation_fn=tf.nn.relu, scope='tower'
      )
      if training:
        x = tf.nn.dropout(x, rate=0.2)
      x = slim.conv2d(
        x,
        depth * len(ASPECTS),
        3,
        normalizer_fn=None,
        activation_fn=None,
        weights_initializer=v1.random_normal_initializer(stddev=0.03),
        biases_initializer=v1.constant_initializer(bias),
        scope='predict',
      )
    return tf.reshape(x, [tf.shape(x)[0], -1, depth])

  @v1.keras.utils.track_tf1_style_variables
  def call(self, images, training=False):
    with slim.arg_scope(arg_scope(training)), v1.variable_scope('detector'):
      levels = self.pyramid(*self.backbone(images))
      classes, codes = [], []
      for level in levels:
        prior = -math.log((1 - 0.05) / 0.05)
        classes.append(self.head(level, CLASSES, 'class_head', prior, training))
        codes.append(self.head(level, 4, 'box_head', 0.0, training))
    outputs = {'classes': tf.concat(classes, axis=1), 'codes': tf.concat(codes, axis=1)}
    if not training:
      outputs.update(postprocess(outputs, images.shape[1]))
    return outputs


def decode(codes, anchors):
  codes = codes / tf.constant(SCALE_FACTORS)
  centre = codes[..., :2] * anchors[:, 2:] + anchors[:, :2]
  extent = tf.exp(tf.minimum(codes[..., 2:], 2.0)) * anchors[:, 2:]
  return to_corners(tf.concat([centre, extent], axis=-1))


def postprocess(outputs, size):
  boxes = decode(outputs['codes'], generate_anchors(size))
  boxes = tf.clip_by_value(boxes, 0.0, size) / size
  scores = tf.sigmoid(outputs['classes'])
  best = tf.math.top_k(tf.reduce_max(scores, axis=-1), k=20).indices
  boxes = tf.gather(boxes, best, batch_dims=1)
  scores = tf.gather(scores, best, batch_dims=1)
  boxes, scores, labels, _ = tf.image.combined_non_max_suppression(
    boxes[:, :, tf.newaxis],
    scores,
    max_output_size_per_class=5,
    max_total_size=8,
    iou_threshold=0.5,
    score_threshold=0.02,
    clip_boxes=False,
  )
  return {'boxes': boxes, 'scores': scores, 'labels': labels}


def pairwise_iou(anchors, boxes):
  anchors, boxes = to_corners(anchors)[:, None], boxes[:, None]
  top_left = tf.maximum(anchors[..., :2], boxes[..., :2])
  bottom_right = tf.minimum(anchors[..., 2:], boxes[..., 2:])
  intersection = tf.reduce_prod(tf.nn.relu(bottom_right - top_left), axis=-1)
  anchor_area = tf.reduce_prod(anchors[..., 2:] - anchors[..., :2], axis=-1)
  box_area = tf.reduce_prod(boxes[..., 2:] - boxes[..., :2], axis=-1)
  return intersection / (anchor_area + box_area - intersection + 1e-8)


def encode(boxes, anchors):
  extent = tf.maximum(boxes[..., 2:] - boxes[..., :2], 1e-3)
  centre = boxes[..., :2] + extent / 2
  shift = (centre - anchors[:, :2]) / anchors[:, 2:]
  scale = tf.math.log(extent / anchors[:, 2:])
  return tf.concat([shift, scale], axis=-1) * tf.constant(SCALE_FACTORS)


def focal_loss(logits, targets, alpha=0.25, gamma=2.0):
  losses = tf.nn.sigmoid_cross_entropy_with_logits(labels=targets, logits=logits)
  p = tf.sigmoid(logits)
  p_t = targets * p + (1.0 - targets) * (1.0 - p)
  alpha_t = targets * alpha + (1.0 - targets) * (1.0 - alpha)
  return alpha_t * (1.0 - p_t) ** gamma * losses


def huber(error, delta=0.5):
  size = tf.abs(error)
  return tf.where(size <= delta, 0.5 * size**2, delta * size - 0.5 * delta**2)


def detection_loss(outputs, labels, size=32):
  anchors = generate_anchors(size)
  iou = pairwise_iou(anchors, labels['boxes'])
  best = tf.reduce_max(iou, axis=-1)
  matched = tf.argmax(iou, axis=-1)
  positive = tf.cast(best >= 0.45, tf.float32)
  used = tf.cast((best >= 0.45) | (best < 0.35), tf.float32)
  classes = tf.gather(labels['classes'], matched, batch_dims=1)
  targets = tf.one_hot(classes, CLASSES) * positive[..., None]
  count = tf.maximum(tf.reduce_sum(positive, axis=1), 1.0)
  class_loss = focal_loss(outputs['classes'], targets) * used[..., None]
  class_loss = tf.reduce_mean(tf.reduce_sum(class_loss, axis=(1, 2)) / count)
  boxes = tf.gather(labels['boxes'], matched, batch_dims=1)
  box_loss = huber(outputs['codes'] - encode(boxes, anchors)) * positive[..., None]
  box_loss = tf.reduce_mean(tf.reduce_sum(box_loss, axis=(1, 2)) / count)
  return {'loss': class_loss + 0.1 * box_loss, 'class_loss': class_loss, 'box_loss': box_loss}


class RMSprop(tf.keras.optimizers.RMSprop):
  """With the mean square of tf.train.RMSPropOptimizer, which begins at one."""

  def build(self, var_list):
    fresh = not getattr(self, '_built', False)
    super().build(var_list)
    if fresh:
      for velocity in self._velocities:
        velocity.assign(tf.ones_like(velocity))


def make_optimizer():
  rate = tf.keras.optimizers.schedules.PiecewiseConstantDecay([1, 3], [0.005, 0.02, 0.002])
  return RMSprop(rate, rho=0.9, momentum=0.8, epsilon=0.1)


def train_step(model, images, labels, optimizer):
  with tf.GradientTape() as tape:
    outputs = model(images, training=True)
    loss = detection_loss(outputs, labels)['loss']
    loss += tf.add_n(model.losses)
  variables = model.trainable_variables
  gradients = []
  for gradient, variable in zip(tape.gradient(loss, variables), variables):
    if 'biases' in variable.name:
      gradient = 2.0 * gradient
    gradients.append(tf.clip_by_norm(gradient, 1.0))
  optimizer.apply_gradients(zip(gradients, variables))
  return loss
