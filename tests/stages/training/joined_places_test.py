"""Places of a mistake of a step: those that are paired wrongly behind it are none."""

import abc

import keras
import numpy as np
import tensorflow as tf
from absl.testing import absltest

import tf2verify

v1 = tf.compat.v1
_STAGE = 'training_steps'


class Rms(keras.optimizers.RMSprop):
  """Starts its averages of squares with ones, as RMSPropOptimizer does."""

  def build(self, variables):
    super().build(variables)
    for slot in self._velocities:
      slot.assign(keras.ops.ones_like(slot))


class _Clipped(tf2verify.EquivalenceCase, abc.ABC):
  """Gradients that are clipped one by one, and a centered RMSProp, in the forms of Keras."""

  rho, clip = 0.95, 'clipnorm'

  def build_tf1_graph(self, inputs, training):
    hidden = v1.layers.dense(inputs, 5, tf.nn.relu, name='hidden')
    return v1.layers.dense(hidden, 3, name='out')

  def make_tf2_layer(self):
    layers = keras.layers.Dense(5, 'relu', name='hidden'), keras.layers.Dense(3, name='out')
    return keras.Sequential(layers)

  def make_inputs(self):
    return tf2verify.normal_inputs((6, 4))

  def make_labels(self):
    return tf2verify.normal_inputs((6, 3), seed=3)

  def tf1_loss(self, outputs, labels):
    return tf.reduce_mean(tf.square(outputs - labels))

  tf2_loss = tf1_loss

  def make_tf1_train_op(self, loss):
    optimizer = v1.train.RMSPropOptimizer(0.005, 0.95, epsilon=0.01, centered=True)
    pairs = [(tf.clip_by_norm(g, 0.2), v) for g, v in optimizer.compute_gradients(loss)]
    return optimizer.apply_gradients(pairs, v1.train.get_or_create_global_step())

  def make_tf2_optimizer(self):
    return Rms(0.005, rho=self.rho, epsilon=0.01, centered=True, **{self.clip: 0.2})


class _Rows(tf2verify.EquivalenceCase, abc.ABC):
  """The global norm of gradients of rows, that of a kernel in two parts among them."""

  dense_first = False

  def build_tf1_graph(self, inputs, training):
    table = v1.get_variable('table', [8, 3])
    rows = tf.nn.embedding_lookup(table, inputs)
    _, state = v1.nn.dynamic_rnn(v1.nn.rnn_cell.BasicLSTMCell(4), rows, dtype=tf.float32)
    return v1.layers.dense(state.h, 2, name='out')

  def make_tf2_layer(self):
    limits = (6.0 / 11) ** 0.5, (6.0 / (3 + 4 + 16)) ** 0.5
    starts = [keras.initializers.RandomUniform(-one, one) for one in (limits[0], *limits[1:] * 2)]
    table = keras.layers.Embedding(8, 3, embeddings_initializer=starts[0], name='table')
    lstm = keras.layers.LSTM(
      4, kernel_initializer=starts[1], recurrent_initializer=starts[2], name='lstm'
    )
    return keras.Sequential([table, lstm, keras.layers.Dense(2, name='out')])

  def make_inputs(self):
    return np.array([[1, 2, 1], [3, 3, 5], [2, 6, 2], [7, 1, 0]], np.int32)

  def make_labels(self):
    return tf2verify.normal_inputs((4, 2), seed=3)

  def tf1_loss(self, outputs, labels):
    return tf.reduce_mean(tf.square(outputs - labels))

  tf2_loss = tf1_loss

  def make_tf1_train_op(self, loss):
    optimizer = v1.train.AdamOptimizer(0.01)
    gradients, variables = zip(*optimizer.compute_gradients(loss), strict=True)
    gradients, _ = tf.clip_by_global_norm(gradients, 0.05)
    pairs = zip(gradients, variables, strict=True)
    return optimizer.apply_gradients(pairs, v1.train.get_or_create_global_step())

  def make_tf2_optimizer(self):
    return keras.optimizers.Adam(0.01, epsilon=1e-8)

  def tf2_train_step(self, layer, inputs, labels, optimizer):
    with tf.GradientTape() as tape:
      loss = self.tf2_loss(layer(inputs, training=True), labels)
    variables = layer.trainable_variables
    gradients = tape.gradient(loss, [one.value for one in variables])
    if self.dense_first:
      gradients = [tf.convert_to_tensor(one) for one in gradients]
    gradients, _ = tf.clip_by_global_norm(gradients, 0.05)
    dense = [tf.convert_to_tensor(one) for one in gradients]
    optimizer.apply_gradients(zip(dense, variables, strict=True))
    return loss


class JoinedPlacesTest(absltest.TestCase):
  def found(self, base, status, **settings):
    verdict = tf2verify.verify(type('Case', (base,), settings), [_STAGE])
    found = next(stage for stage in verdict.stages if stage.stage == _STAGE)
    self.assertIs(found.status, status, verdict.to_text())
    return found

  def test_right_ports(self):
    for base in (_Clipped, _Rows):
      self.found(base, tf2verify.Status.PASSED)

  def test_another_norm_before_an_optimizer_of_another_form(self):
    found = self.found(_Clipped, tf2verify.Status.FAILED, clip='global_clipnorm')
    self.assertIn('the port scales all gradients by their global norm', found.to_text())
    sources = [one for one in found.diagnosis.sources if one.experiment is not None]
    self.assertNotEmpty(sources, found.to_text())
    for source in sources:
      # The optimizer is right: `rate * gradient` is no counterpart of `(1 - rho) * gradient`.
      self.assertNotEqual(source.tf1_type, 'Mul', found.to_text())
    self.assertNotIn('formula/mul_2', found.to_text())

  def test_a_decay_of_an_optimizer_of_another_form(self):
    found = self.found(_Clipped, tf2verify.Status.FAILED, rho=0.9)
    (cause,) = found.diagnosis.causes
    self.assertIn('decay is 0.95 in TF1 and 0.9 in the port', cause.text)
    self.assertTrue(cause.is_proven, found.to_text())

  def test_a_norm_that_differs_by_little(self):
    found = self.found(_Rows, tf2verify.Status.FAILED, dense_first=True)
    text = found.to_text()
    self.assertIn('before it takes the norm', text)
    # 1 - 0.999 is rounded otherwise in the port's Adam, which is no place of that.
    sources = found.diagnosis.sources
    self.assertNotEmpty(sources, text)
    for source in sources:
      self.assertNotIn('formula', source.tf1_op, text)


if __name__ == '__main__':
  absltest.main()
