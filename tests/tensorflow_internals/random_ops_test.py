"""Tests of tf2verify.tensorflow_internals.random_ops: what a new kernel draws, without one."""

import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized
from tensorflow.python.ops import gen_random_ops

from tf2verify.tensorflow_internals import kernels, op_callbacks, random_ops

_SHAPES = ((), (1,), (0,), (3,), (257,), (40, 3), (2, 1000, 5))
_SEEDS = ((42, 0), (42, 17), (7, 2**31 - 1), (-3, 5), (0, 9))
_FLOATING = {
  'RandomUniform': gen_random_ops.random_uniform,
  'RandomStandardNormal': gen_random_ops.random_standard_normal,
  'TruncatedNormal': gen_random_ops.truncated_normal,
}
_NAMES = {
  'RandomUniform': 'random_uniform',
  'RandomStandardNormal': 'random_standard_normal',
  'TruncatedNormal': 'truncated_normal',
}


def _anew(draw):
  kernels.forget()
  return draw().numpy()


class DrawnFirstTest(parameterized.TestCase):
  @parameterized.product(
    kind=tuple(_FLOATING), dtype=(tf.float16, tf.bfloat16, tf.float32, tf.float64)
  )
  def test_floating_numbers_are_those_of_a_new_kernel(self, kind, dtype):
    for shape in _SHAPES:
      size = tf.constant(shape, tf.int32)
      for one, two in _SEEDS:
        new = _anew(lambda s=(one, two), n=size: _FLOATING[kind](n, dtype, seed=s[0], seed2=s[1]))
        with random_ops.drawn_first(lambda seeds: True):
          make = getattr(gen_random_ops, _NAMES[kind])
          drawn = [make(size, dtype, seed=one, seed2=two).numpy() for _ in range(2)]
        for each in drawn:
          self.assertEqual(each.tobytes(), new.tobytes(), (shape, one, two))
          self.assertEqual((each.shape, each.dtype), (new.shape, new.dtype))

  @parameterized.parameters(tf.int32, tf.int64)
  def test_integers_are_those_of_a_new_kernel(self, dtype):
    low, high = tf.constant(-5, dtype), tf.constant(1000, dtype)
    for shape in _SHAPES:
      size = tf.constant(shape, tf.int32)
      new = _anew(lambda n=size: gen_random_ops.random_uniform_int(n, low, high, 42, 3))
      with random_ops.drawn_first(lambda seeds: True):
        drawn = gen_random_ops.random_uniform_int(size, low, high, seed=42, seed2=3)
      np.testing.assert_array_equal(drawn, new)

  def test_other_seeds_draw_on(self):
    kernels.forget()
    with random_ops.drawn_first(lambda seeds: seeds == (42, 0)):
      drawn = [
        gen_random_ops.random_uniform([4], tf.float32, seed=42, seed2=seed) for seed in (0, 0, 1, 1)
      ]
    np.testing.assert_array_equal(drawn[0], drawn[1])
    self.assertNotAllClose(drawn[2], drawn[3])

  def test_without_a_seed_nothing_repeats(self):
    with random_ops.drawn_first(lambda seeds: True):
      drawn = [gen_random_ops.random_uniform([4], tf.float32) for _ in range(2)]
    self.assertNotAllClose(*drawn)

  def test_function_has_its_own_kernel(self):
    with random_ops.drawn_first(lambda seeds: True):
      drawing = tf.function(
        lambda: gen_random_ops.random_uniform([4], tf.float32, seed=42, seed2=0)
      )
      kernels.forget()
      self.assertNotAllClose(drawing(), drawing())
      kinds = [op.type for op in drawing.get_concrete_function().graph.get_operations()]
    self.assertIn('RandomUniform', kinds)

  def test_callbacks_are_told_of_the_operation_that_it_stands_in_for(self):
    told = []
    with random_ops.drawn_first(lambda seeds: True), op_callbacks.called(told.append):
      drawn = tf.random.normal([3, 2], seed=5)
      tf.random.stateless_normal([2], [1, 2])
    first = told[0]
    self.assertEqual((first.kind, first.seeds), ('RandomStandardNormal', None))
    np.testing.assert_array_equal(first.inputs[0], [3, 2])
    self.assertLen(first.inputs, 1)
    self.assertEqual(first.outputs[0].shape, drawn.shape)
    self.assertIn('StatelessRandomNormalV2', [op.kind for op in told])

  def assertNotAllClose(self, one, other):
    self.assertFalse(np.allclose(one, other))


class AskedTest(absltest.TestCase):
  def test_who_asks_for_seeds(self):
    asked = []

    def get_seed(seed):
      del seed
      asked.append(random_ops.is_asked_by_such())
      return 42, 0

    with absltest.mock.patch.object(random_ops.random_ops.random_seed, 'get_seed', get_seed):
      tf.random.uniform([2])
      tf.random.uniform([2], maxval=9, dtype=tf.int32)
      tf.random.normal([2])
      tf.random.truncated_normal([2])
      tf.nn.dropout(tf.ones([2]), 0.5)
      self.assertEqual(set(asked), {True})
      asked.clear()
      tf.random.shuffle(tf.range(3))
      tf.random.gamma([2], 0.5)
      tf.random.poisson([2], 0.5)
      tf.compat.v1.multinomial(tf.zeros([1, 3]), 2)
      self.assertEqual(set(asked), {False})


if __name__ == '__main__':
  absltest.main()
