"""Tests of tf2verify.stages.training.graphs.edited_steps: what a graph rounds otherwise."""

import types

from absl.testing import absltest

from tf2verify.stages.training.graphs.edited_steps import EditedSteps

_COMPARED = 100  # tensors of a step
_MISTAKE = {('update', 'kernel', 'step 2'), ('slot', 'velocity of kernel', 'step 2')}
_ROUNDING = ('applied gradient', 'norm/beta', 'step 1')


def _steps(*left):
  """Returns steps that differ first in the second, of which a graph shows differences."""
  judge = types.SimpleNamespace(name='step {}'.format)
  port = types.SimpleNamespace(steps=[types.SimpleNamespace(number=n) for n in (1, 2, 3)])
  graphs = types.SimpleNamespace(is_moved=False)
  made = EditedSteps(graphs, 2, None, port, judge, {})
  made.__dict__['_as_it_is'] = frozenset(left), [0.0] * 3 * _COMPARED
  return made


class BackgroundTest(absltest.TestCase):
  def test_nothing_before_the_step(self):
    steps = _steps(*_MISTAKE)
    self.assertEqual(steps.why_not(), '')
    self.assertEqual(steps.judged([])[0], _MISTAKE)

  def test_a_variable_that_a_graph_rounds_otherwise(self):
    steps = _steps(_ROUNDING, ('update', 'norm/beta', 'step 3'), *_MISTAKE)
    self.assertEqual(steps.why_not(), '')
    self.assertEqual(steps.judged([])[0], _MISTAKE)

  def test_many_are_no_rounding(self):
    many = [('applied gradient', f'{n}/beta', 'step 1') for n in range(10)]
    steps = _steps(*many, *_MISTAKE)
    self.assertIn('the port takes a different step 1', steps.why_not())
    self.assertLen(steps.judged([])[0], 12)

  def test_a_loss_is_none(self):
    steps = _steps(('loss', '(total)', 'step 1'), *_MISTAKE)
    self.assertIn('loss (total) differs there', steps.why_not())

  def test_the_mistake_itself_is_none(self):
    steps = _steps(('update', 'kernel', 'step 1'), *_MISTAKE)
    self.assertIn('update kernel differs there', steps.why_not())


if __name__ == '__main__':
  absltest.main()
