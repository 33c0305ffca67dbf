"""Tests of stages.failures.failed_stage: faults planted in small models, seen by the ladder."""

import abc
import unittest.mock

import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

import tf2verify
from tests.global_probes import process_state
from tests.stages import tiny_models
from tests.stages.first_failure import climbed_to_failure
from tf2verify.diagnosis.places import looking
from tf2verify.records.diagnosis import GraphAspect
from tf2verify.sides.graphs.edits.repairs import GivenValue, Repair
from tf2verify.sides.graphs.rewriting import unrolled_loops
from tf2verify.sides.tf2.traces import tracing
from tf2verify.stages.failures import failed_stage

v1 = tf.compat.v1


def _dense(net, name, size=3):
  with v1.variable_scope(name):
    kernel = v1.get_variable('kernel', [net.shape[-1], size])
    return tf.matmul(net, kernel) + v1.get_variable('bias', [size])


class _Layers(tiny_models.OneModel, abc.ABC):
  """Three dense layers with a relu behind each of the first two."""

  def model(self, inputs, training, acts=(tf.nn.relu, tf.nn.relu), drop=0.0, scale=1.0):
    net = _dense(inputs, 'a')
    net = acts[0](net) if acts[0] else net
    net = _dense(net, 'b')
    net = acts[1](net) if acts[1] else net
    if drop and training:
      net = tf.nn.dropout(net, rate=drop)
    return _dense(net, 'c') * scale


def _diagnosis(case):
  """Returns the diagnosis of the first failure and the text of the report."""
  verdict = climbed_to_failure(case)
  failure = verdict.first_failure
  assert failure is not None and failure.diagnosis is not None, verdict.to_text()
  return failure.diagnosis, verdict.to_text()


def _ends(diagnosis):
  return [source.tf1_op for source in diagnosis.sources]


def _aspects(diagnosis):
  return [d.aspect for source in diagnosis.sources for d in source.differences]


class FaultTest(parameterized.TestCase):
  def test_lost_relu(self):
    class Case(_Layers):
      def port(self, inputs, training):
        return self.model(inputs, training, (None, tf.nn.relu))

    diagnosis, text = _diagnosis(Case)
    self.assertEqual(_aspects(diagnosis), [GraphAspect.MISSING])
    self.assertIn('missing in tf2: Relu', text)
    [source] = diagnosis.sources
    self.assertEndsWith(source.tf1_source.path, 'failed_stage_test.py')

  def test_two_faults(self):
    class Case(_Layers):
      def port(self, inputs, training):
        return self.model(inputs, training, (tf.nn.elu, tf.nn.leaky_relu))

    diagnosis, text = _diagnosis(Case)
    self.assertLen(diagnosis.sources, 2, text)
    self.assertEqual([source.alone for source in diagnosis.sources], [False, True], text)
    self.assertIn('Elu', text)
    self.assertIn('LeakyRelu', text)

  def test_fault_behind_another_spelling(self):
    class Case(_Layers):
      def model(self, inputs, training, relu=tf.nn.relu, scale=1.0):
        return super().model(inputs, training, (relu, relu), scale=scale)

      def port(self, inputs, training):
        def relu(x):
          return (x + tf.abs(x)) * 0.5

        return self.model(inputs, training, relu, 1.001)

    diagnosis, text = _diagnosis(Case)
    self.assertLen(diagnosis.sources, 1, text)
    self.assertIn('1.001', text)
    self.assertNotIn('Abs', text)

  def test_swapped_inputs(self):
    class Case(tiny_models.Affine):
      def model(self, inputs, training, swapped=False):
        parts = [super().model(inputs, training), tf.exp(inputs)]
        return tf.concat(parts[::-1] if swapped else parts, 1)

      def port(self, inputs, training):
        return self.model(inputs, training, True)

    diagnosis, text = _diagnosis(Case)
    self.assertEqual(set(_aspects(diagnosis)), {GraphAspect.ORDER}, text)

  def test_other_shape(self):
    class Case(tiny_models.OneModel):
      def model(self, inputs, training, axis=0):
        return tf.reduce_mean(inputs @ tiny_models.kernel(), axis)

      def port(self, inputs, training):
        return self.model(inputs, training, 1)

    diagnosis, text = _diagnosis(Case)
    self.assertLen(diagnosis.sources, 1)
    self.assertIn('its shapes differ', text)
    self.assertIn('[0] (tf1), [1] (tf2)' if '[0] (tf1)' in text else '0 (tf1), 1 (tf2)', text)

  def test_not_a_number_on_one_side(self):
    class Case(tiny_models.Affine):
      def model(self, inputs, training, root=False):
        net = super().model(inputs, training)
        return tf.sqrt(net) if root else tf.sqrt(tf.abs(net))

      def port(self, inputs, training):
        return self.model(inputs, training, True)

    diagnosis, text = _diagnosis(Case)
    self.assertIn('not finite', text)
    self.assertIn('Abs', text)
    self.assertLen(diagnosis.sources, 1)

  @parameterized.parameters(
    lambda net, fault: tf.cast(net > (0.5 if fault else 0.0), tf.int32),
    lambda net, fault: net > (0.5 if fault else 0.0),
    lambda net, fault: tf.strings.as_string(net > (0.5 if fault else 0.0)),
    lambda net, fault: tf.sparse.from_dense(net * (2.0 if fault else 1.0)),
    lambda net, fault: tf.reduce_sum(net) * (2.0 if fault else 1.0),
    lambda net, fault: {'net': net, 'constant': tf.constant([2.0 if fault else 1.0])},
    lambda net, fault: (net, tf.identity(net) if fault else tf.zeros_like(net)),
    lambda net, fault: net[:0] if fault else net[:1],
  )
  def test_outputs_of_every_kind(self, head):
    class Case(tiny_models.Affine):
      def model(self, inputs, training, fault=False):
        return head(super().model(inputs, training), fault)

      def port(self, inputs, training):
        return self.model(inputs, training, True)

    diagnosis, text = _diagnosis(Case)
    self.assertNotIn('abandoned', text)
    self.assertNotEmpty(diagnosis.sources, text)

  def test_output_that_is_the_input(self):
    class Case(tiny_models.Affine):
      def model(self, inputs, training, fault=False):
        return super().model(inputs, training), inputs * 2.0 if fault else inputs

      def port(self, inputs, training):
        return self.model(inputs, training, True)

    diagnosis, text = _diagnosis(Case)
    self.assertEqual(_ends(diagnosis), ['output [1]'], text)
    self.assertIn('passed through unchanged', text)

  def test_dropout_draws_the_same_on_both_sides(self):
    class Case(_Layers):
      def model(self, inputs, training, acts=(tf.nn.relu, tf.nn.relu), **changes):
        return super().model(inputs, training, acts, 0.3, **changes)

      def port(self, inputs, training):
        return self.model(inputs, training, scale=1.5 if training else 1.0)

    diagnosis, text = _diagnosis(Case)
    self.assertLen(diagnosis.sources, 1, text)
    self.assertNotIn('dropout', _ends(diagnosis)[0])

  def test_while_loop_is_named(self):
    class Case(tiny_models.OneModel):
      def model(self, inputs, training, forget_bias=1.0):
        cell = v1.nn.rnn_cell.LSTMCell(4, forget_bias=forget_bias, name='cell')
        return v1.nn.dynamic_rnn(cell, inputs, dtype=tf.float32, scope='rnn')[0]

      def port(self, inputs, training):
        return self.model(inputs, training, 0.0)

      def make_inputs(self):
        return tf2verify.normal_inputs((2, 5, 3))

    diagnosis, text = _diagnosis(Case)
    self.assertIn('rnn/while/round_1/cell/add', _ends(diagnosis)[0], text)
    self.assertIn('1 (tf1), 0 (tf2)', text)
    self.assertIn('proven', text)
    with unittest.mock.patch.object(unrolled_loops, '_MOST_OPERATIONS', 10):
      diagnosis, text = _diagnosis(Case)
    self.assertIn('rnn', _ends(diagnosis)[0], text)
    self.assertIn('in its body', text)
    self.assertIn('1 (tf1), 0 (tf2)', text)

  def test_branch_of_a_condition(self):
    class Case(tiny_models.OneModel):
      def model(self, inputs, training, slope=0.2):
        net = inputs @ tiny_models.kernel()
        flag = tf.reduce_sum(inputs) > -1e9
        return tf.cond(flag, lambda: tf.nn.leaky_relu(net, slope), lambda: tf.exp(net))

      def port(self, inputs, training):
        if tf.executing_eagerly():
          return tf.nn.leaky_relu(inputs @ tiny_models.kernel(), 0.3)
        return self.model(inputs, training, 0.3)

    diagnosis, text = _diagnosis(Case)
    self.assertNotEmpty(diagnosis.sources, text)
    self.assertIn('0.2 (tf1), 0.3 (tf2)', text)
    self.assertNotIn('branch', text)

  def test_gradient_path(self):
    class Case(tiny_models.Affine):
      def port(self, inputs, training):
        return tf.matmul(inputs, tf.stop_gradient(tiny_models.kernel())) + tiny_models.bias()

    diagnosis, text = _diagnosis(Case)
    self.assertEqual([d.tf2 for d in diagnosis.gradient_differences], ['StopGradient'], text)

  def test_sparse_gradient(self):
    class Case(tiny_models.Embedded):
      def model(self, inputs, training, pass_on=tf.identity):
        rows = super().model(inputs, training)
        return tf.concat([rows[:2], pass_on(rows[2:])], 0)

      def port(self, inputs, training):
        return self.model(inputs, training, tf.stop_gradient)

    _, text = _diagnosis(Case)
    self.assertNotIn('abandoned', text)
    self.assertIn('StopGradient', text)

  def test_other_momentum(self):
    class Case(tiny_models.Normalized):
      def port(self, inputs, training):
        return v1.layers.batch_normalization(inputs, training=training, name='norm', momentum=0.9)

    diagnosis, text = _diagnosis(Case)
    self.assertTrue(all('AssignMovingAvg' in end for end in _ends(diagnosis)), text)
    self.assertNotEmpty(diagnosis.sources, text)

  def test_variables_of_float64_and_bfloat16(self):
    for dtype in (tf.float64, tf.bfloat16):
      with self.subTest(dtype.name):

        class Case(tiny_models.OneModel):
          def model(self, inputs, training, fault=0.0):
            kernel = v1.get_variable('kernel', [3, 3], dtype)  # noqa: B023
            return tf.exp(tf.cast(inputs, dtype) @ kernel) + tf.cast(fault, dtype)  # noqa: B023

          def port(self, inputs, training):
            return self.model(inputs, training, 1.0)

        diagnosis, text = _diagnosis(Case)
        self.assertLen(diagnosis.sources, 1, text)

  def test_reference_variables(self):
    class Case(_Layers):
      def build_tf1_graph(self, inputs, training):
        with v1.variable_scope('', use_resource=False):
          return self.model(inputs, training)

      def port(self, inputs, training):
        return self.model(inputs, training, (tf.nn.elu, tf.nn.elu))

    diagnosis, text = _diagnosis(Case)
    self.assertEqual([source.alone for source in diagnosis.sources], [False, True], text)

  def test_embedding_that_is_read_twice(self):
    """Gathered from, and multiplied by: the second fault stands behind both."""

    class Case(tiny_models.Embedded):
      def model(self, inputs, training, act=tf.nn.relu, scale=1.0):
        table = v1.get_variable('embedding', [5, 4])
        net = act(tf.nn.embedding_lookup(table, inputs))
        return tf.matmul(net, table, transpose_b=True) * scale

      def port(self, inputs, training):
        return self.model(inputs, training, tf.nn.elu, 1.5)

    diagnosis, text = _diagnosis(Case)
    self.assertLen(diagnosis.sources, 2, text)


class PortKindsTest(absltest.TestCase):
  def test_module(self):
    class Case(_Layers):
      def make_tf2_layer(self):
        return tiny_models.ShimModule(
          lambda inputs, training: self.model(inputs, training, (tf.nn.elu, tf.nn.relu))
        )

    diagnosis, text = _diagnosis(Case)
    self.assertLen(diagnosis.sources, 1, text)

  def test_functional_model(self):
    class Case(tiny_models.OneModel):
      def model(self, inputs, training):
        return v1.layers.dense(inputs, 3, tf.nn.relu, name='head')

      def make_tf2_layer(self):
        fed = tf.keras.Input((3,))
        return tf.keras.Model(fed, tf.keras.layers.Dense(3, 'elu', name='head')(fed))

    diagnosis, text = _diagnosis(Case)
    self.assertLen(diagnosis.sources, 1, text)
    self.assertIn('Elu', text)

  def test_nested_function(self):
    class Case(_Layers):
      def port(self, inputs, training):
        elu = tf.function(lambda x: tf.nn.elu(x))
        return self.model(inputs, training, (elu, tf.nn.relu))

    diagnosis, text = _diagnosis(Case)
    self.assertIn('Elu', text)
    self.assertLen(diagnosis.sources, 1, text)

  def test_python_control_flow(self):
    class Port(tf.keras.layers.Layer):
      def build(self, shape):
        self.kernel = self.add_weight(name='kernel', shape=(3, 3))

      def call(self, inputs):
        net = inputs @ self.kernel
        if tf.reduce_sum(inputs) > -1e9:
          net = net * 2.0
        return net

    class Case(tiny_models.OneModel):
      def model(self, inputs, training):
        return inputs @ tiny_models.kernel()

      def make_tf2_layer(self):
        return Port(name='port')

      variable_names = staticmethod('port/{}'.format)

    diagnosis, text = _diagnosis(Case)
    self.assertNotIn('cannot be traced', text)
    self.assertNotEmpty(diagnosis.sources, text)

  def test_python_control_flow_under_the_shim_is_not_rewritten(self):
    class Case(tiny_models.Affine):
      def port(self, inputs, training):
        net = self.model(inputs, training)
        return net * 2.0 if tf.reduce_sum(inputs) > -1e9 else net

    _, text = _diagnosis(Case)
    self.assertIn('the port cannot be traced as a graph', text)

  def test_py_function(self):
    class Case(tiny_models.Affine):
      def port(self, inputs, training):
        net = self.model(inputs, training)
        twice = tf.py_function(lambda x: x * 2.0, [net], tf.float32)
        return tf.ensure_shape(twice, net.shape)

    diagnosis, text = _diagnosis(Case)
    self.assertNotEmpty(diagnosis.sources, text)
    self.assertIn('EagerPyFunc', text)

  def test_state_that_is_read_after_it_is_written_is_not_blamed(self):
    class Case(tiny_models.OneModel):
      def model(self, inputs, training, scale=1.0):
        step = v1.get_variable('step', [], initializer=v1.zeros_initializer(), trainable=False)
        net = inputs @ tiny_models.kernel()
        with tf.control_dependencies([v1.assign_add(step, 1.0)]):
          return net * step.read_value() * scale

      def port(self, inputs, training):
        return self.model(inputs, training, 1.5)

    diagnosis, text = _diagnosis(Case)
    self.assertLen(diagnosis.sources, 1, text)
    self.assertIn('1.5', text)


class NotTraceableTest(absltest.TestCase):
  def _assert_finding_stays(self, case, words):
    verdict = climbed_to_failure(case)
    text = verdict.to_text()
    failure = verdict.first_failure
    self.assertIs(failure.status, tf2verify.Status.FAILED, text)
    self.assertNotEmpty(failure.differences)
    self.assertEqual(failure.diagnosis.sources, ())
    self.assertIn('the port cannot be traced as a graph, so no operation is named', text)
    self.assertIn(words, text)

  def test_port_that_reads_values(self):
    class Case(tiny_models.Affine):
      def port(self, inputs, training):
        return self.model(tf.constant(inputs.numpy() * 2), training)

    self._assert_finding_stays(Case, 'numpy')

  def test_lookup_table_in_the_port(self):
    class Case(tiny_models.OneModel):
      def model(self, inputs, training, fault=0.0):
        keys, values = tf.constant([b'a', b'b']), tf.constant([1.0, 2.0])
        initializer = tf.lookup.KeyValueTensorInitializer(keys, values)
        found = self.table(initializer).lookup(inputs)
        return found[:, tf.newaxis] * v1.get_variable('scale', [3]) + fault

      def table(self, initializer):
        if tf.executing_eagerly():
          if not hasattr(self, '_table'):
            self._table = tf.lookup.StaticHashTable(initializer, -1.0)
          return self._table
        return getattr(self, '_table', None) or tf.lookup.StaticHashTable(initializer, -1.0)

      def build_tf1_graph(self, inputs, training):
        values = tf.where(tf.equal(inputs, 'a'), 1.0, 2.0)
        return values[:, tf.newaxis] * v1.get_variable('scale', [3])

      def port(self, inputs, training):
        return self.model(inputs, training, 1.0)

      def make_inputs(self):
        return np.array([b'a', b'b'])

    self._assert_finding_stays(Case, 'lookup table')


class NeverRaisesTest(absltest.TestCase):
  class Case(_Layers):
    def port(self, inputs, training):
      return self.model(inputs, training, (tf.nn.elu, tf.nn.relu))

  def _given_up(self, target, error):
    with unittest.mock.patch.object(*target, side_effect=error):
      diagnosis, text = _diagnosis(self.Case)
    self.assertEqual(diagnosis.sources, ())
    self.assertIn(f'note: the diagnosis was abandoned: {type(error).__name__}: {error}', text)
    self.assertIn('12 of 12 elements differ' if '12 of 12' in text else 'elements differ', text)

  def test_fault_in_the_engine_costs_no_finding(self):
    self._given_up((failed_stage, 'diagnose'), KeyError('planted'))

  def test_fault_in_the_search_leaves_what_the_values_tell(self):
    class Case(_Layers):
      def port(self, inputs, training):
        with v1.variable_scope('', initializer=v1.ones_initializer()):
          return self.model(inputs, training)

    target = unittest.mock.patch.object(looking, 'Divergence', side_effect=ValueError('planted'))
    with target:
      diagnosis, text = _diagnosis(Case)
    self.assertIn('the diagnosis was abandoned: ValueError: planted', text)
    self.assertNotEmpty(diagnosis.causes, text)

  def test_fault_while_tracing_costs_no_finding(self):
    self._given_up((tracing.TracedPort, 'run'), AssertionError('planted'))

  def test_error_of_a_session_costs_no_finding(self):
    error = tf.errors.InvalidArgumentError(None, None, 'planted')
    with unittest.mock.patch.object(failed_stage.GraphRun, 'fetch', side_effect=error):
      _, text = _diagnosis(self.Case)
    self.assertIn('the diagnosis was abandoned: InvalidArgumentError', text)

  def test_error_that_only_the_traced_port_raises(self):
    class Case(_Layers):
      def port(self, inputs, training):
        if not tf.executing_eagerly():
          raise ValueError('eager only')
        return self.model(inputs, training, (tf.nn.elu, tf.nn.relu))

    _, text = _diagnosis(Case)
    self.assertIn('eager only', text)

  def test_globals_are_as_before(self):
    _diagnosis(self.Case)
    before = process_state()
    _diagnosis(self.Case)
    with unittest.mock.patch.object(failed_stage, 'diagnose', side_effect=KeyError('planted')):
      _diagnosis(self.Case)
    after = process_state()
    self.assertEmpty({key for key in before if before[key] != after[key]})

  def test_other_stages_have_none(self):
    class Passing(_Layers):
      pass

    verdict = tf2verify.verify(Passing)
    self.assertTrue(all(stage.diagnosis is None for stage in verdict.stages))

  def test_little_memory_gives_the_same_diagnosis(self):
    first, _ = _diagnosis(self.Case)
    with unittest.mock.patch('tf2verify.diagnosis.divergence.tensors.portions._PORTION_BYTES', 1):
      second, _ = _diagnosis(self.Case)
    self.assertEqual(first.sources, second.sources)


class ExperimentingTest(absltest.TestCase):
  """When the edits of one stage explain what another one shows."""

  def follows(self, repair, is_blocked=True, passes=True):
    bench = unittest.mock.Mock()
    bench.passes_with_those_of_others.return_value = passes
    return failed_stage.Experimenting(bench, 1.0, [repair], is_blocked).follows(bench)

  def test_a_blocked_stage_that_passes_with_them_follows(self):
    self.assertTrue(self.follows(Repair(passing=('stop',))))
    self.assertFalse(self.follows(Repair(passing=('stop',)), passes=False))

  def test_a_stage_that_is_not_blocked_is_searched(self):
    self.assertFalse(self.follows(Repair(passing=('stop',)), is_blocked=False))

  def test_values_of_tf1_hide_what_is_wrong_before_them(self):
    given = GivenValue('tf1:0', 'tf2:0', lambda array: array)
    self.assertFalse(self.follows(Repair(values=(given,))))

  def test_edits_are_kept_until_others_are_proven(self):
    known = [Repair(passing=('stop',))]
    experimenting = failed_stage.Experimenting(unittest.mock.Mock(), 1.0, known)
    experimenting.close(unittest.mock.Mock(proven=()))
    self.assertLen(known, 1)
    other = Repair(passing=('other',))
    experimenting.close(unittest.mock.Mock(proven=(other,)))
    self.assertEqual(known, [other])


if __name__ == '__main__':
  absltest.main()
