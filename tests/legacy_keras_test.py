import importlib.machinery
import os
import pathlib
import subprocess
import sys
import tempfile
import textwrap
import types
from unittest import mock

import pytest
from absl.testing import absltest, parameterized

from tf2verify import errors
from tf2verify.environment import installed, legacy_keras

pytestmark = pytest.mark.starts_processes

_REPOSITORY = pathlib.Path(__file__).parents[1]

# Needs every mend: the lazy loaders, `import tensorflow.keras`, both aliases.
_TF1_STYLE_CODE = """
import tensorflow as tf
import tf_slim as slim
from tensorflow.keras import layers
import tensorflow.keras.losses
from tensorflow.compat.v1.keras import utils

assert layers.Dense is tf.keras.layers.Dense, 'two Keras packages'
assert '.src.' in layers.Dense.__module__ and hasattr(utils, 'track_tf1_style_variables')
assert tf.losses.MeanSquaredError is tf.keras.losses.MeanSquaredError
for shape in ((2, 3), (2, 4, 4, 3)):
  with tf.Graph().as_default():
    inputs = tf.compat.v1.placeholder(tf.float32, shape)
    slim.batch_norm(inputs, is_training=True)
    slim.batch_norm(inputs, is_training=True, updates_collections=None)
    loss = tf.reduce_sum(tf.compat.v1.layers.dense(inputs, 2))
    optimizer = tf.compat.v1.train.GradientDescentOptimizer(0.1)
    slim.learning.create_train_op(loss, optimizer, clip_gradient_norm=1.0)
    tf.compat.v1.nn.rnn_cell.LSTMCell(2)
print('TF1-style code works')
"""
_TF1_BESIDE_KERAS_3 = """
import os
import keras
import tensorflow as tf
import tensorflow.compat.v1 as v1
import tf_slim as slim
from tensorflow.compat.v1.keras import utils
from tensorflow.keras import layers

assert layers.Dense is tf.keras.layers.Dense is keras.layers.Dense
assert tf.losses.MeanSquaredError is keras.losses.MeanSquaredError
for tf1 in (tf.compat.v1, v1):
  assert tf1.keras.utils.track_tf1_style_variables is utils.track_tf1_style_variables
  tool = tf1.keras.utils.DeterministicRandomTestTool(mode='constant')
  with tf.Graph().as_default(), tool.scope():
    inputs = tf1.placeholder(tf.float32, (2, 4, 4, 3))
    slim.batch_norm(inputs, is_training=True)
    tf1.layers.dense(inputs, 2)
    tf1.nn.rnn_cell.LSTMCell(2)
assert os.environ['TF_USE_LEGACY_KERAS'] == '0'
print('TF1-style code works')
"""
_PREPARE = 'from tf2verify.environment import legacy_keras\nprepared = legacy_keras.prepare()\n'


def _run(script: str, **environment: str) -> subprocess.CompletedProcess[str]:
  """Runs a script in a fresh process, without the flag that this process has set."""
  inherited = {name: value for name, value in os.environ.items() if name != legacy_keras.FLAG}
  inherited['PYTHONPATH'] = str(_REPOSITORY)
  with tempfile.TemporaryDirectory() as folder:
    path = pathlib.Path(folder, 'script.py')
    path.write_text(script, encoding='utf-8')
    return subprocess.run(
      [sys.executable, str(path)],
      env={**inherited, **environment},
      capture_output=True,
      text=True,
      check=False,
    )


def _has_keras_3() -> bool:
  release = installed.minor(installed.version('tensorflow'))
  return release is not None and release >= legacy_keras.FIRST_TENSORFLOW_WITH_KERAS_3


class ImportOrderTest(parameterized.TestCase):
  @parameterized.named_parameters(
    ('tf2verify_first', ''),
    ('all_others_first', 'import tensorflow as tf, tf_slim, keras\nfrom tensorflow import keras\n'),
    ('tf_compat_v1_first', 'import tensorflow.compat.v1 as tf\ntf.disable_v2_tensorshape()\n'),
  )
  def test_works(self, first: str) -> None:
    again = 'assert legacy_keras.prepare() == prepared and prepared.mends, prepared\n'
    script = first + _PREPARE + _TF1_STYLE_CODE + again
    done = _run(script)
    self.assertIn('TF1-style code works', done.stdout, done.stderr)
    self.assertEqual(done.returncode, 0, done.stderr)

  @parameterized.named_parameters(
    ('tf2verify_first', ''),
    ('tensorflow_first', 'import tensorflow as tf\nimport tensorflow.compat.v1 as tf1\n'),
    ('keras_used_first', 'import tensorflow as tf\nimport keras\ntf.keras.layers.Dense(2)\n'),
  )
  def test_keras_3_where_the_user_wants_it(self, first: str) -> None:
    if not _has_keras_3():
      self.skipTest('this TensorFlow has no Keras 3')
    again = 'assert legacy_keras.prepare() == prepared and prepared.mends, prepared\n'
    done = _run(first + _PREPARE + _TF1_BESIDE_KERAS_3 + again, TF_USE_LEGACY_KERAS='0')
    self.assertIn('TF1-style code works', done.stdout, done.stderr)
    self.assertEqual(done.returncode, 0, done.stderr)

  def test_fails_without_the_mends(self) -> None:
    done = _run(_TF1_STYLE_CODE)
    self.assertNotEqual(done.returncode, 0)

  @parameterized.named_parameters(
    ('import', 'from tensorflow.keras import layers', 'tf.keras and '),
    ('base_class', 'class Scale(tf.keras.layers.Layer): pass', 'tf.keras became '),
  )
  def test_names_the_line_that_came_too_early(self, line: str, place: str) -> None:
    if not _has_keras_3():
      self.skipTest('this TensorFlow has no Keras 3')
    script = f'import tensorflow as tf\n{line}\n{_PREPARE}legacy_keras.require()\n'
    done = _run(script)
    self.assertIn('TF1-style code cannot run here: 1 problem.', done.stderr)
    self.assertIn(place, done.stderr)
    self.assertIn('became Keras 3 before tf2verify was imported', done.stderr)
    self.assertRegex(
      done.stderr, r'fix: move `import tf2verify` above line 2 of \S+/script.py \(' + line[:10]
    )


class ProblemTest(parameterized.TestCase):
  """Problems planted with stand-in modules: nothing here imports TensorFlow."""

  def setUp(self) -> None:
    super().setUp()
    self.enter_context(mock.patch.dict(os.environ))
    os.environ.pop(legacy_keras.FLAG, None)
    # The real TensorFlow may be loaded in this process. Restored by assignment, since
    # mock.patch.dict would empty sys.modules for a moment.
    saved = {name: sys.modules[name] for name in sys.modules if name.startswith('tensorflow')}
    self.addCleanup(sys.modules.update, saved)
    for name in saved:
      del sys.modules[name]
    self._stand_in('tensorflow', '2.21.0')
    self._stand_in('tf_keras', '2.21.0')
    self._stand_in('keras', '3.15.1')

  def _stand_in(self, name: str, version: str | None) -> types.ModuleType:
    """Puts a module of this version into sys.modules; None makes its import fail."""
    module = types.ModuleType(name)
    vars(module).update(__version__=version, __spec__=importlib.machinery.ModuleSpec(name, None))
    saved = sys.modules.get(name)
    if saved is None:
      self.addCleanup(sys.modules.pop, name, None)
    else:
      self.addCleanup(sys.modules.__setitem__, name, saved)
    sys.modules.update({name: module if version else None})  # type: ignore[dict-item]
    return module

  def _assert_only_problem(self, what: str, fix: str) -> None:
    prepared = legacy_keras.prepare()
    self.assertEqual(prepared.problems, (legacy_keras.Problem(what, fix),))
    self.assertEqual(prepared.mends, ())
    self.assertEqual(legacy_keras.prepare(), prepared)

  def test_tensorflow_absent(self) -> None:
    self._stand_in('tensorflow', None)
    self._assert_only_problem(
      'TensorFlow is not installed', 'pip install "tensorflow==2.21.*" "tf-keras==2.21.*"'
    )

  def test_tensorflow_too_old(self) -> None:
    self._stand_in('tensorflow', '2.14.1')
    self._assert_only_problem(
      'TensorFlow 2.14.1 is older than 2.15, the oldest supported',
      'pip install "tensorflow==2.21.*" "tf-keras==2.21.*"',
    )
    self.assertNotIn(legacy_keras.FLAG, os.environ)

  def test_tensorflow_broken(self) -> None:
    del sys.modules['tensorflow']
    self.enter_context(mock.patch.object(installed, 'version', return_value='2.21.0'))
    self.enter_context(
      mock.patch.object(
        legacy_keras.importlib, 'import_module', side_effect=AttributeError('_ARRAY_API not found')
      )
    )
    self._assert_only_problem(
      'TensorFlow 2.21.0 cannot be imported: AttributeError: _ARRAY_API not found',
      'pip install "tensorflow==2.21.*" "tf-keras==2.21.*" --force-reinstall',
    )

  @parameterized.parameters('2.16.2', '2.21.0')
  def test_tf_keras_absent(self, version: str) -> None:
    self._stand_in('tensorflow', version)
    self._stand_in('tf_keras', None)
    minor = version.rpartition('.')[0]
    self._assert_only_problem(
      f'tf-keras is not installed; TensorFlow {version} needs tf-keras {minor} for TF1-style code',
      f'pip install "tf-keras=={minor}.*"',
    )

  def test_tf_keras_of_another_minor_version(self) -> None:
    self._stand_in('tf_keras', '2.19.0')
    self._assert_only_problem(
      'tf-keras 2.19.0 does not fit TensorFlow 2.21.0: both need the same minor version',
      'pip install "tf-keras==2.21.*"',
    )

  def test_tf_keras_absent_beside_nightly(self) -> None:
    self._stand_in('tensorflow', '2.21.0-dev20260101')
    self._stand_in('tf_keras', None)
    (problem,) = legacy_keras.prepare().problems
    self.assertEqual(problem.fix, 'pip install tf-keras-nightly')

  def test_tf_keras_broken_and_tensorflow_newer_than_tested(self) -> None:
    self._stand_in('tensorflow', '2.22.0')
    self._stand_in('tf_keras', '2.22.0')  # a plain module: it has no submodules
    prepared = legacy_keras.prepare()
    (problem,) = prepared.problems
    self.assertStartsWith(problem.what, 'tf-keras cannot be imported: No module named')
    self.assertEqual(problem.fix, 'pip install --force-reinstall --no-deps "tf-keras==2.22.*"')
    self.assertEqual(prepared.notes, ('TensorFlow 2.22 is newer than 2.21, the newest tested',))

  def test_flag_of_no_meaning(self) -> None:
    os.environ[legacy_keras.FLAG] = 'yes'
    self._assert_only_problem(
      "TF_USE_LEGACY_KERAS is 'yes', which TensorFlow takes as 0, so that tf.keras is Keras 3",
      'export TF_USE_LEGACY_KERAS=0 if intended, otherwise unset TF_USE_LEGACY_KERAS',
    )
    self.assertEqual(os.environ[legacy_keras.FLAG], 'yes')

  def test_tensorflow_2_15_gets_no_flag_and_needs_keras_2_15(self) -> None:
    self._stand_in('tensorflow', '2.15.1')
    self._assert_only_problem(
      'keras 3.15.1 does not fit TensorFlow 2.15.1: both need the same minor version',
      'pip install "keras==2.15.*"',
    )
    self.assertNotIn(legacy_keras.FLAG, os.environ)

  def test_tensorflow_2_15_with_the_flag_needs_tf_keras(self) -> None:
    os.environ[legacy_keras.FLAG] = '1'
    self._stand_in('tensorflow', '2.15.1')
    self._stand_in('tf_keras', None)
    (problem,) = legacy_keras.prepare().problems
    self.assertEqual(problem.fix, 'pip install "tf-keras==2.15.*"')

  def test_keras_3_in_place_without_a_line_to_show(self) -> None:
    loader = types.ModuleType('keras._tf_keras.keras.losses')
    vars(sys.modules['tensorflow'])['losses'] = loader
    self.enter_context(
      mock.patch.object(legacy_keras.import_order, 'first_keras_line', return_value=None)
    )
    self._assert_only_problem(
      'tf.losses became Keras 3 before tf2verify was imported',
      'move `import tf2verify` above the first import that uses tf.keras, '
      'or export TF_USE_LEGACY_KERAS=1',
    )

  def test_require_lists_every_problem(self) -> None:
    os.environ[legacy_keras.FLAG] = 'no'
    self._stand_in('tf_keras', None)
    with self.assertRaises(errors.EnvironmentProblem) as raised:
      legacy_keras.require()
    self.assertEqual(
      str(raised.exception),
      textwrap.dedent("""\
        TF1-style code cannot run here: 2 problems.
          TF_USE_LEGACY_KERAS is 'no', which TensorFlow takes as 0, so that tf.keras is Keras 3
            fix: export TF_USE_LEGACY_KERAS=0 if intended, otherwise unset TF_USE_LEGACY_KERAS
          tf-keras is not installed; TensorFlow 2.21.0 needs tf-keras 2.21 for TF1-style code
            fix: pip install "tf-keras==2.21.*"
          More: python -m tf2verify doctor"""),
    )


if __name__ == '__main__':
  absltest.main()
