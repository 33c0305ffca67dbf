"""Tests of tf2verify.stages.comparison.unrun_proof, by the command that calls it."""

import json

import tensorflow as tf
from absl.testing import absltest

from tests.stages.comparison import proven_cases, unrun_cases
from tf2verify.commands.proof import prove_case
from tf2verify.errors import CaseDefinitionError, UserCodeError


class UnrunProofTest(absltest.TestCase):
  def test_nothing_is_allocated(self):
    for case in (unrun_cases.Huge, unrun_cases.HugeInKeras):
      found = prove_case(case)
      self.assertTrue(found.is_whole, found.to_text())
      self.assertEqual(found.allocated, '')
      self.assertIn('nothing was run', found.to_text())
      self.assertIn('not allocated', found.to_text())

  def test_every_kind_of_initial_value(self):
    found = prove_case(unrun_cases.EveryKind)
    self.assertTrue(found.is_whole, found.to_text())
    self.assertEqual((found.allocated, found.only_tf1, found.only_tf2), ('', (), ()))

  def test_native_layers(self):
    found = prove_case(proven_cases.NativeDense)
    self.assertTrue(found.is_whole, found.to_text())
    self.assertEqual([run.proven.run for run in found.runs], ['inference', 'training'])

  def test_difference(self):
    found = prove_case(proven_cases.Capped)
    self.assertFalse(found.is_whole)
    (difference,) = found.runs[0].differences
    self.assertEqual((difference.tf1, difference.tf2), ('Relu', 'Relu6'))
    self.assertIn('proven_cases.py', str(difference.tf1_source))
    self.assertIn('tf.nn.relu6', str(difference.tf2_source))
    self.assertIn('differs: the operation is Relu in tf1 at ', found.to_text())

  def test_what_needs_its_values_is_allocated_and_said_to_be(self):
    found = prove_case(unrun_cases.ReadsItsValues)
    self.assertTrue(found.is_whole, found.to_text())
    self.assertNotEqual(found.allocated, '')
    self.assertIn('were allocated, and the port was called', found.to_text())

  def test_what_cannot_be_traced_is_not_proven(self):
    found = prove_case(proven_cases.Numpy)
    self.assertFalse(found.is_whole)
    self.assertIn('nothing is proven: ', found.to_text())

  def test_variables_without_a_partner(self):
    found = prove_case(unrun_cases.OneMore)
    self.assertFalse(found.is_whole)
    self.assertEqual((found.only_tf1, found.only_tf2), ((), ('more',)))
    self.assertIn('variables of the port only: more', found.to_text())

  def test_tables_of_other_names(self):
    found = prove_case(unrun_cases.UnpairedInKeras)
    self.assertFalse(found.is_whole)
    self.assertEqual(
      (found.only_tf1, found.only_tf2), (('table',), ('looked/embedding/embeddings',))
    )
    self.assertIn('python -m tf2verify map PATH::Case --out FILE', found.to_text())

  def test_json(self):
    told = json.loads(prove_case(proven_cases.Capped).to_json())
    self.assertEqual((told['case'], told['proven'], told['was_run']), ('Capped', False, False))
    first = told['runs'][0]
    self.assertEqual((first['run'], first['targets_proven']), ('inference', 0))
    self.assertEqual(first['differences'][0]['tf2'], 'Relu6')
    self.assertIn('relu6', first['differences'][0]['tf2_source'])

  def test_bad_cases(self):
    with self.assertRaises(UserCodeError):
      prove_case(unrun_cases.Raising)
    with self.assertRaises(CaseDefinitionError):
      prove_case(absltest.TestCase)

  def test_variables_made_afterwards_have_values(self):
    prove_case(proven_cases.Dense)
    self.assertEqual(tf.Variable(3.0).numpy(), 3.0)


if __name__ == '__main__':
  absltest.main()
