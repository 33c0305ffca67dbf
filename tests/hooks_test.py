"""The table of hooks against what it describes."""

import inspect

from absl.testing import absltest, parameterized

import tf2verify
from tf2verify import hooks
from tf2verify.ladder import LadderCase

_NO_HOOKS = ('declares',)  # of what the framework itself defines


def _methods(cls):
  """Returns the public methods that a case inherits from this package."""
  homes = [base for base in cls.__mro__ if base.__module__.startswith('tf2verify')]
  return {
    name
    for home in homes
    for name, value in vars(home).items()
    if inspect.isfunction(value) and not name.startswith(('_', 'test_')) and name not in _NO_HOOKS
  } - {'setUp', 'tearDown', 'runTest'}


class HooksTest(parameterized.TestCase):
  def test_the_table_has_every_method_once(self):
    names = [hook.name for hook in hooks.HOOKS]
    self.assertCountEqual(names, _methods(tf2verify.EquivalenceCase))

  @parameterized.parameters(*hooks.HOOKS)
  def test_a_row_agrees_with_the_method(self, hook):
    parameters = list(inspect.signature(getattr(tf2verify.EquivalenceCase, hook.name)).parameters)
    own = parameters[1:]
    if hook.name in ('make_tf1_train_op', 'load_tf1_checkpoint'):
      self.assertEqual(tuple(own), hook.arguments)
    else:
      self.assertEqual(tuple(own), hook.arguments + hook.taken)

  @parameterized.parameters(*hooks.HOOKS)
  def test_the_sides_know_it_by_the_same_arguments(self, hook):
    declared = getattr(LadderCase, hook.name, None)
    if declared is None:
      self.assertIn(hook.name, ('make_inputs', 'make_labels'))  # the ladder calls them itself
      return
    self.assertEqual(
      inspect.signature(declared).parameters.keys(),
      inspect.signature(getattr(tf2verify.EquivalenceCase, hook.name)).parameters.keys(),
    )


if __name__ == '__main__':
  absltest.main()
