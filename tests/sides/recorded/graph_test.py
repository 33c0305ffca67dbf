import dataclasses
import tempfile

import numpy as np
from absl.testing import absltest

from tests import recorded_small
from tf2verify.case import new_ladder
from tf2verify.numerics.noise import RUNS
from tf2verify.reference.perturbation import Perturber

# isort: split
import tensorflow as tf

from tf2verify.records.sampled import SampledArray
from tf2verify.sides.process import randomness
from tf2verify.sides.side import RunSpec
from tf2verify.sides.tf1.graphs.influence import WithoutInfluence
from tf2verify.stages.passes.zero_randomness import CaseFill

v1 = tf.compat.v1


def _build(inputs, training):
  """A model with a large variable, one without influence, and an input that is not read."""
  with v1.variable_scope('net'):
    large = v1.get_variable('large', (3, 40000))
    v1.get_variable('unused', (2,))
    step = v1.get_variable(
      'step', (), tf.int64, trainable=False, initializer=v1.zeros_initializer()
    )
  hidden = tf.nn.tanh(tf.matmul(inputs['x'], large))
  if training:
    hidden = tf.nn.dropout(hidden, rate=0.5)
    v1.add_to_collection(v1.GraphKeys.UPDATE_OPS, v1.assign_add(step, 1).op)
  return tf.reduce_mean(hidden, 1)


_INPUTS = {'x': recorded_small.INPUTS, 'y': np.arange(3, dtype=np.float32)}


class _Port(tf.keras.layers.Layer):
  @v1.keras.utils.track_tf1_style_variables
  def call(self, inputs, training=False):
    return _build(inputs, training)


class RecordedGraphTest(absltest.TestCase):
  @classmethod
  def setUpClass(cls):
    super().setUpClass()
    folder = tempfile.TemporaryDirectory()
    cls.addClassCleanup(folder.cleanup)
    cls.path = recorded_small.record(folder.name, _build, inputs=_INPUTS)

  def setUp(self):
    super().setUp()
    case = recorded_small.case_of(self.path, make_tf2_layer=lambda self: _Port())
    self._ladder = new_ladder(case, lambda _: None)
    self.addCleanup(self._ladder.close)
    self._case = self._ladder.prepared()
    self._tf1 = self._case.tf1

  def _run(self, training=False, **changes):
    names = {variable.name: variable.name for variable in self._tf1.inventory().variables}
    recording = self._tf1.recording
    fill = CaseFill(self._case.declaration)
    run = RunSpec(recording.varied_inputs, training, fill, names)
    return dataclasses.replace(run, **changes)

  def test_the_inventory_needs_no_graph(self):
    inventory = self._tf1.inventory()
    self.assertEqual([v.name for v in inventory.variables], ['net/large', 'net/unused', 'net/step'])
    large = inventory.variables[0]
    self.assertEqual((large.shape, large.dtype, large.trainable), ((3, 40000), 'float32', True))
    self.assertEqual(large.source.code, "large = v1.get_variable('large', (3, 40000))")
    self.assertEqual(inventory.variables_by_training[0][1][0], 'net/large')
    self.assertEqual(self._tf1._graphs._builds, {})

  def test_what_has_no_influence_is_told_without_a_graph(self):
    expected = WithoutInfluence(('net/unused',), ("['y']",))
    self.assertEqual(self._tf1.without_influence(), expected)
    self.assertEqual(self._tf1._graphs._builds, {})

  def test_moved_it_is_the_value_and_its_noise_and_then_what_moving_does_here(self):
    run = self._run()
    observe = self._tf1.prepare_filled([run])
    (still,) = observe()
    (moved,) = observe([dataclasses.replace(run, perturber=Perturber(0))])
    (again,) = observe([dataclasses.replace(run, perturber=Perturber(RUNS - 1))])
    (more,) = observe([dataclasses.replace(run, perturber=Perturber(RUNS))])
    value, one, two, three = (found.outputs[0].value for found in (still, moved, again, more))
    np.testing.assert_array_equal(one, two)
    self.assertTrue(np.all(one > value))
    self.assertTrue(np.any(three != one))
    np.testing.assert_allclose(three, value, atol=1e-6)

  def test_large_initial_values_are_parts_and_are_drawn_again_for_a_run(self):
    observed = self._tf1.prepare_seeded(randomness.CONSTANT, True)()
    sampled = observed.initial_values[0].value
    self.assertIsInstance(sampled, SampledArray)
    fill = self._tf1.initial_fill(randomness.CONSTANT, True, observed.initial_values)
    whole = fill('net/large', (3, 40000), np.dtype(np.float32))
    self.assertEqual(whole.shape, (3, 40000))
    from tf2verify.reference.arrays import array_digest

    self.assertEqual(array_digest(whole), sampled.sha256)
    (state,) = [r.value for r in observed.state_after if r.name == 'net/step']
    self.assertEqual(state, 1)

  def test_gradients_are_those_that_are_wanted(self):
    run = self._run(True, gradients=True, gradients_of=frozenset({'net/unused'}))
    (observed,) = self._tf1.prepare_filled([run])()
    self.assertEqual([(r.name, r.value) for r in observed.gradients], [('net/unused', None)])

  def test_the_graph_run_here_gives_what_was_recorded_here(self):
    run = self._run()
    here = self._tf1.on_current_tf(run)
    (recorded,) = self._tf1.prepare_filled([run])()
    np.testing.assert_array_equal(here.observation.outputs[0].value, recorded.outputs[0].value)
    self.assertEqual(here.recorded_by, f'TensorFlow {tf.__version__}')

  def test_a_run_can_be_looked_into_with_the_lines_of_the_reference(self):
    inspected = self._tf1.inspectable(self._run())
    self.addCleanup(inspected.close)
    tanh = next(op for op in inspected.op_graph.ops if op.op_type == 'Tanh')
    self.assertEqual(tanh.source.code, "hidden = tf.nn.tanh(tf.matmul(inputs['x'], large))")
    self.assertEqual(inspected.fetch([tanh.tensors[0]])[0].shape, (4, 40000))

  def test_close_lets_go(self):
    self._tf1.built(False)
    self._tf1.close()
    self.assertEqual(self._tf1._graphs._builds, {})


if __name__ == '__main__':
  absltest.main()
