"""Updates that agree at the gradients of the steps, and not at smaller ones."""

import abc

import keras
import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

import tf2verify
from tf2verify import Status

v1 = tf.compat.v1
_STAGE = 'training_steps'


class Rms(keras.optimizers.Optimizer):
  """RMSProp with momentum, as TF1 has it: squares start with ones, epsilon is in the root."""

  def build(self, variables):
    if self.built:
      return
    super().build(variables)
    self.squares = [self.add_variable_from_reference(v, name='square') for v in variables]
    self.steps = [self.add_variable_from_reference(v, name='momentum') for v in variables]
    for square in self.squares:
      square.assign(keras.ops.ones_like(square))

  def update_step(self, gradient, variable, learning_rate):
    number = self._get_variable_index(variable)
    square, step = self.squares[number], self.steps[number]
    rate = keras.ops.cast(learning_rate, variable.dtype)
    square.assign(0.95 * square + 0.05 * gradient**2)
    step.assign(0.5 * step + rate * gradient / self.root(square))
    variable.assign(variable - step)

  def root(self, square):
    return (keras.ops.convert_to_tensor(square) + 1e-6) ** 0.5


class Outside(Rms):
  def root(self, square):
    return keras.ops.sqrt(square) + 1e-6


class Bounded(Rms):
  def root(self, square):
    return keras.ops.sqrt(keras.ops.maximum(square, 1e-4) + 1e-6)


class OwnRms:
  """The same by hand, in no optimizer of Keras: what it is given is known to nobody."""

  def __init__(self, outside):
    self.outside = outside
    self.squares, self.steps = [], []

  def step(self, gradients, variables):
    if not self.squares:
      self.squares = [tf.Variable(tf.ones_like(v)) for v in variables]
      self.steps = [tf.Variable(tf.zeros_like(v)) for v in variables]
    rows = zip(gradients, variables, self.squares, self.steps, strict=True)
    for gradient, variable, square, step in rows:
      square.assign(0.95 * square + 0.05 * gradient**2)
      root = tf.sqrt(square) + 1e-6 if self.outside else tf.sqrt(square + 1e-6)
      root = self.bounded(root)
      step.assign(0.5 * step + 0.01 * gradient / root)
      variable.assign_sub(step)

  def bounded(self, root):
    return root


class OwnBounded(OwnRms):
  """What only large gradients show."""

  def bounded(self, root):
    return tf.minimum(root, 50.0)


class OwnAdam:
  """Adam by hand, which may keep the greatest second moments."""

  def __init__(self, keeps):
    self.keeps = keeps
    self.count, self.slots = tf.Variable(0.0), []

  def step(self, gradients, variables):
    if not self.slots:
      self.slots = [[tf.Variable(tf.zeros_like(v)) for _ in range(3)] for v in variables]
    self.count.assign_add(1.0)
    rate = 0.01 * tf.sqrt(1 - 0.999**self.count) / (1 - 0.9**self.count)
    for gradient, variable, slots in zip(gradients, variables, self.slots, strict=True):
      first, second, greatest = slots
      first.assign(0.9 * first + 0.1 * gradient)
      second.assign(0.999 * second + 0.001 * gradient**2)
      greatest.assign(tf.maximum(greatest, second))
      root = tf.sqrt(greatest if self.keeps else second)
      variable.assign_sub(rate * first / (root + 1e-8))


class Trained(tf2verify.EquivalenceCase, abc.ABC):
  def build_tf1_graph(self, inputs, training):
    return v1.layers.dense(inputs, 3, name='dense')

  def make_tf2_layer(self):
    return keras.Sequential([keras.layers.Dense(3, name='dense')])

  def make_inputs(self):
    return tf2verify.normal_inputs((4, 5))

  def make_labels(self):
    return np.ones((4, 3), np.float32)

  def tf1_loss(self, outputs, labels):
    return tf.reduce_mean(tf.square(labels - outputs))

  tf2_loss = tf1_loss

  def make_tf1_optimizer(self):
    return v1.train.RMSPropOptimizer(0.01, decay=0.95, momentum=0.5, epsilon=1e-6)


def own_step(self, layer, inputs, labels, optimizer):
  with tf.GradientTape() as tape:
    loss = self.tf2_loss(layer(inputs), labels)
  variables = [one.value for one in layer.trainable_variables]
  optimizer.step(tape.gradient(loss, variables), variables)
  return loss


class Normalized(Trained, abc.ABC):
  """The gradient of the offset is a factor of those of the kernel and of the scale in TF1."""

  def build_tf1_graph(self, inputs, training):
    net = v1.layers.dense(inputs, 3, use_bias=False, name='dense')
    mean, variance = tf.nn.moments(net, [0])
    offset = v1.get_variable('offset', [3], initializer=v1.zeros_initializer())
    scale = v1.get_variable('scale', [3], initializer=v1.ones_initializer())
    return tf.nn.batch_normalization(net, mean, variance, offset, scale, 1e-3)

  def make_tf2_layer(self):
    class Port(keras.Model):
      def __init__(self):
        super().__init__(name='port')
        self.dense = keras.layers.Dense(3, use_bias=False, name='dense')
        self.offset = self.add_weight(shape=(3,), initializer='zeros', name='offset')
        self.scale = self.add_weight(shape=(3,), initializer='ones', name='scale')

      def call(self, inputs):
        net = self.dense(inputs)
        mean, variance = tf.nn.moments(net, [0])
        return (net - mean) / tf.sqrt(variance + 1e-3) * self.scale + self.offset

    return Port()

  def tf2_loss(self, outputs, labels):
    """The same, as no rule of the proof knows it."""
    return tf.reduce_mean(tf.square(tf.abs(labels - outputs)))


class OtherGradientsTest(parameterized.TestCase):
  def _found(self, make, **more):
    case = type('Case', (Trained,), {'make_tf2_optimizer': lambda _: make(0.01), **more})
    verdict = tf2verify.verify(case, [_STAGE])
    found = next(stage for stage in verdict.stages if stage.stage == _STAGE)
    self.assertIs(found.status, Status.PASSED, found.to_text())
    return found.blind_spots

  @parameterized.parameters(Outside, Bounded)
  def test_what_only_small_gradients_show_is_a_blind_spot(self, make):
    (said,) = (one for one in self._found(make) if 'at gradients that are' in one)
    self.assertIn('would not at gradients that are 0.001 times as large', said)
    self.assertIn('dense/', said)

  def test_right_port_written_in_another_way(self):
    self.assertEqual(self._found(Rms), ())

  @parameterized.parameters(True, False)
  def test_gradients_that_are_factors_of_others(self, outside):
    hooks = {name: vars(Normalized)[name] for name in ('build_tf1_graph', 'make_tf2_layer')}
    hooks['tf2_loss'] = Normalized.tf2_loss
    found = self._found(lambda _: OwnRms(outside), tf2_train_step=own_step, **hooks)
    said = [one for one in found if 'would not at gradients that are' in one]
    self.assertLen(said, int(outside), found)

  @parameterized.parameters(True, False)
  def test_an_optimizer_that_tells_nothing(self, outside):
    found = self._found(lambda _: OwnRms(outside), tf2_train_step=own_step)
    said = [one for one in found if 'would not at gradients that are' in one]
    self.assertLen(said, int(outside), found)

  def test_large_gradients_of_an_optimizer_that_tells_nothing(self):
    found = self._found(lambda _: OwnBounded(False), tf2_train_step=own_step)
    self.assertIn('at gradients that are 1000 times as large', ' '.join(found))

  @parameterized.parameters(True, False)
  def test_a_variable_that_a_loop_reads(self, outside):
    """It is in the graph by its handle, and is read by its update as well."""

    def build(self, inputs, training):
      kernel = v1.get_variable('kernel', [3, 3], initializer=v1.ones_initializer())

      def body(n, net):
        return n + 1, tf.tanh(tf.matmul(net, kernel))

      return v1.while_loop(lambda n, _: n < 2, body, (0, inputs[:, :3]))[1]

    class Looped(tf.Module):
      def __init__(self):
        super().__init__()
        self.kernel = tf.Variable(tf.ones([3, 3]), name='kernel')

      def __call__(self, inputs):
        net = inputs[:, :3]
        for _ in range(2):
          net = tf.tanh(net @ self.kernel)
        return net

    def step(self, layer, inputs, labels, optimizer):
      with tf.GradientTape() as tape:
        loss = self.tf2_loss(layer(inputs), labels)
      variables = layer.trainable_variables
      optimizer.step(tape.gradient(loss, variables), variables)
      return loss

    def loss(self, outputs, labels):
      return tf.reduce_mean(tf.square(labels - outputs))

    more = {'tf1_loss': loss, 'tf2_loss': loss, 'build_tf1_graph': build, 'tf2_train_step': step}
    found = self._found(lambda _: OwnRms(outside), make_tf2_layer=lambda _: Looped(), **more)
    said = [one for one in found if 'other gradients' in one or 'at gradients' in one]
    self.assertLen(said, int(outside), found)
    for one in said:
      self.assertIn('what is added to kernel differs', one)

  def test_elements_whose_gradient_is_rounding(self):
    """Adam moves them by it as soon as it is far above the epsilon."""

    def build(self, inputs, training):
      net = v1.layers.dense(inputs, 3, use_bias=False, name='dense')
      return net - tf.reduce_mean(net, 0, keepdims=True)

    class Port(keras.Model):
      def __init__(self):
        super().__init__(name='port')
        self.dense = keras.layers.Dense(3, use_bias=False, name='dense')

      def call(self, inputs):
        net = self.dense(inputs)
        return net - tf.reduce_sum(net, 0) / tf.cast(tf.shape(net)[0], tf.float32)

    def inputs(self):
      found = tf2verify.normal_inputs((4, 5))
      found[:, -1] = 0.5  # what the mean takes away
      return found

    hooks = {
      'build_tf1_graph': build,
      'make_tf2_layer': lambda _: Port(),
      'make_inputs': inputs,
      'make_tf1_optimizer': lambda _: v1.train.AdamOptimizer(0.01, epsilon=1e-6),
      'tf2_loss': Normalized.tf2_loss,
    }
    found = self._found(lambda rate: keras.optimizers.Adam(rate, epsilon=1e-6), **hooks)
    self.assertNotIn('at gradients that are', ' '.join(found))

  def test_a_momentum_of_zero_that_one_side_keeps_is_no_blind_spot(self):
    def make(self):
      return v1.train.RMSPropOptimizer(0.01, decay=0.95, epsilon=1e-6)

    class WithoutMomentum(Rms):
      def build(self, variables):
        if not self.built:
          keras.optimizers.Optimizer.build(self, variables)
          self.squares = [self.add_variable_from_reference(v, name='square') for v in variables]
          for square in self.squares:
            square.assign(keras.ops.ones_like(square))

      def update_step(self, gradient, variable, learning_rate):
        square = self.squares[self._get_variable_index(variable)]
        square.assign(0.95 * square + 0.05 * gradient**2)
        rate = keras.ops.cast(learning_rate, variable.dtype)
        variable.assign(variable - rate * gradient / self.root(square))

      def root(self, square):
        return Outside.root(self, square) if outside else Rms.root(self, square)

    outside = False
    self.assertEqual(self._found(WithoutMomentum, make_tf1_optimizer=make), ())
    outside = True  # and hides no epsilon
    found = self._found(WithoutMomentum, make_tf1_optimizer=make)
    self.assertIn('compare an epsilon', ' '.join(found))

  @parameterized.parameters((True, True), (True, False), (False, True), (False, False))
  def test_a_state_that_the_port_keeps_alone(self, keeps, by_hand):
    def make(rate):
      by_keras = keras.optimizers.Adam(rate, epsilon=1e-8, amsgrad=keeps)
      return OwnAdam(keeps) if by_hand else by_keras

    hooks = {'tf2_train_step': own_step} if by_hand else {}
    found = self._found(make, make_tf1_optimizer=lambda _: v1.train.AdamOptimizer(0.01), **hooks)
    said = [one for one in found if 'which TF1 has nothing for' in one]
    self.assertLen(said, int(keeps), found)

  def test_a_bias_that_is_a_vector_of_one_in_the_port_alone(self):
    def build(self, inputs, training):
      bias = v1.get_variable('bias', [], initializer=v1.zeros_initializer())
      return v1.layers.dense(inputs, 1, use_bias=False, name='dense') + bias

    found = self._found(
      lambda rate: keras.optimizers.Adam(rate, epsilon=1e-8),
      build_tf1_graph=build,
      make_tf2_layer=lambda _: keras.Sequential([keras.layers.Dense(1, name='dense')]),
      make_labels=lambda _: np.ones((4, 1), np.float32),
      make_tf1_optimizer=lambda _: v1.train.AdamOptimizer(0.01),
      tf2_loss=Normalized.tf2_loss,
    )
    self.assertEqual(found, ())

  @parameterized.parameters(1.0, 2.0)
  def test_a_factor_before_a_clipping_that_every_step_reaches(self, factor):
    def make_tf1_train_op(self, loss):
      optimizer = v1.train.AdamOptimizer(0.01)
      pairs = optimizer.compute_gradients(loss)
      clipped, _ = tf.clip_by_global_norm([g for g, _ in pairs], 0.01)
      return optimizer.apply_gradients(zip(clipped, [v for _, v in pairs], strict=True))

    def tf2_train_step(self, layer, inputs, labels, optimizer):
      with tf.GradientTape() as tape:
        loss = self.tf2_loss(layer(inputs), labels)
      gradients = [factor * g for g in tape.gradient(loss, layer.trainable_variables)]
      norm = tf.linalg.global_norm(gradients)
      gradients = [tf.where(norm > 0.01, g * (0.01 / norm), g) for g in gradients]
      optimizer.apply_gradients(zip(gradients, layer.trainable_variables, strict=True))
      return loss

    found = self._found(
      lambda rate: keras.optimizers.Adam(rate, epsilon=1e-8),
      make_tf1_train_op=make_tf1_train_op,
      tf2_train_step=tf2_train_step,
      make_tf1_optimizer=tf2verify.EquivalenceCase.make_tf1_optimizer,
    )
    said = [one for one in found if 'would not at gradients that are' in one]
    self.assertLen(said, int(factor != 1.0), found)
    self.assertTrue(all('before a clipping' in one for one in said), said)

  def test_an_epsilon_behind_a_clipping_that_every_step_reaches(self):
    """Of gradients a thousandth as large it is reached, too, and not once they are small."""

    def make_tf1_train_op(self, loss):
      optimizer = v1.train.RMSPropOptimizer(0.01, decay=0.95, momentum=0.5, epsilon=1e-6)
      pairs = optimizer.compute_gradients(loss)
      clipped, _ = tf.clip_by_global_norm([g for g, _ in pairs], 1e-3)
      return optimizer.apply_gradients(zip(clipped, [v for _, v in pairs], strict=True))

    def tf2_train_step(self, layer, inputs, labels, optimizer):
      with tf.GradientTape() as tape:
        loss = self.tf2_loss(layer(inputs), labels)
      gradients = tape.gradient(loss, layer.trainable_variables)
      gradients, _ = tf.clip_by_global_norm(gradients, 1e-3)
      optimizer.apply_gradients(zip(gradients, layer.trainable_variables, strict=True))
      return loss

    hooks = {'make_tf1_train_op': make_tf1_train_op, 'tf2_train_step': tf2_train_step}
    hooks['make_tf1_optimizer'] = tf2verify.EquivalenceCase.make_tf1_optimizer
    for make, count in ((Rms, 0), (Outside, 1)):
      found = self._found(make, **hooks)
      said = [one for one in found if 'would not at gradients that are 0.001' in one]
      self.assertLen(said, count, found)

  def test_right_port_of_gradient_descent(self):
    def make(self):
      return v1.train.MomentumOptimizer(0.01, 0.9)

    self.assertEqual(
      self._found(lambda rate: keras.optimizers.SGD(rate, momentum=0.9), make_tf1_optimizer=make),
      (),
    )


if __name__ == '__main__':
  absltest.main()
