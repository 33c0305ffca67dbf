import os

from absl.testing import absltest

from tests import console
from tf2verify.errors import UsageError
from tf2verify.fleet.places import key_of, places_of


class PlacesTest(absltest.TestCase):
  def setUp(self):
    super().setUp()
    self.folder = console.own_folder(self)

  def make(self, *paths):
    for path in paths:
      (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
      (self.folder / path).touch()

  def key(self, path):
    return key_of(str(self.folder / path))

  def test_keys(self):
    self.make('alone/a_case.py', 'project/pyproject.toml', 'project/sub/a_case.py')
    self.make('repository/.git/config', 'repository/sub/setup.py', 'repository/sub/a_case.py')
    self.assertEqual(self.key('alone/a_case.py'), str(self.folder / 'alone' / 'a_case.py'))
    self.assertEqual(self.key('project/sub/a_case.py'), 'sub/a_case.py')
    self.assertEqual(self.key('repository/sub/a_case.py'), 'sub/a_case.py')

  def test_worktree(self):
    self.make('.git', 'a_case.py')  # a file, there
    self.assertEqual(self.key('a_case.py'), 'a_case.py')

  def test_one_file_by_several_names(self):
    self.make('.git', 'a_case.py', 'b_case.py')
    os.symlink(self.folder / 'a_case.py', self.folder / 'c_case.py')
    path = str(self.folder / 'a_case.py')
    (one,) = places_of([f'{path}::A', os.path.relpath(path), str(self.folder / 'c_case.py')])
    self.assertEqual((one.target, one.key, one.wanted), (path, 'a_case.py', set()))
    (one,) = places_of([f'{path}::A', f'{path}::B'])
    self.assertEqual(one.wanted, {'A', 'B'})
    self.assertTrue(one.named)
    two = places_of([str(self.folder)])
    self.assertEqual(
      [(place.key, place.named) for place in two], [('a_case.py', False), ('b_case.py', False)]
    )

  def test_two_files_of_one_name(self):
    self.make('one/.git', 'one/a_case.py', 'two/.git', 'two/a_case.py')
    with self.assertRaisesRegex(UsageError, 'are both a_case.py in their repositories'):
      places_of([str(self.folder / 'one'), str(self.folder / 'two')])

  def test_modules(self):
    (one,) = places_of(['package.module::A'])
    self.assertEqual((one.key, one.target, one.is_file), ('package.module',) * 2 + (False,))


if __name__ == '__main__':
  absltest.main()
