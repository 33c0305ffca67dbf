import math
import os
import pathlib
import tempfile
from unittest import mock

import numpy as np
import tensorflow as tf
from absl.testing import absltest

from tests import tensorboard_events
from tf2verify.errors import EnvironmentProblem, UsageError
from tf2verify.records.events import EventFolder, Histogram, Scalar, Text
from tf2verify.sides import event_files

_TAG = 'gradients/w <b>ü/kernel:0'


def folders(value=0.5):
  buckets = ((-0.5, 0.5, 3.0), (0.5, 1.5, 1.0))
  return [
    EventFolder('', (Scalar(_TAG, 3, value, 'what it is'), Text('summary', 3, '**x**'))),
    EventFolder('tf1', (Histogram('ulps', 1, buckets, 'of all'),)),
  ]


@tensorboard_events.needs_tensorboard
class EventFilesTest(absltest.TestCase):
  def setUp(self):
    super().setUp()
    folder = tempfile.TemporaryDirectory()
    self.addCleanup(folder.cleanup)
    self.folder = pathlib.Path(folder.name) / 'a[b]'

  def test_read_back(self):
    event_files.write(str(self.folder), folders())
    self.assertEqual(
      tensorboard_events.read(self.folder),
      {
        '.': {_TAG: {3: 0.5}, 'summary': {3: '**x**'}},
        'tf1': {'ulps': {1: [[-0.5, 0.5, 3.0], [0.5, 1.5, 1.0]]}},
      },
    )

  def test_not_finite_and_very_small(self):
    for value in (math.inf, math.nan, 1e-42, 1e300):
      event_files.write(str(self.folder), folders(value))
      told = tensorboard_events.read(self.folder)['.'][_TAG][3]
      with np.errstate(over='ignore'):
        np.testing.assert_equal(told, float(np.float32(value)))

  def test_a_second_time_replaces_its_own_files_alone(self):
    event_files.write(str(self.folder), folders())
    foreign = self.folder / 'tf1' / 'events.out.tfevents.1.host.2.3.v2'
    foreign.touch()
    event_files.write(str(self.folder), folders(0.25)[:1])
    found = tensorboard_events.read(self.folder)
    self.assertEqual(found['.'][_TAG], {3: 0.25})
    self.assertEqual(found['tf1'], {})
    self.assertTrue(foreign.exists())

  def test_in_a_graph(self):
    with tf.Graph().as_default():
      self.assertFalse(tf.executing_eagerly())
      event_files.write(str(self.folder), folders())
    self.assertEqual(tensorboard_events.read(self.folder)['.'][_TAG], {3: 0.5})

  def test_where_nothing_can_be_written(self):
    self.folder.touch()
    with self.assertRaisesRegex(UsageError, 'could not write events into .*--tensorboard_dir'):
      event_files.write(str(self.folder / 'below'), folders())

  def test_without_tensorboard(self):
    absent = mock.patch.object(event_files.tf, 'summary', object())
    with absent, self.assertRaisesRegex(EnvironmentProblem, r'pip install .tf2verify\[tensorboard'):
      event_files.write(str(self.folder), folders())
    self.assertFalse(os.path.exists(self.folder))


if __name__ == '__main__':
  absltest.main()
