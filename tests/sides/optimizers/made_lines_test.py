"""Tests of sides.optimizers.made_lines: operations of optimizers have the constructor's line."""

import keras as keras3
import tensorflow as tf
from absl.testing import absltest, parameterized

from tf2verify.sides.optimizers.made_lines import MadeLines

v1 = tf.compat.v1


def clipped_adam_of_tf_keras():
  return tf.keras.optimizers.Adam(0.01, clipnorm=1.0)  # the optimizer


def clipped_adam_of_keras3():
  return keras3.optimizers.Adam(0.01, clipnorm=1.0)  # the optimizer


class MadeLinesTest(parameterized.TestCase):
  def lines(self, make, variable, step):
    """Returns the lines of the operations of a step, by the types of the operations."""
    made = MadeLines()
    with made.recording():
      optimizer = make()
    optimizer.build([variable])
    with made.recording():
      function = tf.function(lambda: step(optimizer, variable), autograph=False)
      graph = function.get_concrete_function().graph
      lines = [(op.type, made.line_of(op)) for op in graph.get_operations()]
    return [(kind, line.code) for kind, line in lines if line is not None]

  @parameterized.parameters(
    (clipped_adam_of_tf_keras, lambda: tf.Variable([1.0, 2.0])),
    (clipped_adam_of_keras3, lambda: keras3.Variable([1.0, 2.0])),
  )
  def test_clipping_and_update_have_the_line_of_the_constructor(self, make, variable):
    def step(optimizer, variable):
      gradient = tf.constant([3.0, 4.0]) * 2.0  # the gradient
      optimizer.apply_gradients([(gradient, variable)])  # the call

    found = self.lines(make, variable(), step)
    (gradient, *_) = [code for kind, code in found if kind == 'Mul']
    self.assertIn('# the gradient', gradient)
    for kind in ('Sqrt', 'Maximum', 'AssignSubVariableOp'):
      codes = {code for known, code in found if known == kind}
      self.assertLen(codes, 1, kind)
      self.assertIn('# the optimizer', codes.pop(), kind)

  def test_constructors_are_restored_after_an_error(self):
    before = keras3.optimizers.Adam.__init__
    with self.assertRaises(ZeroDivisionError), MadeLines().recording():
      raise ZeroDivisionError
    self.assertIs(keras3.optimizers.Adam.__init__, before)


if __name__ == '__main__':
  absltest.main()
