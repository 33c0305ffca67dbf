"""Tests of tf2verify.diagnosis.windows."""

from absl.testing import absltest

from tf2verify.diagnosis.windows import window_attribute
from tf2verify.records.diagnosis import GraphAspect, GraphDifference, Source


def _source(*differences):
  return Source(
    'net/op', 'net/op', '', '', None, None, (), (), 1.0, 1.0, False, None, None, differences
  )


class WindowAttributeTest(absltest.TestCase):
  def test_attribute_of_a_window(self):
    for op_type in ('Conv2D', 'DepthwiseConv2dNative', 'MaxPool', 'AvgPool3D'):
      padding = GraphDifference(GraphAspect.ATTRIBUTE, 'op', op_type, 'padding', 'SAME', 'VALID')
      self.assertEqual(window_attribute(_source(padding), 'padding'), ('SAME', 'VALID'))
      self.assertIsNone(window_attribute(_source(padding), 'strides'))

  def test_other_operations_and_aspects(self):
    for difference in (
      GraphDifference(GraphAspect.ATTRIBUTE, 'op', 'Pad', 'padding', 'SAME', 'VALID'),
      GraphDifference(GraphAspect.CONSTANT, 'op', 'Conv2D', 'padding', '1', '2'),
    ):
      self.assertIsNone(window_attribute(_source(difference), 'padding'))
    self.assertIsNone(window_attribute(_source(), 'padding'))


if __name__ == '__main__':
  absltest.main()
