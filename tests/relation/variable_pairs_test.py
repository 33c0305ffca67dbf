"""Tests of tf2verify.relation.variable_pairs."""

from absl.testing import absltest, parameterized

from tf2verify.records.difference import Aspect
from tf2verify.records.observation import VariableRecord
from tf2verify.relation.variable_pairs import compare_pairs


def _variable(name, shape=(3,), dtype='float32', trainable=True, flag=None):
  return VariableRecord(name, shape, dtype, trainable, trainable if flag is None else flag)


def _only(pairs):
  differences, notes = compare_pairs(pairs)
  (difference,) = differences
  assert not notes
  return difference


class AttributeTest(parameterized.TestCase):
  def test_equal(self):
    self.assertEqual(compare_pairs([(_variable('a'), _variable('b'))]), ([], []))

  @parameterized.parameters(
    ((12,), (2, 12), 'cell/bias', 'reset_after=False'),
    ((3, 2), (2, 3), 'fc/kernel', 'fc/kernel is transposed: (3, 2) in tf1, (2, 3) in the port'),
    ((3, 3, 4, 8), (3, 3, 8, 4), 'conv/kernel', 'its axes are permuted'),
    ((3,), (4,), 'bias', ''),
    ((None, 3), (2, 3), 'kernel', ''),
  )
  def test_shape(self, tf1, tf2, name, hint):
    difference = _only([(_variable(name, tf1), _variable(name, tf2))])
    self.assertIs(difference.aspect, Aspect.SHAPE)
    self.assertIn(hint, difference.hint)
    self.assertEqual(bool(difference.hint), bool(hint))

  def test_dtype(self):
    difference = _only([(_variable('a', dtype='float64'), _variable('a'))])
    self.assertIn("dtype='float64'", difference.hint)


class TrainabilityTest(absltest.TestCase):
  def test_frozen_in_tf1_only(self):
    difference = _only([(_variable('a', trainable=False), _variable('a'))])
    self.assertIs(difference.aspect, Aspect.TRAINABLE)
    self.assertIn('pass trainable=False', difference.hint)

  def test_whole_layer_frozen(self):
    pairs = [
      (_variable(name), _variable(name, trainable=False, flag=True))
      for name in ('fc/kernel', 'fc/bias')
    ]
    differences, _ = compare_pairs(pairs)
    self.assertLen(differences, 2)
    self.assertIn('layer.trainable=False', differences[0].hint)

  def test_one_of_a_layer_is_filtered_out(self):
    difference = _only(
      [
        (_variable('fc/kernel'), _variable('fc/kernel')),
        (_variable('fc/bias'), _variable('fc/bias', trainable=False, flag=True)),
      ]
    )
    self.assertIn('compare v.ref()', difference.hint)

  def test_frozen_as_tf1_never_trains_it(self):
    pairs = [(_variable(name), _variable(name, trainable=False)) for name in ('a/w', 'b/w', 'c/w')]
    differences, notes = compare_pairs(pairs, trained_by_tf1={'a/w'})
    self.assertEqual([one.subject for one in differences], ['a/w'])
    self.assertIn('trained by the train op of tf1 but frozen', differences[0].hint)
    self.assertIn('b/w and c/w are frozen in the port', notes[0])
    self.assertLen(compare_pairs(pairs)[0], 3)

  def test_trainable_in_the_port_alone_whatever_the_train_op_does(self):
    pairs = [(_variable('a', trainable=False), _variable('a'))]
    self.assertLen(compare_pairs(pairs, trained_by_tf1=set())[0], 1)

  def test_quirk_of_the_reference(self):
    differences, notes = compare_pairs(
      [(_variable('mean', flag=False), _variable('mean', trainable=False))]
    )
    self.assertEqual(differences, [])
    self.assertIn('a quirk of the reference', notes[0])


class CrossedTest(absltest.TestCase):
  def _pairs(self, *names, shape=(3,)):
    return [(_variable(tf1), _variable(tf2, shape)) for tf1, tf2 in names]

  def test_gamma_and_beta(self):
    differences, _ = compare_pairs(
      self._pairs(('bn/beta', 'norm/gamma'), ('bn/gamma', 'norm/beta'))
    )
    self.assertEqual([one.aspect for one in differences], [Aspect.ORDER] * 2)
    self.assertIn(
      'pairs bn/beta with norm/gamma although the port has norm/beta', differences[0].hint
    )

  def test_a_name_that_the_layer_does_not_have(self):
    self.assertEqual(compare_pairs(self._pairs(('bn/beta', 'norm/gamma'))), ([], []))

  def test_numbers_in_the_other_direction(self):
    pairs = self._pairs(('up_0/kernel', 'up_1/kernel'), ('up_1/kernel', 'up_0/kernel'))
    self.assertEqual(compare_pairs(pairs), ([], []))


if __name__ == '__main__':
  absltest.main()
