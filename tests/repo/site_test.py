"""The documentation site is built, and read in a browser."""

import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest
import urllib.parse

import pytest
from absl.testing import absltest

from tests import browser
from tests.repo import pages

pytestmark = pytest.mark.starts_processes

_NEEDED = (
  'mkdocs.yml',
  'docs_site',
  'docs',
  'tf2verify',
  'README.md',
  'BUILD.md',
  'CONTRIBUTING.md',
  'CHANGELOG.md',
  'LICENSE',
  'benchmarks/README.md',
  *(page for page in pages.pages() if page.startswith('examples/')),
)
_RESULTS = """[...document.querySelectorAll('.md-search-result__item a')]
  .map((link) => link.getAttribute('href')).filter((link) => link)"""


def _build(root, site):
  """Runs the build that `make docs` runs."""
  return subprocess.run(
    [sys.executable, '-m', 'mkdocs', 'build', '--strict', '--site-dir', str(site)],
    cwd=root,
    env={**os.environ, 'NO_MKDOCS_2_WARNING': '1'},
    capture_output=True,
    text=True,
    check=False,
  )


def _public_names():
  """Returns `tf2verify.__all__`, without an import of TensorFlow."""
  text = (pages.REPOSITORY / 'tf2verify' / '__init__.py').read_text()
  names = text.partition('__all__ = [')[2].partition(']')[0]
  return [name.strip(" '\n") for name in names.split(',') if name.strip()]


@unittest.skipIf(
  importlib.util.find_spec('mkdocstrings') is None,
  "the extra `docs` is not installed: pip install -e '.[docs]'",
)
class SiteTest(absltest.TestCase):
  @classmethod
  def setUpClass(cls):
    super().setUpClass()
    folder = tempfile.TemporaryDirectory()
    cls.addClassCleanup(folder.cleanup)
    cls.folder = pathlib.Path(folder.name).resolve()
    cls.site = cls.folder / 'site'
    cls.built = _build(pages.REPOSITORY, cls.site)

  def setUp(self):
    super().setUp()
    self.assertEqual(self.built.returncode, 0, self.built.stderr)

  def _text(self, page):
    return (self.site / page).read_text(encoding='utf-8')

  def test_every_page_is_there(self):
    for page in pages.pages():
      place = page.removeprefix('docs/').removesuffix('.md')
      place = 'index' if page == 'README.md' else place.replace('README', 'index')
      self.assertTrue((self.site / f'{place}.html').is_file(), page)

  def test_every_public_name_is_in_the_reference(self):
    reference = ''.join(
      path.read_text(encoding='utf-8') for path in (self.site / 'reference').glob('*.html')
    )
    self.assertIn('EquivalenceCase', _public_names())
    for name in _public_names():
      self.assertIn(f'id="tf2verify.{name}"', reference)

  def test_signatures_attributes_and_members(self):
    case = self._text('reference/case.html')
    for id_ in ('EquivalenceCase.build_tf1_graph', 'EquivalenceCase.fill_values'):
      self.assertIn(f'id="tf2verify.{id_}"', case)
    self.assertIn('optional_hooks.OptionalHooks.make_tf1_optimizer"', case)
    self.assertIn('training_steps_to_take', case)
    self.assertIn('href="values.html#tf2verify.Tolerance"', case)
    self.assertIn('INCONCLUSIVE', self._text('reference/verdicts.html'))

  def test_command_line(self):
    page = self._text('reference/command_line.html')
    for text in ('id="run"', 'id="fleet"', '--report_dir', 'exit status: 0 all passed'):
      self.assertIn(text, page)

  def test_links_lead_within_the_site(self):
    start = self._text('index.html')
    for link in ('stages.html', 'decisions/index.html', 'examples/index.html', 'LICENSE.txt'):
      self.assertIn(f'href="{link}"', start)
      self.assertTrue((self.site / link).is_file(), link)
    self.assertIn('href="../index.html"', self._text('benchmarks/index.html'))

  def test_broken_links_fail(self):
    root = self.folder / 'repository'
    for name in _NEEDED:
      target = root / name
      target.parent.mkdir(parents=True, exist_ok=True)
      if (pages.REPOSITORY / name).is_dir():
        shutil.copytree(pages.REPOSITORY / name, target, dirs_exist_ok=True)
      else:
        shutil.copy(pages.REPOSITORY / name, target)
    with open(root / 'docs' / 'stages.md', 'a', encoding='utf-8') as page:
      page.write('[a](nowhere.md) [b](../examples/nowhere) [c](noise.md#nowhere) `[d](code.md)`\n')
    (root / 'docs' / 'forgotten.md').write_text('# In no menu\n')
    done = _build(root, self.folder / 'planted')
    self.assertNotEqual(done.returncode, 0)
    for words in ("'nowhere.md'", "'../examples/nowhere'", "'#nowhere'", 'forgotten.md'):
      self.assertIn(words, done.stderr)
    self.assertNotIn('code.md', done.stderr)

  @unittest.skipIf(
    browser.executable() is None, 'no Chromium on this machine: apt-get install chromium'
  )
  def test_reads_and_searches_from_a_folder(self):
    chromium = browser.Browser()
    self.addCleanup(chromium.close)
    for page in ('index.html', 'reference/case.html', 'html_report.html'):
      chromium.open(self.site / page)
      self.assertEqual(chromium.errors, [])
      self._assert_nothing_from_elsewhere(chromium)
    chromium.evaluate("document.querySelector('.md-search__input').focus()")
    chromium.type('EquivalenceCase')
    chromium.wait_for(f'{_RESULTS}.length')
    found = chromium.evaluate(_RESULTS)
    self.assertTrue(any('reference/' in link for link in found), found)
    self.assertEqual(chromium.errors, [])
    self._assert_nothing_from_elsewhere(chromium)

  def _assert_nothing_from_elsewhere(self, chromium):
    schemes = {urllib.parse.urlsplit(address).scheme for address in chromium.requests}
    self.assertContainsSubset(schemes, {'file', 'data'})
    self.assertNotEmpty(schemes)


if __name__ == '__main__':
  absltest.main()
