"""Tests of tf2verify.adequacy."""

import json

import numpy as np
import tensorflow as tf
from absl.testing import absltest

import tf2verify
from tests import small_case
from tests.stages import tiny_models
from tf2verify import adequacy as module
from tf2verify.adequacy import adequacy
from tf2verify.errors import CaseDefinitionError, LayerError, UsageError
from tf2verify.records.adequacy import Fate
from tf2verify.records.planted_fault import FaultKind

v1 = tf.compat.v1


class Activated(tiny_models.OneModel):
  """Two layers, the inputs clipped at zero; 1e-8 is too small to be seen."""

  def model(self, inputs, training):
    net = tf.nn.relu(inputs) + 1e-8
    with v1.variable_scope('net'):
      for name in ('one', 'other'):
        net = tf.matmul(net, v1.get_variable(name, (3, 3)))
    return net


class Blind(Activated):
  """Nothing that the relu would clip."""

  def make_inputs(self):
    return np.linspace(0.5, 2.0, 12, dtype=np.float32).reshape(4, 3)


class Lenient(Activated):
  tolerance = tf2verify.Tolerance(rtol=0.0, atol=100.0)
  # Otherwise all outputs would be within the tolerance of zero.
  fill_values = staticmethod(lambda name, shape, dtype: np.full(shape, 60, dtype))

  def model(self, inputs, training):
    return super().model(inputs, training) + 1e5 * tf.reduce_max(inputs)


class MovingAverage(tiny_models.OneModel):
  """In training, and only there, an average is kept, which no output depends on."""

  def model(self, inputs, training):
    with v1.variable_scope('net'):
      net = tf.matmul(inputs, v1.get_variable('kernel', (3, 3)))
      average = v1.get_variable('average', (3,), trainable=False)
      if training:
        kept = average * 0.9 + 0.1 * tf.reduce_mean(net, 0)
        v1.add_to_collection(v1.GraphKeys.UPDATE_OPS, v1.assign(average, kept))
    return net


class Regularized(tiny_models.OneModel):
  """A loss that no output shows."""

  def model(self, inputs, training):
    decay = lambda w: 0.01 * tf.nn.l2_loss(w)  # noqa: E731
    with v1.variable_scope('net'):
      return tf.matmul(inputs, v1.get_variable('kernel', (3, 2), regularizer=decay))


class DrawsInALoop(tiny_models.OneModel):
  def model(self, inputs, training):
    w = v1.get_variable('w', (3,))
    if not training:
      return w * inputs
    step = lambda n, net: (n + 1, net + tf.random.uniform((4, 3)))  # noqa: E731
    return w * v1.while_loop(lambda n, _: n < 2, step, (0, inputs))[1]


class Wrong(Activated):
  def port(self, inputs, training):
    return self.model(inputs, training) + 1.0


class NotAGraph(Activated):
  def port(self, inputs, training):
    if not training and tf.executing_eagerly() is False:
      raise ValueError('eager tensors only')
    return self.model(inputs, training)


def _survivors(report, fate):
  return {str(one.planted): one.explanation for one in report.survivors if one.fate is fate}


class AdequacyTest(absltest.TestCase):
  def test_telling_inputs(self):
    report = adequacy(Activated)
    self.assertEqual(report.case, 'Activated')
    self.assertEqual(
      report.runs,
      ('inference, distinct values', 'training, constant', "inference, the guide's constant 0.001"),
    )
    caught = {str(one.planted) for one in report.outcomes if one.fate is Fate.CAUGHT}
    self.assertLen(caught, 4, report.to_text())
    for text in ('Relu (Relu): left out', 'net/one transposed', 'net/other read instead of'):
      self.assertTrue(any(text in one for one in caught), report.to_text())
    self.assertLen(_survivors(report, Fate.WITHIN_TOLERANCE), 2)
    self.assertEqual(_survivors(report, Fate.IDENTICAL), {})
    self.assertIn('Activated: 4 of 6 planted faults caught (67 %)', report.to_text())

  def test_blind_inputs(self):
    report = adequacy(Blind)
    [(fault, why)] = [
      item for item in _survivors(report, Fate.IDENTICAL).items() if 'Relu' in item[0]
    ]
    self.assertEndsWith(fault, 'Relu (Relu): left out')
    self.assertIn('yields the same numbers from these inputs', why)
    self.assertIn('survivors that change no compared number', report.to_text())

  def test_wide_tolerance(self):
    found = _survivors(adequacy(Lenient), Fate.WITHIN_TOLERANCE)
    [why] = [why for fault, why in found.items() if 'Relu (Relu): left out' in fault]
    self.assertRegex(why, r'greatest change \S+, of output \(the output\) \[inference')

  def test_state_after_the_call(self):
    report = adequacy(MovingAverage)
    in_training = [one for one in report.outcomes if one.run == 'training, constant']
    constants = [one for one in in_training if one.planted.kind is FaultKind.CONSTANT]
    self.assertLen(constants, 2, report.to_text())
    self.assertEqual(report.survivors, ())

  def test_regularization_losses(self):
    report = adequacy(Regularized)
    [scale] = [one for one in report.outcomes if one.planted.kind is FaultKind.CONSTANT]
    self.assertIs(scale.fate, Fate.CAUGHT)

  def test_random_numbers_in_a_loop(self):
    report = adequacy(DrawsInALoop)
    self.assertLen(report.runs, 2)
    self.assertIn('not run: training, constant, which draws random numbers', report.notes[0])

  def test_inference_alone(self):
    class Inference(Activated):
      training_modes = (False,)

    self.assertLen(adequacy(Inference, limit=1).runs, 2)

  def test_limit_and_seed(self):
    report = adequacy(small_case.SmallCase, limit=3, seed=5)
    self.assertLen(report.counted, 3)
    again = adequacy(small_case.SmallCase, limit=3, seed=5)
    self.assertEqual(report.outcomes, again.outcomes)
    others = [adequacy(small_case.SmallCase, limit=3, seed=seed).outcomes for seed in range(3)]
    self.assertTrue(any(other != report.outcomes for other in others))

  def test_faults_that_cannot_run_do_not_count(self):
    class Pooled(tiny_models.OneImageModel):
      def model(self, inputs, training):
        net = v1.nn.conv2d(inputs, v1.get_variable('w', (3, 3, *inputs.shape[-1:], 2)), 1, 'SAME')
        return tf.reshape(net, (4, -1, 2)) * tf.ones(tf.shape(inputs)[1:2] ** 2)[:, None]

    report = adequacy(Pooled)
    [left_out] = [one for one in report.outcomes if one.fate is Fate.NOT_RUN]
    self.assertEqual(left_out.planted.what, 'padding')
    self.assertNotIn(left_out, report.counted)
    self.assertIn('1 left out, since the graph did not run', report.to_text())

  def test_json(self):
    found = json.loads(adequacy(Blind, limit=4).to_json())
    self.assertEqual((found['schema_version'], found['counted']), (1, 4))
    self.assertEqual(found['caught'], sum(one['fate'] == 'caught' for one in found['faults']))
    self.assertIn('kind', found['faults'][0])


class BadInputTest(absltest.TestCase):
  def test_a_port_that_differs(self):
    with self.assertRaisesRegex(
      UsageError, r'Wrong does not pass zero_randomness: FAILED; adequacy plants faults into'
    ):
      adequacy(Wrong)

  def test_a_stage_left_out(self):
    class LeftOut(Activated):
      stages = tf2verify.all_stages_except(zero_randomness='takes long')

    with self.assertRaisesRegex(UsageError, r'zero_randomness: NOT_APPLICABLE, left out by the'):
      adequacy(LeftOut)

  def test_a_limit_below_one(self):
    with self.assertRaisesRegex(CaseDefinitionError, 'limit is 0; it is the number of faults'):
      adequacy(Activated, limit=0)

  def test_a_port_that_is_no_graph(self):
    with self.assertRaisesRegex(LayerError, 'cannot be traced as one graph.*eager tensors only'):
      adequacy(NotAGraph)

  def test_a_port_that_differs_once_it_is_traced(self):
    class Otherwise(Activated):
      def port(self, inputs, training):
        net = self.model(inputs, training)
        return net if tf.inside_function() is False and tf.executing_eagerly() else net + 1.0

    report = adequacy(Otherwise, limit=2)
    self.assertTrue(any('differs without a fault' in note for note in report.notes), report.notes)
    self.assertEqual({one.fate for one in report.counted}, {Fate.IDENTICAL, Fate.WITHIN_TOLERANCE})


class DefaultsTest(absltest.TestCase):
  def test_the_command_line_has_the_same_limit(self):
    from tf2verify import cli

    arguments = cli._parser().parse_args(['adequacy', 'case_test.py'])
    self.assertEqual(arguments.limit, module.LIMIT)


if __name__ == '__main__':
  absltest.main()
