import os
import tempfile
from unittest import mock

import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

import tf2verify
from tests.stages import tiny_models
from tests.stages.first_failure import LadderTestCase

v1 = tf.compat.v1
STAGE = 'checkpoint'


def checkpoint_of(case):
  verdict = tf2verify.verify(case, stages=[STAGE])
  return next(stage for stage in verdict.stages if stage.stage == STAGE)


def write(folder, **values):
  """Writes a name-based checkpoint of these keys."""
  prefix = os.path.join(folder, 'model')
  names = [name.replace('__', '/') for name in values]
  tensors = [tf.constant(value) for value in values.values()]
  tf.raw_ops.SaveV2(
    prefix=prefix, tensor_names=names, shape_and_slices=[''] * len(names), tensors=tensors
  )
  return prefix


KERNEL = np.arange(9, dtype=np.float32).reshape(3, 3)
BIAS = np.array([0.5, -1.0, 2.0], np.float32)


class OwnCheckpointTest(LadderTestCase):
  """The reference writes the checkpoint in the run."""

  def test_layer(self):
    class Case(tiny_models.Affine):
      pass

    found = checkpoint_of(Case)
    self.assertIs(found.status, tf2verify.Status.PASSED, found.to_text())
    self.assertEqual((found.tables, found.notes), ((), ()))
    # kernel and bias twice; outputs of both sides, of a fresh layer and of the SavedModel
    self.assertEqual(found.compared.tensors, 7)

  def test_variables_of_other_dtypes(self):
    class Case(tiny_models.Affine):
      def model(self, inputs, training):
        step = v1.get_variable('step', [], tf.int64, v1.zeros_initializer(), trainable=False)
        mask = v1.get_variable(
          'mask', [3], tf.bool, lambda *_, **__: tf.constant([True, False, True]), trainable=False
        )
        net = super().model(inputs, training) * tf.cast(mask, tf.float32)
        return net + tf.cast(step, tf.float32)

    found = checkpoint_of(Case)
    self.assertIs(found.status, tf2verify.Status.PASSED, found.to_text())

  def test_no_inference_mode(self):
    class Case(tiny_models.Normalized):
      training_modes = (True,)

    found = checkpoint_of(Case)
    self.assertIs(found.status, tf2verify.Status.PASSED, found.to_text())

  def test_variables_of_the_training_mode_alone(self):
    class Case(tiny_models.Affine):
      def model(self, inputs, training):
        net = super().model(inputs, training)
        return net * v1.get_variable('noise', [3]) if training else net

    found = checkpoint_of(Case)
    self.assertIs(found.status, tf2verify.Status.PASSED, found.to_text())
    self.assertEqual(found.compared.tensors, 9)

  def test_no_variable(self):
    class Case(tiny_models.OneModel):
      def model(self, inputs, training):
        return tf.nn.relu(inputs)

    found = checkpoint_of(Case)
    self.assertIs(found.status, tf2verify.Status.NOT_APPLICABLE)
    self.assertIn('no variable', found.reason)

  def test_optimizer_of_the_reference(self):
    class Case(tiny_models.Affine):
      def make_tf1_optimizer(self):
        return v1.train.MomentumOptimizer(0.1, 0.9)

      def make_tf2_optimizer(self):
        return tf.keras.optimizers.legacy.SGD(0.1, 0.9)

    found = checkpoint_of(Case)
    self.assertIs(found.status, tf2verify.Status.PASSED, found.to_text())
    [table] = found.tables
    self.assertIn(('optimizer slot', '2', '0'), table.rows)
    self.assertIn('2 optimizer slots after 2 steps are in the checkpoint', found.notes[0])


class GivenCheckpointTest(LadderTestCase, parameterized.TestCase):
  """The case names a file."""

  def setUp(self):
    super().setUp()
    folder = tempfile.TemporaryDirectory()
    self.addCleanup(folder.cleanup)
    self.folder = folder.name

  def _found(self, path, base=tiny_models.Affine):
    class Case(base):
      def tf1_checkpoint(self):
        return path

    return checkpoint_of(Case)

  def test_fits(self):
    path = write(self.folder, kernel=KERNEL, bias=BIAS, kernel__Adam=KERNEL, other=BIAS)
    found = self._found(path)
    self.assertIs(found.status, tf2verify.Status.PASSED, found.to_text())
    rows = (('model variable', '2', '2'), ('optimizer slot', '1', '0'), ('unknown', '1', '0'))
    self.assertEqual(found.tables[0].rows, rows)
    self.assertIn('no such variable: other', found.notes[0])

  def test_not_a_number_is_restored_as_well(self):
    kernel = np.where(KERNEL == 4, np.nan, KERNEL)
    found = self._found(write(self.folder, kernel=kernel, bias=BIAS))
    self.assertIs(found.status, tf2verify.Status.PASSED, found.to_text())

  def test_partitioned_variable(self):
    class Case(tiny_models.OneModel):
      def model(self, inputs, training):
        partitioner = v1.fixed_size_partitioner(2)
        with v1.variable_scope('', partitioner=partitioner):
          return tf.matmul(inputs, tf.convert_to_tensor(v1.get_variable('kernel', [3, 3])))

      def port(self, inputs, training):
        first = v1.get_variable('kernel/part_0', [2, 3])
        return inputs @ tf.concat([first, v1.get_variable('kernel/part_1', [1, 3])], 0)

      def tf1_checkpoint(self):
        return path

    path = write(self.folder, kernel=KERNEL)
    found = checkpoint_of(Case)
    self.assertIs(found.status, tf2verify.Status.PASSED, found.to_text())

  def test_missing_key(self):
    found = self._found(write(self.folder, kernel=KERNEL, biass=BIAS))
    self.assertIs(found.status, tf2verify.Status.FAILED)
    self.assertIn('checkpoint key bias: presence differs', found.to_text())
    self.assertIn('no key bias; closest: biass', found.to_text())
    self.assertIn('outputs were not compared', found.to_text())

  @parameterized.parameters(
    (KERNEL[:, :2], 'shape differs', 'a model of a different size'),
    (KERNEL.astype(np.float64), 'dtype differs', '(3, 3) float64'),
  )
  def test_changed_key(self, kernel, *words):
    text = self._found(write(self.folder, kernel=kernel, bias=BIAS)).to_text()
    for word in ('FAILED', *words):
      self.assertIn(word, text)

  def test_another_scope(self):
    found = self._found(write(self.folder, net__kernel=KERNEL, net__bias=BIAS))
    self.assertIs(found.status, tf2verify.Status.ERROR)
    self.assertIn("every key has 'net/' in front", found.to_text())

  def test_another_model(self):
    text = self._found(write(self.folder, conv1__weights=KERNEL)).to_text()
    self.assertIn('of a different model: none of the 2 variables is a key', text)
    self.assertIn('keys: conv1/weights', text)

  @parameterized.parameters((None, 'of type NoneType'), ('absent', 'absent.index does not exist'))
  def test_no_file(self, path, words):
    found = self._found(path)
    self.assertIs(found.status, tf2verify.Status.ERROR)
    self.assertIn(words, found.to_text())

  def test_averages_that_are_not_loaded(self):
    shadows = {
      'kernel__ExponentialMovingAverage': KERNEL + 1,
      'bias__ExponentialMovingAverage': BIAS,
    }
    found = self._found(write(self.folder, kernel=KERNEL, bias=BIAS, **shadows))
    self.assertIs(found.status, tf2verify.Status.PASSED)
    said = '2 moving averages of weights in the checkpoint are not loaded, of which 1 are not the'
    self.assertIn(said, found.to_text())

  def test_averages_that_are(self):
    class Averaged(tiny_models.Affine):
      evaluate_with_ema = True

    shadows = {'kernel__ExponentialMovingAverage': KERNEL + 1}
    found = self._found(write(self.folder, kernel=KERNEL, bias=BIAS, **shadows), Averaged)
    self.assertIs(found.status, tf2verify.Status.PASSED)
    self.assertIn(('EMA shadow', '1', '1'), found.tables[0].rows)
    self.assertIn(('model variable', '2', '1'), found.tables[0].rows)

  def test_files_are_removed(self):
    path = write(self.folder, kernel=KERNEL, bias=BIAS)
    with tempfile.TemporaryDirectory() as own, mock.patch.object(tempfile, 'tempdir', own):
      self._found(path)
      # Autograph leaves files of its own.
      self.assertEqual([name for name in os.listdir(own) if name.startswith('tf2verify')], [])


if __name__ == '__main__':
  absltest.main()
