"""Tests of tf2verify.sides.graphs.edits.contents."""

import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

from tf2verify.numerics.relayout import Relayout
from tf2verify.records.op_graph import NodeChange
from tf2verify.sides.graphs.edits.contents import content
from tf2verify.sides.graphs.edits.repairs import GivenValue, Repair, Transplant
from tf2verify.sides.graphs.graph_defs.rewiring import OtherInput

v1 = tf.compat.v1


def _node(name='end', op='Mul', inputs=('a', 'b')):
  return v1.NodeDef(name=name, op=op, input=list(inputs))


def _change(attribute=1, value=2.0, **known):
  return Repair(
    changes=(NodeChange('op', (('axis', attribute),), ((1, np.float32(value)),), **known),)
  )


def _moved(**known):
  return Repair(transplants=(Transplant((_node('inner'),), _node(**known)),))


def _held(order):
  layout = Relayout((2, 3), order, (3, 2))
  return Repair(values=(GivenValue('a:0', 'b:0', layout.to_tf2),))


class ContentTest(parameterized.TestCase):
  @parameterized.parameters(
    _change,
    _moved,
    lambda: _held((1, 0)),
    lambda: Repair(values=(GivenValue('a:0', 'b:0'),)),
    lambda: Repair(inputs=(OtherInput('op', 1, 'a:0', (_node(),)),)),
    lambda: Repair(passing=('stop',), exchanged=(('a:0', 'b:0'),)),
  )
  def test_made_twice(self, make):
    self.assertEqual(content(make()), content(make()))
    self.assertNotEqual(content(make()), content(Repair()))

  @parameterized.parameters(
    (_change(), _change(attribute=2)),
    (_change(), _change(value=3.0)),
    (_change(), _change(op_type='Max')),
    (_moved(), _moved(op='Add')),
    (_moved(), _moved(inputs=('b', 'a'))),
    (_held((1, 0)), _held(None)),
    (_held((1, 0)), Repair(values=(GivenValue('a:0', 'b:0'),))),
    (Repair(exchanged=(('a:0', 'b:0'),)), Repair(exchanged=(('a:0', 'c:0'),))),
  )
  def test_different(self, one, other):
    self.assertNotEqual(content(one), content(other))


if __name__ == '__main__':
  absltest.main()
