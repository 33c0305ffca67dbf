"""Tests of same_recording and recording_run."""

import hashlib
import json
import pathlib
import shutil
import tempfile

import numpy as np
import pytest
from absl.testing import absltest

from examples.recorded_models import models, recording_run, same_recording

pytestmark = pytest.mark.starts_processes

_COMMITTED = pathlib.Path(__file__).parent / 'recordings' / 'bag_of_words'


class SameRecordingTest(absltest.TestCase):
  def _changed(self, change):
    """Returns a copy of the recording with another manifest, whose digest is right."""
    folder = tempfile.TemporaryDirectory()
    self.addCleanup(folder.cleanup)
    copy = pathlib.Path(folder.name) / 'copy'
    shutil.copytree(_COMMITTED, copy)
    manifest = json.loads((copy / 'manifest.json').read_text(encoding='utf-8'))
    change(manifest)
    del manifest['sha256']
    options = {'sort_keys': True, 'ensure_ascii': False, 'separators': (',', ':')}
    text = json.dumps(manifest, **options)
    manifest['sha256'] = hashlib.sha256(text.encode()).hexdigest()
    (copy / 'manifest.json').write_text(json.dumps(manifest, **options), encoding='utf-8')
    return same_recording.differences(_COMMITTED, copy)

  def test_same(self):
    self.assertEqual(same_recording.differences(_COMMITTED, _COMMITTED), [])

  def test_time_and_machine_may_differ(self):
    def change(manifest):
      manifest['made'] = '2031-01-01T00:00:00Z'
      manifest['environment']['platform'] = 'another machine'

    self.assertEqual(self._changed(change), [])

  def test_order_of_random_ops(self):
    def change(manifest):
      draws = manifest['graphs'][0]['random_draws']
      draws[0], draws[1] = draws[1], draws[0]

    self.assertRegex('\n'.join(self._changed(change)), 'graphs/0/random_draws/0/.* was committed')

  def test_initial_values_are_compared_bit_by_bit(self):
    def change(manifest):
      seeded = [run for run in manifest['runs'] if run['kind'] == 'seeded']
      values = [dict(run['initial_values']) for run in (seeded[0], seeded[-1])]
      name = next(name for name in values[0] if values[0][name] != values[1][name])
      values[0][name]['value'] = values[1][name]['value']

    self.assertRegex('\n'.join(self._changed(change)), 'initial_values.*not the same bit by bit')

  def test_computed_values_beyond_rounding(self):
    def change(manifest):
      seeded = next(run for run in manifest['runs'] if run['kind'] == 'seeded')
      filled = next(run for run in manifest['runs'] if run['kind'] == 'filled')
      seeded['outputs'][0][1]['value'] = filled['outputs'][0][1]['value']

    self.assertRegex('\n'.join(self._changed(change)), 'outputs.*more than rounding')

  def test_what_the_loss_is_given_is_computed(self):
    """Another processor rounds it differently: it is not compared bit by bit."""

    def change(manifest):
      seeded = next(run for run in manifest['runs'] if run['kind'] == 'seeded')
      manifest['losses']['output_nest']['array'] = seeded['outputs'][0][1]['value']

    found = self._changed(change)
    self.assertRegex('\n'.join(found), 'output_nest.*more than rounding')


class RecordingRunTest(absltest.TestCase):
  def test_command(self):
    model = models.MODELS[-1]
    with tempfile.TemporaryDirectory() as folder:
      words = recording_run.command(
        model, 'env python3', pathlib.Path('/recordings'), pathlib.Path(folder)
      )
      with np.load(words[words.index('--labels') + 1]) as labels:
        self.assertEqual(set(labels), {'clicked', 'weights'})
    self.assertEqual(words[1], 'python3')
    self.assertTrue(pathlib.Path(words[0]).is_absolute())
    self.assertEqual(words[words.index('--builder') + 1], 'tf1.bag_of_words:build')
    self.assertEqual(words[words.index('--optimizer') + 1], 'tf1.bag_of_words:optimizer')

  def test_what_the_recorder_says_is_shown(self):
    with tempfile.TemporaryDirectory() as folder:
      script = pathlib.Path(folder) / 'python'
      script.write_text('#!/bin/sh\necho no TensorFlow here; exit 2\n')
      script.chmod(0o755)
      with self.assertRaisesRegex(
        recording_run.RecordingFailed, 'gru was not recorded:\nno TensorFlow here'
      ):
        recording_run.record(models.MODELS[3], str(script), pathlib.Path(folder))


if __name__ == '__main__':
  absltest.main()
