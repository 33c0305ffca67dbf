import pathlib
import tempfile

import pytest
import tensorflow as tf
from absl.testing import absltest
from tensorflow.python.util import tf_decorator

from tests import console
from tf2verify.sides.process import state as process_state
from tf2verify.tensorflow_internals import decorated_calls

pytestmark = pytest.mark.starts_processes


class Decorated(tf.keras.layers.Layer):
  @tf.compat.v1.keras.utils.track_tf1_style_variables
  def call(self, inputs):
    return 2 * inputs


def _converted(*arguments, **keywords):
  """Stands for what AutoGraph makes of the method: Keras takes it to have any argument."""
  raise AssertionError('the decorator calls the method itself')


class DecoratedCallsTest(absltest.TestCase):
  def test_what_is_decorated_is_changed_back(self):
    before = dict(decorated_calls.read_targets())
    target = before[Decorated.call]
    self.addCleanup(decorated_calls.write_targets, ((Decorated.call, target),))
    with process_state.preserved():
      tf_decorator.rewrap(Decorated.call, target, _converted)
      self.assertIs(dict(decorated_calls.read_targets())[Decorated.call], _converted)
      with self.assertRaisesRegex(TypeError, "unexpected keyword argument 'training'"):
        Decorated()(tf.ones((2, 3)))
    self.assertEqual(dict(decorated_calls.read_targets()), before)
    self.assertEqual(float(tf.reduce_sum(Decorated()(tf.ones((2, 3))))), 12)

  def test_a_stage_behind_execution_modes(self):
    # Without `checkpoint` in between, these stages found an argument that the port does not take.
    with tempfile.TemporaryDirectory() as folder:
      console.write_files(pathlib.Path(folder), cases_test=console.CASES)
      stages = ('--stages', 'execution_modes', 'determinism')
      done = console.run(
        '-m', 'tf2verify', 'run', 'cases_test.py::RightCase', *stages, folder=folder
      )
    self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
    self.assertRegex(done.stdout, 'determinism +PASSED')


if __name__ == '__main__':
  absltest.main()
