"""Tests of tf2verify.diagnosis.gradients.texts."""

import dataclasses

from absl.testing import absltest

from tests.records.diagnosis_text_test import _source as _record
from tf2verify.diagnosis.gradients import texts
from tf2verify.records.diagnosis import GraphAspect, GraphDifference


class StopsTest(absltest.TestCase):
  """Of many operations, that one side alone stops a gradient is a fact by itself."""

  def _text(self, *both, of=texts.stops_text):
    differences = [
      GraphDifference(
        GraphAspect.GRADIENT, f'net/mul_{n}', 'Mul', 'y', ' '.join(one), ' '.join(other), one, other
      )
      for n, (one, other) in enumerate(both)
    ]
    replaced = GraphDifference(GraphAspect.REPLACED, 'net/act', 'Pow', '', 'Square', 'Pow')
    return of([dataclasses.replace(_record(), differences=(*differences, replaced))])

  def test_one_side_alone(self):
    stop, nothing = ('StopGradient',), ()
    self.assertEqual(
      self._text((stop, nothing), (stop, nothing)),
      'tf1 stops the gradient at y of net/mul_0 and the port does not; the same at 1 more',
    )
    self.assertIn('the port stops the gradient', self._text((nothing, stop)))

  def test_both_or_none(self):
    stop, nothing = ('StopGradient',), ()
    self.assertEqual(self._text((stop, nothing), (nothing, stop)), '')
    self.assertEqual(self._text((stop, stop)), '')
    self.assertEqual(self._text(), '')

  def test_operations_beside_a_stop_are_a_spelling(self):
    stop, nothing, text = ('StopGradient',), (), texts.gradient_text
    self.assertEqual(
      self._text((stop, nothing), of=text),
      'tf1 stops the gradient at y of net/mul_0 and the port does not',
    )
    self.assertIn('the port computes Pow', self._text((('Mul',), nothing), of=text))


if __name__ == '__main__':
  absltest.main()
