import os
from unittest import mock

from absl.testing import absltest

from tests import console
from tf2verify.errors import UsageError
from tf2verify.fleet import shipping
from tf2verify.fleet.places import places_of
from tf2verify.fleet.shipping import CODE, Origin, PathMapping


class ShippingTest(absltest.TestCase):
  def setUp(self):
    super().setUp()
    self.folder = console.own_folder(self)
    self.root = self.folder / 'repository'
    self.there = self.folder / 'there'
    self.there.mkdir()

  def write(self, *names, size=3):
    for name in names:
      path = self.root / name
      path.parent.mkdir(parents=True, exist_ok=True)
      path.write_bytes(b'x' * size)

  def staged(self, **arguments):
    shipping.stage([str(self.root)], str(self.there), **arguments)
    code = self.there / CODE / '0'
    return sorted(str(path.relative_to(code)) for path in code.rglob('*') if path.is_file())

  def test_what_is_shipped(self):
    self.write('.git/HEAD', 'a_case.py', 'data/a.npz', 'data/.gitignore', '.gitignore')
    self.write('env/pyvenv.cfg', 'env/lib/x.py', '__pycache__/a.pyc', 'run.sqlite')
    self.write('large/x.bin', 'models/large/x.bin', 'models/a.ckpt', 'keep.ckpt.py')
    (self.root / '.rayignore').write_text('# what no case reads\n/large/\n*.ckpt\n')
    (self.root / 'again').symlink_to(self.root)  # a circle
    (self.root / 'dangling').symlink_to(self.root / 'absent')
    found = self.staged(without=[str(self.root / 'run.sqlite')])
    self.assertEqual(found, ['a_case.py', 'data/a.npz', 'keep.ckpt.py'])
    self.assertTrue((self.there / 'tf2verify' / 'fleet' / 'shipping.py').is_file())
    self.assertEmpty(list((self.there / 'tf2verify').rglob('__pycache__')))

  def test_too_much(self):
    self.write('a_case.py', 'weights/w.bin', size=1000)
    with (
      mock.patch.object(shipping, '_OWN_FOLDER', str(self.folder / 'nothing')),
      mock.patch.object(shipping, 'LARGEST', 1500),
      self.assertRaisesRegex(UsageError, r'would be shipped.*weights .*repository/\.rayignore'),
    ):
      self.staged()

  def test_roots(self):
    self.write('.git/HEAD', 'models/a_case.py')
    alone = self.folder / 'alone' / 'b_case.py'
    alone.parent.mkdir()
    alone.touch()
    before = os.getcwd()
    self.addCleanup(os.chdir, before)

    def roots(*targets):
      return shipping.roots_of(places_of(targets))

    self.assertEqual(roots(str(self.root / 'models')), (str(self.root),))
    self.assertEqual(roots(str(alone)), (str(alone.parent),))
    os.chdir(self.folder)
    # Below the working folder, from which it may import; and that holds the repository.
    self.assertEqual(roots(str(alone)), (str(self.folder),))
    self.assertEqual(roots(str(alone), 'repository'), (str(self.folder),))
    os.chdir(self.root / 'models')
    self.assertEqual(roots('os.path'), (str(self.root),))  # a module

  def test_paths_there_and_back(self):
    home = '/home/u/project'
    origin = Origin(
      (home,),
      '/home/u/.venv/site-packages/tf2verify',
      f'{home}/work',
      (f'{home}/work', '/home/u/.venv/site-packages', '/home/u/other', ''),
      ('/home/u/.venv/site-packages', '/home/u/.venv/site-packages', '/usr/lib/python3'),
      {},
      {},
    )
    to, back = origin.moves_to('/ray/code'), origin.moves_back('/ray/code')
    self.assertEqual(to.text(f'{home}/a_case.py::A'), '/ray/code/0/a_case.py::A')
    self.assertEqual(origin.working_folder_at('/ray/code'), '/ray/code/0/work')
    path = origin.path_at('/ray/code', ['/node/lib', '/x/site-packages/ray/thirdparty_files'])
    self.assertEqual(path[1:], ('/ray/code/0/work', '/home/u/other', '/node/lib'))
    site = shipping.installed_folders()[0]
    found = back.everywhere(
      {
        '/ray/code/0/a_case.py': ['File "/ray/code/0/a.py", line 3', 7, None],
        f'{site}/sonnet.py': '/ray/code/01 /not/ray/code/0/a.py',
      }
    )
    self.assertEqual(
      found,
      {
        f'{home}/a_case.py': [f'File "{home}/a.py", line 3', 7, None],
        '/home/u/.venv/site-packages/sonnet.py': '/ray/code/01 /not/ray/code/0/a.py',
      },
    )

  def test_nothing_to_move(self):
    self.assertEqual(PathMapping([('/a', '/a')]).text('/a/b'), '/a/b')


if __name__ == '__main__':
  absltest.main()
