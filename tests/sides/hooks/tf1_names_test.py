"""Tests of tf2verify.sides.hooks.tf1_names, through the boundary of the user's code."""

import importlib.util
import os
import tempfile

import tensorflow as tf
from absl.testing import absltest, parameterized

from tf2verify.errors import UserCodeError
from tf2verify.sides.hooks.user_code import user_code

_RECORD = 'record the reference under TensorFlow 1.x, where it runs as it is (docs/recordings.md)'


def _summary(side, function):
  try:
    with user_code(side, 'build_tf1_graph'):
      function()
  except UserCodeError as error:
    return error.summary
  raise AssertionError('nothing was raised')


class HintTest(parameterized.TestCase):
  def _of_file(self, text):
    with tempfile.TemporaryDirectory() as folder:
      path = os.path.join(folder, 'old_model.py')
      with open(path, 'w', encoding='utf-8') as file:
        file.write(text)
      spec = importlib.util.spec_from_file_location('old_model', path)
      module = importlib.util.module_from_spec(spec)
      spec.loader.exec_module(module)
      return _summary('tf1', module.model)

  @parameterized.parameters(
    ('import tensorflow as tf', 'tf'),
    ('import tensorflow as tf  # 1.15', 'tf'),
    ('import os, tensorflow as flow, sys', 'flow'),
    ('import tensorflow', 'tensorflow'),
  )
  def test_import_to_be_changed(self, line, alias):
    summary = self._of_file(
      f'"""A model."""\n{line}\n\ndef model():\n  {alias}.variable_scope("a")'
    )
    self.assertEndsWith(
      summary,
      f"has no attribute 'variable_scope'; a TF1 name: `import tensorflow.compat.v1 as {alias}` in "
      f'old_model.py:2 gives it, or {_RECORD}',
    )

  def test_other_import(self):
    summary = self._of_file('from tensorflow import train\ndef model():\n  train.AdamOptimizer()')
    self.assertIn(
      '; a TF1 name: `import tensorflow.compat.v1 as tf` in old_model.py gives', summary
    )

  @parameterized.parameters(
    lambda: tf.placeholder,
    lambda: tf.train.AdamOptimizer,
    lambda: tf.nn.rnn_cell,
    lambda: tf.losses.sigmoid_cross_entropy,
    lambda: tf.metrics.accuracy,
  )
  def test_names_of_tf1(self, function):
    self.assertIn('; a TF1 name: `import tensorflow.compat.v1 as tf` in', _summary('tf1', function))
    self.assertRegex(_summary('tf2', function), r'; a TF1 name: tf\.compat\.v1\.[\w.]+ has it$')

  def test_what_keras_has_wrapped(self):
    def wrapped():
      raise AttributeError("in a layer\n\nmodule 'tensorflow' has no attribute 'variable_scope'")

    self.assertIn('; a TF1 name: tf.compat.v1.variable_scope has it', _summary('tf2', wrapped))

  def test_of_a_port(self):
    summary = _summary('tf2', lambda: tf.train.AdamOptimizer)
    self.assertEndsWith(summary, 'a TF1 name: tf.compat.v1.train.AdamOptimizer has it')

  def test_contrib_is_in_no_compat(self):
    summary = _summary('tf1', lambda: tf.contrib.rnn)
    self.assertIn('as tf_slim or tf.nest; HParams is', summary)
    self.assertEndsWith(summary, f'lists the place of each name; or {_RECORD}')
    self.assertNotIn('a TF1 name', summary)
    self.assertNotIn('record', _summary('tf2', lambda: tf.contrib.rnn))

  @parameterized.parameters(
    (lambda: tf.ones([2, 3]).shape[0].value, 'a plain number in TensorFlow 2: leave out .value'),
    (lambda: tf.TensorSpec([None]).shape[0].value, 'leave out .value'),
    (lambda: tf.ones([2]).name, 'an eager tensor has no name'),
    (lambda: tf.ones([2]).op.name, 'an eager tensor has no name, operation or graph'),
    (lambda: tf.compat.v1.estimator.ModeKeys.TRAIN, "are the texts 'train', 'eval' and 'infer'"),
  )
  def test_what_is_gone_or_not_there_in_eager_mode(self, function, said):
    def in_layer():
      class Layer(tf.keras.layers.Layer):
        def call(self, inputs):
          function()
          return inputs

      return Layer()(tf.ones([1, 2]))

    self.assertIn(said, _summary('tf2', function))
    # Keras wraps the error of a layer.
    self.assertIn(said, _summary('tf2', in_layer))

  def test_contrib_in_a_layer(self):
    layer = tf.keras.layers.Lambda(lambda x: tf.contrib.layers.flatten(x))
    self.assertIn('tf.contrib is gone', _summary('tf2', lambda: layer(tf.ones([1, 2]))))

  @parameterized.parameters(
    lambda: {}.value,
    lambda: tf.nonsense,
    lambda: os.variable_scope,
    lambda: 'text'.variable_scope,
    lambda: 1 / 0,
  )
  def test_no_name_of_tf1(self, function):
    self.assertNotIn(';', _summary('tf1', function))


if __name__ == '__main__':
  absltest.main()
