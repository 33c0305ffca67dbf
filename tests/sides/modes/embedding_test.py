import numpy as np
import tensorflow as tf
from absl.testing import absltest

from tf2verify.sides.modes.embedding import NotEmbeddable, embedded


class Doubling(tf.keras.layers.Layer):
  def call(self, inputs):
    return 2.0 * inputs


class DoublingModule(tf.Module):
  def __call__(self, inputs):
    return {'net': 2.0 * inputs['net'], 'number': inputs['number']}


class EmbeddedTest(absltest.TestCase):
  def test_layer(self):
    layer = Doubling()
    found = embedded(layer, layer, np.ones((2, 3), np.float32))
    self.assertIs(found.model.layers[-1], layer)
    self.assertEqual(found.model.input_shape, (2, 3))
    self.assertEqual(float(tf.reduce_sum(found(tf.ones([2, 3]), False))), 12.0)

  def test_a_list_of_one_output(self):
    layer = Doubling()
    found = embedded(lambda inputs: [layer(inputs)], layer, np.ones((2, 3), np.float32))
    [output] = found(tf.ones([2, 3]), False)
    self.assertEqual(output.shape, (2, 3))

  def test_module_with_a_nest(self):
    module = DoublingModule()
    inputs = {'net': np.ones((2, 3), np.float64), 'number': np.arange(2)}
    given = {name: tf.constant(value) for name, value in inputs.items()}
    outputs = embedded(module, module, inputs)(given, False)
    self.assertEqual(outputs['net'].dtype, tf.float64)
    self.assertEqual(outputs['number'].numpy().tolist(), [0, 1])

  def test_scalar(self):
    layer = Doubling()
    with self.assertRaisesRegex(NotEmbeddable, r"\['b'\] is a scalar"):
      embedded(layer, layer, {'a': np.ones((2, 3)), 'b': np.float32(1.0)})


if __name__ == '__main__':
  absltest.main()
