"""References that draw random numbers inside a loop, and ports that draw them elsewhere."""

import abc

import keras
import numpy as np
import tensorflow as tf

import tf2verify
from tests.stages import tiny_models
from tests.stages.first_failure import LadderTestCase
from tf2verify import Status
from tf2verify.tensorflow_internals import graphs

v1 = tf.compat.v1
_STAGES = ['seeded_constant', 'seeded_num_random_ops', 'gradients', 'training_steps']
_SAID = 'tf1 draws random numbers inside a loop, RandomUniform (2, 3) at '


class Looped(tiny_models.OneModel, abc.ABC):
  """A GRU with a dropout of its outputs, step by step, under `dynamic_rnn`."""

  keep = 0.5

  def model(self, inputs, training):
    with v1.variable_scope('net'):
      uniform, zeros = v1.random_uniform_initializer(-0.5, 0.5), v1.zeros_initializer()
      cell = v1.nn.rnn_cell.GRUCell(3, kernel_initializer=uniform, bias_initializer=zeros)
      if training:
        cell = v1.nn.rnn_cell.DropoutWrapper(cell, output_keep_prob=self.keep)
      return v1.nn.dynamic_rnn(cell, inputs, dtype=tf.float32)[0]

  def make_inputs(self):
    return tf2verify.normal_inputs((2, 6, 3))

  def tf1_loss(self, outputs, labels):
    return tf.reduce_mean(outputs**2)

  tf2_loss = tf1_loss

  def make_tf1_optimizer(self):
    return v1.train.AdamOptimizer(0.1)

  make_tf2_optimizer = make_tf1_optimizer


def _uniform():
  return keras.initializers.RandomUniform(-0.5, 0.5)


class WholeSequence(keras.Model):
  """The same, with one dropout of the whole sequence of outputs."""

  def __init__(self, rate=0.5, noise_shape=None):
    super().__init__()
    uniform = {f'{name}_initializer': _uniform() for name in ('kernel', 'recurrent')}
    self.cell = keras.layers.GRU(3, reset_after=False, return_sequences=True, **uniform)
    self.drop = keras.layers.Dropout(rate, noise_shape)

  def call(self, inputs, training=False):
    return self.drop(self.cell(inputs), training=training)


class OfKeras(Looped, abc.ABC):
  variable_map = 'derive'

  def make_tf2_layer(self):
    return WholeSequence()

  def make_tf2_optimizer(self):
    return keras.optimizers.Adam(0.1, epsilon=1e-8)


class LoopDrawsTest(LadderTestCase):
  def statuses(self, case, stages=_STAGES):
    self.verdict = tf2verify.verify(case, stages)
    return {stage.stage: stage.status for stage in self.verdict.stages}

  def assert_all_pass(self, case):
    found = self.statuses(case)
    for stage in _STAGES:
      self.assertIs(found[stage], Status.PASSED, self.verdict.to_text())
    self.assertNotIn('the graphs were not related', self.verdict.to_text())
    [stage] = [one for one in self.verdict.stages if one.stage == 'seeded_constant']
    self.assertTrue(any(text.startswith(_SAID) for text in stage.blind_spots), stage.blind_spots)

  def assert_fails(self, case, name):
    self.statuses(case)
    failure = self.verdict.first_failure
    self.assertEqual((failure.stage, failure.status), (name, Status.FAILED))
    return self.verdict.to_text()

  def test_a_loop_on_both_sides(self):
    class Case(Looped):
      pass

    self.assert_all_pass(Case)

  def test_one_dropout_of_the_whole_sequence(self):
    class Case(OfKeras):
      pass

    self.assert_all_pass(Case)

  def test_draws_of_the_same_size_before_the_loop(self):
    class Case(OfKeras):
      def build_tf1_graph(self, inputs, training):
        if training:
          inputs = tf.nn.dropout(inputs, 0.25)
        return self.model(inputs, training)

      def make_tf2_layer(self):
        return keras.Sequential([keras.layers.Dropout(0.25), WholeSequence()])

    self.assert_all_pass(Case)
    self.assertIn('and of what is drawn like that, RandomUniform (2, 6, 3)', self.verdict.to_text())

  def test_another_rate(self):
    class Case(OfKeras):
      def make_tf2_layer(self):
        return WholeSequence(0.4)

    self.assert_fails(Case, 'seeded_constant')

  def test_no_dropout(self):
    class Case(OfKeras):
      def make_tf2_layer(self):
        return WholeSequence(0.0)

    self.assert_fails(Case, 'seeded_constant')

  def test_another_draw_is_compared_as_ever(self):
    class Case(OfKeras):
      def build_tf1_graph(self, inputs, training):
        net = self.model(inputs, training)
        return (
          tf.nn.dropout(net[:, :, :2], 0.5, noise_shape=[2, 6, 1]) if training else net[:, :, :2]
        )

      def make_tf2_layer(self):
        class Port(WholeSequence):
          def call(self, inputs, training=False):
            net = super().call(inputs, training=training)[:, :, :2]
            return tf.nn.dropout(net, 0.5) if training else net

        return Port()

    self.assert_fails(Case, 'seeded_constant')

  def test_one_mask_for_all_steps_is_not_passed(self):
    class Case(OfKeras):
      def make_tf2_layer(self):
        return WholeSequence(noise_shape=(2, 1, 3))

    found = self.statuses(Case)
    self.assertIs(found['seeded_constant'], Status.INCONCLUSIVE, self.verdict.to_text())
    self.assertIn('one mask for all of them', self.verdict.to_text())

  def test_it_does_not_repeat_itself_otherwise(self):
    """Without fixed numbers, the steps of the loop draw in any order."""

    class Case(OfKeras):
      pass

    found = self.statuses(Case, ['determinism'])
    self.assertIs(found['determinism'], Status.PASSED, self.verdict.to_text())

  def test_control_flow_of_tensorflow_1(self):
    class Case(OfKeras):
      pass

    v1.disable_control_flow_v2()
    self.addCleanup(v1.enable_control_flow_v2)
    self.assert_all_pass(Case)

  def test_what_stands_in_a_loop(self):
    seen = []

    def body(number):
      seen.append(graphs.is_in_loop(v1.get_default_graph()))
      return number + 1

    for switch in (v1.enable_control_flow_v2, v1.disable_control_flow_v2):
      with self.subTest(switch.__name__), tf.Graph().as_default() as graph:
        switch()
        self.addCleanup(v1.enable_control_flow_v2)
        self.assertFalse(graphs.is_in_loop(graph))
        tf.while_loop(lambda n: n < 2, body, [np.int32(0)])
        self.assertTrue(seen.pop())
