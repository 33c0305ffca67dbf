"""Tests of tf2verify.sides.process.randomness against the published figures."""

import random
from unittest import mock

import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized
from tensorflow.python.eager import context

import tf2verify
from tf2verify.sides.graphs.lines.op_recorder import OpRecorder
from tf2verify.sides.process import randomness
from tf2verify.sides.process import state as process_state
from tf2verify.tensorflow_internals import kernels

v1 = tf.compat.v1

# TensorFlow guide "Validate correctness & numerical equivalence", seed 42,
# 3 * tf.random.uniform(shape), shapes (3, 1), (3, 3) and (3, 3).
_A = [2.5063772, 2.7488918, 1.4839486]
_B_CONSTANT = [
  [2.5063772, 2.7488918, 1.4839486],
  [1.5633398, 2.1358476, 1.3693532],
  [0.3598416, 1.8287641, 2.5314465],
]
_B = [
  [0.45038545, 1.9197761, 2.4536333],
  [1.0371652, 2.9898582, 1.924583],
  [0.25679827, 1.6579313, 2.8418403],
]
_C = [
  [2.9634383, 1.0862181, 2.6042497],
  [0.70099247, 2.3920312, 1.0470468],
  [0.18173039, 0.8359269, 1.0508587],
]
_PUBLISHED = {'constant': (_A, _B_CONSTANT, _B_CONSTANT), 'num_random_ops': (_A, _B, _C)}


def _draw_three():
  return [3 * tf.random.uniform(shape) for shape in ((3, 1), (3, 3), (3, 3))]


class PublishedFiguresTest(parameterized.TestCase):
  @parameterized.parameters('constant', 'num_random_ops')
  def test_eager(self, mode):
    with process_state.preserved(), randomness.seeded(mode):
      drawn = [np.asarray(value) for value in _draw_three()]
    self._assert_published(mode, drawn)

  @parameterized.parameters('constant', 'num_random_ops')
  def test_graph(self, mode):
    with process_state.preserved(), tf.Graph().as_default() as graph:
      with randomness.seeded(mode):
        values = _draw_three()
      with v1.Session(graph=graph) as session:
        drawn = session.run(values)
    self._assert_published(mode, drawn)

  def _assert_published(self, mode, drawn):
    a, b, c = _PUBLISHED[mode]
    np.testing.assert_allclose(drawn[0][:, 0], a, rtol=1e-7)
    np.testing.assert_allclose(drawn[1], b, rtol=1e-7)
    np.testing.assert_allclose(drawn[2], c, rtol=1e-7)

  def test_operation_seed_counts_and_can_be_set(self):
    with process_state.preserved():
      with randomness.seeded('num_random_ops'):
        tool = tf2verify.random_tool()
        seen = []
        for shape in ((3, 1), (3, 3)):
          seen.append(tool.operation_seed)
          tf.random.uniform(shape)
        self.assertEqual(seen, [0, 1])
      with randomness.seeded('num_random_ops'):
        tool = tf2verify.random_tool()
        tool.operation_seed = 1
        second = 3 * tf.random.uniform((3, 3))
        tool.operation_seed = 0
        first = 3 * tf.random.uniform((3, 1))
        np.testing.assert_allclose(second, _B, rtol=1e-7)
        np.testing.assert_allclose(first[:, 0], _A, rtol=1e-7)
        with self.assertRaisesRegex(ValueError, 'operation seed 1, which another one has had'):
          tf.random.uniform((3, 3))

  def test_no_tool_outside_of_a_run(self):
    self.assertIsNone(tf2verify.random_tool())


class KernelsTest(parameterized.TestCase):
  """A kernel that has drawn draws on: each scope has to begin anew, whoever draws."""

  def _assert_repeats(self, draw):
    drawn = []
    with process_state.preserved():
      for mode in (*_PUBLISHED, *_PUBLISHED, 'num_random_ops'):
        with randomness.seeded(mode):
          drawn.append((mode, np.asarray(draw())))
    first = dict(reversed(drawn))
    for mode, value in drawn:
      np.testing.assert_array_equal(value, first[mode])

  def test_eager_op(self):
    self._assert_repeats(lambda: tf.random.uniform([4]))

  def test_function_that_was_traced_in_an_earlier_scope(self):
    drawing = tf.function(lambda: tf.random.uniform([4]))
    with process_state.preserved(), randomness.seeded('constant'):
      drawing()
    self._assert_repeats(drawing)

  def test_function_that_was_traced_before_any_scope(self):
    drawing = tf.function(lambda: tf.random.uniform([4], seed=3))
    drawing()
    self._assert_repeats(drawing)

  def test_draw_in_a_branch_of_a_function(self):
    drawing = tf.function(
      lambda yes: tf.cond(yes, lambda: tf.random.uniform([4], seed=3), lambda: tf.zeros([4]))
    )
    drawing(tf.constant(True))
    self._assert_repeats(lambda: drawing(tf.constant(True)))

  def test_draw_with_the_same_seeds_outside(self):
    with process_state.preserved():
      with randomness.seeded('num_random_ops'):
        first = tf.random.uniform([4])
      for _ in range(2):
        tf.raw_ops.RandomUniform(shape=[4], dtype=tf.float32, seed=randomness.SEED, seed2=0)
        with randomness.seeded('num_random_ops'):
          np.testing.assert_array_equal(tf.random.uniform([4]), first)

  def test_op_that_asks_nobody_for_seeds(self):
    draws = []
    with process_state.preserved():
      for _ in range(3):
        with randomness.seeded('constant'), OpRecorder().recording('call'):
          draws.append(tf.raw_ops.RandomUniform(shape=[4], dtype=tf.float32, seed=5, seed2=6))
    np.testing.assert_array_equal(draws[0], draws[1])
    np.testing.assert_array_equal(draws[0], draws[2])

  def test_where_nothing_draws_kernels_are_kept(self):
    # Functions of other tests that draw may live on; what is made here is looked at.
    kernels.has_functions_that_draw()
    known = dict.fromkeys(kernels._functions, False)
    self.enter_context(mock.patch.dict(kernels._functions, known))
    with process_state.preserved():
      with mock.patch.object(kernels, 'forget') as forgetting, randomness.seeded('constant'):
        tf.matmul(tf.ones([2, 2]), tf.ones([2, 2]))
        tf.function(lambda: tf.ones([2]) + 1)()
      with mock.patch.object(kernels, 'forget'), randomness.seeded('constant'):
        tf.matmul(tf.ones([2, 2]), tf.ones([2, 2]))
      forgetting.assert_not_called()

  def test_function_that_a_garbage_collection_takes_away(self):
    """It was listed, and its graph went before it was read: random, and 1 in 400 cases of ours."""
    eager = context.context()
    names = eager.list_function_names() | {'cond_true_of_nobody'}
    with mock.patch.object(eager, 'list_function_names', return_value=names):
      kernels.has_functions_that_draw()
      drawing = tf.function(lambda: tf.random.uniform([2], seed=3))
      drawing()
      self.assertNotIn('cond_true_of_nobody', kernels._functions)
    self.assertTrue(kernels.has_functions_that_draw())

  def test_kernels_do_not_outlive_a_stage(self):
    with mock.patch.object(kernels, 'forget') as forgetting, process_state.preserved():
      pass
    forgetting.assert_called_once_with()


class EverySourceIsOwnedTest(parameterized.TestCase):
  @parameterized.parameters('constant', 'num_random_ops')
  def test_two_scopes_draw_the_same(self, mode):
    def draw():
      with process_state.preserved(), randomness.seeded(mode):
        return {
          'python': random.random(),
          'numpy': np.random.rand(),
          'op': float(tf.random.normal([])),
          'global generator': float(tf.random.get_global_generator().normal([])),
          'unseeded generator': float(
            tf.random.Generator.from_non_deterministic_state().normal([])
          ),
          'keras initializer': float(tf.keras.initializers.GlorotUniform()((1, 1))[0, 0]),
          'keras dropout': float(
            tf.reduce_sum(tf.keras.layers.Dropout(0.5)(tf.ones([64]), training=True))
          ),
        }

    one, other = draw(), draw()
    self.assertEqual(one, other)

  def test_constant_mode_makes_tf_keras_constant_too(self):
    with process_state.preserved(), randomness.seeded('constant'):
      one, other = (tf.keras.initializers.GlorotUniform()((2, 2)) for _ in range(2))
      np.testing.assert_array_equal(one, other)
    with process_state.preserved(), randomness.seeded('num_random_ops'):
      one, other = (tf.keras.initializers.GlorotUniform()((2, 2)) for _ in range(2))
      self.assertFalse(np.array_equal(one, other))

  def test_state_is_put_back_after_an_error(self):
    random.seed(7)
    np.random.seed(7)
    expected = random.Random(7).random(), np.random.RandomState(7).rand()
    with (
      self.assertRaises(ZeroDivisionError),
      process_state.preserved(),
      randomness.seeded('constant'),
    ):
      raise ZeroDivisionError
    self.assertEqual((random.random(), np.random.rand()), expected)


if __name__ == '__main__':
  absltest.main()
