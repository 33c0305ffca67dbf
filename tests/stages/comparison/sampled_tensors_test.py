"""Tests of tensors that a recording holds in part."""

import numpy as np
from absl.testing import absltest

from tf2verify.numerics.noise import Kind, NoiseVerdict
from tf2verify.numerics.sampling import Views, sampled
from tf2verify.numerics.tolerance import GRADIENT_TOLERANCES, Tolerance
from tf2verify.records.difference import Aspect, Judgement
from tf2verify.records.observation import Observation, TensorRecord
from tf2verify.records.tensor_key import TensorKey
from tf2verify.records.verdict_text import differences_text
from tf2verify.reference.perturbation import moved
from tf2verify.stages.comparison.comparing import Comparison
from tf2verify.stages.comparison.noise.reruns import rerun_of
from tf2verify.stages.comparison.noise.rounding import Suspect


def _values(*shape):
  return np.random.RandomState(0).standard_normal(shape).astype(np.float32)


def _gradients(value):
  return Observation('tf1', 'training', 'Tensor', (), gradients=(TensorRecord('w', value),))


class SampledTensorsTest(absltest.TestCase):
  def setUp(self):
    super().setUp()
    self._value = _values(300, 250)
    self._comparison = Comparison()

  def _compare(self, tf2, name='w', quantity='gradient'):
    self._comparison.tensors(
      TensorKey(quantity, name, 'training'), sampled(self._value), tf2, GRADIENT_TOLERANCES
    )

  def test_the_same_bits_count_as_all_elements(self):
    self._compare(self._value.copy())
    self.assertEqual(self._comparison.compared.elements, 75_000)
    (note,) = self._comparison.findings().notes
    self.assertEqual(
      note, '1 large tensor, of which the recording holds a part: the same bit by bit (SHA-256)'
    )

  def test_what_was_looked_at_is_counted(self):
    self._compare(self._value * np.float32(1 + 2e-7))
    self._compare(self._value.copy(), 'v')
    self.assertEqual(self._comparison.differences, ())
    self.assertEqual(self._comparison.compared.elements, 1024 + 1172 + 75_000)
    (note,) = self._comparison.findings().notes
    self.assertEqual(
      note,
      '1 large tensor compared by 1,024 elements of each, and by signed means of 64 elements, '
      'which every element is part of; 1 more is the same bit by bit (SHA-256)',
    )

  def test_whole_tensors_alone_need_no_note(self):
    self._comparison.tensors(
      TensorKey('output', 'x', 'run'), self._value, self._value, GRADIENT_TOLERANCES
    )
    self.assertEqual(self._comparison.findings().notes, ())

  def test_a_difference_of_an_element(self):
    self._compare(self._value + np.float32(1))
    (found,) = self._comparison.differences
    array = found.array
    self.assertEqual((found.aspect, array.shape, array.size), (Aspect.VALUES, (300, 250), 2196))
    self.assertTrue(array.sampled)
    (failed,) = self._comparison.findings().failed_tensors
    self.assertEqual(failed.tf1.shape, (1024,))
    self.assertEqual(type(failed.tf1), np.ndarray)
    np.testing.assert_allclose(failed.tf2 - failed.tf1, 1, rtol=1e-5)
    self.assertIn('of 2,196 samples and signed means differ', differences_text([found])[0])

  def test_a_difference_of_a_mean(self):
    other = self._value.copy()
    other[200, 100] += 5
    self._compare(other)
    (found,) = self._comparison.differences
    array = found.array
    self.assertEqual((array.block, array.mismatched), (64, 1))
    start = int(np.ravel_multi_index(array.index, (300, 250)))
    self.assertEqual(start, (200 * 250 + 100) // 64 * 64)
    self.assertAlmostEqual(abs(array.tf2 - array.tf1), 5 / 64, delta=1e-6)
    self.assertIn(
      f'of the signed mean of 64 elements from {array.index} on: tf1 ', differences_text([found])[1]
    )

  def test_another_shape_or_dtype_or_nothing(self):
    self._compare(self._value.T, 'a')
    self._compare(self._value.astype(np.float64), 'b')
    self._compare(None, 'c')
    found = {one.subject: one for one in self._comparison.differences}
    self.assertEqual(
      (found['a'].aspect, found['a'].tf1, found['a'].tf2),
      (Aspect.SHAPE, '(300, 250)', '(250, 300)'),
    )
    self.assertIn('the same axes in a different order', found['a'].hint)
    self.assertEqual((found['b'].aspect, found['b'].tf1), (Aspect.DTYPE, 'float32'))
    self.assertEqual((found['c'].aspect, found['c'].tf1), (Aspect.PRESENCE, '(300, 250) float32'))
    self.assertEqual(self._comparison.findings().failed_tensors, ())
    self.assertEqual(self._comparison.compared.elements, 0)


class RoundingTest(absltest.TestCase):
  """A tensor whose values are noise of 1e-3, by cancellation."""

  def setUp(self):
    super().setUp()
    self._value = _values(300, 250)

  def _run(self, seed):
    """Returns the tensor after a rounding of what it is computed from."""
    before = (self._value * 1e4).astype(np.float32)
    return (moved(before, str(seed)) - before) + self._value

  def _judged(self, port, rerun_whole):
    reference = self._run(0)

    def rerun(perturber, _):
      value = reference if perturber is None else self._run(perturber.number + 1)
      return _gradients(value if rerun_whole else sampled(value))

    comparison = Comparison()
    tf1 = _gradients(sampled(reference))
    comparison.tensors(
      TensorKey('gradient', 'w', 'training'), tf1.gradients[0].value, port, GRADIENT_TOLERANCES
    )
    self.assertLen(comparison.differences, 1)
    comparison.excuse_rounding(tf1, rerun_of(rerun))
    return comparison

  def test_rounding_is_excused(self):
    for whole in (False, True):
      comparison = self._judged(self._run(99), whole)
      self.assertEqual(comparison.differences, ())
      self.assertEqual(comparison.compared.rounding, 1)
      self.assertEqual(comparison.findings().deviations[0].judgement, Judgement.ROUNDING)

  def test_more_than_rounding_is_not(self):
    wrong = self._run(99)
    wrong[7, 8] += 3
    for port in (self._run(99) * np.float32(1.05), wrong):
      comparison = self._judged(port, False)
      (found,) = comparison.differences
      self.assertEqual(found.array.shape, (300, 250))

  def test_an_element_beyond_its_noise_is_placed_in_the_whole_tensor(self):
    comparison = Comparison()
    wrong = self._value.copy()
    wrong[200, 100] += 5
    comparison.tensors(
      TensorKey('gradient', 'w', 'run'), sampled(self._value), wrong, GRADIENT_TOLERANCES
    )
    views = Views(sampled(self._value), wrong)
    suspect = Suspect(comparison.differences[0], views.tf1, views.tf2, Tolerance(1e-6, 1e-5), views)
    block = (200 * 250 + 100) // 64
    verdict = NoiseVerdict(Kind.DIFFERENT, 1.0, 1.0, 1.0, index=1024 + block)
    self.assertEqual(suspect.placed(verdict).index, 64 * block)
    self.assertEqual(suspect.placed(NoiseVerdict(Kind.DIFFERENT, 1.0, 1.0, 1.0)).index, -1)


if __name__ == '__main__':
  absltest.main()
