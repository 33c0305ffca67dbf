"""Further steps of a table and a batch norm: of one example alone, a variance is rounding."""

import abc

import keras
import numpy as np
import tensorflow as tf
from absl.testing import absltest

import tf2verify
from tf2verify import Status

v1 = tf.compat.v1
_STAGE = 'training_steps'
_LIMIT = 0.02


class _Port(keras.layers.Layer):
  def __init__(self):
    super().__init__()
    self.table = keras.layers.Embedding(12, 4, 'glorot_uniform', name='table')
    self.score = keras.layers.Dense(1, name='score')
    self.hidden = keras.layers.Dense(6, name='hidden')
    self.norm = keras.layers.BatchNormalization(
      center=False, scale=False, epsilon=1e-9, momentum=0.99, name='norm'
    )
    self.logits = keras.layers.Dense(1, name='logits')

  def call(self, inputs, training=False):
    rows = self.table(inputs)
    shares = tf.nn.softmax(self.score(rows), axis=1)
    net = self.hidden(tf.reduce_sum(shares * rows, 1))
    net = net * tf.sigmoid(self.norm(net, training=training))
    return self.logits(net)[:, 0]


class _Ranked(tf2verify.EquivalenceCase, abc.ABC):
  """The bias before the softmax has a gradient of rounding; only some gradients are clipped."""

  training_steps_to_take = 3
  factor = 1.0

  def build_tf1_graph(self, inputs, training):
    table = v1.get_variable('table', [12, 4])
    rows = tf.nn.embedding_lookup(table, inputs)
    shares = tf.nn.softmax(v1.layers.dense(rows, 1, name='score'), axis=1)
    net = v1.layers.dense(tf.reduce_sum(shares * rows, 1), 6, name='hidden')
    norm = v1.layers.batch_normalization(
      net, training=training, center=False, scale=False, epsilon=1e-9, name='norm'
    )
    return v1.layers.dense(net * tf.sigmoid(norm), 1, name='logits')[:, 0]

  def make_tf2_layer(self):
    return _Port()

  def make_inputs(self):
    return np.random.RandomState(0).randint(0, 12, (6, 5)).astype(np.int32)

  def make_labels(self):
    return np.array([1, 0, 0, 1, 1, 0], np.float32)

  def tf1_loss(self, outputs, labels):
    return tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels, outputs))

  tf2_loss = tf1_loss

  def make_tf1_train_op(self, loss):
    optimizer = v1.train.AdagradOptimizer(0.05, initial_accumulator_value=0.1)
    gradients, variables = zip(*optimizer.compute_gradients(loss), strict=True)
    head = [n for n, v in enumerate(variables) if 'logits' in v.op.name]
    clipped, _ = tf.clip_by_global_norm(
      [g for n, g in enumerate(gradients) if n not in head], _LIMIT
    )
    rest = iter(clipped)
    gradients = [g if n in head else next(rest) for n, g in enumerate(gradients)]
    with tf.control_dependencies(v1.get_collection(v1.GraphKeys.UPDATE_OPS)):
      return optimizer.apply_gradients(zip(gradients, variables, strict=True))

  def make_tf2_optimizer(self):
    return keras.optimizers.Adagrad(0.05, initial_accumulator_value=0.1, epsilon=0.0)

  def tf2_train_step(self, layer, inputs, labels, optimizer):
    variables = layer.trainable_variables
    with tf.GradientTape() as tape:
      loss = self.tf2_loss(layer(inputs, training=True), labels)
    gradients = tape.gradient(loss, variables)
    head = [n for n, v in enumerate(variables) if 'logits' in v.path]
    rest = [g for n, g in enumerate(gradients) if n not in head]
    rest = [self.scaled(g) for g in rest]
    clipped = iter(map(tf.convert_to_tensor, tf.clip_by_global_norm(rest, _LIMIT)[0]))
    gradients = [g if n in head else next(clipped) for n, g in enumerate(gradients)]
    optimizer.apply_gradients(zip(gradients, variables, strict=True))
    return loss

  def scaled(self, gradient):
    if not isinstance(gradient, tf.IndexedSlices):
      return self.factor * gradient
    return tf.IndexedSlices(
      self.factor * gradient.values, gradient.indices, dense_shape=gradient.dense_shape
    )


class TablesAndNormsTest(absltest.TestCase):
  def _found(self, **settings):
    verdict = tf2verify.verify(type('Case', (_Ranked,), settings), [_STAGE])
    return next(stage for stage in verdict.stages if stage.stage == _STAGE)

  def test_right_port(self):
    found = self._found()
    self.assertIs(found.status, Status.PASSED, found.to_text())
    said = ' '.join((*found.blind_spots, *found.notes))
    self.assertNotIn('a further one at gradients', said)
    self.assertNotIn('clipping was not compared', said)
    self.assertIn('how they change larger ones was compared, and is the same', said)

  def test_gradients_multiplied_before_the_clipping(self):
    found = self._found(factor=2.0)
    said = [one for one in found.blind_spots if 'a further one at gradients' in one]
    self.assertTrue(found.status is Status.FAILED or said, found.to_text())
    if said:
      self.assertIn('in rows that a batch does not look up was not compared', ' '.join(found.notes))


if __name__ == '__main__':
  absltest.main()
