import os
import shutil
import tempfile

import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

from tests import console, small_case
from tf2verify.case import new_ladder
from tf2verify.errors import CheckpointError
from tf2verify.records.checkpoint import KeySource
from tf2verify.sides.fill import DistinctFill
from tf2verify.sides.side import RunSpec
from tf2verify.sides.tf1 import checkpoint as tf1_checkpoint

v1 = tf.compat.v1
VALUES = {
  'w': np.arange(6, dtype=np.float32).reshape(2, 3),
  'step': np.array(3, np.int64),
  'words': np.array([b'a', b'b'], object),
}


class FolderTestCase(parameterized.TestCase):
  def setUp(self):
    super().setUp()
    self.folder = console.own_folder(self)
    self.prefix = tf1_checkpoint.write(str(self.folder / 'model'), VALUES)

  def assert_refused(self, path, *words):
    with self.assertRaises(CheckpointError) as raised:
      file = tf1_checkpoint.name_based(path, 'hook')
      for key in file.keys:
        file.value(key.name)
    for word in words:
      self.assertIn(word, str(raised.exception))


class ReadingTest(FolderTestCase):
  def test_keys_and_values(self):
    file = tf1_checkpoint.name_based(self.prefix, 'hook')
    self.assertEqual(
      [(key.name, key.shape, key.dtype) for key in file.keys],
      [('step', (), 'int64'), ('w', (2, 3), 'float32'), ('words', (2,), 'string')],
    )
    for name, value in VALUES.items():
      np.testing.assert_array_equal(file.value(name), value)

  def test_part_of_a_variable(self):
    file = tf1_checkpoint.name_based(self.prefix, 'hook')
    found = file.value_of(KeySource('w/part_1', 'w', (0, 1)), (2, 2))
    np.testing.assert_array_equal(found, VALUES['w'][:, 1:])

  def test_values_like(self):
    file = tf1_checkpoint.name_based(self.prefix, 'hook')
    self.assertEqual(list(file.values_like(np.zeros((2, 3), np.float32))), ['w'])
    self.assertEqual(list(file.values_like(np.zeros((2, 3), np.float64))), [])
    self.assertEqual(list(file.values_like(VALUES['words'])), ['words'])

  def test_a_saver_reads_what_is_written(self):
    with tf.Graph().as_default(), v1.Session() as session:
      variable = v1.get_variable('w', [2, 3])
      v1.train.Saver([variable]).restore(session, self.prefix)
      np.testing.assert_array_equal(session.run(variable), VALUES['w'])


class BadPathTest(FolderTestCase):
  def test_folder(self):
    self.assert_refused(str(self.folder), 'hook: ', 'is a folder', 'has ', '/model')

  def test_folder_with_a_state_file(self):
    (self.folder / 'checkpoint').write_text('model_checkpoint_path: "model"\n')
    self.assert_refused(str(self.folder), 'tf.train.latest_checkpoint(', f'is {self.prefix}')

  def test_saved_model(self):
    (self.folder / 'saved_model.pb').touch()
    self.assert_refused(str(self.folder), 'is a SavedModel', 'variables/variables')

  @parameterized.parameters('.index', '.data-00000-of-00001', '.meta')
  def test_one_of_the_files(self, ending):
    self.assert_refused(self.prefix + ending, f'give the prefix of its files, {self.prefix}')

  def test_absent(self):
    self.assert_refused(
      str(self.folder / 'other'), 'other.index does not exist', f'has {self.prefix}'
    )
    self.assert_refused(str(self.folder / 'no' / 'other'), 'there is no folder')

  def test_empty_folder(self):
    with tempfile.TemporaryDirectory() as empty:
      self.assert_refused(os.path.join(empty, 'model'), 'has no checkpoint')

  def test_no_path(self):
    self.assert_refused(3, 'hook is 3 of type int', 'the prefix that `Saver.save` returned')

  def test_truncated_data(self):
    data = self.folder / 'model.data-00000-of-00001'
    data.write_bytes(data.read_bytes()[:20])
    self.assert_refused(self.prefix, 'cannot be read', 'not copied whole')

  def test_truncated_index(self):
    index = self.folder / 'model.index'
    index.write_bytes(index.read_bytes()[:20])
    self.assert_refused(self.prefix, 'cannot be read', 'not copied whole')

  def test_absent_data(self):
    (self.folder / 'model.data-00000-of-00001').unlink()
    self.assert_refused(self.prefix, '0 of 1 data files', 'copy all files')

  def test_one_of_two_data_files(self):
    data = self.folder / 'model.data-00000-of-00001'
    shutil.move(data, self.folder / 'model.data-00000-of-00002')
    self.assert_refused(self.prefix, '1 of 2 data files')

  def test_object_based(self):
    path = tf.train.Checkpoint(w=tf.Variable(1.0)).write(str(self.folder / 'objects'))
    self.assert_refused(path, 'is an object-based checkpoint', 'keys: w/.ATTRIBUTES')


class ReferenceValuesTest(absltest.TestCase):
  def test_filled(self):
    ladder = new_ladder(small_case.SmallCase, lambda step: None)
    self.addCleanup(ladder.close)
    case = ladder.prepared()
    run = RunSpec(case.inputs, False, DistinctFill(), {})
    found = tf1_checkpoint.reference_values(case.tf1, run, (False, True))
    self.assertEqual(sorted(found), ['dense/bias', 'dense/kernel'])
    np.testing.assert_array_equal(
      found['dense/kernel'], DistinctFill()('dense/kernel', (3, 2), np.dtype(np.float32))
    )


if __name__ == '__main__':
  absltest.main()
