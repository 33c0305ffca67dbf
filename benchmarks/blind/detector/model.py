"""A small one-stage detector over a feature pyramid, TF1 code with tf-slim.

After Lin et al. 2017, 'Feature Pyramid Networks for Object Detection' and 'Focal Loss for Dense
Object Detection'; anchors and box coding are those of Ren et al. 2015, 'Faster R-CNN'.
"""

import numpy as np
import tensorflow.compat.v1 as tf
import tf_slim as slim

CLASSES = 3
LEVELS = (2, 3)  # strides 4 and 8
ASPECTS = (0.5, 1.0, 2.0)
ANCHOR_SCALE = 2.0
SCALE_FACTORS = (10.0, 10.0, 5.0, 5.0)


def generate_anchors(size):
  """[y1, x1, y2, x2] in pixels, level by level, row by row."""
  anchors = []
  for level in LEVELS:
    stride = 2**level
    for y in range(size // stride):
      for x in range(size // stride):
        cy, cx = (y + 0.5) * stride, (x + 0.5) * stride
        for aspect in ASPECTS:
          h = ANCHOR_SCALE * stride / np.sqrt(aspect)
          w = ANCHOR_SCALE * stride * np.sqrt(aspect)
          anchors.append([cy - h / 2, cx - w / 2, cy + h / 2, cx + w / 2])
  return np.array(anchors, np.float32)


def detector_arg_scope(training, weight_decay=0.004):
  batch_norm = {
    'is_training': training, 'decay': 0.9, 'epsilon': 1e-3, 'scale': True,
    'updates_collections': tf.GraphKeys.UPDATE_OPS,
  }
  with slim.arg_scope(
    [slim.conv2d],
    weights_regularizer=slim.l2_regularizer(weight_decay),
    weights_initializer=tf.truncated_normal_initializer(stddev=0.09),
    activation_fn=tf.nn.relu6,
    normalizer_fn=slim.batch_norm,
    normalizer_params=batch_norm,
  ):
    with slim.arg_scope([slim.batch_norm], **batch_norm) as scope:
      return scope


def backbone(images):
  with tf.variable_scope('backbone'):
    net = images / 127.5 - 1.0
    net = slim.conv2d(net, 6, [3, 3], stride=2, scope='conv1')
    net = slim.conv2d(net, 8, [3, 3], stride=2, scope='conv2')
    residual = slim.conv2d(net, 8, [3, 3], activation_fn=None, scope='conv2_res')
    c2 = tf.nn.relu6(net + residual)
    c3 = slim.conv2d(c2, 10, [3, 3], stride=2, scope='conv3')
    return c2, c3


def pyramid(c2, c3):
  with tf.variable_scope('fpn'):
    with slim.arg_scope([slim.conv2d], activation_fn=None, normalizer_fn=None):
      p3 = slim.conv2d(c3, 8, [1, 1], scope='lateral3')
      p2 = slim.conv2d(c2, 8, [1, 1], scope='lateral2')
      p2 += tf.image.resize_nearest_neighbor(p3, tf.shape(p2)[1:3])
      return [slim.conv2d(p, 8, [3, 3], scope='smooth%d' % l) for l, p in zip(LEVELS, (p2, p3))]


def head(net, depth, name, bias, training, reuse):
  with tf.variable_scope(name, reuse=reuse):
    net = slim.conv2d(net, 8, [3, 3], normalizer_fn=None, activation_fn=tf.nn.relu, scope='tower')
    net = slim.dropout(net, keep_prob=0.8, is_training=training, scope='dropout')
    net = slim.conv2d(
      net, depth * len(ASPECTS), [3, 3], normalizer_fn=None, activation_fn=None,
      weights_initializer=tf.random_normal_initializer(stddev=0.03),
      biases_initializer=tf.constant_initializer(bias), scope='predict',
    )
    return tf.reshape(net, [tf.shape(net)[0], -1, depth])


def decode(codes, anchors):
  ha, wa = anchors[:, 2] - anchors[:, 0], anchors[:, 3] - anchors[:, 1]
  cya, cxa = anchors[:, 0] + 0.5 * ha, anchors[:, 1] + 0.5 * wa
  ty, tx, th, tw = tf.unstack(codes / tf.constant(SCALE_FACTORS), axis=2)
  cy, cx = ty * ha + cya, tx * wa + cxa
  h, w = tf.exp(tf.minimum(th, 2.0)) * ha, tf.exp(tf.minimum(tw, 2.0)) * wa
  return tf.stack([cy - h / 2.0, cx - w / 2.0, cy + h / 2.0, cx + w / 2.0], axis=2)


def detector(images, training):
  size = int(images.shape[1])
  with slim.arg_scope(detector_arg_scope(training)), tf.variable_scope('detector'):
    levels = pyramid(*backbone(images))
    prior = -np.log((1 - 0.05) / 0.05)
    classes, codes = [], []
    for i, level in enumerate(levels):
      classes.append(head(level, CLASSES, 'class_head', prior, training, i > 0))
      codes.append(head(level, 4, 'box_head', 0.0, training, i > 0))
  classes, codes = tf.concat(classes, 1), tf.concat(codes, 1)
  outputs = {'classes': classes, 'codes': codes}
  if not training:
    boxes = decode(codes, tf.constant(generate_anchors(size)))
    boxes = tf.clip_by_value(boxes, 0.0, float(size)) / float(size)
    scores = tf.sigmoid(classes)
    _, best = tf.nn.top_k(tf.reduce_max(scores, 2), k=20)
    boxes, scores = tf.batch_gather(boxes, best), tf.batch_gather(scores, best)
    outputs['boxes'], outputs['scores'], outputs['labels'], _ = (
      tf.image.combined_non_max_suppression(
        boxes[:, :, None], scores, max_output_size_per_class=5, max_total_size=8,
        iou_threshold=0.5, score_threshold=0.02, clip_boxes=False,
      )
    )
  return outputs


def pairwise_iou(anchors, boxes):
  """[batch, anchors, boxes]."""
  anchors, boxes = anchors[None, :, None], boxes[:, None]
  low, high = tf.maximum(anchors[..., :2], boxes[..., :2]), tf.minimum(anchors[..., 2:], boxes[..., 2:])
  intersection = tf.reduce_prod(tf.maximum(high - low, 0.0), -1)
  areas = [tf.reduce_prod(b[..., 2:] - b[..., :2], -1) for b in (anchors, boxes)]
  return intersection / (areas[0] + areas[1] - intersection + 1e-8)


def encode(boxes, anchors):
  ha, wa = anchors[:, 2] - anchors[:, 0], anchors[:, 3] - anchors[:, 1]
  cya, cxa = anchors[:, 0] + 0.5 * ha, anchors[:, 1] + 0.5 * wa
  h = tf.maximum(boxes[..., 2] - boxes[..., 0], 1e-3)
  w = tf.maximum(boxes[..., 3] - boxes[..., 1], 1e-3)
  cy, cx = boxes[..., 0] + 0.5 * h, boxes[..., 1] + 0.5 * w
  codes = [(cy - cya) / ha, (cx - cxa) / wa, tf.log(h / ha), tf.log(w / wa)]
  return tf.stack(codes, -1) * tf.constant(SCALE_FACTORS)


def focal_loss(logits, targets, alpha=0.25, gamma=2.0):
  p = tf.sigmoid(logits)
  cross_entropy = tf.nn.sigmoid_cross_entropy_with_logits(labels=targets, logits=logits)
  p_t = tf.where(tf.equal(targets, 1.0), p, 1.0 - p)
  alpha_t = tf.where(tf.equal(targets, 1.0), alpha * tf.ones_like(p), (1 - alpha) * tf.ones_like(p))
  return alpha_t * tf.pow(1.0 - p_t, gamma) * cross_entropy


def detection_loss(outputs, labels, size=32):
  anchors = tf.constant(generate_anchors(size))
  iou = pairwise_iou(anchors, labels['boxes'])
  best, matched = tf.reduce_max(iou, 2), tf.argmax(iou, 2)
  positive = tf.cast(best >= 0.45, tf.float32)
  used = positive + tf.cast(best < 0.35, tf.float32)
  targets = tf.one_hot(tf.batch_gather(labels['classes'], matched), CLASSES) * positive[..., None]
  count = tf.maximum(tf.reduce_sum(positive, 1), 1.0)
  class_loss = tf.reduce_sum(focal_loss(outputs['classes'], targets) * used[..., None], [1, 2])
  class_loss = tf.reduce_mean(class_loss / count)
  codes = encode(tf.batch_gather(labels['boxes'], matched), anchors)
  box_loss = tf.losses.huber_loss(
    codes, outputs['codes'], weights=positive[..., None], delta=0.5,
    reduction=tf.losses.Reduction.NONE,
  )
  box_loss = tf.reduce_mean(tf.reduce_sum(box_loss, [1, 2]) / count)
  return {'loss': class_loss + 0.1 * box_loss, 'class_loss': class_loss, 'box_loss': box_loss}


def train_op(loss):
  step = tf.train.get_or_create_global_step()
  rate = tf.train.piecewise_constant(step, [1, 3], [0.005, 0.02, 0.002])
  optimizer = tf.train.RMSPropOptimizer(rate, decay=0.9, momentum=0.8, epsilon=0.1)
  pairs = optimizer.compute_gradients(loss)
  pairs = [(g * 2.0 if v.op.name.endswith('biases') else g, v) for g, v in pairs]
  pairs = slim.learning.clip_gradient_norms(pairs, 1.0)
  update = tf.group(*tf.get_collection(tf.GraphKeys.UPDATE_OPS))
  with tf.control_dependencies([update]):
    return optimizer.apply_gradients(pairs, global_step=step)
