"""Modules of one name in two folders of one process."""

import importlib
import sys

from absl.testing import absltest

from tests import console
from tf2verify.environment.taken_modules import check_taken_modules
from tf2verify.errors import CaseDefinitionError

_NAME = 'taken_modules_port'


class TakenModulesTest(absltest.TestCase):
  def setUp(self) -> None:
    super().setUp()
    folder = console.own_folder(self)
    self.first, self.second = folder / 'first', folder / 'second'
    console.write_files(self.first, **{_NAME: 'def port(): return 1\n'})
    using = f'from {_NAME} import port\n'
    console.write_files(self.second, taken_modules_case=using)
    self.before = list(sys.path)

  def tearDown(self) -> None:
    sys.path[:] = self.before
    for name in (_NAME, 'taken_modules_case', 'taken_modules_between'):
      sys.modules.pop(name, None)
    importlib.invalidate_caches()
    super().tearDown()

  def _imported(self) -> None:
    """Imports the case, as pytest does: each folder comes first when its tests are collected."""
    importlib.invalidate_caches()
    sys.path.insert(0, str(self.first))
    importlib.import_module(_NAME)
    sys.path.insert(0, str(self.second))
    importlib.import_module('taken_modules_case')

  def test_the_module_of_another_folder(self) -> None:
    console.write_files(self.second, **{_NAME: 'def port(): return 2\n'})
    self._imported()
    with self.assertRaisesRegex(CaseDefinitionError, 'first.*imported before.*second.*Rename one'):
      check_taken_modules('taken_modules_case')

  def test_a_module_that_another_one_of_its_folder_uses(self) -> None:
    console.write_files(
      self.second,
      **{_NAME: 'def port(): return 2\n'},
      taken_modules_between=f'from {_NAME} import port\ndef made(): return port()\n',
      taken_modules_case='from taken_modules_between import made\n',
    )
    self._imported()
    with self.assertRaisesRegex(CaseDefinitionError, f'the module {_NAME} '):
      check_taken_modules('taken_modules_case')

  def test_a_module_that_is_in_one_folder_only(self) -> None:
    self._imported()
    check_taken_modules('taken_modules_case')

  def test_a_folder_that_comes_first_on_purpose(self) -> None:
    console.write_files(self.second, **{_NAME: 'def port(): return 2\n'})
    self._imported()
    sys.path.remove(str(self.second))
    sys.path.append(str(self.second))
    check_taken_modules('taken_modules_case')

  def test_its_own_module(self) -> None:
    console.write_files(self.second, **{_NAME: 'def port(): return 2\n'})
    sys.path.insert(0, str(self.second))
    importlib.invalidate_caches()
    importlib.import_module('taken_modules_case')
    check_taken_modules('taken_modules_case')


if __name__ == '__main__':
  absltest.main()
