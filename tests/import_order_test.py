import pathlib
import sys
import tempfile
import types
from unittest import mock

from absl.testing import absltest, parameterized

from tf2verify.environment import import_order


def _module(name: str, **attributes: object) -> types.ModuleType:
  module = types.ModuleType(name)
  vars(module).update(attributes)
  return module


class Keras3PlacesTest(absltest.TestCase):
  def _patch_modules(self, *modules: tuple[str, types.ModuleType]) -> None:
    self.enter_context(mock.patch.object(sys, 'modules', dict(modules)))

  def test_no_tensorflow_no_places(self) -> None:
    self._patch_modules()
    self.assertEqual(import_order.keras_3_places(), ())

  def test_unresolved_and_keras_2_loaders_are_no_places(self) -> None:
    # Like TensorFlow's own loader before its first use, it has no __name__.
    unresolved = types.ModuleType.__new__(types.ModuleType)
    unresolved._tfll_initialized = False  # type: ignore[attr-defined]
    keras_2 = _module('tf_keras.api._v2.keras.losses', __file__='/lib/tf_keras/api/_v2/keras/l.py')
    self._patch_modules(('tensorflow', _module('tensorflow', keras=unresolved, losses=keras_2)))
    self.assertEqual(import_order.keras_3_places(), ())

  def test_tensorflows_own_old_keras_is_no_place(self) -> None:
    python = _module('tensorflow.python', keras=_module('keras._tf_keras.keras'))
    self._patch_modules(('tensorflow.python', python))
    self.assertEqual(import_order.keras_3_places(), ())

  def test_names_loaders_and_modules_that_are_keras_3(self) -> None:
    loader = _module('keras._tf_keras.keras.losses')
    imported = _module('tensorflow.keras', __file__='/lib/keras/_tf_keras/keras/__init__.py')
    layers = _module('keras._tf_keras.keras.__internal__.legacy.layers')
    self._patch_modules(
      ('tensorflow', _module('tensorflow', keras=imported, losses=loader)),
      ('tensorflow._api.v2.compat.v1', _module('tensorflow._api.v2.compat.v1', layers=layers)),
    )
    self.assertEqual(
      import_order.keras_3_places(), ('tf.compat.v1.layers', 'tf.keras', 'tf.losses')
    )


class FirstKerasLineTest(parameterized.TestCase):
  def _line_in(self, source: str, name: str = 'model') -> import_order.SourceLine | None:
    with tempfile.TemporaryDirectory() as folder:
      path = pathlib.Path(folder, 'model.py')
      path.write_text(source, encoding='utf-8')
      modules = {name: _module(name, __file__=str(path))}
      with mock.patch.object(sys, 'modules', modules):
        return import_order.first_keras_line()

  @parameterized.parameters(
    'from tensorflow.keras import layers',
    'import tensorflow.keras.layers as layers',
    'from tensorflow.compat.v1.keras import backend',
    'Dense = tf.keras.layers.Dense',
    'Cell = tf1.nn.rnn_cell.BasicLSTMCell',
    'class Scale(tf.keras.layers.Layer): pass',
  )
  def test_finds(self, line: str) -> None:
    found = self._line_in(f'# comment\nimport tensorflow as tf\n{line}\n')
    assert found is not None
    self.assertEqual((found.number, found.text), (3, line))

  @parameterized.parameters(
    'from tensorflow import keras',
    'keras = tf.keras',
    'def make(): return tf.keras.layers.Dense(1)',
    'dense = slim.layers.fully_connected',
    'import tf2verify; from tensorflow.keras import layers',
    '# from tensorflow.keras import layers',
    'from tensorflow.keras import',
  )
  def test_does_not_find(self, line: str) -> None:
    self.assertIsNone(self._line_in(f'import tensorflow as tf\n{line}\n'))

  def test_leaves_out_tf2verify_itself(self) -> None:
    self.assertIsNone(self._line_in('import tensorflow.keras\n', name='tf2verify.sides.side'))


if __name__ == '__main__':
  absltest.main()
