"""Tests of tf2verify.stages.comparison.proof.unrun, by the command that calls it."""

import json
from unittest import mock

import tensorflow as tf
from absl.testing import absltest

from tests.stages.comparison import proven_cases, unrun_cases
from tf2verify.commands.proof import prove_case
from tf2verify.errors import EnvironmentProblem
from tf2verify.records.difference import Aspect
from tf2verify.records.text_line import joined
from tf2verify.report.proof_report import proof_json, proof_lines


def _text(proof):
  return joined(proof_lines(proof))


class UnrunProofTest(absltest.TestCase):
  def test_nothing_is_allocated(self):
    for case in (unrun_cases.Huge, unrun_cases.HugeInKeras):
      found = prove_case(case)
      self.assertTrue(found.is_whole, _text(found))
      self.assertEqual(found.allocated, '')
      self.assertIn('nothing was run', _text(found))
      self.assertIn('not allocated', _text(found))

  def test_every_kind_of_initial_value(self):
    found = prove_case(unrun_cases.EveryKind)
    self.assertTrue(found.is_whole, _text(found))
    self.assertEqual((found.allocated, found.only_tf1, found.only_tf2), ('', (), ()))

  def test_native_layers(self):
    found = prove_case(proven_cases.NativeDense)
    self.assertTrue(found.is_whole, _text(found))
    self.assertEqual([run.proven.run for run in found.runs], ['inference', 'training'])

  def test_difference(self):
    found = prove_case(proven_cases.Capped)
    self.assertFalse(found.is_whole)
    (difference,) = found.runs[0].differences
    self.assertEqual((difference.tf1, difference.tf2), ('Relu', 'Relu6'))
    self.assertIn('proven_cases.py', str(difference.tf1_source))
    self.assertIn('tf.nn.relu6', str(difference.tf2_source))
    self.assertIn('differs: the operation is Relu in tf1 at ', _text(found))

  def test_what_needs_its_values_is_allocated_and_said_to_be(self):
    found = prove_case(unrun_cases.ReadsItsValues)
    self.assertTrue(found.is_whole, _text(found))
    self.assertNotEqual(found.allocated, '')
    self.assertIn('were allocated, and the port was called', _text(found))

  def test_what_cannot_be_traced_is_not_proven(self):
    found = prove_case(proven_cases.Numpy)
    self.assertFalse(found.is_whole)
    self.assertIn('nothing is proven: ', _text(found))

  def test_variables_without_a_partner(self):
    found = prove_case(unrun_cases.OneMore)
    self.assertFalse(found.is_whole)
    self.assertEqual((found.only_tf1, found.only_tf2), ((), ('more',)))
    self.assertIn('variables of the port only: more', _text(found))

  def test_tables_of_other_names(self):
    found = prove_case(unrun_cases.UnpairedInKeras)
    self.assertFalse(found.is_whole)
    self.assertEqual(
      (found.only_tf1, found.only_tf2), (('table',), ('looked/embedding/embeddings',))
    )
    self.assertIn('python -m tf2verify map PATH::Case --out FILE', _text(found))

  def test_json(self):
    told = json.loads(proof_json(prove_case(proven_cases.Capped)))
    self.assertEqual((told['case'], told['proven'], told['was_run']), ('Capped', False, False))
    first = told['runs'][0]
    self.assertEqual((first['run'], first['targets_proven']), ('inference', 0))
    self.assertEqual(first['differences'][0]['tf2'], 'Relu6')
    self.assertIn('relu6', first['differences'][0]['tf2_source'])

  def test_values_used_where_the_layer_is_made(self):
    for case in (
      unrun_cases.ReadsNumpy,
      unrun_cases.SetsWeights,
      unrun_cases.SetsItsWeights,
      unrun_cases.AssignsOther,
      unrun_cases.TakesNorm,
    ):
      with self.subTest(case.__name__):
        found = prove_case(case)
        self.assertTrue(found.is_whole, _text(found))
        self.assertStartsWith(found.allocated, 'it reads or writes a value of its variables')
        self.assertEqual(tf.Variable(3.0).numpy(), 3.0)

  def test_what_the_port_raises_without_values(self):
    found = prove_case(unrun_cases.AsksForValues)
    self.assertTrue(found.is_whole, _text(found))
    self.assertEqual(found.allocated, 'without values, make_tf2_layer raised ValueError: no values')

  def test_what_the_port_raises_itself(self):
    for case, said in (
      (unrun_cases.Raising, 'make_tf2_layer raised ValueError: not made'),
      (unrun_cases.RaisesItself, 'make_tf2_layer raised ValueError: not made at all'),
    ):
      found = prove_case(case)
      self.assertFalse(found.is_whole)
      self.assertEqual((found.error.side, found.error.summary), ('tf2', said))
      self.assertIn('unrun_cases.py', found.error.traceback_text)
      self.assertEqual(tf.Variable(3.0).numpy(), 3.0)

      is_other = case is unrun_cases.RaisesItself
      self.assertEqual(bool(found.allocated), is_other)

  def test_another_error_with_values(self):
    found = prove_case(unrun_cases.RaisesOtherwise)
    self.assertStartsWith(found.error.summary, 'call_tf2_layer raised ValueError: ')
    self.assertIn('called', found.error.summary)
    self.assertRegex(_text(found), r"\n  the port's variables were allocated: .* traced")

  def test_shapes_of_variables(self):
    found = prove_case(unrun_cases.OtherSizes)
    self.assertFalse(found.is_whole)
    kernel, bias = found.differing
    self.assertEqual((kernel.subject, kernel.aspect), ('d/kernel', Aspect.SHAPE))
    self.assertStartsWith(kernel.tf1, '(3, 4) float32, created at ')
    self.assertStartsWith(kernel.tf2, '(3, 5) float32, created at ')
    self.assertEqual(bias.subject, 'd/bias')
    self.assertIn('  variable d/kernel: shape differs\n    tf1: (3, 4) float32', _text(found))

  def test_variables_that_nothing_is_computed_from(self):
    found = prove_case(unrun_cases.UnreadOfOtherSize)
    self.assertTrue(all(run.proven.is_whole for run in found.runs))
    self.assertFalse(found.is_whole)
    self.assertEqual([one.aspect for one in found.differing], [Aspect.SHAPE, Aspect.DTYPE])
    self.assertTrue(prove_case(unrun_cases.UnreadOfOneKind).is_whole)

  def test_structures_of_outputs(self):
    for case, tf1, tf2 in (
      (unrun_cases.OtherOutputs, 'Tensor', "{'a': Tensor}"),
      (unrun_cases.OneMoreNone, '(Tensor)', '(Tensor, None)'),
      (unrun_cases.OtherTuple, 'Point(first=Tensor)', 'Place(first=Tensor)'),
      (unrun_cases.OtherTupleWithValues, 'Point(first=Tensor)', 'Place(first=Tensor)'),
    ):
      with self.subTest(case.__name__):
        found = prove_case(case)
        self.assertFalse(found.is_whole)
        self.assertEqual(
          [(one.run, one.aspect, one.tf1, one.tf2) for one in found.differing],
          [(run, Aspect.STRUCTURE, tf1, tf2) for run in ('inference', 'training')],
        )
        self.assertEqual([run.proven.tf2_proven for run in found.runs], [0, 0])
    self.assertNotEqual(found.allocated, '')
    self.assertTrue(prove_case(unrun_cases.SameTuple).is_whole)

  def test_structures_in_training(self):
    found = prove_case(unrun_cases.OtherOutputsInTraining)
    inference, training = (run.proven for run in found.runs)
    self.assertTrue(inference.is_whole)
    self.assertEqual(training.reason, 'the outputs have different structures')
    self.assertEqual([one.run for one in found.differing], ['training'])

  def test_a_hook_that_autograph_rewrites(self):
    found = prove_case(unrun_cases.ChoosesInHook)
    self.assertEqual([run.proven.reason for run in found.runs], ['', ''])
    self.assertEqual(found.allocated, '')

  def test_reasons_end_with_a_word(self):
    found = prove_case(proven_cases.Numpy)
    self.assertEqual({run.proven.reason for run in found.runs}, {found.allocated})
    self.assertStartsWith(found.allocated, 'TypeError: Exception encountered when calling layer')
    self.assertEndsWith(found.allocated, "a real number, not 'SymbolicTensor'")

  def test_long_reasons_end_with_a_word(self):
    found = prove_case(unrun_cases.SaysMuch)
    self.assertRegex(found.allocated, r'NotImplementedError: (.* )?word word …$')
    self.assertGreater(len(found.allocated), 500)

  def test_what_one_mode_computes_in_numpy(self):
    found = prove_case(unrun_cases.NumpyInTraining)
    self.assertEqual([run.proven.is_whole for run in found.runs], [True, False])
    self.assertIn('; nothing in training\n', _text(found))

  def test_no_operations(self):
    found = prove_case(unrun_cases.Unchanged)
    self.assertTrue(found.is_whole, _text(found))
    self.assertStartsWith(_text(found), 'Unchanged: 2 of 2 results proven for all inputs\n')

  def test_a_defect_is_reported(self):
    module = 'tf2verify.commands.proof.unrun_proof'
    with mock.patch(module, side_effect=RuntimeError('planted')):
      found = prove_case(proven_cases.Dense)
    self.assertFalse(found.is_whole)
    self.assertStartsWith(found.error.summary, 'tf2verify itself raised RuntimeError: planted')
    with (
      mock.patch(module, side_effect=EnvironmentProblem('planted')),
      self.assertRaises(EnvironmentProblem),
    ):
      prove_case(proven_cases.Dense)

  def test_bad_cases(self):
    found = prove_case(absltest.TestCase)
    self.assertFalse(found.is_whole)
    self.assertEqual(found.error.side, 'case')
    self.assertIn('verify takes a subclass of tf2verify.EquivalenceCase', found.error.summary)

  def test_variables_made_afterwards_have_values(self):
    prove_case(proven_cases.Dense)
    self.assertEqual(tf.Variable(3.0).numpy(), 3.0)


if __name__ == '__main__':
  absltest.main()
