"""Which Keras was verified is said of a port that would be served by another one."""

import contextlib
import importlib
import os
import sys
import tempfile
from unittest import mock

import tensorflow as tf
from absl.testing import absltest

import tf2verify
from tests import small_case
from tf2verify.environment import installed, legacy_keras
from tf2verify.sides.tf2.layers.served_keras import served_keras_note, uses_keras_layers

v1 = tf.compat.v1


class Shim(tf.keras.layers.Layer):
  @v1.keras.utils.track_tf1_style_variables
  def call(self, inputs):
    hidden = v1.layers.dense(inputs, 3, name='d')
    cell = v1.nn.rnn_cell.BasicRNNCell(2, name='cell')
    return cell(hidden, tf.zeros([2, 2]))[0]


class Own(tf.keras.layers.Layer):
  def build(self, shape):
    self.kernel = self.add_weight(name='kernel', shape=(4, 3))

  def call(self, inputs):
    return inputs @ self.kernel


class Wrapper(tf.Module):
  def __init__(self, layer):
    super().__init__()
    self.layer = layer

  def __call__(self, inputs):
    return self.layer(inputs)


def called(layer):
  layer(tf.ones([2, 4]))
  return layer


_OWN_IMPORT = '''"""Not tf.keras."""
import tensorflow as tf
import tf_keras
made = tf_keras.layers.Dense
'''
_TENSORFLOW_IMPORT = 'from tensorflow import keras\n'


@contextlib.contextmanager
def _files(texts):
  """Writes modules and imports them, the last ones first."""
  with tempfile.TemporaryDirectory() as folder, mock.patch.dict(sys.modules):
    for name, text in texts.items():
      with open(os.path.join(folder, f'{name}.py'), 'w', encoding='utf-8') as file:
        file.write(text)
    with mock.patch.object(sys, 'path', [folder, *sys.path]):
      for name in reversed(texts):
        importlib.import_module(name)
    yield


class ServedKerasTest(absltest.TestCase):
  def test_layers_of_keras_are_found_wherever_they_are(self):
    for layer in (
      tf.keras.layers.Dense(3),
      tf.keras.Sequential([tf.keras.layers.Dense(3, 'hard_sigmoid')]),
      Own(),
      Wrapper(tf.keras.layers.Dense(3)),
    ):
      self.assertTrue(uses_keras_layers(called(layer)), layer)

  def test_layers_under_the_shim_are_not_meant(self):
    for layer in (Shim(), Wrapper(Shim())):
      self.assertFalse(uses_keras_layers(called(layer)), layer)

  def test_who_chose_keras_2_decides_whether_it_is_a_blind_spot(self):
    layer = called(tf.keras.layers.Dense(3))
    text, is_blind_spot = served_keras_note(layer)
    self.assertTrue(is_blind_spot)
    self.assertIn(f'verified under Keras 2 (tf-keras {installed.version("tf_keras")})', text)
    self.assertIn(f'Keras 3 (keras {installed.version("keras")}) unless', text)
    with mock.patch.dict(os.environ):
      del os.environ[legacy_keras.CHOSEN]
      text, is_blind_spot = served_keras_note(layer)
    self.assertFalse(is_blind_spot)
    self.assertIn('as TF_USE_LEGACY_KERAS=1 in the environment asks for', text)

  def test_tf_keras_by_its_own_import_is_served_as_it_is(self):
    for name, texts, is_said in (
      ('alone', {'alone': _OWN_IMPORT}, False),
      ('both', {'both': _OWN_IMPORT + 'other = tf.keras.layers.Dense\n'}, True),
      ('neither', {'neither': 'import tensorflow as tf\nmade = tf.keras.layers.Dense\n'}, True),
      ('behind', {'behind': 'from further import made\n', 'further': _OWN_IMPORT}, False),
      (
        'far',
        {'far': _OWN_IMPORT + 'import made_by as m\n', 'made_by': _TENSORFLOW_IMPORT},
        True,
      ),
    ):
      with self.subTest(name=name), _files(texts):
        layer = called(sys.modules[name].made(3))
        case = type('Case', (), {'__module__': name})()
        self.assertEqual(served_keras_note(layer, case) is not None, is_said)

  def test_nothing_is_said_where_keras_3_is_absent(self):
    layer = called(tf.keras.layers.Dense(3))
    for version in (None, '2.15.0'):
      with mock.patch.object(installed, 'version', lambda _, found=version: found):
        self.assertIsNone(served_keras_note(layer))

  def test_a_report_says_it_once_with_its_first_stage(self):
    class Native(small_case.SmallCase):
      def build_tf1_graph(self, inputs, training):
        return v1.layers.dense(inputs, 3, name='d')

      def make_tf2_layer(self):
        return tf.keras.layers.Dense(3, name='d')

    stages = ('no_new_variables', 'variable_inventory', 'zero_randomness')
    verdict = tf2verify.verify(Native, stages)
    said = [note for stage in verdict.stages for note in stage.blind_spots if 'Keras 3' in note]
    self.assertLen(said, 1, verdict.to_text())
    self.assertEqual(verdict.stages[0].blind_spots, (said[0],))
    shim = tf2verify.verify(small_case.SmallCase, stages)
    self.assertNotIn('Keras 3', shim.to_text())


if __name__ == '__main__':
  absltest.main()
