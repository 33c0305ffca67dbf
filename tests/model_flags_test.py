"""Models that read flags or arguments of their own: those of what runs the cases are not theirs."""

import sys
from unittest import mock

import numpy as np
import pytest
from absl import flags
from absl.testing import absltest

from tests import console
from tests.recorder.shipped import tf1_recorder
from tf2verify.reference.hidden_arguments import hidden_arguments

pytestmark = pytest.mark.starts_processes

_MODEL = """
import argparse

import tensorflow.compat.v1 as tf

tf.app.flags.DEFINE_integer('model_units', 3, 'units')
tf.app.flags.DEFINE_float('model_slope', 0.25, 'slope')
FLAGS = tf.app.flags.FLAGS
UNITS = FLAGS.model_units
ARGUMENTS = argparse.ArgumentParser().parse_args()


def net(x):
  return tf.nn.leaky_relu(tf.layers.dense(x, UNITS, name='hidden'), FLAGS.model_slope)
"""
_CASE = """
import tensorflow as tf
import tf2verify

import old_model


class FlagsCase(tf2verify.EquivalenceCase):
  def build_tf1_graph(self, inputs, training):
    return old_model.net(inputs)

  def make_tf2_layer(self):
    dense = tf.keras.layers.Dense(3, name='hidden')
    return tf.keras.Sequential([dense, tf.keras.layers.LeakyReLU(0.25)])

  def make_inputs(self):
    return tf2verify.normal_inputs((4, 5))
"""


class ModelFlagsTest(absltest.TestCase):
  def setUp(self):
    super().setUp()
    self.folder = console.own_folder(self)
    for name, text in (('old_model.py', _MODEL), ('flags_test.py', _CASE)):
      (self.folder / name).write_text(text)

  def assert_runs(self, *arguments, says):
    done = console.run(*arguments, folder=self.folder)
    self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
    self.assertIn(says, done.stdout)

  def test_run(self):
    run = '-m', 'tf2verify', 'run', 'flags_test.py', '--stages', 'zero_randomness'
    self.assert_runs(*run, '--report_dir', 'reports', says='FlagsCase: PASSED')

  def test_fleet(self):
    fleet = '-m', 'tf2verify', 'fleet', 'flags_test.py', '--stages', 'zero_randomness'
    self.assert_runs(*fleet, '--journal', 'journal', says='FlagsCase: PASSED')

  def test_pytest(self):
    tests = '-m', 'pytest', '-p', 'pytest_tf2verify', '-p', 'no:cacheprovider', 'flags_test.py'
    self.assert_runs(*tests, '-v', '--junitxml', 'tests.xml', '-k', 'zero', says='1 passed')

  def test_recorder(self):
    np.savez(self.folder / 'inputs.npz', np.ones((4, 5), np.float32))
    (self.folder / 'built.py').write_text(
      'import old_model\n\n\ndef build(inputs, training):\n  return old_model.net(inputs)\n'
    )
    recorder = tf1_recorder.__file__, '--builder', 'built:build', '--inputs', 'inputs.npz'
    done = console.run(*recorder, '--out', 'recording', '--noise_runs', '0', folder=self.folder)
    self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
    self.assertTrue((self.folder / 'recording' / 'manifest.json').is_file())


class HiddenTest(absltest.TestCase):
  def test_all_is_as_before(self):
    for parsed in (False, True):
      values = flags.FlagValues()
      flags.DEFINE_integer('units', 3, 'units', flag_values=values)
      if parsed:
        values(['program', '--units=5'])
      with (
        self.subTest(parsed=parsed),
        mock.patch.object(flags, 'FLAGS', values),
        mock.patch.object(sys, 'argv', ['tf2verify', 'run', 'a_test.py']),
      ):
        with self.assertRaises(OSError), hidden_arguments():
          self.assertEqual(sys.argv, ['tf2verify'])
          self.assertEqual(values.units, 5 if parsed else 3)
          raise OSError
        self.assertEqual(sys.argv, ['tf2verify', 'run', 'a_test.py'])
        self.assertEqual(values.is_parsed(), parsed)


if __name__ == '__main__':
  absltest.main()
