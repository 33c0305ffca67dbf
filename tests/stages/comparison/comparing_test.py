import numpy as np
from absl.testing import absltest

from tf2verify.numerics import tolerance
from tf2verify.records.difference import Aspect
from tf2verify.records.observation import Observation, RegularizationLoss, TensorRecord
from tf2verify.records.tensor_key import TensorKey
from tf2verify.stages.comparison.comparing import Comparison
from tf2verify.stages.comparison.noise.reruns import rerun_of

VALUES = tolerance.VALUE_TOLERANCES
LOSSES = tolerance.REGULARIZATION_TOLERANCES


def observation(side, outputs=(), structure='Tensor', losses=(), total=None):
  return Observation(
    side,
    'a run',
    structure,
    tuple(TensorRecord(name, value) for name, value in outputs),
    regularization_losses=tuple(
      RegularizationLoss(names, np.float32(value)) for names, value in losses
    ),
    regularization_total=None if total is None else np.asarray(total, np.float32),
  )


def array(*values):
  return np.array(values, np.float32)


class TensorsTest(absltest.TestCase):
  def test_equal_tensors_are_counted(self):
    comparison = Comparison()
    comparison.tensors(TensorKey('output', 'x', 'a run'), array(1, 2), array(1, 2), VALUES)
    comparison.tensors(TensorKey('output', 'y', 'a run'), array(3), array(3), VALUES)
    self.assertEqual((comparison.compared.tensors, comparison.compared.elements), (2, 3))
    self.assertEmpty(comparison.differences)
    self.assertEmpty(comparison.inconclusive)

  def test_none_on_one_side_is_a_difference(self):
    for tf1, tf2 in ((None, array(1)), (array(1), None)):
      comparison = Comparison()
      comparison.tensors(TensorKey('gradient', 'kernel', 'a run'), tf1, tf2, VALUES)
      self.assertIs(comparison.differences[0].aspect, Aspect.PRESENCE)
      self.assertEqual((comparison.compared.tensors, comparison.compared.unpaired), (0, 1))

  def test_none_on_both_sides_is_agreement_about_nothing(self):
    comparison = Comparison()
    comparison.tensors(TensorKey('gradient', 'kernel', 'a run'), None, None, VALUES)
    self.assertEmpty(comparison.differences)
    self.assertEqual(comparison.inconclusive, 'nothing was compared')

  def test_noise_alone_is_inconclusive(self):
    comparison = Comparison()
    comparison.tensors(TensorKey('output', 'x', 'a run'), array(1e-7), array(3e-7), VALUES)
    self.assertIn('zeros, or twice as much, would also pass', comparison.inconclusive)
    comparison.tensors(TensorKey('output', 'y', 'a run'), array(1), array(1), VALUES)
    self.assertEmpty(comparison.inconclusive)
    self.assertEqual(comparison.compared.inconclusive, 1)

  def test_attributes_come_before_values_and_the_worst_value_first(self):
    comparison = Comparison()
    pairs = {
      'little': (array(1), array(1.1)),
      'much': (array(1), array(3)),
      'shape': (array(1), array(1, 1)),
      'not a number': (array(1), array(np.nan)),
      'dtype': (array(1), np.array([1.0])),
      'absent': (array(1), None),
    }
    for name, (tf1, tf2) in pairs.items():
      comparison.tensors(TensorKey('output', name, 'a run'), tf1, tf2, VALUES)
    self.assertEqual(
      [difference.subject for difference in comparison.differences],
      ['absent', 'shape', 'dtype', 'not a number', 'much', 'little'],
    )

  def test_what_rounding_may_explain_comes_last_and_is_marked(self):
    comparison = Comparison()
    certain, doubtful = (array(1), array(1.1)), (array(1), array(3))
    comparison.tensors(TensorKey('output', 'doubtful', 'a run'), *doubtful, VALUES)
    comparison.tensors(TensorKey('output', 'certain', 'a run'), *certain, VALUES)
    self.assertEqual([d.subject for d in comparison.differences], ['doubtful', 'certain'])

    def rerun(perturber, gradients_of):
      moved = array(3) if perturber is not None else doubtful[0]
      return observation('tf1', [('doubtful', moved), ('certain', certain[0])])

    comparison.excuse_rounding(observation('tf1'), rerun_of(rerun))
    marks = [(d.subject, d.array.within_noise) for d in comparison.differences]
    self.assertEqual(marks, [('certain', False), ('doubtful', True)])


class OutputsTest(absltest.TestCase):
  def test_same_structure(self):
    comparison = Comparison()
    outputs = [("['a']", array(1)), ("['b']", None)]
    comparison.outputs(observation('tf1', outputs), observation('tf2', outputs), VALUES)
    self.assertEqual(comparison.compared.tensors, 1)
    self.assertEmpty(comparison.differences)

  def test_other_structure_is_one_difference_and_no_value_is_compared(self):
    comparison = Comparison()
    comparison.outputs(
      observation('tf1', [('[0]', array(1)), ('[1]', array(2))], '(Tensor, Tensor)'),
      observation('tf2', [('(the output)', array(5))]),
      VALUES,
    )
    (difference,) = comparison.differences
    self.assertIs(difference.aspect, Aspect.STRUCTURE)
    self.assertEqual((difference.tf1, difference.tf2), ('(Tensor, Tensor)', 'Tensor'))
    self.assertEqual(comparison.compared.tensors, 0)


class VariablesTest(absltest.TestCase):
  def test_paired_by_name_not_by_position(self):
    comparison = Comparison()
    tf1 = [TensorRecord('a', array(1)), TensorRecord('b', array(2))]
    tf2 = [TensorRecord('port/b', array(2)), TensorRecord('a', array(1))]
    comparison.variables('initial value', [('a', 'a'), ('b', 'port/b')], tf1, tf2, VALUES, 'a run')
    self.assertEmpty(comparison.differences)
    self.assertEqual(comparison.compared.tensors, 2)

  def test_both_names_are_reported(self):
    comparison = Comparison()
    tf1, tf2 = [TensorRecord('b', array(2))], [TensorRecord('port/b', array(3))]
    comparison.variables('initial value', [('b', 'port/b')], tf1, tf2, VALUES, 'a run')
    self.assertEqual(comparison.differences[0].subject, 'b (tf2: port/b)')


class RegularizationTest(absltest.TestCase):
  def compare(self, tf1, tf2, pairs=()):
    """Compares losses given as (variable names, value), and their totals."""
    comparison = Comparison()
    sides = [
      observation(side, losses=losses, total=sum(value for _, value in losses) if losses else None)
      for side, losses in (('tf1', tf1), ('tf2', tf2))
    ]
    comparison.regularization(*sides, pairs, LOSSES)
    return comparison

  def subjects(self, comparison):
    return {difference.subject for difference in comparison.differences}

  def test_in_any_order(self):
    comparison = self.compare([(('a',), 1.0), (('b',), 2.0)], [(('b',), 2.0), (('a',), 1.0)])
    self.assertEmpty(comparison.differences)
    self.assertEqual(comparison.compared.tensors, 3)
    self.assertEqual((comparison.figures[0].tf1, comparison.figures[0].tf2), (3.0, 3.0))

  def test_equal_total_of_other_losses(self):
    comparison = self.compare([(('a',), 1.0), (('b',), 2.0)], [(('a',), 2.0), (('b',), 1.0)])
    self.assertEqual(self.subjects(comparison), {'a', 'b'})

  def test_by_the_names_of_tf1(self):
    comparison = self.compare([(('a',), 1.0)], [(('port/a',), 1.0)], [('a', 'port/a')])
    self.assertEmpty(comparison.differences)

  def test_losses_of_one_variable_are_added_up(self):
    comparison = self.compare([(('a',), 1.0), (('a',), 2.0)], [(('a',), 3.0)])
    self.assertEmpty(comparison.differences)

  def test_one_loss_for_several_variables(self):
    separate = [(('a',), 1.0), (('b',), 2.0), (('c',), 4.0)]
    comparison = self.compare(separate, [(('a', 'b'), 3.0), (('c',), 4.0)])
    self.assertEmpty(comparison.differences)
    comparison = self.compare(separate, [(('a', 'b'), 2.5), (('c',), 4.0)])
    self.assertEqual(self.subjects(comparison), {'a, b', '(total)'})
    comparison = self.compare([(('a', 'b'), 3.0), (('c',), 4.0)], separate)
    self.assertEmpty(comparison.differences)

  def test_missing(self):
    comparison = self.compare([(('a',), 1.0), (('b',), 2.0)], [(('b',), 2.0)])
    self.assertEqual(self.subjects(comparison), {'a', '(total)'})
    self.assertIs(comparison.differences[0].aspect, Aspect.PRESENCE)
    # The port has others: it is no tf.Module, which would track none.
    self.assertEqual(
      {found.hint for found in comparison.differences if found.aspect is Aspect.PRESENCE},
      {
        'the port does not regularize a: the regularizer was lost; pass it to the layer that makes '
        'the variable'
      },
    )
    [none] = {found.hint for found in self.compare([(('a',), 1.0)], []).differences}
    self.assertIn('(a tf.Module tracks no losses: override tf2_regularization_losses)', none)

  def test_extra_of_no_variable(self):
    comparison = self.compare([(('b',), 2.0)], [(('b',), 2.0), ((), 0.5)])
    self.assertEqual(self.subjects(comparison), {'(reads no variable)', '(total)'})

  def test_zero_of_no_variable_is_none(self):
    self.assertEqual(self.compare([], [((), 0.0)]).compared.tensors, 0)
    self.assertEmpty(self.compare([(('b',), 2.0)], [(('b',), 2.0), ((), 0.0)]).differences)

  def test_tiny_losses_are_told_apart(self):
    comparison = self.compare([(('a',), 1e-9)], [(('a',), 2e-9)])
    self.assertEqual(self.subjects(comparison), {'a', '(total)'})

  def test_none_at_all(self):
    comparison = self.compare([], [])
    self.assertEqual((comparison.compared.tensors, comparison.figures), (0, []))


if __name__ == '__main__':
  absltest.main()
