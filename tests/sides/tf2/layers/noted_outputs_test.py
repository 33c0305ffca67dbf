"""Tests of tf2verify.sides.tf2.layers.noted_outputs."""

import tensorflow as tf
from absl.testing import absltest

from tf2verify.errors import LayerError
from tf2verify.sides.tf2.layers import layer_parts
from tf2verify.sides.tf2.layers.noted_outputs import NotedOutputs
from tf2verify.tensorflow_internals import autograph


class _Case:
  training_modes = (False, True)

  def call_tf2_layer(self, layer, inputs, training):
    return layer(inputs, training)


class _ChoosingCase(_Case):
  def call_tf2_layer(self, layer, inputs, training):
    if tf.reduce_sum(inputs) > 0:
      inputs = inputs + 1.0
    return (layer(inputs, training),)


class _Layer(tf.Module):
  def __call__(self, inputs, training):
    return {'a': inputs} if training else (inputs, None)


class _NoTensor(_Layer):
  def __call__(self, inputs, training):
    return object()


class NotedOutputsTest(absltest.TestCase):
  def test_structures(self):
    noted = NotedOutputs(_Case())
    self.assertEqual(noted.structures, {})
    outputs = noted.call_tf2_layer(_Layer(), tf.ones(2), False)
    self.assertIsNone(outputs[1])
    self.assertEqual(noted.structures, {False: '(Tensor, None)'})
    noted.call_tf2_layer(_Layer(), tf.ones(2), True)
    self.assertEqual(noted.structures[True], "{'a': Tensor}")

  def test_the_rest_is_that_of_the_case(self):
    noted = NotedOutputs(_Case())
    self.assertEqual(noted.training_modes, (False, True))
    with self.assertRaises(AttributeError):
      _ = noted.make_tf1_optimizer

  def test_what_is_no_tensor(self):
    noted = NotedOutputs(_Case())
    with self.assertRaises(LayerError):
      noted.call_tf2_layer(_NoTensor(), tf.ones(2), False)
    self.assertEqual(noted.structures, {})

  def test_autograph_rewrites_the_hook(self):
    noted, layer = NotedOutputs(_ChoosingCase()), _Layer()
    with tf.Graph().as_default() as graph:
      inputs = tf.compat.v1.placeholder(tf.float32, (2,))
      with self.assertRaises(TypeError):  # a tensor is no truth value
        layer_parts.call_of(noted, layer)(layer, inputs, False)
      with autograph.switched():
        layer_parts.call_of(noted, layer)(layer, inputs, False)
      self.assertEqual(autograph.converted(layer), layer)  # it is off again
      types = {op.type for op in graph.get_operations()}
    self.assertTrue({'If', 'StatelessIf'} & types, types)
    self.assertEqual(noted.structures, {False: '((Tensor, None))'})


if __name__ == '__main__':
  absltest.main()
