import tempfile

import numpy as np
import tensorflow as tf
from absl.testing import absltest

from tests import small_case
from tf2verify.errors import UserCodeError
from tf2verify.sides.tf2.files import saved_model

INPUTS = np.ones((4, 3), np.float32)


class SavedModelTest(absltest.TestCase):
  def _save(self, case, layer):
    layer(tf.constant(INPUTS))
    folder = tempfile.TemporaryDirectory()
    self.addCleanup(folder.cleanup)
    return saved_model.save(case, layer, INPUTS, False, folder.name)

  def test_outputs_are_the_layer_s(self):
    layer = small_case.SmallCase().make_tf2_layer()
    saved = self._save(small_case.SmallCase(), layer)
    expected = layer(tf.constant(INPUTS)).numpy()
    layer.variables[0].assign_add(tf.ones_like(layer.variables[0]))
    [loaded] = saved.loaded().outputs
    np.testing.assert_array_equal(loaded.value, expected)  # of when it was saved
    [traced] = saved.traced().outputs
    self.assertFalse(np.array_equal(traced.value, expected))

  def test_layer_that_cannot_be_traced(self):
    class Case(small_case.SmallCase):
      def call_tf2_layer(self, layer, inputs, training):
        return layer(tf.constant(inputs.numpy()))

    with self.assertRaisesRegex(UserCodeError, 'tf.saved_model.save raised'):
      self._save(Case(), Case().make_tf2_layer())

  def test_variable_that_no_attribute_leads_to(self):
    hidden = tf.Variable(1.0)

    class Case(small_case.SmallCase):
      def call_tf2_layer(self, layer, inputs, training):
        return layer(inputs) * hidden

    with self.assertRaisesRegex(UserCodeError, 'tf.saved_model.save raised'):
      self._save(Case(), Case().make_tf2_layer())


if __name__ == '__main__':
  absltest.main()
