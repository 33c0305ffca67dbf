"""Tests of tf2verify.diagnosis.divergence.tensors.portions; more are in first_divergence_test."""

from absl.testing import absltest

from tf2verify.diagnosis.divergence.tensors.portions import Repeats


class RepeatsTest(absltest.TestCase):
  def test_operation_of_a_body_is_looked_at_in_three_rounds(self):
    repeats = Repeats()
    found = [repeats.has(f'rnn/while/round_{number}/mul') for number in range(5)]
    self.assertEqual(found, [False, False, False, True, True])
    self.assertFalse(repeats.has('rnn/while/round_5/add'))  # of which nothing was seen yet

  def test_operation_outside_of_loops_is_no_repeat(self):
    repeats = Repeats()
    self.assertFalse(any(repeats.has('dense/MatMul') for _ in range(5)))


if __name__ == '__main__':
  absltest.main()
