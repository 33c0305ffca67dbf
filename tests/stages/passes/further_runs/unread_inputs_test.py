"""Inputs that a port never reads, and ports that read them in unusual ways."""

import abc

import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

import tf2verify
from tests.stages import tiny_models
from tests.stages.first_failure import LadderTestCase
from tests.stages.tiny_models import kernel

v1 = tf.compat.v1
STAGE = 'zero_randomness'
_STAGES = ['no_new_variables', 'variable_inventory', STAGE]
_MASK = (np.arange(3) < np.array([[3], [1], [2], [3]])).astype(np.float32)


def stage_of(case):
  """Returns the verdict of the stage."""
  return tf2verify.verify(case, stages=_STAGES).stages[-1]


class Masked(tiny_models.OneModel, abc.ABC):
  """Values that are zero where the mask is."""

  def make_inputs(self):
    return {'x': tf2verify.normal_inputs((4, 3)) * _MASK, 'mask': _MASK}

  def model(self, inputs, training):
    return (inputs['x'] * tf.cast(inputs['mask'], tf.float32)) @ kernel()


class WrongPortsTest(LadderTestCase, parameterized.TestCase):
  def test_mask_made_of_the_values(self):
    class Case(Masked):
      def port(self, inputs, training):
        mask = tf.cast(inputs['x'] != 0, tf.float32)
        return self.model({'x': inputs['x'], 'mask': mask}, training)

    self.assert_first_failure(Case, STAGE, "input ['mask'] [inference]: use differs", 'never read')

  def test_only_the_shape_is_read(self):
    class Case(Masked):
      def port(self, inputs, training):
        mask = tf.cast(inputs['x'] != 0, tf.float32) * tf.ones_like(inputs['mask'])
        return self.model({'x': inputs['x'], 'mask': mask}, training)

    self.assert_first_failure(Case, STAGE, "input ['mask'] [inference]: use differs")

  @parameterized.parameters(np.bool_, np.int32, np.float32)
  def test_mask_of_ones(self, dtype):
    class Case(Masked):
      def make_inputs(self):
        return {'x': tf2verify.normal_inputs((4, 3)), 'mask': np.ones((4, 3), dtype)}

      def port(self, inputs, training):
        return inputs['x'] @ kernel()

    # A constant floating input is varied, so that the outputs differ as well.
    self.assert_first_failure(Case, STAGE, "input ['mask'] [inference]: use differs")

  def test_segments_of_zeros_that_are_multiplied_away(self):
    class Case(tiny_models.OneModel):
      def make_inputs(self):
        return {'x': tf2verify.normal_inputs((4, 3)), 'segment': np.zeros((4,), np.int32)}

      def model(self, inputs, training):
        return inputs['x'] @ kernel() + tf.gather(
          v1.get_variable('table', [2, 3]), inputs['segment']
        )

      def port(self, inputs, training):
        nothing = 0.0 * tf.cast(inputs['segment'], tf.float32)[:, None]
        return inputs['x'] @ kernel() + v1.get_variable('table', [2, 3])[0] + nothing

    self.assert_first_failure(
      Case, STAGE, "input ['segment'] [inference]: use differs", 'without effect'
    )

  def test_length_of_a_module_and_a_tuple(self):
    class Case(tiny_models.OneModel):
      def make_inputs(self):
        return tf2verify.normal_inputs((4, 3)), np.array([3, 3, 3, 3], np.int32)

      def model(self, inputs, training):
        values, lengths = inputs
        return (values * tf.sequence_mask(lengths, 3, tf.float32)) @ kernel()

      def port(self, inputs, training):
        return inputs[0] @ kernel()

      def make_tf2_layer(self):
        return tiny_models.ShimModule(self.port)

    self.assert_first_failure(Case, STAGE, 'input [1] [inference]: use differs')

  def test_native_model(self):
    class Port(tf.keras.Model):
      def __init__(self):
        super().__init__()
        self.dense = tf.keras.layers.Dense(3, use_bias=False, name='dense')

      def call(self, inputs):
        return self.dense(inputs['x'])

    class Case(Masked):
      variable_names = {'kernel': 'port/dense/kernel'}

      def make_tf2_layer(self):
        return Port()

    self.assert_first_failure(Case, STAGE, "input ['mask'] [inference]: use differs")

  def test_rate_in_training(self):
    class Case(Masked):
      def make_inputs(self):
        return {'x': tf2verify.normal_inputs((4, 3)), 'rate': np.array(0.5, np.float32)}

      def model(self, inputs, training, rate=None):
        dropped = v1.layers.dropout(
          inputs['x'], inputs['rate'] if rate is None else rate, training=training
        )
        return dropped @ kernel()

      def port(self, inputs, training):
        return self.model(inputs, training, rate=0.5)

    self.assert_first_failure(Case, STAGE, "input ['rate'] [training]: use differs")

  def test_flag(self):
    class Case(Masked):
      def make_inputs(self):
        return {'x': tf2verify.normal_inputs((4, 3)), 'flag': np.array(False)}

      def model(self, inputs, training):
        return tf.where(inputs['flag'], 2 * inputs['x'], inputs['x']) @ kernel()

      def port(self, inputs, training):
        return inputs['x'] @ kernel()

    self.assert_first_failure(Case, STAGE, "input ['flag'] [inference]: use differs")


class RightPortsTest(LadderTestCase):
  def passed(self, case):
    verdict = stage_of(case)
    self.assertIs(verdict.status, tf2verify.Status.PASSED, verdict.to_text())
    return verdict

  def test_shim(self):
    self.assertEqual(self.passed(type('Case', (Masked,), {})).blind_spots, ())

  def test_read_through_numpy(self):
    class Case(Masked):
      def port(self, inputs, training):
        mask = tf.constant(inputs['mask'].numpy())
        return self.model({'x': inputs['x'], 'mask': mask}, training)

    self.assertEqual(self.passed(Case).blind_spots, ())

  def test_read_in_a_function_and_in_python(self):
    class Case(Masked):
      def make_inputs(self):
        return {**super().make_inputs(), 'twice': np.array(True)}

      def build_tf1_graph(self, inputs, training):
        found = self.model(inputs, training)
        return tf.cond(inputs['twice'], lambda: 2 * found, lambda: found)

      def port(self, inputs, training):
        found = tf.function(lambda one: self.model(one, training))(inputs)
        return 2 * found if inputs['twice'] else found

    self.assertEqual(self.passed(Case).blind_spots, ())

  def test_read_through_a_variable(self):
    class Case(Masked):
      def model(self, inputs, training):
        held = v1.get_variable('held', [4, 3], trainable=False)
        if tf.executing_eagerly():
          held.assign(inputs['mask'])
          return (inputs['x'] * held) @ kernel()
        with tf.control_dependencies([v1.assign(held, inputs['mask'])]):
          return (inputs['x'] * tf.identity(held)) @ kernel()

    self.passed(Case)

  def test_neither_side_reads(self):
    class Case(Masked):
      def model(self, inputs, training):
        return inputs['x'] @ kernel()

    verdict = self.passed(Case)
    self.assertEqual(len(verdict.blind_spots), 1)
    self.assertIn("input ['mask'] is never read on the way to any output", verdict.blind_spots[0])

  def test_no_other_value(self):
    class Case(Masked):
      def make_inputs(self):
        return {'x': tf2verify.normal_inputs((4, 3)), 'unit': np.array(b'm')}

      def model(self, inputs, training):
        return inputs['x'] @ kernel()

      def build_tf1_graph(self, inputs, training):
        factor = tf.where(tf.equal(inputs['unit'], 'm'), 1.0, 0.001)
        return self.model(inputs, training) * factor

    verdict = self.passed(Case)
    self.assertEqual(len(verdict.blind_spots), 1)
    self.assertIn("whether the port reads ['unit'] as tf1 does", verdict.blind_spots[0])

  def test_without_effect_in_tf1(self):
    class Case(Masked):
      def build_tf1_graph(self, inputs, training):
        return (inputs['x'] @ kernel()) + 0.0 * tf.reduce_sum(inputs['mask'])

      def port(self, inputs, training):
        return inputs['x'] @ kernel()

    self.assertIn("whether the port reads ['mask']", self.passed(Case).blind_spots[0])


if __name__ == '__main__':
  absltest.main()
