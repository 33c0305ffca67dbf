"""What the command line makes of options."""

import contextlib
import io

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

  def test_a_path_behind_stages_is_told_from_a_stage(self):
    for words, text in (
      (['--stages', 'gradients', 'net_test.py'], 'net_test.py is not a stage, but was read as one'),
      (['--stages', 'gradients,net_test.py::Case'], 'net_test.py::Case is not a stage'),
      (['a_test.py', '--stages', '3', 'models/b'], 'models/b is not a stage'),
      (['--stages', 'gradients', 'models'], 'required: PATH[::Case] (--stages takes every word'),
    ):
      for command in ('run', 'watch', 'fleet'):
        journal = ['--journal', 'x'] if command == 'fleet' else []
        with self.subTest(f'{command} {words}'):
          said = io.StringIO()
          with self.assertRaises(SystemExit), contextlib.redirect_stderr(said):
            parser().parse_args([command, *journal, *words])
          self.assertIn('give the path before it', said.getvalue())
          self.assertTrue(text in said.getvalue() or command != 'run', said.getvalue())
    found = parser().parse_args(['run', '--stages', '1-3', 'loss', '--', 'models'])
    self.assertEqual((found.stages, found.targets), (['1-3', 'loss'], ['models']))

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
