"""Tests of sides.graphs.lines.made_layers: lines of layers that are constructed elsewhere."""

import keras as keras3
import numpy as np
import tensorflow as tf
import tf_slim as slim
from absl.testing import absltest, parameterized
from tf_slim.ops import arg_scope

from tf2verify.sides.graphs.lines.made_layers import MadeLayers
from tf2verify.sides.graphs.lines.op_recorder import OpRecorder
from tf2verify.sides.graphs.lines.user_sources import Around, user_source, with_layers
from tf2verify.sides.tf2.traces import ways_to_trace

KERAS = {'tf_keras': tf.keras, 'keras': keras3}


def net_of(library, regularizer=None):
  class Block(library.layers.Layer):
    def __init__(self, units):
      super().__init__()
      self.dense = library.layers.Dense(units, kernel_regularizer=regularizer)  # the dense layer

    def call(self, x):
      return tf.nn.relu(self.dense(x))  # its call

  class Net(library.layers.Layer):
    def __init__(self):
      super().__init__()
      self.block = Block(3)  # the block

    def call(self, x):
      return self.block(x)  # the call of the block

  return Net


def make_tf2_layer(library):
  return net_of(library)()


def functional(library):
  inputs = library.Input([2])
  return library.Model(inputs, library.layers.Dense(3)(inputs))  # the only layer


def arguments():
  norm = {'decay': 0.9, 'epsilon': 0.1}  # of the norm
  outer = slim.arg_scope([slim.conv2d], stride=2, normalizer_fn=slim.batch_norm)
  with outer:  # of all layers
    inner = slim.arg_scope([slim.batch_norm], **norm)
    with inner as scope:  # of the norms
      return scope


def scoped():
  class Net(tf.keras.layers.Layer):
    @tf.compat.v1.keras.utils.track_tf1_style_variables
    def call(self, x):
      with slim.arg_scope(arguments()), slim.arg_scope([slim.conv2d], padding='VALID'):  # inner
        x = slim.conv2d(x, 2, 1)
        own = {
          'stride': 1,
          'normalizer_fn': None,
          'padding': 'SAME',
          'activation_fn': tf.tanh,
        }  # own
        return slim.conv2d(x, 2, 1, **own)

  return Net()


INNER = ['inner', 'of all layers']


class MadeLayersTest(parameterized.TestCase):
  def lines(self, make, kind, inputs=((1.0, 2.0),)):
    """Returns the lines of the first operation of a type that a layer makes where it is traced."""
    recorder = OpRecorder()
    with recorder.recording('make_tf2_layer'):
      layer = make()
    traced = ways_to_trace.trace(
      lambda x: {'output': layer(x)}, tf.constant(inputs).numpy(), recorder.layers
    )
    op = next(op for op in traced.graph.get_operations() if op.type == kind)
    return user_source(op)

  @parameterized.parameters('tf_keras', 'keras')
  def test_a_layer_of_a_layer(self, name):
    line = self.lines(lambda: make_tf2_layer(KERAS[name]), 'MatMul')
    self.assertIn('# its call', line.code)
    self.assertEqual(
      [place.code.rpartition('# ')[2] for place in line.made], ['the dense layer', 'the block']
    )
    self.assertIn('# the call of the block', line.callers[0].code)
    self.assertStartsWith(line.leading()[1], 'layer constructed at made_layers_test.py:')

  @parameterized.parameters('tf_keras', 'keras')
  def test_a_functional_model_has_the_line_of_its_layer(self, name):
    made = self.lines(lambda: functional(KERAS[name]), 'MatMul').made
    line = with_layers(None, Around(made))  # nobody but tf2verify calls the model
    self.assertIn('# the only layer', line.code)
    self.assertEmpty(line.made)

  @parameterized.parameters('tf_keras', 'keras')
  def test_a_layer_that_a_helper_makes_has_the_call_of_the_helper(self, name):
    library = KERAS[name]

    def dense(units):
      return library.layers.Dense(units)  # the helper

    def model():
      inputs = library.Input([2])
      net = library.layers.ReLU()(dense(3)(inputs))  # the first call
      return library.Model(inputs, dense(4)(net))

    made = MadeLayers()
    with made.recording():
      built = model()
    seen = []

    def call(x):
      with made.of_operations(tf.compat.v1.get_default_graph()):
        return built(x)

    graph = tf.function(call).get_concrete_function(tf.TensorSpec([1, 2])).graph
    for op in graph.get_operations():
      around = getattr(graph, '_tf2verify_layers', {}).get(op.name, Around())
      if op.type == 'MatMul':
        seen.append(with_layers(None, around))
    self.assertIn('# the helper', seen[0].code)
    self.assertIn('# the first call', seen[0].callers[0].code)
    self.assertIn('dense(4)', seen[1].callers[0].code)

  @parameterized.parameters(('Maximum', '# at least'), ('AddV2', '# of KerasTensor'))
  def test_a_functional_model_has_the_line_of_its_operation(self, kind, expected):
    def model():
      inputs = keras3.Input([2])
      least = keras3.ops.maximum(inputs, 0.5)  # at least
      outputs = least + 1.0  # of KerasTensor
      return keras3.Model(inputs, outputs)

    made = self.lines(model, kind).made
    self.assertIn(expected, made[0].code)
    self.assertIn(expected, with_layers(None, Around(made)).code)

  @parameterized.parameters(
    ('Conv2D', INNER),
    (
      'FusedBatchNormV3',
      ['of the norms', *INNER],
    ),
    ('Tanh', ['own']),
  )
  def test_arguments_that_scopes_give(self, kind, expected):
    line = self.lines(scoped, kind, np.ones([1, 4, 4, 1], np.float32))
    found = [place.code.rpartition('# ')[2] for place in line.settings]
    self.assertEqual(found, expected, line.leading())

  def test_the_stack_of_scopes_is_restored_after_an_error(self):
    scope = slim.arg_scope([slim.conv2d], stride=2)
    with self.assertRaises(ZeroDivisionError), OpRecorder().recording('a'), scope:
      raise ZeroDivisionError
    self.assertEqual(slim.current_arg_scope(), {})
    self.assertIs(type(arg_scope._ARGSTACK), list)

  @parameterized.parameters('tf_keras', 'keras')
  def test_a_loss_of_a_regularizer_has_the_line_of_its_layer(self, name):
    library, recorder = KERAS[name], OpRecorder()
    with recorder.recording('make_tf2_layer'):
      layer = net_of(library, library.regularizers.L2(0.1))()
      layer(tf.ones([1, 2]))
    traced = ways_to_trace.trace(
      lambda x: {'loss': sum(layer.losses)}, tf.ones([1, 2]).numpy(), recorder.layers
    )
    square = next(op for op in traced.graph.get_operations() if op.type in ('Square', 'L2Loss'))
    self.assertIn('# the dense layer', user_source(square).made[0].code)

  def test_variables_have_the_layers_that_make_them(self):
    recorder = OpRecorder()
    with recorder.recording('make_tf2_layer'):
      layer = make_tf2_layer(tf.keras)
    with recorder.recording('call 1'):
      layer(tf.ones([1, 2]))
    kernel, *_ = recorder.creation_records()
    self.assertIn('# the dense layer', kernel.source.made[0].code)

  def test_variables_of_a_layer_that_keras3_builds_by_a_symbolic_call(self):
    recorder = OpRecorder()
    with recorder.recording('make_tf2_layer'):
      layer = make_tf2_layer(keras3)
    with recorder.recording('call 1'):
      layer(tf.ones([1, 2]))
    kernel, *_ = recorder.creation_records()
    self.assertIn('# its call', kernel.source.code)
    self.assertIn('# the dense layer', kernel.source.made[0].code)

  @parameterized.parameters('tf_keras', 'keras')
  def test_constructors_are_restored_after_an_error(self, name):
    library = KERAS[name].layers.Layer
    before = vars(library)['__new__']
    with self.assertRaises(ZeroDivisionError), OpRecorder().recording('make_tf2_layer'):
      self.assertIsNot(vars(library)['__new__'], before)
      raise ZeroDivisionError
    self.assertIs(vars(library)['__new__'], before)

  def test_operations_are_restored(self):
    before = vars(keras3.Operation)['__new__']
    with OpRecorder().recording('make_tf2_layer'):
      self.assertIsNot(vars(keras3.Operation)['__new__'], before)
    self.assertIs(vars(keras3.Operation)['__new__'], before)


if __name__ == '__main__':
  absltest.main()
