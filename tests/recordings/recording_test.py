"""Tests of reading a recording."""

import gc
import json
import pathlib
import tempfile

import ml_dtypes
import numpy as np
from absl.testing import absltest

from tests.recordings import hand_made
from tf2verify.errors import RecordingError
from tf2verify.numerics.sampling import sampled
from tf2verify.recordings.recording import Recording
from tf2verify.records.sampled import SampledArray


class RecordingTest(absltest.TestCase):
  @classmethod
  def setUpClass(cls):
    super().setUpClass()
    folder = cls.enter_context(tempfile.TemporaryDirectory())
    cls._folder = pathlib.Path(folder)
    cls._path = hand_made.make(cls._folder / 'recording')

  def setUp(self):
    super().setUp()
    self._recording = self.enter_context(Recording.open(self._path))

  def test_every_array_is_verified(self):
    self._recording.check()
    self.assertEqual([name for name, _ in self._recording.files], _FILES)

  def test_nests(self):
    np.testing.assert_array_equal(self._recording.inputs, hand_made.values(0, 2, 5))
    labels = self._recording.labels
    self.assertEqual(labels['ids'][0].tolist(), [1, 2])
    self.assertIsInstance(labels['ids'], list)
    (mask,) = labels['masks']
    self.assertEqual(mask.dtype, ml_dtypes.bfloat16)
    self.assertEqual(mask.astype(np.float32).tolist(), [1.5, -2])

  def test_text(self):
    found = self._recording.observation(self._run(0)).outputs[0].value
    self.assertEqual(found.dtype.kind, 'S')
    self.assertEqual(found.tolist(), [[b'cat'], [b'a dog']])

  def test_text_that_ends_in_zero_bytes_is_kept(self):
    manifest, files = hand_made.parts()
    arrays = hand_made.Arrays()
    arrays.entries, arrays.files = manifest['arrays'], files
    manifest['inputs'] = {'array': arrays.add(np.array([b'a', b'b\0'], object))}
    path = hand_made.write(self._folder / 'zeros', manifest, files)
    with Recording.open(path) as recording:
      self.assertEqual(recording.inputs.tolist(), [b'a', b'b\0'])

  def test_an_observation(self):
    found = self._recording.observation(self._run(2))
    self.assertEqual((found.side, found.run), ('tf1', 'training, constant'))
    self.assertEqual(found.structure, "{'ids': Tensor, 'logits': Tensor}")
    self.assertEqual([r.name for r in found.outputs], ["['ids']", "['logits']"])
    (loss,) = found.regularization_losses
    self.assertEqual((loss.variables, loss.value), (('w',), np.float32(4.25)))
    self.assertEqual(found.regularization_total, np.float32(4.25))
    self.assertEqual(str(found.random_draws[0]), 'RandomUniform (2, ?), initial value of w')
    self.assertEqual(found.random_draws[0].source.line, 12)
    large = found.initial_values[1].value
    self.assertIsInstance(large, SampledArray)
    expected = sampled(hand_made.values(11, *hand_made.LARGE))
    np.testing.assert_array_equal(large, expected)
    self.assertEqual(
      (large.full_shape, large.sha256, large.samples, large.block),
      (hand_made.LARGE, expected.sha256, 1024, 64),
    )

  def test_runs_are_found_by_what_they_are(self):
    found = self._recording.manifest.filled(True, 'distinct values', 'varied', True)
    self.assertEqual([name for name, _ in found.gradients], ['w', 'large'])
    self.assertIsNone(self._recording.manifest.filled(True, 'distinct values', 'varied', False))
    self.assertIsNone(self._recording.manifest.filled(True, 'distinct values', 'given', True))
    self.assertIsNone(self._recording.manifest.filled(False, 'other values', 'varied', False))
    self.assertIs(self._recording.manifest.seeded('constant', True), self._run(2))
    self.assertIsNone(self._recording.manifest.seeded('constant', False))

  def test_a_moved_run_is_as_far_as_the_noise(self):
    plain = self._recording.observation(self._run(0)).outputs[1].value
    moved = self._recording.observation(self._run(0), moved=True).outputs[1].value
    self.assertEqual(moved.dtype, np.float64)
    spread = moved - plain
    self.assertTrue(((spread >= 1e-6) & (spread < 1.2e-6)).all(), spread)
    values = self._recording.observation(self._run(2), moved=True).initial_values[1].value
    self.assertIsInstance(values, SampledArray)

  def test_a_second_run_lacks_what_did_not_repeat(self):
    plain = self._recording.observation(self._run(0), again=True)
    self.assertIsNotNone(plain.outputs[1].value)
    unstable = self._recording.observation(self._run(1), again=True)
    self.assertIsNone(unstable.outputs[1].value)
    self.assertIsNotNone(unstable.outputs[0].value)

  def test_losses_and_steps(self):
    losses = self._recording.losses()
    self.assertEqual((losses.loss, losses.total_loss), (np.float32(2.5), np.float32(2.75)))
    self.assertIsNone(losses.regularization_total)
    self.assertEqual(type(losses.outputs).__name__, 'Outputs')
    np.testing.assert_array_equal(losses.outputs.logits, hand_made.values(7, 2, 4))
    steps = self._recording.steps()
    self.assertEqual([step.number for step in steps.steps], [1, 2])
    self.assertEqual(steps.optimizers[0].setting('momentum'), 0.9)
    self.assertEqual(steps.steps[0].slots[0].role, 'momentum')
    self.assertIsNone(steps.steps[0].gradients[1].value)
    self.assertIsInstance(steps.steps[1].variables[1].value, SampledArray)

  def test_arrays_are_read_only_and_the_same_object_while_held(self):
    one, other = self._recording.array('a0'), self._recording.array('a0')
    self.assertIs(one, other)
    with self.assertRaises(ValueError):
      one[0] = 1
    self._recording.close()
    self.assertIs(self._recording.array('a0'), one)
    del one, other
    self._recording.close()
    gc.collect()
    self.assertEqual(self._recording.array('a0').shape, (2, 5))

  def test_graphs(self):
    graph = self._recording.manifest.graph(True)
    self.assertEqual(self._recording.graph_def(graph), b'no graph, but bytes')
    self.assertEqual(self._recording.graph_def(graph, constant=True), b'nor this')
    inference = self._recording.manifest.graph(False)
    self.assertEqual(
      self._recording.graph_def(inference, constant=True), self._recording.graph_def(inference)
    )
    self.assertEqual(self._recording.op_sources(graph).tolist(), [0, -1, 0])

  def _run(self, number):
    return self._recording.manifest.runs[number]


_FILES = ['arrays-000.npz', 'arrays-001.npz']


class RefusalTest(absltest.TestCase):
  """What a user reads; tests/recordings/fuzz_test.py has all ways to be wrong."""

  def setUp(self):
    super().setUp()
    self._folder = pathlib.Path(self.enter_context(tempfile.TemporaryDirectory()))

  def _refused(self, expected, path=None):
    with self.assertRaisesRegex(RecordingError, expected) as raised:
      Recording.open(str(path or self._folder / 'recording')).check()
    self.assertNotIn('\n', str(raised.exception))

  def _make(self, **changes):
    return pathlib.Path(hand_made.make(self._folder / 'recording', **changes))

  def test_a_folder_that_is_none(self):
    self._refused('does not exist; give the folder that tf1_recorder.py has written')
    (self._folder / 'recording').mkdir()
    self._refused('there is no manifest.json in it; .*".partial" in its name')
    self._refused('is a file', __file__)

  def test_a_file_that_is_missing(self):
    (self._make() / 'arrays-001.npz').unlink()
    self._refused(r'arrays-001.npz: it is missing; copy the whole folder again')

  def test_a_file_of_another_recording(self):
    path = self._make()
    (path / 'arrays-001.npz').write_bytes((path / 'arrays-000.npz').read_bytes())
    self._refused('arrays-001.npz: .* is missing in it; the file is damaged or cut off')

  def test_a_manifest_that_was_edited(self):
    path = self._make() / 'manifest.json'
    path.write_bytes(path.read_bytes().replace(b'1.15.5', b'1.15.4'))
    self._refused('manifest.json was changed .* record again')

  def test_a_manifest_that_is_cut_off(self):
    path = self._make() / 'manifest.json'
    path.write_bytes(path.read_bytes()[:1000])
    self._refused('manifest.json is not JSON at line 1, column .*; it is damaged: copy the whole')

  def test_spaces_in_a_manifest_do_not_matter(self):
    path = self._make() / 'manifest.json'
    path.write_text(json.dumps(json.loads(path.read_text()), indent=2))
    Recording.open(str(self._folder / 'recording')).check()

  def test_other_versions(self):
    self._make(schema=2)
    self._refused('has schema 2, this tf2verify reads 1: update tf2verify')
    self._make(schema=0)
    self._refused('has schema 0, .* record again with the tf1_recorder.py of this tf2verify')
    versions = {'recorder': 1, 'fill': 2, 'seeds': 1, 'loss': 1, 'sampling': 1, 'noise': 1}
    self._make(versions=versions)
    self._refused('version 2 of "fill", this tf2verify has version 1, so the numbers cannot be')
    self._make(kind='other')
    self._refused('not that of a recording')

  def test_fields(self):
    self._make(made=5)
    self._refused('not a manifest of a recording: made is 5, not a text; record again')
    self._make(intermediates={'level': 'all', 'runs': []})
    self._refused(r"intermediates.level is 'all', not one of none, summary, full")
    self._make(surplus=1)
    self._refused("it has an unknown field 'surplus'")

  def test_tensors_that_do_not_fit_their_variable(self):
    manifest, files = hand_made.parts()
    run = manifest['runs'][2]
    run['initial_values'][0][1] = run['initial_values'][1][1]
    hand_made.write(self._folder / 'recording', manifest, files)
    self._refused(
      r"runs\[2\] has a tensor of 'w' of shape \(300, 250\) and dtype float32, the variable has "
      r'\(2, 3\)'
    )

  def test_a_training_mode_without_a_graph(self):
    self._make(training_modes=[False])
    self._refused('graphs are not one for each of the training modes')

  def test_source_lines_that_are_not_there(self):
    manifest, files = hand_made.parts()
    arrays = hand_made.Arrays()
    arrays.entries, arrays.files = manifest['arrays'], files
    manifest['graphs'][0]['op_sources'] = arrays.add(np.array([0, 1], np.int32))
    hand_made.write(self._folder / 'recording', manifest, files)
    self._refused('refers to source lines that are not there')

  def test_a_field_name_that_is_no_field(self):
    manifest, files = hand_made.parts()
    for fields in ([['class', {'none': True}]], [['__init__', {'none': True}]]):
      manifest['losses']['output_nest']['fields'] = fields
      path = hand_made.write(self._folder / 'recording', manifest, files)
      with self.assertRaises(RecordingError):
        Recording.open(path).losses()

  def test_big_endian_arrays_are_read(self):
    manifest, files = hand_made.parts()
    names = {entry['key']: entry for entry in manifest['arrays'].values()}
    for arrays in files.values():
      for key, value in arrays.items():
        if key in names and value.dtype == np.float32:
          arrays[key] = value.astype('>f4')
    path = hand_made.write(self._folder / 'recording', manifest, files)
    with Recording.open(path) as recording:
      recording.check()
      self.assertEqual(recording.inputs.dtype, np.dtype(np.float32))

  def test_huge_arrays_are_refused_before_they_are_unpacked(self):
    manifest, files = hand_made.parts()
    manifest['arrays']['a0']['shape'] = [2**33]
    path = hand_made.write(self._folder / 'recording', manifest, files)
    self._refused('a0 would take 34,359,738,368 bytes; no recording is as large', path)
    manifest['arrays']['a0']['shape'] = [2**27]
    hand_made.write(self._folder / 'recording', manifest, files)
    self._refused('the arrays would take 5.*, and files of .* bytes may hold 268,435,456')

  def test_other_files_are_named(self):
    path = self._make()
    (path / '.DS_Store').write_bytes(b'')
    (path / 'notes.txt').write_bytes(b'')
    with Recording.open(str(path)) as recording:
      recording.check()
      self.assertEqual(recording.other_files(), ('.DS_Store', 'notes.txt'))

  def test_links_within_the_folder_are_followed(self):
    path = self._make()
    (path / 'arrays-001.npz').rename(path / 'data')
    (path / 'arrays-001.npz').symlink_to('data')
    Recording.open(str(path)).check()
    outside = self._folder / 'outside'
    (path / 'data').rename(outside)
    (path / 'arrays-001.npz').unlink()
    (path / 'arrays-001.npz').symlink_to(outside)
    self._refused('arrays-001.npz: it is a link that leads out of the folder')


if __name__ == '__main__':
  absltest.main()
