"""Tests of tf2verify.sides.kept.outside."""

import os
import pathlib
import tempfile

from absl.testing import absltest

from tf2verify.sides.kept.outside import Outside


class ScratchTest(absltest.TestCase):
  def obstacles(self, do):
    outside = Outside()
    with outside.watched():
      do()
    return list(outside.obstacles)

  def setUp(self):
    super().setUp()
    folder = tempfile.TemporaryDirectory()
    self.addCleanup(folder.cleanup)
    self.folder = pathlib.Path(folder.name)

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


if __name__ == '__main__':
  absltest.main()
