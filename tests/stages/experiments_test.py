"""Tests of experiments on failed stages: mistakes planted in small models, seen by the ladder."""

import abc
import os
import unittest.mock

import tensorflow as tf
from absl.testing import absltest

from tests.global_probes import process_state
from tests.stages import tiny_models
from tests.stages.first_failure import climbed_to_failure
from tf2verify.diagnosis import causes, experimenting
from tf2verify.diagnosis.evidence.failed_stage import FailedStage
from tf2verify.diagnosis.rules.rule import Rule
from tf2verify.environment import diagnose_option
from tf2verify.records.diagnosis import Cause
from tf2verify.records.experiment import Edit, Outcome
from tf2verify.records.op_graph import NodeChange
from tf2verify.sides.graphs.edits.repairs import Repair
from tf2verify.sides.graphs.edits.wiring import CannotRepair
from tf2verify.sides.tf2.graphs import port_tracing
from tf2verify.stages.experiments import forward_runs, stage_bench

v1 = tf.compat.v1


class _Network(tiny_models.OneModel, abc.ABC):
  """An activation by hand, a normalization by hand, two branches."""

  def model(self, inputs, training, cubic=0.044715, epsilon=1e-3, act=tf.nn.relu, scale=1.5):
    net = tf.matmul(inputs, v1.get_variable('a', [3, 4]))
    net = 0.5 * net * (1 + tf.tanh(0.79788456 * (net + cubic * net**3)))
    net = tf.matmul(net, v1.get_variable('b', [4, 4]))
    mean, variance = tf.nn.moments(net, [1], keepdims=True)
    net = (net - mean) * tf.math.rsqrt(variance + epsilon)
    net = act(net) if act else net
    net = tf.concat([net, tf.exp(net)], 1)
    return tf.matmul(net, v1.get_variable('c', [8, 2])) * scale


def _failure(case):
  verdict = climbed_to_failure(case)
  failure = verdict.first_failure
  assert failure is not None and failure.diagnosis is not None, verdict.to_text()
  return failure.diagnosis, verdict.to_text()


def _experiments(diagnosis):
  return [cause.experiment for cause in diagnosis.causes]


class ExperimentsTest(absltest.TestCase):
  def test_another_constant_is_proven_without_a_rule(self):
    class Case(_Network):
      def port(self, inputs, training):
        return self.model(inputs, training, cubic=0.044175)

    before = process_state()
    diagnosis, text = _failure(Case)
    self.assertEqual(process_state(), before)
    [experiment] = _experiments(diagnosis)
    self.assertEqual((experiment.edit, experiment.outcome), (Edit.SETTING, Outcome.PROVEN), text)
    self.assertIn('is 0.044175 in the port, 0.044715 in tf1', experiment.text)
    self.assertEqual((experiment.number, experiment.mistakes, experiment.left), (1, 1, 0))
    self.assertLess(experiment.apart, 1e-6)
    self.assertIn('  cause (proven: with it both sides agree ', text)

  def test_operations_in_another_order(self):
    class Case(tiny_models.OneModel):
      def model(self, inputs, training):
        net = tf.matmul(inputs, v1.get_variable('a', [3, 4]))
        return tf.nn.relu(net * 0.5 + v1.get_variable('b', [4])) * 3.0

      def port(self, inputs, training):
        net = tf.nn.relu(tf.matmul(inputs, v1.get_variable('a', [3, 4])))
        return (v1.get_variable('b', [4]) + 0.5 * net) * 3.0

    _, text = _failure(Case)
    self.assertNotIn('the port computes Relu, tf1 computes Relu', text)

  def test_all_mistakes_of_one_run_in_order(self):
    class Case(_Network):
      def port(self, inputs, training):
        return self.model(inputs, training, 0.044175, 0.1, tf.nn.elu, 1.6)

    diagnosis, text = _failure(Case)
    experiments = _experiments(diagnosis)
    self.assertLen(experiments, 4, text)
    self.assertEqual({one.outcome for one in experiments}, {Outcome.PROVEN}, text)
    self.assertEqual([one.number for one in experiments], [1, 2, 3, 4])
    said = [one.text for one in experiments]
    for words, one in zip(('0.044175', '0.1', 'Elu', '1.6'), said, strict=True):
      self.assertIn(words, one, text)
    self.assertIn('cause 2 of 4 (proven: with it and the other 3 corrected both sides agree ', text)

  def test_only_those_of_the_first_search(self):
    class Case(_Network):
      def port(self, inputs, training):
        return self.model(inputs, training, 0.044175)

    for wanted in (diagnose_option.ALL, diagnose_option.FIRST):
      with (
        unittest.mock.patch.dict(os.environ, {diagnose_option.VARIABLE: wanted}),
        unittest.mock.patch.object(
          experimenting, 'Repairing', wraps=experimenting.Repairing
        ) as repairing,
      ):
        _, text = _failure(Case)
      self.assertIn('0.044175', text)
      only_first = repairing.call_args.args[1]
      self.assertEqual(only_first, wanted == diagnose_option.FIRST)
    with unittest.mock.patch.dict(os.environ, {diagnose_option.VARIABLE: 'frist'}):
      _, text = _failure(Case)
    self.assertIn("TF2VERIFY_DIAGNOSE is 'frist'; it must be 'all', 'stage' or 'first'", text)

  def test_missing_and_extra_operations(self):
    class Without(_Network):
      def port(self, inputs, training):
        return self.model(inputs, training, act=None)

    class With(_Network):
      def port(self, inputs, training):
        return self.model(inputs, training, act=lambda net: tf.nn.relu(net) * 0.9)

    for case in (Without, With):
      diagnosis, text = _failure(case)
      [experiment] = _experiments(diagnosis)
      self.assertEqual((experiment.edit, experiment.outcome), (Edit.OPERATIONS, Outcome.PROVEN))
      self.assertIn("proven: with tf1's operations in place of the port's", text)

  def test_rule_that_is_wrong_says_nothing_of_a_proven_edit(self):
    def wrong(evidence):
      return Cause('the planets stand badly', 'Tanh', 'wrong') if evidence.sources else None

    class Case(_Network):
      def port(self, inputs, training):
        return self.model(inputs, training, scale=1.6)

    rule = Rule('wrong', FailedStage, wrong)
    with unittest.mock.patch.object(causes, 'RULES', (rule, *causes.RULES)):
      diagnosis, text = _failure(Case)
    self.assertNotIn('planets', text)
    self.assertEqual([cause.rule for cause in diagnosis.causes], ['experiment'])

  def test_nothing_is_proven_where_another_tensor_still_differs(self):
    class Case(tiny_models.OneModel):
      def model(self, inputs, training, scale=1.0, unseen=False):
        net = inputs @ tiny_models.kernel()
        if unseen and tf.executing_eagerly():
          return {'a': net * scale, 'b': net + 1.0}
        return {'a': net * scale, 'b': net}

      def port(self, inputs, training):
        return self.model(inputs, training, 2.0, True)

    diagnosis, text = _failure(Case)
    self.assertNotIn('proven', text)
    self.assertIn("output ['b'] does not differ in the graph", diagnosis.without_experiments)

  def test_edit_that_changes_nothing_is_no_cause(self):
    """The comparison is the stage's: with it patched to differ still, nothing is proven."""

    class Case(_Network):
      def port(self, inputs, training):
        return self.model(inputs, training, cubic=0.044175)

    differs = forward_runs.TracedComparison.differences
    known = []

    def always(self, values, graph):
      known.extend(differs(self, values, graph))
      return known

    with unittest.mock.patch.object(forward_runs.TracedComparison, 'differences', always):
      diagnosis, text = _failure(Case)
    self.assertNotIn('proven', text)
    self.assertTrue(all(one is None or one.left for one in _experiments(diagnosis)))

  def test_port_that_cannot_be_traced_has_no_experiments(self):
    class Case(tiny_models.Affine):
      def port(self, inputs, training):
        scale = 2.0 if inputs.numpy().size else 1.0
        return self.model(inputs, training) * scale

    diagnosis, text = _failure(Case)
    self.assertNotIn('proven', text)
    self.assertTrue(all(one is None for one in _experiments(diagnosis)))

  def test_variables_and_layer_stay_as_they_are(self):
    made = []

    class Case(_Network):
      def port(self, inputs, training):
        return self.model(inputs, training, epsilon=0.5)

      def make_tf2_layer(self):
        made.append(super().make_tf2_layer())
        return made[-1]

    def values():
      return [[v.numpy().tobytes() for v in layer.variables] for layer in made]

    bench = stage_bench.StageBench
    seen = []

    class Watched(bench):
      def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        seen.append(values())

      def close(self):
        super().close()
        seen.append(values())

    with unittest.mock.patch.object(stage_bench, 'StageBench', Watched):
      _failure(Case)
    self.assertEqual(seen[0], seen[1])


class BenchTest(absltest.TestCase):
  def test_the_same_edits_are_judged_once(self):
    judged = []

    class Run:
      names = frozenset(['run'])

      def judged(self, repairs):
        judged.append(tuple(repairs))
        return frozenset([('output', 'y', 'run')][len(repairs) :]), [0.5]

    bench = stage_bench.StageBench(lambda: [Run()], ['output'], [], 60)
    one, other, same = (Repair((NodeChange(name),)) for name in 'aba')
    for first in (one, same):
      self.assertFalse(bench.judged([]).passes)
      self.assertTrue(bench.judged([first]).passes)
      self.assertTrue(bench.judged([other]).passes)
      self.assertTrue(bench.judged([first, other]).passes)
    self.assertEqual(judged, [(), (one,), (other,), (one, other)])

  def test_an_edit_that_makes_no_graph_is_made_once(self):
    judged = []

    class Run:
      names = frozenset(['run'])

      def judged(self, repairs):
        judged.append(repairs)
        raise CannotRepair('no graph')

    bench = stage_bench.StageBench(lambda: [Run()], ['output'], [], 60)
    for _ in range(2):
      with self.assertRaisesRegex(CannotRepair, 'no graph'):
        bench.judged([Repair((NodeChange('a'),))])
    self.assertLen(judged, 1)

  def test_what_still_fails_is_not_judged(self):
    asked = []

    class Run:
      names = frozenset(['run'])

      def still_fails(self, repairs):
        asked.append('first')
        return repairs[0].changes[0].op != 'mends'

      def judged(self, repairs):
        asked.append('all')
        is_mended = repairs[0].changes[0].op == 'mends'
        return frozenset() if is_mended else frozenset([('output', 'y', 'run')]), [0.5]

    bench = stage_bench.StageBench(lambda: [Run()], ['output'], [], 60)
    mends, fails = (Repair((NodeChange(name),)) for name in ('mends', 'fails'))
    self.assertIsNone(bench.judged_if_passing([fails]))
    self.assertEqual(asked, ['first'])
    self.assertTrue(bench.judged_if_passing([mends]).passes)
    self.assertEqual(asked, ['first', 'first', 'all'])
    bench.judged([fails])
    self.assertIsNone(bench.judged_if_passing([fails]))  # known by now
    self.assertEqual(asked[3:], ['all'])

  def test_the_runs_of_one_training_mode_are_traced_once(self):
    class Case(_Network):
      def port(self, inputs, training):
        return self.model(inputs, training, cubic=0.044175)

    with (
      unittest.mock.patch.object(
        forward_runs, 'traced_port', wraps=forward_runs.traced_port
      ) as runs,
      unittest.mock.patch.object(
        port_tracing, 'traced_port', wraps=port_tracing.traced_port
      ) as traced,
    ):
      diagnosis, text = _failure(Case)
    self.assertEqual(_experiments(diagnosis)[0].outcome, Outcome.PROVEN, text)
    # And once more to compute both sides with 64 bits, since one of the runs differs by little.
    self.assertEqual((runs.call_count, traced.call_count), (1, 2), text)


class StateTest(absltest.TestCase):
  def test_momentum_of_a_moving_average_is_proven(self):
    class Case(tiny_models.OneModel):
      def model(self, inputs, training, momentum=0.9):
        net = inputs @ tiny_models.kernel()
        mean = v1.get_variable('mean', [net.shape[-1]], trainable=False)
        if training:
          update = mean.assign(mean * momentum + tf.reduce_mean(net, 0) * (1 - momentum))
          with tf.control_dependencies([update]):
            net = tf.identity(net)
        return net

      def port(self, inputs, training):
        return self.model(inputs, training, 0.99)

    diagnosis, text = _failure(Case)
    experiments = _experiments(diagnosis)
    self.assertNotEmpty(experiments, text)
    self.assertEqual({one.outcome for one in experiments}, {Outcome.PROVEN}, text)
    self.assertIn('both sides agree', text)


class OneMistakeTest(absltest.TestCase):
  """What looks like several mistakes in the graphs, and is one of the port's text."""

  def _only(self, case, *words):
    diagnosis, text = _failure(case)
    [experiment] = _experiments(diagnosis)
    self.assertIs(experiment.outcome, Outcome.PROVEN, text)
    for word in words:
      self.assertIn(word, experiment.text, text)
    return diagnosis, text

  def test_a_factor_at_another_place_is_not_blamed(self):
    class Case(tiny_models.OneModel):
      def model(self, inputs, training, early=True, scale=1.5):
        net = inputs @ tiny_models.kernel()
        total = tf.reduce_sum(0.5 * net if early else net, axis=1, keepdims=True)
        total = total if early else 0.5 * total
        return total + scale * tf.tanh(net)

      def port(self, inputs, training):
        return self.model(inputs, training, False, 1.25)

    self._only(Case, '1.25 in the port, 1.5 in tf1')

  def test_a_tensor_that_is_read_in_several_places_is_wrong_once(self):
    class Case(tiny_models.OneModel):
      def model(self, inputs, training, edges=lambda x: tf.maximum(x, 0.5)):
        net = edges(inputs @ tiny_models.kernel())  # HERE
        total = tf.reduce_sum(net, axis=1, keepdims=True)
        return {'a': tf.tanh(net) / total, 'b': tf.exp(-net) * total, 'c': tf.sin(net)}

      def port(self, inputs, training):
        return self.model(inputs, training, lambda x: 0.5 * tf.square(x) + x)

    diagnosis, text = self._only(Case, 'Maximum')
    with open(__file__) as file:
      line = next(n for n, text in enumerate(file, 1) if '# HERE' in text and 'edges(' in text)
    self.assertIn(diagnosis.sources[0].tf1_source.line, (line, line - 1), text)

  def test_operations_of_tf1_read_what_the_port_holds_in_another_shape(self):
    class Case(tiny_models.OneModel):
      def model(self, inputs, training):
        return tf.exp(tf.nn.relu(inputs @ tiny_models.kernel()))

      def port(self, inputs, training):
        net = inputs[:, None, None, :] @ tiny_models.kernel()
        return tf.exp(tf.reshape(net, [-1, net.shape[-1]]))

    self._only(Case, 'the port lacks Relu')

  def test_what_a_missing_sum_adds_is_named_with_its_line(self):
    class Case(tiny_models.OneModel):
      def model(self, inputs, training, adds=True):
        net = tf.tanh(inputs @ tiny_models.kernel(), name='skip')
        body = tf.sin(2.0 * net)
        return tf.exp(net + body if adds else body)

      def port(self, inputs, training):
        return self.model(inputs, training, adds=False)

    _, text = self._only(Case, 'the port lacks AddV2, by which tf1 adds skip (experiments_test.py:')
    self.assertRegex(text, r'missing in tf2: AddV2, which adds skip \(experiments_test\.py:')


if __name__ == '__main__':
  absltest.main()
