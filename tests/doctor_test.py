import os
import pathlib
import subprocess
import sys
import textwrap
from unittest import mock

import pytest
from absl.testing import absltest

from tf2verify.environment import doctor, installed, legacy_keras

pytestmark = pytest.mark.starts_processes

_REPOSITORY = pathlib.Path(__file__).parents[1]
_HEALTHY = doctor.DoctorReport(
  versions=(doctor.Fact('Python', '3.11.7'), doctor.Fact('TensorFlow', '2.21.0')),
  mends=('a is b',),
  numerics=(doctor.Fact('oneDNN', 'on'),),
  switches=(doctor.Fact('eager execution', 'on'),),
  probes=(doctor.Fact('slim.batch_norm, rank 2', 'works'),),
  problems=(),
  notes=('c is new',),
)


def _run_doctor(**environment: str) -> subprocess.CompletedProcess[str]:
  inherited = {name: value for name, value in os.environ.items() if name != legacy_keras.FLAG}
  inherited['PYTHONPATH'] = str(_REPOSITORY)
  command = 'import sys; from tf2verify.environment import doctor; sys.exit(doctor.main())'
  return subprocess.run(
    [sys.executable, '-c', command],
    env={**inherited, **environment},
    capture_output=True,
    text=True,
    check=False,
  )


class TextTest(absltest.TestCase):
  def test_all_is_well(self) -> None:
    self.assertEqual(
      _HEALTHY.to_text(),
      textwrap.dedent("""\
        versions
          Python      3.11.7
          TensorFlow  2.21.0

        patched
          a is b

        numerics
          oneDNN  on

        switches
          eager execution  on

        probes
          slim.batch_norm, rank 2  works

        notes
          c is new

        No problems: TF1-style code runs here."""),
    )

  def test_tensorflow_absent(self) -> None:
    absent = dict.fromkeys(('tensorflow', 'tf_keras', 'tf_slim'))
    saved = {name: sys.modules[name] for name in absent if name in sys.modules}
    sys.modules.update(absent)  # type: ignore[arg-type]
    try:
      text = doctor.report().to_text()
    finally:
      for name in absent:
        del sys.modules[name]
      sys.modules.update(saved)
    self.assertIn('  TensorFlow  not installed\n  tf-keras    not installed\n', text)
    self.assertEndsWith(
      text,
      textwrap.dedent("""\
        notes
          tf-slim is not installed; only models that use it need it: pip install tf-slim

        problems
          TensorFlow is not installed
            fix: pip install "tensorflow==2.21.*" "tf-keras==2.21.*"

        1 problem: TF1-style code cannot run here."""),
    )
    self.assertNotIn('numerics', text)
    self.assertNotIn('probes', text)


class MainTest(absltest.TestCase):
  def test_all_is_well(self) -> None:
    done = _run_doctor()
    self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
    for line in (
      'eager execution     on',
      'tensor equality     on',
      'v2 tensor shapes    on',
      'tf.compat.v1.layers under the shim  works',
      'slim.batch_norm, rank 2             works',
      'slim.batch_norm, rank 4             works',
      'op determinism  off',
    ):
      self.assertIn(line, done.stdout)

  def test_problem_gives_exit_code_2_and_the_settings_found(self) -> None:
    release = installed.minor(installed.version('tensorflow'))
    if release is None or release < legacy_keras.FIRST_TENSORFLOW_WITH_KERAS_3:
      self.skipTest('this TensorFlow has no Keras 3')
    planted = {legacy_keras.FLAG: 'no', 'TF_ENABLE_ONEDNN_OPTS': '0'}
    done = _run_doctor(**planted)
    self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
    self.assertIn('oneDNN          off (TF_ENABLE_ONEDNN_OPTS=0)', done.stdout)
    self.assertIn('otherwise unset TF_USE_LEGACY_KERAS', done.stdout)


class ProbeTest(absltest.TestCase):
  def setUp(self) -> None:
    super().setUp()
    legacy_keras.require()

  def test_probe_that_raises_is_a_problem(self) -> None:
    planted = ModuleNotFoundError("No module named 'tf_keras.legacy_tf_layers'")
    with mock.patch.object(doctor, '_run_slim_batch_norm', side_effect=planted):
      report = doctor.report()
    self.assertIn(doctor.Fact('slim.batch_norm, rank 4', 'FAILED'), report.probes)
    self.assertEqual(
      report.problems[1],
      legacy_keras.Problem(
        'slim.batch_norm, rank 4 failed: ModuleNotFoundError: '
        "No module named 'tf_keras.legacy_tf_layers'",
        'pip install --force-reinstall --no-deps tf-slim==1.1.0',
      ),
    )

  def test_layer_without_its_variables_is_a_problem(self) -> None:
    import tensorflow as tf

    def keep_undecorated(function: object) -> object:
      return function

    shim = tf.compat.v1.keras.utils
    with mock.patch.object(shim, 'track_tf1_style_variables', keep_undecorated):
      report = doctor.report()
    self.assertLen(report.problems, 1)
    self.assertStartsWith(report.problems[0].what, 'tf.compat.v1.layers under the shim failed')
    self.assertIn('--force-reinstall --no-deps', report.problems[0].fix)


if __name__ == '__main__':
  absltest.main()
