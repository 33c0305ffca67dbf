"""Tests of tf2verify.environment.startup_log."""

import os
import sys
import tempfile
from unittest import mock

from absl.testing import absltest

from tf2verify.environment import startup_log

_LEVEL = 'TF_CPP_MIN_LOG_LEVEL'


class HeldBackTest(absltest.TestCase):
  def setUp(self):
    super().setUp()
    without = {name: value for name, value in os.environ.items() if name != _LEVEL}
    patch = mock.patch.dict(os.environ, without, clear=True)
    patch.start()
    self.addCleanup(patch.stop)
    self.log = tempfile.TemporaryFile('w+')  # noqa: SIM115
    self.addCleanup(self.log.close)
    self.enter_context(mock.patch.object(sys, '__stderr__', self.log))

  def _logged(self):
    self.log.seek(0)
    return self.log.read()

  def _write(self):
    os.write(self.log.fileno(), b'as C++ does\n')

  def test_what_is_logged_within_is_not_shown(self):
    with startup_log.held_back():
      self._write()
    self.assertEqual(self._logged(), '')
    self.assertEqual(os.environ[_LEVEL], '2')

  def test_what_is_logged_after_it_is(self):
    with startup_log.held_back():
      pass
    self._write()
    self.assertEqual(self._logged(), 'as C++ does\n')

  def test_an_exception_shows_what_was_held_back(self):
    with self.assertRaisesRegex(ImportError, 'no TensorFlow'), startup_log.held_back():
      self._write()
      raise ImportError('no TensorFlow')
    self.assertEqual(self._logged(), 'as C++ does\n')

  def test_ctrl_c_does_not(self):
    with self.assertRaises(KeyboardInterrupt), startup_log.held_back():
      self._write()
      raise KeyboardInterrupt
    self.assertEqual(self._logged(), '')

  def test_the_level_that_a_user_has_set_counts(self):
    os.environ[_LEVEL] = '0'
    with startup_log.held_back():
      self._write()
    self.assertEqual(self._logged(), 'as C++ does\n')
    self.assertEqual(os.environ[_LEVEL], '0')

  def test_without_a_standard_error(self):
    with mock.patch.object(sys, '__stderr__', None), startup_log.held_back():
      self._write()
    self.assertEqual(self._logged(), 'as C++ does\n')


if __name__ == '__main__':
  absltest.main()
