"""What the command line makes of options."""

from absl.testing import absltest

from tf2verify.commands import repeating_scripts
from tf2verify.commands.arguments import parser


class ListsTest(absltest.TestCase):
  def test_an_option_given_twice_adds_to_the_first(self):
    for command, option, rest in (
      ('run', 'stages', ()),
      ('fleet', 'stages', ('--journal', 'run.sqlite')),
      ('repeat', 'metrics', ()),
      ('repeat', 'settings', ()),
    ):
      words = [command, 'target', *rest, f'--{option}', 'a', 'b', f'--{option}', 'c']
      self.assertEqual(vars(parser().parse_args(words))[option], ['a', 'b', 'c'], command)

  def test_stages_may_be_divided_by_commas(self):
    words = ['run', 'target', '--stages', 'a,b', 'c', '--stages', 'd,']
    self.assertEqual(parser().parse_args(words).stages, ['a', 'b', 'c', 'd'])
    metrics = parser().parse_args(['repeat', 'train.py', '--metrics', 'loss, total'])
    self.assertEqual(metrics.metrics, ['loss, total'])

  def test_what_is_given_replaces_the_default(self):
    one = parser().parse_args(['repeat', 'train.py', '--settings', 'seeds'])
    self.assertEqual(one.settings, ['seeds'])
    none = parser().parse_args(['repeat', 'train.py'])
    self.assertEqual(none.settings, repeating_scripts.DEFAULT_SETTINGS)
    self.assertIsNone(parser().parse_args(['run', 'target']).stages)


if __name__ == '__main__':
  absltest.main()
