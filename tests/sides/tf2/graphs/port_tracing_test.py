"""Tests of tf2verify.sides.tf2.graphs.port_tracing."""

import abc

import numpy as np
import tensorflow as tf
from absl.testing import absltest

from tests.stages import tiny_models
from tf2verify.case import new_ladder
from tf2verify.reference import inputs as case_inputs
from tf2verify.sides.process import state as process_state
from tf2verify.sides.side import RunSpec
from tf2verify.sides.tf2.traces.tracing import NotTraceable
from tf2verify.stages.passes.zero_randomness import CaseFill, constant_fill

v1 = tf.compat.v1


class _FunctionalModel(tiny_models.OneModel, abc.ABC):
  variable_names = staticmethod(lambda name: name)

  def model(self, inputs, training):
    return v1.layers.dense(inputs, 3, tf.nn.relu, name='head')

  def make_tf2_layer(self):
    fed = tf.keras.Input((3,))
    return tf.keras.Model(fed, tf.keras.layers.Dense(3, 'relu', name='head')(fed))


class _Sparse(tiny_models.OneModel, abc.ABC):
  def model(self, inputs, training):
    kernel = v1.get_variable('kernel', [3, 3])
    return {'sparse': tf.sparse.from_dense(inputs @ kernel), 'count': tf.size(inputs)}


class _Cut(tiny_models.Affine, abc.ABC):
  def model(self, inputs, training):
    return super().model(tf.stop_gradient(inputs), training) + tf.stop_gradient(
      v1.get_variable('cut', [3])
    )


class _Double(tiny_models.OneModel, abc.ABC):
  dtype = tf.float64

  def model(self, inputs, training):
    weights = v1.get_variable('w', [3, 3], self.dtype)
    return tf.cast(inputs, self.dtype) @ weights


class _Brain(_Double, abc.ABC):
  dtype = tf.bfloat16


class _Reference(tiny_models.OneModel, abc.ABC):
  def build_tf1_graph(self, inputs, training):
    return inputs @ v1.get_variable('kernel', [3, 3], use_resource=False)

  def port(self, inputs, training):
    return inputs @ tiny_models.kernel()


class _TwoRegularizers(tiny_models.OneModel, abc.ABC):
  def model(self, inputs, training):
    def both(weights):
      return 0.1 * tf.nn.l2_loss(weights)

    w = v1.get_variable('kernel', [3, 3], regularizer=both)
    v1.add_to_collection(v1.GraphKeys.REGULARIZATION_LOSSES, 0.1 * tf.reduce_sum(tf.abs(w)))
    return inputs @ w


class _Module(tiny_models.Affine, abc.ABC):
  def make_tf2_layer(self):
    return tiny_models.ShimModule(self.port)


class _Numpy(tiny_models.Affine, abc.ABC):
  def port(self, inputs, training):
    return self.model(tf.constant(inputs.numpy()), training)


class InspectableTest(absltest.TestCase):
  def _sides(self, case, training=False, gradients=False):
    """Returns both sides' inspectable runs, and the port's observation of the same run."""
    ladder = new_ladder(case, lambda _: None)
    self.addCleanup(ladder.close)
    with process_state.preserved():
      under_test = ladder.prepared()
      pairs = under_test.alignment().pairs
      fill = CaseFill(under_test.declaration)
      inputs = under_test.inputs
      runs = [
        RunSpec(inputs, training, fill, names, gradients)
        for names in ({one: one for one, _ in pairs}, {two: one for one, two in pairs})
      ]
      [observed] = under_test.tf2.observe_filled([runs[1]])
      sides = under_test.tf1.inspectable(runs[0]), under_test.tf2.inspectable(runs[1])
      for side in sides:
        self.addCleanup(side.close)
      return *sides, observed

  def _targets(self, run):
    with process_state.preserved():
      return {
        name: run.fetch(run.op_graph.ops[position].tensors)
        for name, position in run.op_graph.targets().items()
      }

  def test_traced_port_yields_what_it_yields_eagerly(self):
    for case in (
      tiny_models.Affine,
      tiny_models.Dropped,
      tiny_models.Normalized,
      tiny_models.Embedded,
      _Module,
      _FunctionalModel,
      _Sparse,
      _Double,
      _Brain,
    ):
      for training in (False, True):
        with self.subTest(case.__name__, training=training):
          case = type('Case', (case,), {})
          tf1, tf2, observed = self._sides(case, training)
          ones, others = self._targets(tf1), self._targets(tf2)
          for record in observed.outputs:
            [traced] = others[f'output {record.name}']
            np.testing.assert_array_equal(traced, record.value)
          self.assertEqual(
            [name for name in ones if name.startswith('output')],
            [name for name in others if name.startswith('output')],
          )

  def test_one_trace_runs_with_other_inputs_and_values(self):
    for case in (tiny_models.Affine, tiny_models.Normalized, tiny_models.Embedded, _Sparse):
      with self.subTest(case.__name__):
        case = type('Case', (case,), {})
        ladder = new_ladder(case, lambda _: None)
        self.addCleanup(ladder.close)
        with process_state.preserved():
          port = ladder.prepared().tf2
          names = {two: one for one, two in ladder.prepared().alignment().pairs}
          inputs, _ = case_inputs.varied_inputs(ladder.prepared().inputs)
          first = RunSpec(ladder.prepared().inputs, True, constant_fill(ladder.prepared()), names)
          second = RunSpec(inputs, True, CaseFill(ladder.prepared().declaration), names)
          traced = port.traced(first)
          runs = traced.again(second).run(), port.traced(second).run(), traced.run()
        for run in runs:
          self.addCleanup(run.close)
        again, anew, before = (self._targets(run) for run in runs)
        self.assertEqual(again.keys(), anew.keys())
        for name, tensors in anew.items():
          for tensor, other in zip(tensors, again[name], strict=True):
            np.testing.assert_array_equal(other, tensor)
        outputs = [name for name in anew if name.startswith('output')]
        self.assertTrue(any((before[name][0] != anew[name][0]).any() for name in outputs))

  def test_gradients_have_the_names_that_they_have_in_tf1(self):
    tf1, tf2, observed = self._sides(type('Case', (tiny_models.Dropped,), {}), True, True)
    ones, others = self._targets(tf1), self._targets(tf2)
    self.assertContainsSubset({'gradient kernel', 'gradient bias'}, others)
    for record in observed.gradients:
      np.testing.assert_array_equal(others[f'gradient {record.name}'][0], record.value)
    backward = [
      {op.name.rpartition('/')[2] for op in run.op_graph.ops if op.name.startswith('gradients')}
      for run in (tf1, tf2)
    ]
    self.assertNotEmpty(backward[0])
    self.assertNotEmpty(backward[0] & backward[1])
    self.assertCountEqual(
      [name for name in ones if name.startswith('gradient ')],
      [name for name in others if name.startswith('gradient ')],
    )

  def test_gradient_of_none_is_no_target(self):
    tf1, tf2, _ = self._sides(type('Case', (_Cut,), {}), True, True)
    for run in (tf1, tf2):
      self.assertNotIn('gradient cut', run.op_graph.targets())
      self.assertIn('gradient kernel', run.op_graph.targets())

  def test_sparse_gradient_is_values_and_indices(self):
    tf1, tf2, _ = self._sides(type('Case', (tiny_models.Embedded,), {}), True, True)
    for run in (tf1, tf2):
      values, indices = self._targets(run)['gradient embedding']
      self.assertEqual((values.shape, indices.tolist()), ((4, 4), [3, 0, 3, 2]))

  def test_regularization_losses_go_by_their_variables(self):
    tf1, tf2, observed = self._sides(type('Case', (tiny_models.Regularized,), {}))
    [loss] = observed.regularization_losses
    for run in (tf1, tf2):
      [value] = self._targets(run)['regularization loss fc/kernel']
      np.testing.assert_allclose(value, loss.value, rtol=1e-6)

  def test_two_losses_of_one_variable_are_two_targets(self):
    tf1, _, _ = self._sides(type('Case', (_TwoRegularizers,), {}))
    self.assertContainsSubset(
      {'regularization loss kernel', 'regularization loss kernel (2)'}, tf1.op_graph.targets()
    )

  def test_reference_variables(self):
    tf1, tf2, _ = self._sides(type('Case', (_Reference,), {}))
    one, other = self._targets(tf1), self._targets(tf2)
    for name, values in one.items():
      np.testing.assert_array_equal(values, other[name])

  def test_updates_of_moving_averages_are_targets(self):
    tf1, tf2, _ = self._sides(type('Case', (tiny_models.Normalized,), {}), True)
    for run in (tf1, tf2):
      self.assertContainsSubset(
        {'update of norm/moving_mean', 'update of norm/moving_variance'}, run.op_graph.targets()
      )

  def test_port_that_reads_values_is_not_traceable(self):
    with self.assertRaisesRegex(NotTraceable, 'numpy'):
      self._sides(type('Case', (_Numpy,), {}))
    self.assertFalse(tf.config.functions_run_eagerly())


if __name__ == '__main__':
  absltest.main()
