import numpy as np
from absl.testing import absltest

from tests.diagnosis.hand_made import HandMade
from tf2verify.diagnosis.divergence.judging.behind_updates import behind_updates

_X = np.ones((2, 3), np.float32)


class BehindUpdatesTest(absltest.TestCase):
  def setUp(self):
    super().setUp()
    made = HandMade('tf1')
    model = made.op('Exp', 'model', made.input(_X))
    gradient = made.op('Relu', 'backward', model)
    made.target('gradient kernel', gradient)
    clipped = made.op('Exp', 'clip', gradient)
    made.target('applied gradient kernel', clipped)
    update = made.op('Sum', 'update', clipped)
    made.target('update of kernel', update)
    self.graph = made.graph()

  def names(self, targets):
    ends = [self.graph.targets()[name] for name in targets] or [*self.graph.targets().values()]
    behind = self.graph.ancestors(ends)
    found = behind_updates(self.graph, behind, targets, ends)
    return {self.graph.ops[n].name for n in found} & {'model', 'backward', 'clip', 'update'}

  def test_a_gradient_that_agrees(self):
    self.assertEqual(self.names(['update of kernel']), {'update'})
    both = ['update of kernel', 'applied gradient kernel']
    self.assertEqual(self.names(both), {'clip', 'update'})

  def test_a_gradient_that_differs(self):
    whole = {'model', 'backward', 'clip', 'update'}
    self.assertEqual(self.names([*self.graph.targets()]), whole)

  def test_no_target_is_known(self):
    self.assertEqual(self.names([]), {'model', 'backward', 'clip', 'update'})


if __name__ == '__main__':
  absltest.main()
