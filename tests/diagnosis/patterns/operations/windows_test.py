"""Tests of tf2verify.diagnosis.patterns.operations.windows."""

import numpy as np
from absl.testing import absltest

from tf2verify.diagnosis.evidence.failed_stage import SourceEvidence, Standing
from tf2verify.diagnosis.patterns.operations.windows import window_attribute
from tf2verify.records.diagnosis import GraphAspect, GraphDifference, Source

_ANY = tuple(Standing)


def _source(*differences, standing=Standing.UNTRIED):
  record = Source(
    'net/op', 'net/op', '', '', None, None, (), (), 1.0, 1.0, False, None, None, differences
  )
  array = np.zeros(1, np.float32)
  return SourceEvidence(record, array, array, tuple((d, standing) for d in differences))


class WindowAttributeTest(absltest.TestCase):
  def test_attribute_of_a_window(self):
    for op_type in ('Conv2D', 'DepthwiseConv2dNative', 'MaxPool', 'AvgPool3D'):
      padding = GraphDifference(GraphAspect.ATTRIBUTE, 'op', op_type, 'padding', 'SAME', 'VALID')
      self.assertIs(window_attribute(_source(padding), 'padding', _ANY), padding)
      self.assertIsNone(window_attribute(_source(padding), 'strides', _ANY))

  def test_other_operations_and_aspects(self):
    for difference in (
      GraphDifference(GraphAspect.ATTRIBUTE, 'op', 'Pad', 'padding', 'SAME', 'VALID'),
      GraphDifference(GraphAspect.CONSTANT, 'op', 'Conv2D', 'padding', '1', '2'),
    ):
      self.assertIsNone(window_attribute(_source(difference), 'padding', _ANY))
    self.assertIsNone(window_attribute(_source(), 'padding', _ANY))

  def test_what_a_trial_has_shown(self):
    padding = GraphDifference(GraphAspect.ATTRIBUTE, 'op', 'Conv2D', 'padding', 'SAME', 'VALID')
    source = _source(padding, standing=Standing.REFUTED)
    self.assertIsNone(window_attribute(source, 'padding', (Standing.SOLE,)))
    self.assertIs(window_attribute(source, 'padding', (Standing.REFUTED,)), padding)


if __name__ == '__main__':
  absltest.main()
