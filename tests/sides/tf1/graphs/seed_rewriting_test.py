"""Tests of tf2verify.sides.tf1.graphs.seed_rewriting: rewritten = rebuilt, bit for bit."""

import dataclasses
from unittest import mock

import numpy as np
import tensorflow as tf
import tf_slim as slim
from absl.testing import absltest
from tf_keras.src import backend

import tf2verify
from tf2verify.errors import NotApplicable
from tf2verify.sides.process import randomness
from tf2verify.sides.process import state as process_state
from tf2verify.sides.tf1.graph import Tf1Graph
from tf2verify.sides.tf1.graphs import build as tf1_build
from tf2verify.sides.tf1.graphs import seed_rewriting
from tf2verify.sides.tf1.graphs.live_graphs import LiveGraphs
from tf2verify.sides.tf1.graphs.racing import Racing
from tf2verify.sides.tf1.session_runs import SessionRuns

v1 = tf.compat.v1
_CONSTANT = randomness.CONSTANT


def _slim_model(inputs, training):
  with slim.arg_scope([slim.conv2d], normalizer_fn=slim.batch_norm):
    net = slim.conv2d(inputs, 4, 3, scope='conv', normalizer_params={'is_training': training})
  net = slim.dropout(slim.flatten(net), 0.7, is_training=training, scope='dropout')
  net = slim.fully_connected(net, 3, activation_fn=None, scope='logits')
  return net + v1.random_normal([3])


def _loop_model(inputs, training):
  del training
  start = tf.reshape(inputs, [-1, 4]) @ v1.get_variable('kernel', [4, 4])
  return tf.while_loop(
    lambda step, _: step < 3,
    lambda step, state: (step + 1, state * v1.random_uniform([4], 0.5, 1.5)),
    (0, start),
    parallel_iterations=1,
  )[1]


def _layers_model(inputs, training):
  net = v1.layers.dense(v1.layers.flatten(inputs), 3, name='dense')
  return v1.layers.dropout(net, 0.5, training=training)


def _computed_seed_model(inputs, training):
  del training
  seed, _ = backend.RandomGenerator(None, rng_type='stateless').make_seed_for_stateless_op()
  return v1.layers.flatten(inputs) + tf.random.stateless_uniform([16], (seed + 1, 0))


def _seed_as_number_model(inputs, training):
  del training
  seeds = tf.constant(
    backend.RandomGenerator(None, rng_type='stateless').make_seed_for_stateless_op()
  )
  noise = tf.random.stateless_uniform([16], seeds)
  return v1.layers.flatten(inputs) + noise + tf.cast(seeds[0], tf.float32)


def _raw_seed_model(inputs, training):
  del training
  kernel = v1.get_variable('kernel', [4, 4])
  noise = tf.raw_ops.RandomUniform(shape=[4], dtype=tf.float32, seed=42, seed2=0)
  return tf.linalg.matmul(tf.reshape(inputs, [-1, 4]), kernel) + noise


def _moved_seed_model(inputs, training):
  del training
  tool = tf2verify.random_tool()
  tool.operation_seed = 5
  return tf.reshape(inputs, [-1, 4]) @ v1.get_variable('kernel', [4, 4])


def _declaration(model):
  class Declaration(tf2verify.EquivalenceCase):
    def build_tf1_graph(self, inputs, training):
      return model(inputs, training)

  return Declaration()


_INPUTS = tf2verify.normal_inputs((2, 4, 4, 1))


def _build(model, mode, training=True):
  with process_state.preserved():
    return tf1_build.build_graph(_declaration(model), _INPUTS, training, mode)


def _observe(built):
  """Runs a given graph as the tf1 side would."""
  graphs = mock.create_autospec(LiveGraphs, instance=True)
  graphs.built_for.return_value = built
  runs = SessionRuns(graphs, _INPUTS, Racing(), lambda _: None)
  with process_state.preserved():
    return runs.seeded(built.mode, built.training)()


class RewrittenEqualsRebuiltTest(absltest.TestCase):
  def _assert_same_bits(self, one, other):
    self.assertEqual([record.name for record in one], [record.name for record in other])
    self.assertNotEmpty(one)
    for first, second in zip(one, other, strict=True):
      np.testing.assert_array_equal(
        first.value.view(np.uint8), second.value.view(np.uint8), err_msg=first.name
      )

  def test_slim_model_with_dropout_and_noise(self):
    for training in (False, True):
      built = _build(_slim_model, randomness.NUM_RANDOM_OPS, training)
      rewritten = seed_rewriting.constant_seed_graph(built)
      self.assertIsInstance(rewritten, tf1_build.BuiltGraph)
      rebuilt = _build(_slim_model, randomness.CONSTANT, training)
      one, other = _observe(rewritten), _observe(rebuilt)
      self._assert_same_bits(one.initial_values, other.initial_values)
      self._assert_same_bits(one.outputs, other.outputs)
      self._assert_same_bits(one.state_after, other.state_after)
      # The modes differ, or the comparison above would prove nothing.
      before = _observe(built)
      self.assertFalse(np.array_equal(before.outputs[0].value, one.outputs[0].value))

  def test_layers_whose_initializers_have_seeds_of_tf_keras(self):
    for training in (False, True):
      built = _build(_layers_model, randomness.NUM_RANDOM_OPS, training)
      self.assertNotEmpty(built.keras_seeds)
      rewritten = seed_rewriting.constant_seed_graph(built)
      self.assertIsInstance(rewritten, tf1_build.BuiltGraph)
      one, other = _observe(rewritten), _observe(_build(_layers_model, _CONSTANT, training))
      self._assert_same_bits(one.initial_values, other.initial_values)
      self._assert_same_bits(one.outputs, other.outputs)
      before = _observe(built)
      self.assertFalse(np.array_equal(before.initial_values[0].value, one.initial_values[0].value))

  def test_the_original_graph_keeps_its_seeds(self):
    built = _build(_slim_model, randomness.NUM_RANDOM_OPS)
    before = _observe(built).outputs
    seed_rewriting.constant_seed_graph(built)
    self._assert_same_bits(before, _observe(built).outputs)

  def test_random_ops_in_the_body_of_a_loop(self):
    built = _build(_loop_model, randomness.NUM_RANDOM_OPS)
    rewritten = seed_rewriting.constant_seed_graph(built)
    self.assertIsInstance(rewritten, tf1_build.BuiltGraph)
    rebuilt = _build(_loop_model, randomness.CONSTANT)
    self._assert_same_bits(_observe(rewritten).outputs, _observe(rebuilt).outputs)


class FallBackTest(absltest.TestCase):
  def test_a_seed_that_is_computed_from_one_of_tf_keras_cannot_be_rewritten(self):
    built = _build(_computed_seed_model, randomness.NUM_RANDOM_OPS)
    self.assertIn('seeds of its own', seed_rewriting.constant_seed_graph(built))

  def test_a_seed_that_something_else_reads_cannot_be_rewritten(self):
    built = _build(_seed_as_number_model, randomness.NUM_RANDOM_OPS)
    obstacle = seed_rewriting.constant_seed_graph(built)
    self.assertIn('reads the seed of an initializer of tf-keras', obstacle)

  def test_an_op_with_seeds_of_its_own_cannot_be_rewritten(self):
    built = _build(_raw_seed_model, randomness.NUM_RANDOM_OPS)
    self.assertIn('seeds of its own', seed_rewriting.constant_seed_graph(built))

  def test_a_seed_that_user_code_sets_cannot_be_rewritten(self):
    built = _build(_moved_seed_model, randomness.NUM_RANDOM_OPS)
    self.assertIn('operation_seed', seed_rewriting.constant_seed_graph(built))

  def test_the_side_builds_again_where_it_must(self):
    steps = []
    side = Tf1Graph(_declaration(_raw_seed_model), _INPUTS, steps.append, lambda: False)
    with process_state.preserved():
      side.prepare_seeded(randomness.CONSTANT, training=True)()
    self.assertIn('building the TF1 graph again, for constant mode, training', steps)

  def test_the_side_builds_once_where_it_can(self):
    steps = []
    side = Tf1Graph(_declaration(_slim_model), _INPUTS, steps.append, lambda: False)
    with process_state.preserved():
      for mode in (randomness.CONSTANT, randomness.NUM_RANDOM_OPS):
        side.prepare_seeded(mode, training=True)()
    builds = [step for step in steps if 'building' in step]
    self.assertEqual(builds, ['building the TF1 graph, training'])


def _draws_around_a_variable(inputs, training):
  del training
  noise = v1.random_normal([4])
  kernel = v1.get_variable('kernel', initializer=v1.random_uniform([4, 4]))
  return tf.reshape(inputs, [-1, 4]) @ kernel + noise, v1.random_normal([4])


class ComputationTest(absltest.TestCase):
  def test_random_ops_of_the_computation_are_counted_by_themselves(self):
    built = _build(_draws_around_a_variable, randomness.NUM_RANDOM_OPS)
    numbered = seed_rewriting.computation_seed_graph(built)
    nodes = numbered.graph.as_graph_def().node
    seeds = [node.attr['seed2'].i for node in nodes if node.op == 'RandomStandardNormal']
    self.assertEqual(seeds, [0, 1])
    self.assertLen(numbered.random_draws, 2)
    self.assertLen(built.random_draws, 3)
    one, other = _observe(built), _observe(numbered)
    np.testing.assert_array_equal(one.initial_values[0].value, other.initial_values[0].value)
    np.testing.assert_array_equal(
      other.outputs[1].value, _observe(_build(_noise_alone, built.mode)).outputs[0].value
    )

  def test_seeds_of_its_own(self):
    built = _build(_raw_seed_model, randomness.NUM_RANDOM_OPS)
    built = dataclasses.replace(built, operation_seeds=0)
    with self.assertRaisesRegex(NotApplicable, 'has seeds of its own'):
      seed_rewriting.computation_seed_graph(built)


def _noise_alone(inputs, training):
  del inputs, training
  v1.random_normal([4])
  return v1.random_normal([4])


if __name__ == '__main__':
  absltest.main()
