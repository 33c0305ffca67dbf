"""An install never moves the TensorFlow of an environment: what pip's resolver would choose."""

import email
import functools
import json
import pathlib
import subprocess
import sys
import tempfile
import zipfile
from typing import Any

import pytest
from absl.testing import absltest

from tests.repo import pages

pytestmark = pytest.mark.starts_processes

_VERSIONS = ('2.16', '2.17', '2.18', '2.19', '2.20', '2.21')


def _pip(*arguments: str) -> str:
  done = subprocess.run(
    [sys.executable, '-m', 'pip', '--disable-pip-version-check', *arguments],
    capture_output=True,
    text=True,
    check=False,
  )
  if done.returncode:
    words = done.stderr.strip().splitlines()
    if any('connection' in line.lower() or 'temporary failure' in line.lower() for line in words):
      raise absltest.SkipTest(f'no package index can be reached: {words[-1]}')
    raise AssertionError(done.stderr)
  return done.stdout


@functools.cache
def _wheel() -> str:
  folder = tempfile.mkdtemp()
  _pip('wheel', '--quiet', '--no-deps', str(pages.REPOSITORY), '--wheel-dir', folder)
  (wheel,) = pathlib.Path(folder).glob('*.whl')
  return str(wheel)


def _report(*requirements: str) -> list[dict[str, Any]]:
  """Returns the metadata of what pip would install into an empty environment."""
  options = ('--dry-run', '--ignore-installed', '--quiet', '--report', '-')
  report = json.loads(_pip('install', *options, *requirements))
  return [item['metadata'] for item in report['install']]


def _chosen(*requirements: str) -> dict[str, str]:
  """Returns the version that pip would install, by name."""
  return {one['name'].lower().replace('_', '-'): one['version'] for one in _report(*requirements)}


class InstallTest(absltest.TestCase):
  def test_the_package_alone_asks_for_no_tensorflow(self):
    chosen = _chosen(_wheel())
    self.assertIn('tf2verify', chosen)
    self.assertContainsSubset(('absl-py', 'numpy', 'tf-slim'), chosen)
    self.assertNoCommonElements(('tensorflow', 'tf-keras', 'keras'), chosen)

  def test_the_command_of_each_version_keeps_tensorflows_minor_version(self):
    page = pages.text('docs/environment.md')
    for version in _VERSIONS:
      self.assertIn(f'`pip install . "tf-keras=={version}.*"`', page)
      # What the whole resolution comes to, since nothing else asks for TensorFlow.
      (tf_keras,) = _report('--no-deps', f'tf-keras=={version}.*')
      following = f'2.{int(version.removeprefix("2.")) + 1}'
      required = [one.replace(' ', '') for one in tf_keras['requires_dist']]
      self.assertIn(f'tensorflow<{following},>={version}', required)

  def test_a_whole_resolution_keeps_tensorflow(self):
    chosen = _chosen(_wheel(), 'tf-keras==2.17.*')
    self.assertStartsWith(chosen['tensorflow'], '2.17.')
    self.assertStartsWith(chosen['tf-keras'], '2.17.')

  def test_tensorflow_cpu_is_kept_only_without_dependencies(self):
    page = pages.text('docs/environment.md')
    self.assertIn('`pip install .`, then `pip install --no-deps "tf-keras==2.21.*"`', page)
    # tf2verify itself asks for no TensorFlow: test_the_package_alone_asks_for_no_tensorflow.
    with_dependencies = _chosen('tensorflow-cpu==2.21.*', 'tf-keras==2.21.*')
    self.assertContainsSubset(('tensorflow-cpu', 'tensorflow', 'tf-keras'), with_dependencies)
    options = ('--dry-run', '--ignore-installed', '--no-deps', '--quiet', '--report', '-')
    report = json.loads(_pip('install', *options, 'tf-keras==2.21.*'))
    self.assertEqual([one['metadata']['name'] for one in report['install']], ['tf_keras'])

  def test_an_empty_environment_gets_the_newest(self):
    chosen = _chosen(f'{_wheel()}[tensorflow]')
    self.assertStartsWith(chosen['tensorflow'], f'{_VERSIONS[-1]}.')

  def test_the_wheel_says_that_it_is_typed(self):
    names = zipfile.ZipFile(_wheel()).namelist()
    self.assertIn('tf2verify/py.typed', names)
    self.assertEmpty([name for name in names if name.startswith(('tests/', 'examples/'))])

  def test_the_page_on_an_index_leads_nowhere_else_than_to_addresses(self):
    with zipfile.ZipFile(_wheel()) as wheel:
      (name,) = [one for one in wheel.namelist() if one.endswith('.dist-info/METADATA')]
      said = email.message_from_string(wheel.read(name).decode('utf-8'))
    page = said.get_payload()
    self.assertIn('class LeakyCase(', page)
    self.assertIn('## The ladder', page)
    self.assertIn('validate_correctness)', page)
    self.assertNotIn('](docs/', page)
    self.assertNotIn('![', page)
    self.assertEqual(said['Author'], 'The tf2verify maintainers')
    self.assertEqual(said['Description-Content-Type'], 'text/markdown')


if __name__ == '__main__':
  absltest.main()
