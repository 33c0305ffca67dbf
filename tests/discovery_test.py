import os
import sys

from absl.testing import absltest

import tf2verify
from tests import console
from tf2verify.discovery import find_all, find_cases
from tf2verify.errors import UserCodeError


class FindCasesTest(absltest.TestCase):
  def setUp(self) -> None:
    super().setUp()
    self.folder = console.own_folder(self)
    console.write_files(self.folder, cases_test=console.CASES)

  def _names(self, target: object) -> list[str]:
    return [found.case.__name__ for found in find_cases(str(target))]

  def _check_refused(self, target: object, text: str) -> None:
    with self.assertRaisesRegex(tf2verify.Tf2VerifyError, text):
      find_cases(str(target))

  def test_file(self) -> None:
    """Without the abstract base, and without what it imports."""
    self.assertEqual(self._names(self.folder / 'cases_test.py'), ['RightCase', 'WrongCase'])

  def test_one_case_of_a_file(self) -> None:
    self.assertEqual(self._names(f'{self.folder}/cases_test.py::WrongCase'), ['WrongCase'])

  def test_folder_with_folders(self) -> None:
    console.write_files(self.folder / 'below', test_more=console.CASES, model='1 / 0')
    console.write_files(self.folder / '.hidden', hidden_test=console.CASES)
    self.assertEqual(self._names(self.folder), ['RightCase', 'WrongCase'] * 2)
    self.assertEqual(self._names(f'{self.folder}::RightCase'), ['RightCase'] * 2)

  def test_a_case_that_is_named_twice_is_found_once(self) -> None:
    file = self.folder / 'cases_test.py'
    (self.folder / 'link').symlink_to(self.folder)
    targets = [f'{file}::WrongCase', str(file), str(self.folder), f'{self.folder}/link']
    found = find_all([*targets, f'{self.folder}/link/cases_test.py'])
    self.assertEqual([one.name for one in found], ['WrongCase', 'RightCase'])

  def test_cases_of_one_name_are_told_apart(self) -> None:
    console.write_files(self.folder / 'below', test_more=console.CASES)
    found = find_all([f'{self.folder}::RightCase', f'{self.folder}/cases_test.py'])
    files = 'below/test_more.py', 'cases_test.py'
    alike = [f'{self.folder}/{file}::RightCase' for file in files]
    self.assertCountEqual([one.name for one in found], [*alike, 'WrongCase'])
    self.assertEqual([one.case.__name__ for one in found], ['RightCase', 'RightCase', 'WrongCase'])

  def test_classes_that_are_alike_in_one_file_are_all_found(self) -> None:
    made = """{}

def make():
  class Made(RightCase):
    pass
  return Made


First, Second = make(), make()
Alias = First
"""
    console.write_files(self.folder, made_test=made.format(console.CASES.partition('if __name')[0]))
    found = find_all([str(self.folder / 'made_test.py')] * 2)
    classes = [one.case for one in found if one.case.__name__ == 'Made']
    self.assertLen(set(classes), 2)
    self.assertLen(classes, 2)

  def test_module_and_package(self) -> None:
    console.write_files(
      self.folder / 'package',
      __init__='',
      model=console.MODEL.format(offset=1.0),
      model_case=console.ONE_CASE.format(name='PackageCase').replace('from model', 'from .model'),
    )
    before = os.getcwd()
    os.chdir(self.folder)
    try:
      self.assertEqual(self._names('cases_test'), ['RightCase', 'WrongCase'])
      self.assertEqual(self._names('package.model_case'), ['PackageCase'])
      self._check_refused('package.absent', 'neither a file or folder nor a module')
      self._check_refused('absent.module', 'no module absent.module')
    finally:
      os.chdir(before)
    self.assertEqual(self._names(self.folder / 'package' / 'model_case.py'), ['PackageCase'])

  def test_nothing_stays_behind(self) -> None:
    modules, path = set(sys.modules), list(sys.path)
    find_cases(str(self.folder))
    self.assertEqual(sys.path, path)
    self.assertNotIn('cases_test', sys.modules)
    self.assertEmpty({name for name in set(sys.modules) - modules if 'cases' in name})

  def test_unknown_case(self) -> None:
    self._check_refused(
      f'{self.folder}/cases_test.py::LeftCase', 'has no case LeftCase; it has RightCase, WrongCase'
    )
    self._check_refused(f'{self.folder}/cases_test.py::BaseCase', 'has no case BaseCase')

  def test_near_miss_of_a_name(self) -> None:
    self._check_refused(
      f'{self.folder}/cases_test.py::RigthCase',
      r'no case RigthCase \(did you mean RightCase\?\); it',
    )

  def test_incomplete_class_is_a_case(self) -> None:
    """So that it is told what it lacks, instead of being left out."""
    console.write_files(
      self.folder,
      more_test=f"""{console.CASES}

class MisspelledCase(EquivalenceCase):
  def build_tf1_grph(self, inputs, training):
    return inputs
""",
    )
    self.assertEqual(
      self._names(self.folder / 'more_test.py'), ['RightCase', 'WrongCase', 'MisspelledCase']
    )
    self.assertEqual(self._names(f'{self.folder}/more_test.py::MisspelledCase'), ['MisspelledCase'])

  def test_incomplete_base_of_a_case_is_none(self) -> None:
    console.write_files(self.folder, more_test=console.CASES.replace(', abc.ABC', '').replace(
      'def make_inputs', 'def _make_inputs') + '''

class CompleteCase(RightCase):
  def make_inputs(self):
    return self._make_inputs()
''')  # fmt: skip
    # BaseCase and RightCase have a subclass with make_inputs; WrongCase has none.
    self.assertEqual(self._names(self.folder / 'more_test.py'), ['WrongCase', 'CompleteCase'])

  def test_mixin_is_no_case(self) -> None:
    console.write_files(
      self.folder,
      more_test=f"""{console.CASES}

class Mixin:
  def make_inputs(self):
    return np.ones((2, 3))


class MixedCase(Mixin, RightCase):
  pass
""",
    )
    self.assertEqual(
      self._names(self.folder / 'more_test.py'), ['RightCase', 'WrongCase', 'MixedCase']
    )

  def test_absent_file(self) -> None:
    self._check_refused(self.folder / 'absent_test.py', 'does not exist; give a file, a folder')

  def test_folder_without_case_files(self) -> None:
    console.write_files(self.folder / 'empty', model='')
    self._check_refused(self.folder / 'empty', r'no file named test_\*\.py, \*_test\.py')

  def test_file_without_cases(self) -> None:
    console.write_files(self.folder, plain_test='import unittest')
    self._check_refused(
      self.folder / 'plain_test.py', 'declares no complete EquivalenceCase: a case overrides'
    )

  def test_file_that_fails_to_import(self) -> None:
    console.write_files(self.folder / 'bad', bad_test='import tensorflow.contrib.slim as slim')
    self._check_refused(
      self.folder / 'bad' / 'bad_test.py', 'importing .*bad_test.py raised .*`import tf_slim as sli'
    )
    console.write_files(self.folder / 'worse', worse_test='def build(:')
    self._check_refused(
      self.folder / 'worse' / 'worse_test.py', 'importing .*worse_test.py raised SyntaxError'
    )

  def test_file_that_declares_what_tf2verify_refuses_is_named(self) -> None:
    console.write_files(
      self.folder / 'map', map_test="import tf2verify\ntf2verify.MapEntry(('a',), ())"
    )
    path = self.folder / 'map' / 'map_test.py'
    with self.assertRaisesRegex(
      UserCodeError, 'map_test.py raised VariableMapError: a -> '
    ) as said:
      find_cases(str(path))
    self.assertIn(f'File "{path}", line 2', said.exception.traceback_text)


if __name__ == '__main__':
  absltest.main()
