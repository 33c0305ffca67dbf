"""What a report says that a recording cannot show."""

import tempfile

from absl.testing import absltest

import tf2verify
from tests import recorded_small, small_case
from tf2verify.recordings.recording import Recording
from tf2verify.sides.recorded.blind_spots import blind_spots

# isort: split
import tensorflow as tf

v1 = tf.compat.v1
_BOTH = (False, True)


def _by_tensorflow_1(manifest, _):
  manifest['environment']['tensorflow'] = '1.15.5'


class BlindSpotsTest(absltest.TestCase):
  def setUp(self):
    super().setUp()
    self.folder = self.enter_context(tempfile.TemporaryDirectory())

  def record(self, build, **options):
    """Records as TensorFlow 1.x would."""
    path = recorded_small.record(self.folder, build, noise_runs=0, **options)
    return recorded_small.altered(path, _by_tensorflow_1)

  def found(self, path, training_modes=_BOTH):
    with Recording.open(path) as recording:
      return list(blind_spots(recording, training_modes))

  def test_genuine_recordings_with_a_training_mode_have_none(self):
    self.assertEqual(self.found(self.record(recorded_small.build)), [])

  def test_a_recording_of_tensorflow_2(self):
    path = recorded_small.record(self.folder, noise_runs=0)
    (said,) = self.found(path)
    self.assertStartsWith(
      said,
      'the reference is not genuine TensorFlow 1.x: it was recorded by TensorFlow '
      f'{tf.__version__}, and',
    )
    verdict = tf2verify.verify(recorded_small.case_of(path), ['no_new_variables'])
    (stage,) = verdict.stages
    self.assertIs(stage.status, tf2verify.Status.PASSED)
    self.assertIn(said, verdict.to_text())
    self.assertEqual(stage.compared.blind_spots, 1)

  def test_a_builder_that_ignores_its_argument(self):
    def ignoring(inputs, training):
      return small_case.model(inputs, False)

    path = self.record(ignoring)
    (said,) = self.found(path)
    self.assertIn('the recorded graphs of inference and training are the same', said)
    self.assertIn('ignoring ignores its argument', said)
    self.assertEqual(self.found(path, (True,)), [])
    self.assertEqual(self.found(self.record(ignoring, training_modes=(True,)), (True,)), [])

  def test_whatever_differs_in_training_tells_the_graphs_apart(self):
    def another_update(inputs, training):
      found = small_case.dense(inputs)
      if training:
        count = v1.get_variable('count', [], trainable=False)
        v1.add_to_collection(v1.GraphKeys.UPDATE_OPS, v1.assign_add(count, 1.0))
      return found

    def another_constant(inputs, training):
      return small_case.dense(inputs) * (0.5 if training else 1.0)

    def another_output(inputs, training):
      found = small_case.dense(inputs)
      negative = -found
      return negative if training else found

    for build in (another_update, another_constant, another_output):
      with self.subTest(build.__name__):
        self.assertEqual(self.found(self.record(build)), [])


if __name__ == '__main__':
  absltest.main()
