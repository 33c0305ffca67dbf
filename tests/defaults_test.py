"""`[tool.tf2verify]` in pyproject.toml."""

import contextlib
import io
import os
from unittest import mock

from absl.testing import absltest, parameterized

from tests import console
from tf2verify.commands import cli, defaults
from tf2verify.commands.arguments import parser
from tf2verify.errors import UsageError


class DefaultsTest(parameterized.TestCase):
  def setUp(self) -> None:
    super().setUp()
    self.folder = console.own_folder(self)

  def _write(self, *lines: str) -> None:
    (self.folder / 'pyproject.toml').write_text('\n'.join(('[tool.tf2verify]', *lines)))

  def test_options_of_run_have_them_from_any_folder_below(self):
    self._write(
      "stages = ['gradients', 'loss']", 'timeout = 600', "html = 'build/page.html'",
      "junit = 'build/junit.xml'", 'deprecations = true', "github_annotations = 'off'",
    )  # fmt: skip
    below = self.folder / 'models' / 'nets'
    below.mkdir(parents=True)
    found = parser(run_defaults=defaults.run_defaults(str(below))).parse_args(['run', 'x'])
    self.assertEqual(found.stages, ['gradients', 'loss'])
    self.assertEqual((found.timeout, found.deprecations), (600.0, True))
    self.assertEqual(found.html, str(self.folder / 'build/page.html'))
    self.assertEqual(found.github_annotations, 'off')
    self.assertIsNone(found.markdown)

  def test_what_is_given_counts(self):
    self._write("stages = ['gradients']", 'timeout = 600')
    known = parser(run_defaults=defaults.run_defaults(str(self.folder)))
    found = known.parse_args(['run', 'x', '--stages', 'loss', '--timeout', '5'])
    self.assertEqual((found.stages, found.timeout), (['loss'], 5.0))

  def test_other_commands_do_not_take_them(self):
    self._write('timeout = 600')
    known = parser(run_defaults=defaults.run_defaults(str(self.folder)))
    self.assertEqual(known.parse_args(['fleet', 'x', '--journal', 'y']).timeout, 3600.0)

  def test_none(self):
    self.assertEqual(defaults.run_defaults(os.sep), {})
    (self.folder / 'pyproject.toml').write_text('[tool.other]\nx = 1\n')
    self.assertEqual(defaults.run_defaults(str(self.folder)), {})

  @parameterized.parameters(
    ("stage = ['loss']", r'no key stage \(did you mean stages\?\); it has stages, report_dir'),
    ("stages = 'loss'", "stages is 'loss'; it must be a list of names of stages"),
    ('stages = []', r'stages is \[\]'),
    ('timeout = -1', 'timeout is -1; it must be a number of seconds, at least 0'),
    ('timeout = true', 'timeout is True'),
    ('timeout = inf', 'timeout is inf'),
    ('deprecations = 1', 'deprecations is 1; it must be true or false'),
    ("diagnose = 'frist'", "diagnose is 'frist'; it must be 'all' or 'first'"),
    ("github_annotations = 'yes'", "github_annotations is 'yes'; it must be 'auto', 'on' or 'off'"),
    ('html = true', 'html is True; it must be a path'),
    ('rtol = 1e-3', 'has rtol; a tolerance belongs to the case'),
    ('html = ', r'pyproject.toml cannot be read for \[tool.tf2verify\]: Invalid value'),
  )
  def test_what_is_wrong_is_said(self, line, said):
    self._write(line)
    with self.assertRaisesRegex(UsageError, said):
      defaults.run_defaults(str(self.folder))

  def test_a_tool_that_is_no_table(self):
    (self.folder / 'pyproject.toml').write_text('[tool]\ntf2verify = 3\n')
    with self.assertRaisesRegex(UsageError, r'it must be a table, \[tool.tf2verify\]'):
      defaults.run_defaults(str(self.folder))

  def test_a_stage_that_is_none_names_the_file(self):
    self._write("stages = ['gradient']")
    with (
      mock.patch.object(os, 'getcwd', return_value=str(self.folder)),
      contextlib.redirect_stderr(io.StringIO()) as complained,
    ):
      self.assertEqual(cli.main(['run', 'x_test.py']), 2)
      said = f"{self.folder / 'pyproject.toml'}: [tool.tf2verify] stages: 'gradient' is not a stage"
      self.assertIn(said, complained.getvalue())
      self.assertEqual(cli.main(['run', 'x_test.py', '--stages', 'loses']), 2)
    self.assertIn("tf2verify: 'loses' is not a stage", complained.getvalue())

  def test_run_says_so_and_its_help_does_not(self):
    self._write('html = 3')
    with (
      mock.patch.object(os, 'getcwd', return_value=str(self.folder)),
      contextlib.redirect_stderr(io.StringIO()) as complained,
      contextlib.redirect_stdout(io.StringIO()) as said,
    ):
      self.assertEqual(cli.main(['run', 'x_test.py']), 2)
      with self.assertRaises(SystemExit) as ended:
        cli.main(['run', '--help'])
    self.assertEqual(ended.exception.code, 0)
    self.assertIn('tf2verify: ' + str(self.folder), complained.getvalue())
    self.assertIn('[tool.tf2verify]', said.getvalue())


if __name__ == '__main__':
  absltest.main()
