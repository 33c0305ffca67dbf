"""The head of a detector that decodes boxes: tf.layers in TF1, a model of tf-keras in the port."""

import math

import numpy as np
import tensorflow as tf

import tf2verify

v1 = tf.compat.v1


def tf1_head(inputs):
  anchors = inputs['anchors']
  codes = v1.layers.dense(inputs['features'], 4, name='codes')
  classes = v1.layers.dense(inputs['features'], 3, name='classes')
  center = anchors[..., :2] + codes[..., :2] * anchors[..., 2:]
  size = anchors[..., 2:] * tf.exp(tf.minimum(codes[..., 2:], math.log(1000.0)))
  boxes = tf.concat([center - size / 2, center + size / 2], -1)
  boxes = tf.maximum(tf.minimum(boxes, 1000.0), -1000.0)
  area = tf.nn.relu(inputs['ends'] - inputs['begins'])
  overlap = tf.math.divide_no_nan(area, area + inputs['other'])
  kept = tf.where(inputs['quality'] >= 0.35, classes, tf.zeros_like(classes))
  level = tf.cast(tf.math.ceil(inputs['side'] / 32.0), tf.int32)
  bias = tf.gather(v1.get_variable('levels', [6]), tf.clip_by_value(level, 0, 5))
  return {'boxes': boxes, 'overlap': overlap * kept[..., 0], 'kept': kept + bias[:, None, None]}


class Head(tf.keras.Model):
  def __init__(self):
    super().__init__()
    self.codes = tf.keras.layers.Dense(4, name='codes')
    self.classes = tf.keras.layers.Dense(3, name='classes')
    self.levels = self.add_weight(name='levels', shape=[6])

  def call(self, inputs):
    anchors = inputs['anchors']
    codes, classes = self.codes(inputs['features']), self.classes(inputs['features'])
    center = anchors[..., :2] + codes[..., :2] * anchors[..., 2:]
    widths = tf.minimum(codes[..., 2:], math.log(1000.0))
    size = anchors[..., 2:] * tf.exp(widths)
    boxes = tf.concat([center - size / 2, center + size / 2], -1)
    boxes = tf.clip_by_value(boxes, -1000.0, 1000.0)
    area = tf.nn.relu(inputs['ends'] - inputs['begins'])
    overlap = tf.math.divide_no_nan(area, area + inputs['other'])
    good = inputs['quality'] >= 0.35
    kept = tf.where(good, classes, tf.zeros_like(classes))
    level = tf.cast(tf.math.ceil(inputs['side'] / 32.0), tf.int32)
    bias = tf.gather(self.levels, tf.clip_by_value(level, 0, 5))
    return {'boxes': boxes, 'overlap': overlap * kept[..., 0], 'kept': kept + bias[:, None, None]}


class ModelCase(tf2verify.EquivalenceCase):
  variable_map = 'derive'

  def build_tf1_graph(self, inputs, training):
    return tf1_head(inputs)

  def make_tf2_layer(self):
    return Head()

  def make_inputs(self):
    random = np.random.RandomState(0)
    begins = random.uniform(0.0, 0.4, (3, 5)).astype(np.float32)
    return {
      'features': tf2verify.normal_inputs((3, 5, 6)),
      'anchors': random.uniform(0.1, 0.9, (3, 5, 4)).astype(np.float32),
      'begins': begins,
      'ends': begins + random.uniform(0.1, 0.5, (3, 5)).astype(np.float32),
      'other': random.uniform(0.1, 0.5, (3, 5)).astype(np.float32),
      'quality': random.uniform(0.0, 1.0, (3, 5, 1)).astype(np.float32),
      'side': np.array([32.0, 96.0, 128.0], np.float32),
    }

  def make_labels(self):
    return tf2verify.normal_inputs((3, 5, 4), seed=3)

  def tf1_loss(self, outputs, labels):
    return v1.losses.huber_loss(labels, outputs['boxes'], delta=50.0)

  def tf2_loss(self, outputs, labels):
    error = tf.abs(outputs['boxes'] - labels)
    inner = tf.minimum(error, 50.0)
    return tf.reduce_mean(0.5 * inner**2 + 50.0 * (error - inner))
