"""Several mistakes of one forward pass, of which no single edit mends what differs."""

import abc

import tensorflow as tf
from absl.testing import absltest, parameterized

import tf2verify

v1 = tf.compat.v1
_STEPS, _WIDTH = 4, 5
_SHAPES = {'gate': (3, _WIDTH), 'key': (3, _WIDTH), 'add': (3, _WIDTH)}


class Recurrence(tf2verify.EquivalenceCase, abc.ABC):
  """Weights that go on from step to step, and a memory: both sides write the steps out."""

  training_modes = (False,)
  wrong: tuple[str, ...] = ()

  def build_tf1_graph(self, inputs, training):
    kept = {name: v1.get_variable(name, shape) for name, shape in _SHAPES.items()}
    weights, memory, outputs = tf.fill([tf.shape(inputs)[0], _WIDTH], 0.2), 0.0, []
    memory = tf.zeros([tf.shape(inputs)[0], _WIDTH])
    for n in range(_STEPS):
      x = inputs[:, n]
      content = tf.nn.softmax(tf.matmul(x, kept['key']) + memory)
      gate = tf.sigmoid(tf.matmul(x, kept['gate']))
      mixed = gate * content + (1 - gate) * weights
      turned = tf.concat([mixed[:, -1:], mixed[:, :-1]], axis=1)
      sharp = tf.pow(0.7 * mixed + 0.3 * turned, 1.5)
      weights = sharp / tf.reduce_sum(sharp, axis=1, keepdims=True)
      memory = memory * (1 - weights) + weights * tf.tanh(tf.matmul(x, kept['add']))
      outputs.append(tf.reduce_sum(tf.stack([weights, memory], axis=2), axis=2))
    return tf.stack(outputs, axis=1)

  def make_tf2_layer(self):
    return _Port(self.wrong)

  def make_inputs(self):
    return tf2verify.normal_inputs((3, _STEPS, 3))


class _Port(tf.Module):
  def __init__(self, wrong):
    super().__init__()
    self.wrong = wrong
    self.kept = {n: tf.Variable(tf.zeros(shape), name=n) for n, shape in _SHAPES.items()}

  def mixed(self, gate, content, weights):
    if 'gate' in self.wrong:
      return gate * weights + (1.0 - gate) * content
    return gate * content + (1.0 - gate) * weights

  def written(self, net):
    if 'tanh' in self.wrong:
      return net @ self.kept['add']
    return tf.tanh(net @ self.kept['add'])

  def __call__(self, inputs, training=False):
    weights = tf.fill([tf.shape(inputs)[0], _WIDTH], 0.2)
    memory = tf.zeros_like(weights)
    outputs = []
    for x in tf.unstack(inputs, axis=1):
      content = tf.nn.softmax(x @ self.kept['key'] + memory)
      mixed = self.mixed(tf.sigmoid(x @ self.kept['gate']), content, weights)
      sharp = (0.7 * mixed + 0.3 * tf.roll(mixed, 1, axis=1)) ** 1.5
      weights = sharp / tf.reduce_sum(sharp, -1, keepdims=True)
      memory = memory - memory * weights + weights * self.written(x)
      outputs.append(weights + memory)
    return tf.stack(outputs, 1)


class Squash(tf2verify.EquivalenceCase, abc.ABC):
  """Vectors that are squashed twice, in one formula that both sides write differently."""

  training_modes = (False,)
  function = staticmethod(tf.nn.relu)
  number = 1.0

  def build_tf1_graph(self, inputs, training):
    def squash(net):
      squared = tf.reduce_sum(tf.square(net), -2, keepdims=True)
      return squared / (1.0 + squared) / tf.sqrt(squared + 1e-3) * net

    net = v1.layers.dense(inputs, 8, tf.nn.relu, name='dense')
    net = squash(tf.reshape(net, [-1, 2, 4, 1]))
    return tf.squeeze(squash(tf.reduce_sum(net, axis=1, keepdims=True)), -1)

  def make_tf2_layer(self):
    case = self

    class Port(tf.Module):
      def __init__(self):
        super().__init__()
        self.kernel = tf.Variable(tf.zeros([3, 8]), name='kernel')
        self.bias = tf.Variable(tf.zeros([8]), name='bias')

      def squash(self, net):
        squared = tf.reduce_sum(net * net, -1, keepdims=True)
        return squared / (case.number + squared) * net / tf.sqrt(squared + 1e-3)

      def __call__(self, inputs, training=False):
        net = case.function(inputs @ self.kernel + self.bias)
        net = self.squash(tf.reshape(net, [-1, 2, 4]))
        return self.squash(tf.reduce_sum(net, 1))[:, None]

    return Port()

  def make_inputs(self):
    return tf2verify.normal_inputs((4, 3))


def _forward(case, **hooks):
  verdict = tf2verify.verify(type('Case', (case,), hooks), ['zero_randomness'])
  return next(one for one in verdict.stages if one.stage == 'zero_randomness')


class SeveralMistakesTest(parameterized.TestCase):
  @parameterized.parameters(Recurrence, Squash)
  def test_right_port(self, case):
    stage = _forward(case)
    self.assertTrue(stage.passed, stage.to_text())

  def test_of_rounds_that_both_sides_write_out(self):
    stage = _forward(Recurrence, wrong=('gate', 'tanh'))
    causes = stage.diagnosis.causes
    self.assertLen(causes, 2, stage.to_text())
    self.assertTrue(all(one.is_proven for one in causes), stage.to_text())
    texts = [one.text for one in causes]
    self.assertTrue(any('tanh' in text.lower() for text in texts), stage.to_text())

  def test_of_one_formula(self):
    stage = _forward(Squash, function=staticmethod(lambda net: net), number=0.5)
    causes = stage.diagnosis.causes
    self.assertLen(causes, 2, stage.to_text())
    self.assertTrue(all(one.is_proven for one in causes), stage.to_text())
    texts = ' '.join(one.text for one in causes)
    self.assertIn('the port lacks Relu', texts, stage.to_text())
    self.assertIn('0.5 in the port, 1 in tf1', texts, stage.to_text())
    self.assertNotIn('shape', texts.replace('after Reshape (Reshape)', ''), stage.to_text())


if __name__ == '__main__':
  absltest.main()
