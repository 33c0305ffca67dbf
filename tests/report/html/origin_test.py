"""What a page says of the project that it is written in."""

import os
import pathlib
import subprocess
import tempfile
from unittest import mock

from absl.testing import absltest

from tf2verify.report.html.origin import origin


class OriginTest(absltest.TestCase):
  def setUp(self):
    super().setUp()
    folder = tempfile.TemporaryDirectory()
    self.addCleanup(folder.cleanup)
    self.folder = pathlib.Path(folder.name).resolve() / 'models'
    self.folder.mkdir()
    self.addCleanup(os.chdir, os.getcwd())
    os.chdir(self.folder)
    # Neither the repository around the temporary folder, if any, nor the service that runs this.
    alone = {
      'GIT_CEILING_DIRECTORIES': str(self.folder.parent),
      'GITHUB_SHA': '',
      'CI_COMMIT_SHA': '',
    }
    self.enter_context(mock.patch.dict(os.environ, alone))

  def _git(self, *words):
    who = ('-c', 'user.name=One', '-c', 'user.email=one@example.org')
    subprocess.run(['git', *who, *words], check=True, capture_output=True)

  def test_without_a_repository(self):
    found = dict(origin())
    self.assertEqual(list(found), ['project', 'written'])
    self.assertEqual(found['project'], 'models')
    self.assertRegex(found['written'], r'^\d{4}-\d\d-\d\d \d\d:\d\d UTC$')
    with mock.patch.dict(os.environ, GITHUB_SHA='0123456789abcdef'):
      self.assertEqual(dict(origin())['commit'], '0123456789')

  def test_in_a_repository(self):
    self._git('init', '--quiet')
    (self.folder / 'pyproject.toml').write_text(
      '[build-system]\nname = "no"\n[project]\nname = "ports"\n'
    )
    self._git('add', '.')
    self._git('commit', '--quiet', '-m', 'one')
    (self.folder / 'below').mkdir()
    os.chdir('below')
    found = dict(origin())
    self.assertEqual(found['project'], 'ports')
    self.assertRegex(found['commit'], '^[0-9a-f]{10}$')
    (self.folder / 'pyproject.toml').write_text('[project]\nname = "others"\n')
    self.assertEndsWith(dict(origin())['commit'], ', with changes since')

  def test_without_git(self):
    with mock.patch.dict(os.environ, PATH=''):
      self.assertEqual([name for name, _ in origin()], ['project', 'written'])


if __name__ == '__main__':
  absltest.main()
