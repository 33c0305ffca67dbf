"""Tests of the commands `recorder` and `recording`."""

import pathlib
import tempfile

import pytest
from absl.testing import absltest

from tests import console
from tests.recordings import hand_made
from tf2verify.commands.recorder import recorder_text

pytestmark = pytest.mark.starts_processes


class RecordingCommandTest(absltest.TestCase):
  def setUp(self):
    super().setUp()
    self._folder = pathlib.Path(self.enter_context(tempfile.TemporaryDirectory()))

  def _run(self, *arguments):
    """Runs a command, and sees that it does without TensorFlow."""
    done = console.run(
      '-m', 'tf2verify', *arguments, folder=self._folder, PYTHONPROFILEIMPORTTIME='1'
    )
    lines = done.stderr.splitlines()
    imported = [line.rpartition('|')[2].strip() for line in lines if line.startswith('import')]
    self.assertEqual([name for name in imported if name.startswith('tensorflow')], [])
    said = [line for line in lines if not line.startswith('import time:')]
    return done.returncode, done.stdout, '\n'.join(said)

  def test_recorder_hands_out_the_file(self):
    status, said, complained = self._run('recorder')
    self.assertEqual((status, complained), (0, ''))
    self.assertEqual(said, recorder_text())

  def test_recording_tells_what_is_in_it(self):
    hand_made.make(self._folder / 'model')
    (self._folder / 'model' / 'notes.txt').write_text('')
    status, said, complained = self._run('recording', 'model')
    self.assertEqual((status, complained), (0, ''))
    lines = [' '.join(line.split()) for line in said.splitlines()]
    self.assertEqual(said.splitlines()[0], _FIRST)
    for line in _LINES:
      self.assertIn(line, lines)

  def test_recording_of_a_model_alone(self):
    runs = hand_made.parts()[0]['runs'][:1]
    hand_made.make(
      self._folder / 'model',
      runs=runs,
      losses=None,
      steps=None,
      checkpoint=None,
      intermediates=_NONE,
    )
    said = self._run('recording', 'model')[1]
    self.assertRegex(said, r'gradients +no\n')
    self.assertRegex(said, r'loss +no: record with --loss\n')
    self.assertRegex(said, r'training_steps +no: record with --optimizer or --train_op\n')
    self.assertRegex(said, r'intermediates +none \(record with --intermediates')

  def test_a_damaged_recording(self):
    path = pathlib.Path(hand_made.make(self._folder / 'model')) / 'arrays-000.npz'
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    status, said, complained = self._run('recording', 'model')
    self.assertEqual((status, said), (2, ''))
    self.assertRegex(complained, r'^tf2verify: model/arrays-000.npz: .*copy the whole folder again')

  def test_no_recording(self):
    status, _, complained = self._run('recording', 'nowhere')
    self.assertEqual(status, 2)
    self.assertStartsWith(complained, 'tf2verify: recording nowhere: it does not exist')


_NONE = {'level': 'none', 'runs': []}
_FIRST = 'model: a complete recording, every array as recorded'
_LINES = (
  'made 2026-11-21T18:50:00Z',
  'by TensorFlow 1.15.5, Python 3.7.16, numpy 1.18.5',
  'builder model:build',
  'training modes inference, training',
  'inputs (2, 5) float32',
  'labels (2,) int64, (2,) bfloat16',
  '5 large arrays by samples and signed means',
  'intermediates full: 1 tensor of 1 run',
  'zero_randomness inference, distinct values; noise of 8 perturbed runs',
  'seeded_num_random_ops no',
  'gradients training, distinct values; noise of 8 perturbed runs; 1 tensor did not repeat',
  'training_steps 2 steps of Momentum; noise of 4 perturbed runs',
  'checkpoint /models/model.ckpt-3, 1 key',
  'not part of it: notes.txt',
)


if __name__ == '__main__':
  absltest.main()
