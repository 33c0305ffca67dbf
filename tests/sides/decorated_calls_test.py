import tensorflow as tf
from absl.testing import absltest

import tf2verify
from tests import small_case
from tf2verify.sides import decorated_calls, process_state


class Decorated(tf.keras.layers.Layer):
  @tf.compat.v1.keras.utils.track_tf1_style_variables
  def call(self, inputs):
    return 2 * inputs


def _functional_model():
  inputs = tf.keras.Input((3,))
  return tf.keras.Model(inputs, Decorated()(inputs))


class WithoutTrainingCase(small_case.SmallCase):
  def build_tf1_graph(self, inputs, training):
    return 2 * inputs

  def make_tf2_layer(self):
    return Decorated()

  def make_inputs(self):
    return tf2verify.normal_inputs((2, 3))


class DecoratedCallsTest(absltest.TestCase):
  def setUp(self):
    super().setUp()
    self.addCleanup(decorated_calls.write_targets, decorated_calls.read_targets())

  def test_a_functional_model_changes_the_class_of_its_layers(self):
    _functional_model()
    with self.assertRaisesRegex(TypeError, "unexpected keyword argument 'training'"):
      Decorated()(tf.ones((2, 3)), training=None)  # as Keras' fit passes it

  def test_it_is_changed_back(self):
    before = dict(decorated_calls.read_targets())
    with process_state.preserved():
      _functional_model()
      self.assertNotEqual(dict(decorated_calls.read_targets()), before)
    self.assertEqual(dict(decorated_calls.read_targets()), before)
    self.assertEqual(float(tf.reduce_sum(Decorated()(tf.ones((2, 3))))), 12)

  def test_a_stage_behind_execution_modes(self):
    verdict = tf2verify.verify(WithoutTrainingCase, ['execution_modes', 'determinism'])
    statuses = {stage.stage: stage.status for stage in verdict.stages}
    self.assertIs(statuses['execution_modes'], tf2verify.Status.PASSED, verdict.to_text())
    self.assertIs(statuses['determinism'], tf2verify.Status.PASSED, verdict.to_text())


if __name__ == '__main__':
  absltest.main()
