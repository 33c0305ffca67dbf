"""Tests of tf2verify.commands.adequacy."""

import json

from absl.testing import absltest

from tests import adequacy_cases, small_case
from tf2verify.commands import adequacy as module
from tf2verify.commands.adequacy import adequacy
from tf2verify.errors import CaseDefinitionError, LayerError, UsageError
from tf2verify.records.adequacy import ByProof, Fate
from tf2verify.records.planted_fault import FaultKind


def _survivors(report, fate):
  return {str(one.planted): one.explanation for one in report.survivors if one.fate is fate}


class AdequacyTest(absltest.TestCase):
  def test_telling_inputs(self):
    report = adequacy(adequacy_cases.Activated)
    self.assertEqual(report.case, 'Activated')
    self.assertEqual(
      report.runs,
      ('inference, distinct values', 'training, constant', "inference, the guide's constant 0.001"),
    )
    caught = {str(one.planted) for one in report.outcomes if one.fate is Fate.CAUGHT}
    self.assertLen(caught, 4, report.to_text())
    for text in ('Relu (Relu): left out', 'net/one transposed', 'net/other read instead of'):
      self.assertTrue(any(text in one for one in caught), report.to_text())
    for survivor in report.survivors:  # 1e-8 more or less, and 6 is not reached
      self.assertRegex(str(survivor.planted), r'^add|Relu6 instead of it$')
      self.assertIs(survivor.by_proof, ByProof.NAMED)
    self.assertIn('Activated: 4 of 7 planted faults caught (57 %)', report.to_text())
    self.assertIn('named by the comparison of graphs: 3 of 3 survivors', report.to_text())
    self.assertIn('the comparison of graphs names it, as a blind spot', report.to_text())

  def test_faults_that_are_proven_to_change_nothing(self):
    report = adequacy(adequacy_cases.Centred)
    [offset] = [one for one in report.outcomes if one.by_proof is ByProof.EQUIVALENT]
    self.assertEndsWith(str(offset.planted), '(BiasAdd): left out')
    self.assertNotIn(offset, report.counted)
    self.assertNotIn(offset, report.survivors)
    self.assertIn(', and 1, since they are proven to change nothing', report.to_text())

  def test_blind_inputs(self):
    report = adequacy(adequacy_cases.Blind)
    [(fault, why)] = [
      item for item in _survivors(report, Fate.IDENTICAL).items() if 'Relu): left' in item[0]
    ]
    self.assertEndsWith(fault, 'Relu (Relu): left out')
    self.assertIn('yields the same numbers from these inputs', why)
    self.assertRegex(report.to_text(), r'adequacy_cases\.py:\d+, in model: net = tf\.nn\.relu\(in')
    self.assertIn('survivors that change no compared number', report.to_text())

  def test_wide_tolerance(self):
    found = _survivors(adequacy(adequacy_cases.Lenient), Fate.WITHIN_TOLERANCE)
    [why] = [why for fault, why in found.items() if 'Relu (Relu): left out' in fault]
    self.assertRegex(why, r'largest change \S+, of output \(the output\) \[inference')

  def test_state_after_the_call(self):
    report = adequacy(adequacy_cases.MovingAverage)
    in_training = [one for one in report.outcomes if one.run == 'training, constant']
    constants = [one for one in in_training if one.planted.kind is FaultKind.CONSTANT]
    self.assertLen(constants, 2, report.to_text())
    self.assertEqual(report.survivors, ())

  def test_regularization_losses(self):
    report = adequacy(adequacy_cases.Regularized)
    [scale] = [one for one in report.outcomes if one.planted.kind is FaultKind.CONSTANT]
    self.assertIs(scale.fate, Fate.CAUGHT)

  def test_random_numbers_in_a_loop(self):
    report = adequacy(adequacy_cases.DrawsInALoop)
    self.assertLen(report.runs, 3, report.to_text())
    self.assertIn('training, constant', report.runs)
    self.assertTrue(all(one.fate is Fate.CAUGHT for one in report.outcomes), report.to_text())

  def test_inference_alone(self):
    self.assertLen(adequacy(adequacy_cases.Inference, limit=1).runs, 2)

  def test_limit_and_seed(self):
    report = adequacy(small_case.SmallCase, limit=3, seed=5)
    self.assertLen(report.counted, 3)
    again = adequacy(small_case.SmallCase, limit=3, seed=5)
    self.assertEqual(report.outcomes, again.outcomes)
    others = [adequacy(small_case.SmallCase, limit=3, seed=seed).outcomes for seed in range(3)]
    self.assertTrue(any(other != report.outcomes for other in others))

  def test_faults_that_cannot_run_do_not_count(self):
    report = adequacy(adequacy_cases.Residual)
    [left_out] = [one for one in report.outcomes if one.fate is Fate.NOT_RUN]
    self.assertEqual(left_out.planted.what, 'padding')
    self.assertNotIn(left_out, report.counted)
    self.assertIn('1 left out, since the graph did not run', report.to_text())

  def test_a_port_without_a_place_for_a_fault(self):
    report = adequacy(adequacy_cases.NoPlace)
    self.assertEqual(report.counted, ())
    self.assertIn('NoPlace: 0 of 0 planted faults caught', report.to_text())
    self.assertIn('note: nothing is known: no fault of these kinds applies', report.to_text())

  def test_json(self):
    found = json.loads(adequacy(adequacy_cases.Blind, limit=4).to_json())
    self.assertEqual((found['schema_version'], found['counted']), (2, 4))
    self.assertEqual(found['caught'], sum(one['fate'] == 'caught' for one in found['faults']))
    fields = ('kind', 'op', 'op_type', 'what', 'before', 'after', 'source', 'fate', 'run')
    self.assertEqual(tuple(found['faults'][0]), (*fields, 'explanation', 'by_proof'))


class BadInputTest(absltest.TestCase):
  def test_a_port_that_differs(self):
    with self.assertRaisesRegex(
      UsageError, r'Wrong does not pass zero_randomness: FAILED; adequacy plants faults into'
    ):
      adequacy(adequacy_cases.Wrong)

  def test_a_stage_left_out(self):
    with self.assertRaisesRegex(UsageError, r'zero_randomness: NOT_APPLICABLE, left out by the'):
      adequacy(adequacy_cases.LeftOut)

  def test_a_limit_below_one(self):
    with self.assertRaisesRegex(CaseDefinitionError, 'limit is 0; it must be the number of faults'):
      adequacy(adequacy_cases.Activated, limit=0)

  def test_a_port_that_is_no_graph(self):
    with self.assertRaisesRegex(LayerError, 'cannot be traced as one graph.*eager tensors only'):
      adequacy(adequacy_cases.NotAGraph)

  def test_a_port_that_differs_once_it_is_traced(self):
    report = adequacy(adequacy_cases.OtherwiseAsAGraph, limit=2)
    self.assertTrue(any('differs without a fault' in note for note in report.notes), report.notes)
    self.assertEqual({one.fate for one in report.counted}, {Fate.IDENTICAL, Fate.WITHIN_TOLERANCE})


class DefaultsTest(absltest.TestCase):
  def test_the_command_line_has_the_same_limit(self):
    from tf2verify.commands import arguments

    given = arguments.parser().parse_args(['adequacy', 'case_test.py'])
    self.assertEqual(given.limit, module.LIMIT)


if __name__ == '__main__':
  absltest.main()
