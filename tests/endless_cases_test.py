"""Cases that never end, and those whom Ctrl-C ends."""

import os
import signal
import subprocess
import sys
import time

import pytest
from absl.testing import absltest

import tf2verify

# isort: split
import tensorflow as tf

from tests import console
from tf2verify.records.status import Status

pytestmark = pytest.mark.runs_alone

v1 = tf.compat.v1
# Its reference, its port and its file never end, each in its way.
STUCK = """
import sys
from unittest import mock
from tf2verify.environment import time_limit
with mock.patch.object(time_limit, 'GRACE_SECONDS', 0.5):
  from tf2verify.commands import cli
  sys.exit(cli.main(['run', 'stuck_case.py', '--timeout', '1', '--report_dir', 'reports']))
"""
CASES = """
import time

import tensorflow as tf

import tf2verify


class ASleepsCase(tf2verify.EquivalenceCase):
  def build_tf1_graph(self, inputs, training):
    return tf.compat.v1.layers.dense(inputs, 3, name='d')

  def make_tf2_layer(self):
    open('begun', 'w').close()
    time.sleep(1000)

  def make_inputs(self):
    return tf2verify.normal_inputs((2, 3))


class BStuckCase(ASleepsCase):
  def make_tf2_layer(self):
    return tf.keras.layers.Dense(3, name='d')

  def call_tf2_layer(self, layer, inputs, training):
    endless = tf.function(lambda x: tf.while_loop(lambda x: True, lambda x: [x + 1], [x])[0])
    return layer(inputs) + endless(tf.zeros(()))


class ZLastCase(ASleepsCase):
  '''Never run.'''
"""
# As `Sequential` of tf-keras, whose first call catches whatever a layer raises.
DEAF = """
import contextlib
import time

import tensorflow as tf

import tf2verify

made = []


class DeafCase(tf2verify.EquivalenceCase):
  def build_tf1_graph(self, inputs, training):
    return tf.compat.v1.layers.dense(inputs, 3, name='d')

  def make_tf2_layer(self):
    made.append(1)
    if len(made) == 3:
      open('begun', 'w').close()
      with contextlib.suppress(BaseException):
        time.sleep(1000)
    return tf.keras.layers.Dense(3, name='d')

  def make_inputs(self):
    return tf2verify.normal_inputs((2, 3))
"""


def _cases():
  """Returns a case that never ends, and one that does; none is a test of this file."""

  class EndlessReferenceCase(tf2verify.EquivalenceCase):
    def build_tf1_graph(self, inputs, training):
      outputs = v1.layers.dense(inputs, 3, name='d')
      zero = tf.zeros(())
      return outputs + v1.while_loop(lambda x: x >= zero, lambda x: x + 1, [zero])

    def make_tf2_layer(self):
      return tf.keras.layers.Dense(3, name='d')

    def make_inputs(self):
      return tf2verify.normal_inputs((2, 3))

  class SlowCase(EndlessReferenceCase):
    def build_tf1_graph(self, inputs, training):
      return v1.layers.dense(inputs, 3, name='d')

  return EndlessReferenceCase, SlowCase


class EndlessCasesTest(absltest.TestCase):
  def setUp(self):
    super().setUp()
    self.folder = console.own_folder(self)

  def test_a_session_that_never_ends(self):
    start = time.monotonic()
    verdict = tf2verify.verify(_cases()[0], timeout=4.0)
    self.assertLess(time.monotonic() - start, 30)
    self.assertIs(verdict.status, Status.ERROR)
    failed = verdict.first_failure
    self.assertRegex(failed.error.summary, r'no verdict after 4 s|[Tt]imed out|DeadlineExceeded')
    self.assertLen(verdict.stages, 11)

  def test_one_that_ends_in_time(self):
    stages = ['no_new_variables', 'variable_inventory']
    verdict = tf2verify.verify(_cases()[1], stages, timeout=600.0)
    self.assertIs(verdict.status, Status.PASSED, verdict.to_text())

  def test_run_goes_on_after_python_and_ends_after_native_code(self):
    console.write_files(self.folder, stuck_case=CASES)
    done = console.run('-c', STUCK, folder=self.folder)
    self.assertEqual(done.returncode, 124, done.stdout + done.stderr)
    said = r"stage 'no_new_variables' ERROR on the case side: no verdict after 1 s"
    self.assertRegex(done.stdout, f'ASleepsCase: {said}')
    self.assertRegex(done.stdout, f'BStuckCase: {said}.*native code')
    self.assertIn('in make_tf2_layer', done.stdout)
    self.assertIn('\n1 cases after it were not run', done.stdout)
    self.assertTrue((self.folder / 'reports' / 'stuck_case.BStuckCase.json').is_file())
    self.assertNotIn('Traceback', done.stderr)

  def interrupted(self, *arguments, path='', begun='begun'):
    # A program that is started in the background, as by CI, ignores SIGINT, and what it starts.
    heeding = (
      'import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); '
      'os.execv(sys.executable, [sys.executable, *sys.argv[1:]])'
    )
    process = subprocess.Popen(
      [sys.executable, '-c', heeding, *arguments],
      cwd=self.folder,
      env={**os.environ, 'PYTHONPATH': f'{path}:{console.REPOSITORY}', 'TF_CPP_MIN_LOG_LEVEL': '3'},
      stdout=subprocess.PIPE,
      stderr=subprocess.PIPE,
      text=True,
    )
    self.addCleanup(process.kill)
    while not (self.folder / begun).exists() and process.poll() is None:
      time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    said, complained = process.communicate(timeout=60)
    self.assertEqual(process.returncode, 130, said + complained)
    self.assertNotIn('Traceback', said + complained)
    self.assertIn('interrupted', said + complained)
    return said

  def test_ctrl_c_in_a_stage(self):
    console.write_files(self.folder, slow_case=CASES)
    self.interrupted('-m', 'tf2verify', 'run', 'slow_case.py')

  def test_ctrl_c_that_code_swallows_ends_the_case_without_a_verdict(self):
    console.write_files(self.folder, deaf_case=DEAF)
    said = self.interrupted('-m', 'tf2verify', 'run', 'deaf_case.py')
    self.assertIn('1 no_new_variables', said)
    self.assertNotIn('3 zero_randomness', said)
    self.assertNotIn('FAILED', said)

  def test_ctrl_c_while_tensorflow_is_imported(self):
    slow = "import time\nopen('begun', 'w').close()\ntime.sleep(1000)\n"
    console.write_files(self.folder / 'fake' / 'tensorflow', __init__=slow)
    self.interrupted('-m', 'tf2verify', 'run', 'x_case.py', path=str(self.folder / 'fake'))

  def test_ctrl_c_while_report_reads(self):
    os.mkfifo(self.folder / 'report.json')
    code = (
      "import sys; sys.argv[1:] = ['report', 'report.json']\n"
      "sys.orig_argv = ['python', '-m', 'tf2verify', 'report', '']\n"
      'from tf2verify import __main__ as program\n'
      "open('begun', 'w').close()\n"
      'sys.exit(program.main())\n'
    )
    self.interrupted('-c', code)


if __name__ == '__main__':
  absltest.main()
