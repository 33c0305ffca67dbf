"""Steps that weight the parts of what they differentiate otherwise than TF1."""

import abc

import tensorflow as tf
from absl.testing import absltest, parameterized

import tf2verify

v1 = tf.compat.v1


def _parts(outputs, labels):
  error = tf.reduce_mean(tf.square(outputs['mean'] - labels))
  return {'error': error, 'size': tf.reduce_mean(tf.abs(outputs['hidden']))}


class Port(tf.keras.layers.Layer):
  def build(self, shape):
    self.kernel = self.add_weight(shape=(3, 4), name='kernel')
    self.head = self.add_weight(shape=(4, 1), name='head')

  def call(self, inputs):
    hidden = tf.tanh(inputs @ self.kernel)
    return {'hidden': hidden, 'mean': hidden @ self.head}


class WeightedCase(tf2verify.EquivalenceCase, abc.ABC):
  """The losses that are returned agree; what is differentiated is made in the step itself."""

  training_modes = (True,)
  variable_names = {'kernel': 'port/kernel', 'head': 'port/head'}
  tf1_weight = 0.3

  def build_tf1_graph(self, inputs, training):
    hidden = tf.tanh(tf.matmul(inputs, v1.get_variable('kernel', [3, 4])))
    return {'hidden': hidden, 'mean': tf.matmul(hidden, v1.get_variable('head', [4, 1]))}

  def make_tf2_layer(self):
    return Port(name='port')

  def make_inputs(self):
    return tf2verify.normal_inputs((5, 3))

  def make_labels(self):
    return tf2verify.normal_inputs((5, 1), seed=4)

  def tf1_loss(self, outputs, labels):
    return _parts(outputs, labels)

  tf2_loss = tf1_loss

  def make_tf1_train_op(self, loss):
    return v1.train.AdamOptimizer(0.01).minimize(loss['error'] + self.tf1_weight * loss['size'])

  def make_tf2_optimizer(self):
    return tf.keras.optimizers.Adam(0.01, epsilon=1e-8)

  def differentiated(self, parts):
    raise NotImplementedError

  def tf2_train_step(self, layer, inputs, labels, optimizer):
    with tf.GradientTape() as tape:
      parts = _parts(layer(inputs, training=True), labels)
      loss = self.differentiated(parts)
    variables = layer.trainable_variables
    optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
    return parts


class PenalizedCase(WeightedCase, abc.ABC):
  """A penalty that is added in the step; that of TF1 leaves the head out."""

  def make_tf1_train_op(self, loss):
    (kernel,) = (v for v in v1.trainable_variables() if 'kernel' in v.name)
    return v1.train.AdamOptimizer(0.01).minimize(loss['error'] + 0.02 * tf.nn.l2_loss(kernel))

  def tf2_train_step(self, layer, inputs, labels, optimizer):
    variables = layer.trainable_variables
    with tf.GradientTape() as tape:
      parts = _parts(layer(inputs, training=True), labels)
      loss = parts['error'] + 0.01 * sum(tf.reduce_sum(tf.square(w)) for w in variables)
    optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
    return parts


def _diagnosis(differentiated):
  case = type('Case', (WeightedCase,), {'differentiated': staticmethod(differentiated)})
  verdict = tf2verify.verify(case, ['training_steps'])
  return next(one for one in verdict.stages if one.stage == 'training_steps').diagnosis


def _other_weight(parts):
  return parts['error'] + 0.03 * parts['size']


class LossWeightsTest(parameterized.TestCase):
  @parameterized.parameters(
    (_other_weight, 'is multiplied by 0.03 in the port, by 0.3 in tf1'),
    (lambda parts: parts['error'] + parts['size'], 'is 0.3 times as large in tf1'),
    (lambda parts: (parts['error'] + 0.3 * parts['size']) / 2.0, 'is 2 times as large in tf1'),
    (lambda parts: parts['error'] - 0.3 * parts['size'], 'has the opposite sign in tf1'),
  )
  def test_the_weight_is_proven(self, differentiated, said):
    (cause,) = _diagnosis(differentiated).causes
    self.assertTrue(cause.is_proven)
    self.assertIn(said, cause.text)

  def test_a_penalty_of_one_variable_more(self):
    verdict = tf2verify.verify(type('Case', (PenalizedCase,), {}), ['training_steps'])
    failed = next(one for one in verdict.stages if one.stage == 'training_steps')
    (cause,) = failed.diagnosis.causes
    self.assertIn(
      'the port adds an extra 0.02 times the variable to the gradient of head', cause.text
    )
    self.assertIn('is 0 times as large in tf1', cause.evidence)

  def test_the_line_is_that_of_the_sum(self):
    (source,) = _diagnosis(_other_weight).sources
    self.assertIn('0.03 * ', source.tf2_source.gradient_of.code)


if __name__ == '__main__':
  absltest.main()
