"""Steps of a port whose variables make up several of TF1's."""

import abc

import keras
import tensorflow as tf

import tf2verify
from tests.stages import tiny_models
from tests.stages.first_failure import LadderTestCase
from tf2verify import Status

v1 = tf.compat.v1
_STAGE = 'training_steps'


class Recurrent(tiny_models.OneModel, abc.ABC):
  """A GRU and a dense layer, trained by Adam with gradients that are clipped together."""

  variable_map = 'derive'
  clip = 0.01

  def model(self, inputs, training):
    uniform, zeros = v1.random_uniform_initializer(-0.5, 0.5), v1.zeros_initializer()
    cell = v1.nn.rnn_cell.GRUCell(3, kernel_initializer=uniform, bias_initializer=zeros)
    net, _ = v1.nn.dynamic_rnn(cell, inputs, dtype=tf.float32)
    return v1.layers.dense(net, 2, name='out', kernel_initializer=uniform)

  def make_tf2_layer(self):
    def uniform():
      return keras.initializers.RandomUniform(-0.5, 0.5)

    gru = keras.layers.GRU(
      3,
      reset_after=False,
      return_sequences=True,
      kernel_initializer=uniform(),
      recurrent_initializer=uniform(),
    )
    return keras.Sequential([gru, keras.layers.Dense(2, kernel_initializer=uniform())])

  def make_inputs(self):
    return tf2verify.normal_inputs((2, 4, 3))

  def tf1_loss(self, outputs, labels):
    return tf.reduce_mean(outputs**2)

  tf2_loss = tf1_loss

  def make_tf1_train_op(self, loss):
    variables = v1.trainable_variables()
    gradients, _ = tf.clip_by_global_norm(tf.gradients(loss, variables), self.clip)
    optimizer = v1.train.AdamOptimizer(0.1)
    return optimizer.apply_gradients(zip(gradients, variables, strict=True))

  def make_tf2_optimizer(self):
    return keras.optimizers.Adam(0.1, epsilon=1e-8, global_clipnorm=self.clip)


class SplitDense(Recurrent, abc.ABC):
  """A gated layer, whose value and gate the port has in layers of their own."""

  clip = 0.001

  def model(self, inputs, training):
    uniform = v1.random_uniform_initializer(-0.5, 0.5)
    both = v1.layers.dense(inputs, 6, name='both', kernel_initializer=uniform)
    value, gate = tf.split(both, 2, -1)
    return v1.layers.dense(value * tf.sigmoid(gate), 2, name='out', kernel_initializer=uniform)


def split_port(case):
  del case

  class Port(keras.Model):
    def __init__(self):
      super().__init__()
      made = [keras.initializers.RandomUniform(-0.5, 0.5) for _ in range(3)]
      self.value = keras.layers.Dense(3, kernel_initializer=made[0])
      self.gate = keras.layers.Dense(3, kernel_initializer=made[1])
      self.out = keras.layers.Dense(2, kernel_initializer=made[2])

    def call(self, inputs):
      return self.out(self.value(inputs) * keras.ops.sigmoid(self.gate(inputs)))

  return Port()


def _clipped_one_by_one(case, loss):
  variables = v1.trainable_variables()
  gradients = [tf.clip_by_norm(g, case.clip) for g in tf.gradients(loss, variables)]
  optimizer = v1.train.AdamOptimizer(0.1)
  return optimizer.apply_gradients(zip(gradients, variables, strict=True))


class GroupedStepsTest(LadderTestCase):
  def stage(self, case):
    verdict = tf2verify.verify(case, [_STAGE])
    return next(stage for stage in verdict.stages if stage.stage == _STAGE)

  def test_right_port(self):
    class Case(Recurrent):
      pass

    found = self.stage(Case)
    self.assertIs(found.status, Status.PASSED, found.to_text())

  def test_norms_of_each_gradient(self):
    class Case(Recurrent):
      def make_tf2_optimizer(self):
        return keras.optimizers.Adam(0.1, epsilon=1e-8, clipnorm=self.clip)

    found = self.stage(Case)
    self.assertIs(found.status, Status.FAILED, found.to_text())
    self.assertIn('pass global_clipnorm=0.01', found.to_text())

  def test_norms_that_no_step_reaches(self):
    class Right(Recurrent):
      clip = 1000.0

    self.assertIs(self.stage(Right).status, Status.PASSED)

    for layer, parent in ((Recurrent.make_tf2_layer, Recurrent), (split_port, SplitDense)):
      with self.subTest(parent.__name__):

        class Case(parent):
          clip = 1000.0
          make_tf2_layer = layer
          make_tf1_train_op = _clipped_one_by_one

          def make_tf2_optimizer(self):
            return keras.optimizers.Adam(0.1, epsilon=1e-8, clipnorm=self.clip)

        found = self.stage(Case)
        self.assertIs(found.status, Status.FAILED, found.to_text())
        self.assertIn('hold other parts than those of TF1', ' '.join(found.to_text().split()))

  def test_norms_of_other_parts(self):
    for layer, holds in ((Recurrent.make_tf2_layer, 'other parts'), (split_port, 'several')):
      with self.subTest(holds):

        class Case(Recurrent if holds == 'other parts' else SplitDense):
          make_tf2_layer = layer
          make_tf1_train_op = _clipped_one_by_one

          def make_tf2_optimizer(self):
            return keras.optimizers.Adam(0.1, epsilon=1e-8, clipnorm=self.clip)

        found = self.stage(Case)
        text = found.to_text()
        self.assertIs(found.status, Status.FAILED, text)
        self.assertRegex(text, rf'the\s+port\s+holds[\s\S]*{holds}[\s\S]*clips these one by one')
        self.assertNotIn('traced as a graph, the port agrees', text)

  def test_norms_of_other_parts_in_an_optimizer_of_its_own(self):
    class Adam:
      def __init__(self):
        self.m, self.v = [], []

      def apply(self, gradients, variables):
        if not self.m:
          for slots in (self.m, self.v):
            slots += [tf.Variable(tf.zeros_like(v), trainable=False) for v in variables]
        for g, variable, m, v in zip(gradients, variables, self.m, self.v, strict=True):
          m.assign(0.9 * m + 0.1 * g)
          v.assign(0.999 * v + 0.001 * g * g)
          variable.assign_sub(0.1 * (1 - 0.999) ** 0.5 / (1 - 0.9) * m / (tf.sqrt(v) + 1e-8))

    class Case(SplitDense):
      training_steps_to_take = 1
      make_tf2_layer = split_port
      make_tf2_optimizer = staticmethod(Adam)
      make_tf1_train_op = _clipped_one_by_one

      def tf2_train_step(self, layer, inputs, optimizer):
        with tf.GradientTape() as tape:
          loss = self.tf2_loss(layer(inputs, training=True), None)
        variables = layer.trainable_variables
        gradients = tape.gradient(loss, variables)
        optimizer.apply([tf.clip_by_norm(g, self.clip) for g in gradients], variables)
        return loss

    found = self.stage(Case)
    text = found.to_text()
    self.assertIs(found.status, Status.FAILED, text)
    self.assertRegex(text, r'the\s+port\s+holds[\s\S]*several[\s\S]*clips these one by one')

  def test_a_setting_of_the_update_is_tried_out(self):
    class Case(Recurrent):
      def make_tf2_optimizer(self):
        return keras.optimizers.Adam(0.1, beta_2=0.9, epsilon=1e-8, global_clipnorm=self.clip)

    found = self.stage(Case)
    self.assertIs(found.status, Status.FAILED, found.to_text())
    text = found.to_text()
    self.assertNotIn('does not differ in the graph of the port', text)
    self.assertNotIn('takes a different step', text)
    self.assertIn('beta_2', text)
