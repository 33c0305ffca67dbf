"""Tests of tf2verify.sides.kept.outside."""

import linecache
import os
import pathlib
import tempfile

import h5py
from absl.testing import absltest

from tests import console
from tf2verify.sides.kept.outside import Outside


class ScratchTest(absltest.TestCase):
  def obstacles(self, do):
    outside = Outside()
    with outside.watched():
      do()
    return list(outside.obstacles)

  def setUp(self):
    super().setUp()
    self.folder = console.own_folder(self)

  def test_what_autograph_writes_is_its_own(self):
    path = self.folder / '__autograph_generated_file0abc.py'
    self.assertEmpty(self.obstacles(lambda: path.write_text('x = 1', encoding='utf-8')))

  def test_a_file_without_a_name(self):
    def write():
      with tempfile.TemporaryFile(dir=self.folder) as file:
        file.write(b'x')

    if not hasattr(os, 'O_TMPFILE'):
      self.skipTest('this system has no files without a name')
    self.assertEmpty(self.obstacles(write))

  def test_any_other_file_is_an_obstacle(self):
    path = self.folder / 'weights.npy'
    self.assertEqual(
      self.obstacles(lambda: path.write_text('x', encoding='utf-8')), [f'writes {path}']
    )


class FilesTest(absltest.TestCase):
  def test_code_that_is_read_as_data_is_a_file_and_its_lines_are_none(self):
    with tempfile.TemporaryDirectory() as folder:
      path = pathlib.Path(folder, 'settings.py')
      path.write_text('rate = 0.5', encoding='utf-8')
      outside = Outside()
      with outside.watched():
        linecache.getline(str(path), 1)
      self.assertEmpty(outside.files)
      with outside.watched():
        path.read_text(encoding='utf-8')
      self.assertEqual(list(outside.files), [str(path)])

  def test_data_of_an_installed_package(self):
    outside = Outside()
    path = pathlib.Path(linecache.__file__).with_name('LICENSE.txt')
    with outside.watched(), open(path, 'rb'):
      pass
    self.assertEqual(list(outside.files), [str(path)])

  def test_weights_that_keras_reads_by_hdf5(self):
    with tempfile.TemporaryDirectory() as folder:
      path = os.path.join(folder, 'weights.h5')
      with h5py.File(path, 'w') as file:
        file['rate'] = 0.5
      outside = Outside()
      with outside.watched(), h5py.File(path) as file:
        self.assertEqual(file['rate'][()], 0.5)
    self.assertIn('reads files by open', list(outside.obstacles))


if __name__ == '__main__':
  absltest.main()
