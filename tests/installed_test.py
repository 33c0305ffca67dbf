import importlib.metadata
import importlib.util
import sys
import types
from collections.abc import Callable
from unittest import mock

from absl.testing import absltest, parameterized

from tf2verify.environment import installed


def _metadata_with(**versions: str) -> Callable[[str], str]:
  def version(distribution: str) -> str:
    name = distribution.replace('-', '_')
    if name not in versions:
      raise importlib.metadata.PackageNotFoundError(distribution)
    return versions[name]

  return version


class VersionTest(parameterized.TestCase):
  def setUp(self) -> None:
    super().setUp()
    self.enter_context(mock.patch.object(sys, 'modules', dict(sys.modules)))
    for package in ('tensorflow', 'tf_keras'):
      sys.modules.pop(package, None)
    self.find_spec = self.enter_context(
      mock.patch.object(importlib.util, 'find_spec', return_value=None)
    )

  def _set_metadata(self, **versions: str) -> None:
    self.enter_context(mock.patch.object(importlib.metadata, 'version', _metadata_with(**versions)))

  @parameterized.parameters(
    'tensorflow', 'tensorflow_cpu', 'tensorflow_macos', 'tf_nightly', 'intel_tensorflow'
  )
  def test_finds_every_name_tensorflow_is_published_under(self, distribution: str) -> None:
    self._set_metadata(**{distribution: '2.19.1'})
    self.assertEqual(installed.version('tensorflow'), '2.19.1')

  def test_imported_module_counts_more_than_metadata(self) -> None:
    self._set_metadata(tensorflow='2.19.1')
    sys.modules['tensorflow'] = types.ModuleType('tensorflow')
    vars(sys.modules['tensorflow'])['__version__'] = '2.20.0'
    self.assertEqual(installed.version('tensorflow'), '2.20.0')

  def test_imported_module_without_version_falls_back_to_metadata(self) -> None:
    self._set_metadata(tensorflow_cpu='2.19.1')
    sys.modules['tensorflow'] = types.ModuleType('tensorflow')
    self.assertEqual(installed.version('tensorflow'), '2.19.1')

  def test_absent_package_is_none(self) -> None:
    self._set_metadata(numpy='2.4.6')
    self.assertIsNone(installed.version('tensorflow'))

  def test_package_whose_import_is_forbidden_is_none(self) -> None:
    self._set_metadata(tf_keras='2.19.0')
    sys.modules.update({'tf_keras': None})  # type: ignore[dict-item]
    self.assertIsNone(installed.version('tf_keras'))

  def test_package_without_metadata_is_unknown(self) -> None:
    self._set_metadata()
    self.find_spec.return_value = mock.sentinel.spec
    self.assertEqual(installed.version('tf_keras'), installed.UNKNOWN)


class MinorTest(parameterized.TestCase):
  @parameterized.parameters(
    ('2.21.0', (2, 21)),
    ('2.22.0-dev20260101', (2, 22)),
    ('2.16.0rc1', (2, 16)),
    ('1.15.5', (1, 15)),
  )
  def test_reads_major_and_minor(self, stated: str, release: tuple[int, int]) -> None:
    self.assertEqual(installed.minor(stated), release)

  @parameterized.parameters(None, '', 'unknown', '2')
  def test_anything_else_is_none(self, stated: str | None) -> None:
    self.assertIsNone(installed.minor(stated))


if __name__ == '__main__':
  absltest.main()
