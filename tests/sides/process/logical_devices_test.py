import pathlib
import subprocess
import sys

import pytest
from absl.testing import absltest

pytestmark = pytest.mark.starts_processes

_ROOT = pathlib.Path(__file__).parents[3]
_ASKED = """
import tf2verify
from tf2verify.sides.process import logical_devices
import tensorflow as tf
{before}
print(logical_devices.ask_for_two_cpus(), logical_devices.ask_for_two_cpus())
print(len(tf.config.list_logical_devices('CPU')), logical_devices.ask_for_two_cpus())
"""


def _printed(before=''):
  run = subprocess.run(
    [sys.executable, '-c', _ASKED.format(before=before)],
    cwd=_ROOT,
    capture_output=True,
    text=True,
    check=True,
  )
  return run.stdout.split()


class TwoCpusTest(absltest.TestCase):
  def test_before_anything_is_computed(self):
    self.assertEqual(_printed(), ['True', 'True', '2', 'True'])

  def test_too_late(self):
    self.assertEqual(_printed('tf.zeros([])'), ['False', 'False', '1', 'False'])


if __name__ == '__main__':
  absltest.main()
