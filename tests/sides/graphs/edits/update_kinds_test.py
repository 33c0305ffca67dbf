from absl.testing import absltest, parameterized

from tf2verify.records.op_graph import TARGET, VARIABLE, OpGraph, OpRecord
from tf2verify.sides.graphs.edits.update_kinds import turned
from tf2verify.sides.graphs.edits.wiring import CannotRepair

_FLOAT = (('float32', (4,)),)


def _target(kind):
  return OpRecord('update of v', TARGET, ((0, 0),), attributes=(('op', kind),), outputs=_FLOAT)


def _graph(*names):
  return OpGraph(
    'tf2',
    tuple(
      OpRecord(name, VARIABLE, (), outputs=_FLOAT, tensors=(f'{name}/Read:0',)) for name in names
    ),
  )


class TurnedTest(parameterized.TestCase):
  @parameterized.parameters(
    ('AssignVariableOp', 'AssignVariableOp', 'Identity', ['new']),
    ('AssignSubVariableOp', 'AssignSubVariableOp', 'Identity', ['new']),
    ('AssignSubVariableOp', 'AssignVariableOp', 'Sub', ['v/Read:0', 'new']),
    ('AssignAdd', 'AssignVariableOp', 'AddV2', ['v/Read:0', 'new']),
    ('Assign', 'AssignSubVariableOp', 'Sub', ['v/Read:0', 'new']),
    ('Assign', 'AssignAddVariableOp', 'Sub', ['new', 'v/Read:0']),
    ('AssignSub', 'AssignAddVariableOp', 'Neg', ['new']),
  )
  def test_what_the_port_has_to_write(self, tf1, tf2, op_type, inputs):
    (node,) = turned(_target(tf1), _target(tf2), _graph('u', 'v'), 'new', 'last')
    self.assertEqual((node.name, node.op, [*node.input]), ('last', op_type, inputs))

  @parameterized.parameters(
    ('ResourceScatterAdd', 'AssignVariableOp', 'v'), ('AssignSub', 'Assign', 'u')
  )
  def test_what_cannot_be_told(self, tf1, tf2, variable):
    with self.assertRaises(CannotRepair):
      list(turned(_target(tf1), _target(tf2), _graph(variable), 'new', 'last'))


if __name__ == '__main__':
  absltest.main()
