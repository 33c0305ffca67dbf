"""Tests of tf2verify.fleet.own_folder."""

import fcntl
import os
import tempfile
from unittest import mock

from absl.testing import absltest

from tf2verify.fleet.own_folder import own_folder


class OwnFolderTest(absltest.TestCase):
  def setUp(self):
    super().setUp()
    self.base = self.enter_context(tempfile.TemporaryDirectory())
    self.enter_context(mock.patch.object(tempfile, 'tempdir', self.base))

  def _left(self, name, lock='lock'):
    folder = os.path.join(self.base, name)
    os.makedirs(os.path.join(folder, '1'))
    path = os.path.join(folder, lock)
    with open(path, 'wb'):
      pass
    return path

  def test_it_is_removed_at_the_end(self):
    with own_folder() as folder:
      self.assertTrue(os.path.isdir(folder))
    self.assertEmpty(os.listdir(self.base))

  def test_the_folder_of_a_fleet_that_was_killed_is_removed(self):
    self._left('tf2verify-fleet-killed')
    self._left('tf2verify-other')
    with own_folder() as folder:
      self.assertCountEqual(os.listdir(self.base), [os.path.basename(folder), 'tf2verify-other'])

  def test_the_folder_of_a_fleet_that_runs_or_begins_stays(self):
    running = self._left('tf2verify-fleet-running')
    self._left('tf2verify-fleet-begins', 'lock.new')
    with open(running, 'rb') as file:
      fcntl.flock(file, fcntl.LOCK_EX)
      with own_folder() as first, own_folder() as second:
        names = [os.path.basename(folder) for folder in (first, second)]
        kept = ['tf2verify-fleet-running', 'tf2verify-fleet-begins']
        self.assertCountEqual(os.listdir(self.base), [*names, *kept])


if __name__ == '__main__':
  absltest.main()
