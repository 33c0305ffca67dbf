"""Losses, training steps and checkpoints, as the recorder has them, beside the live reference."""

import itertools
import json
import os
import pathlib
import subprocess
import tempfile
import textwrap

import numpy as np
import pytest
import tensorflow as tf
from absl.testing import absltest, parameterized

from tests.recorder import shipped
from tests.recorder import trained_models as models
from tests.sides import recorded_cases
from tests.sides.trained_sides import prepared
from tf2verify.recordings.recording import Recording
from tf2verify.reference.arrays import array_digest
from tf2verify.reference.errors import RecorderError
from tf2verify.reference.perturbation import Perturber

pytestmark = pytest.mark.starts_processes

_REPOSITORY = pathlib.Path(__file__).parents[2]
v1 = tf.compat.v1
train = v1.train
_TF1_PYTHON = os.environ.get('TF1_PYTHON', '')
CASES = (
  models.CenteredRmsProp,
  models.Adam,
  models.DecayedNesterov,
  models.ClippedAndAveraged,
  models.Dropped,
  models.RegularizedNorm,
  models.Embedded,
  models.TwoOptimizers,
  models.OwnMomentum,
  models.KerasMomentum,
  models.OwnKerasMomentum,
  models.WordsBefore,
)


class RecordingTestCase(parameterized.TestCase):
  def recorded(self, case_class, **options):
    """Records a case and returns the opened recording."""
    path = os.path.join(self.enter_context(tempfile.TemporaryDirectory()), 'recording')
    recorded_cases.record(case_class, path, **options)
    return self.enter_context(Recording.open(path))

  def assert_refused(self, case_class, message, **options):
    with tempfile.TemporaryDirectory() as folder:
      path = os.path.join(folder, 'recording')
      with self.assertRaisesRegex(RecorderError, message):
        recorded_cases.record(case_class, path, **options)
      self.assertEqual(os.listdir(folder), [])


class LikeTheLiveReferenceTest(RecordingTestCase):
  @parameterized.named_parameters(*((f'_{case.__name__}', case) for case in CASES))
  def test_steps(self, case_class):
    recorded = self.recorded(case_class).steps()
    with prepared(case_class) as (case, run):
      live = case.tf1_training.prepare_steps(run, case_class.training_steps_to_take)(None)
    self.assertEqual(recorded.run, live.run)
    self.assertEqual(_settings(recorded), _settings(live))
    self.assertEqual(recorded.updates_left_out, live.updates_left_out)
    self.assertEqual(
      [draw.op_type for draw in recorded.random_draws], [draw.op_type for draw in live.random_draws]
    )
    self.assert_same_tensors(recorded.values_before, live.values_before)
    self.assert_same_slots(recorded.slots_before, live.slots_before)
    np.testing.assert_equal(recorded.regularization_total, live.regularization_total)
    self.assertLen(recorded.steps, len(live.steps))
    for one, other in zip(recorded.steps, live.steps, strict=True):
      self.assertEqual(one.number, other.number)
      self.assertEqual(one.learning_rate, other.learning_rate)
      self.assertEqual(one.global_step, other.global_step)
      np.testing.assert_array_equal(one.loss, other.loss)
      self.assert_same_tensors(one.gradients, other.gradients)
      self.assert_same_tensors(one.applied_gradients, other.applied_gradients)
      self.assert_same_tensors(one.variables, other.variables)
      self.assert_same_slots(one.slots, other.slots)

  def test_draws_in_loops(self):
    """The recorder keeps them; a live reference has fixed numbers there."""
    recorded = self.recorded(models.DroppedInALoop).steps()
    with prepared(models.DroppedInALoop) as (case, run):
      live = case.tf1_training.prepare_steps(run, 2)(None)
      self.assertLen(case.tf1.fixed_draws, 1)
    self.assertLen([draw for draw in recorded.random_draws if draw.in_loop], 1)
    self.assertEmpty([draw for draw in live.random_draws if draw.in_loop])

  @parameterized.named_parameters(
    ('_OwnMomentum', models.OwnMomentum, 'own momentum'),
    ('_KerasMomentum', models.KerasMomentum, 'velocity'),
    ('_OwnKerasMomentum', models.OwnKerasMomentum, 'own momentum'),
    ('_WordsBefore', models.WordsBefore, 'first moment'),
  )
  def test_roles_of_own_slots(self, case_class, role):
    slots = {slot.variable: slot.role for slot in self.recorded(case_class).steps().slots_before}
    self.assertEqual((slots['kernel'], slots['bias']), (role, role))

  @parameterized.named_parameters(
    ('_Trained', models.Trained), ('_RegularizedNorm', models.RegularizedNorm)
  )
  def test_losses(self, case_class):
    recorded = self.recorded(case_class).losses()
    with prepared(case_class) as (case, run):
      live = case.tf1_training.observe_losses(run)
    for name in ('outputs', 'loss', 'total_loss', 'regularization_total'):
      np.testing.assert_equal(getattr(recorded, name), getattr(live, name))

  def assert_same_tensors(self, recorded, live):
    self.assertEqual([r.name for r in recorded], [r.name for r in live])
    for one, other in zip(recorded, live, strict=True):
      np.testing.assert_array_equal(one.value, other.value, one.name)

  def assert_same_slots(self, recorded, live):
    ones, others = (
      {(s.role, s.variable, s.name): s.value for s in side} for side in (recorded, live)
    )
    self.assertEqual(ones.keys(), others.keys())
    for key, value in ones.items():
      np.testing.assert_array_equal(value, others[key], str(key))


class CommittedTest(RecordingTestCase):
  """What the recorder writes now is what the committed recordings have.

  Recordings by TensorFlow 1.x are made by hand: a field that the recorder has got since is
  missing in them.
  """

  def test_the_fields_of_training_steps(self):
    path = os.path.join(self.enter_context(tempfile.TemporaryDirectory()), 'recording')
    recorded_cases.record(models.ClippedAndAveraged, path)
    now = _fields(path)
    self.assertIn('steps/trained', now)
    committed = sorted((_REPOSITORY / 'examples/recorded_models/recordings').iterdir())
    self.assertNotEmpty(committed)
    for folder in committed:
      found = _fields(folder)
      if any(field.startswith('steps/') for field in found):
        self.assertEqual(found, now, f'{folder.name}: make record-committed')


class NoiseTest(RecordingTestCase):
  def test_noise_of_a_variable_is_that_of_its_change(self):
    recording = self.recorded(models.ClippedAndAveraged, noise_runs=32)
    with prepared(models.ClippedAndAveraged) as (case, run):
      prepare = case.tf1_training.prepare_steps(run, 1)
      runs = [prepare(None), *(prepare(Perturber(number)) for number in range(32))]
    changes = [_changes(found) for found in runs]
    still, moved = recording.steps(), recording.steps(moved=True)
    start = {record.name: record.value for record in still.values_before}
    for name, value in start.items():
      with self.subTest(name):
        np.testing.assert_array_equal(_named(moved.values_before)[name], value)
        live = max(np.abs(found[name] - changes[0][name]).max() for found in changes[1:])
        recorded = np.abs(_changes(moved)[name] - _changes(still)[name]).max()
        self.assertBetween(recorded, live / 2, live * 4)
    shadows = [{s.variable: s.value for s in run.steps[0].slots} for run in (still, moved)]
    for name, one in shadows[0].items():
      # That of the variable itself is moved by half a unit in its last place.
      self.assertLess(np.abs(shadows[1][name] - one).max(), 4e-7)

  def test_a_run_that_repeats_itself(self):
    steps = self.recorded(models.Dropped).manifest.steps
    self.assertTrue(all(tensor.repeats for _, tensor in steps.steps[-1].variables))

  def test_a_run_that_does_not(self):
    class Unseeded(models.Trained):
      def model(self, inputs, training):
        noise = v1.py_func(lambda: np.random.default_rng().random(), [], tf.float64)
        return super().model(inputs, training) * tf.cast(tf.ensure_shape(noise, []), tf.float32)

    steps = self.recorded(Unseeded).manifest.steps
    self.assertFalse(steps.steps[0].loss.repeats)
    self.assertFalse(any(tensor.repeats for _, tensor in steps.steps[-1].variables))
    self.assertTrue(all(tensor.repeats for _, tensor in steps.values_before))


class LossAloneTest(RecordingTestCase):
  def test_graphs_of_the_loss(self):
    losses = self.recorded(models.Trained).manifest.losses
    self.assertEqual(losses.alone_error, '')
    self.assertEqual([path for path, _ in losses.alone.outputs], [''])
    self.assertEqual([gradient.path for gradient in losses.alone.gradients], [''])
    self.assertIsNotNone(losses.alone_one)

  def test_a_loss_for_one_batch_size(self):
    class Case(models.Trained):
      def tf1_loss(self, outputs, labels):
        return tf.reduce_sum(tf.reshape(outputs - labels, [4, 3]) ** 2)

    losses = self.recorded(Case).manifest.losses
    self.assertIsNotNone(losses.alone)
    self.assertIsNone(losses.alone_one)

  def test_a_loss_that_needs_the_model(self):
    class Case(models.Trained):
      def tf1_loss(self, outputs, labels):
        weights = v1.trainable_variables()[0]
        return tf.reduce_sum(outputs - labels) + tf.nn.l2_loss(weights)

    losses = self.recorded(Case).manifest.losses
    self.assertIsNone(losses.alone)
    self.assertIn('list index out of range', losses.alone_error)

  def test_default_loss_of_steps(self):
    recording = self.recorded(models.Trained, loss=None, labels=None)
    losses = recording.manifest.losses
    self.assertFalse(losses.own_loss)
    self.assertIsNone(losses.alone)
    self.assertLen(recording.manifest.steps.steps, 3)

  def test_nothing_of_it(self):
    manifest = self.recorded(models.Trained, loss=None, optimizer=None).manifest
    self.assertIsNone(manifest.losses)
    self.assertIsNone(manifest.steps)


class CheckpointTest(RecordingTestCase):
  def test_keys_and_digests(self):
    values = {'kernel': np.ones([3, 3], np.float32), 'bias': np.arange(3.0), 'text': b'abc'}
    with tempfile.TemporaryDirectory() as folder:
      prefix = os.path.join(folder, 'model')
      _save(prefix, values)
      entry = self.recorded(models.Trained, checkpoint=prefix).manifest.checkpoint
    self.assertEqual(entry.path, prefix)
    self.assertEqual([key.name for key in entry.keys], ['bias', 'kernel', 'text'])
    self.assertEqual([key.dtype for key in entry.keys], ['float64', 'float32', 'string'])
    self.assertEqual(entry.keys[1].shape, (3, 3))
    self.assertEqual(entry.keys[1].sha256, array_digest(values['kernel']))

  def test_what_is_none(self):
    with tempfile.TemporaryDirectory() as folder:
      prefix = os.path.join(folder, 'model')
      self.assert_refused(models.Trained, 'cannot be read.*give the prefix', checkpoint=prefix)
      written = tf.train.Checkpoint(v=tf.Variable(1.0)).write(prefix)
      self.assert_refused(models.Trained, 'written by tf.train.Checkpoint', checkpoint=written)


class RefusedTest(RecordingTestCase):
  def test_losses(self):
    self.assert_refused(models.Trained, 'the loss is None.*missing `return`', loss=lambda *_: None)
    self.assert_refused(
      models.Trained, 'the total loss is .*, which is not a tensor', total_loss=lambda *_: 'loss'
    )
    self.assert_refused(models.Trained, 'the loss raised ValueError: no', loss=_raising)

  def test_optimizers(self):
    self.assert_refused(models.Trained, 'None, .*missing `return`', optimizer=lambda: None)
    self.assert_refused(
      models.Trained, 'it is the class: return an instance', optimizer=lambda: train.AdamOptimizer
    )
    self.assert_refused(
      models.Trained, 'give a train op', optimizer=lambda: tf.keras.optimizers.SGD(0.1)
    )

  def test_train_ops(self):
    self.assert_refused(
      models.ClippedAndAveraged, 'not an op of the graph.*missing', train_op=lambda _: None
    )
    with tf.Graph().as_default():
      other = tf.constant(1.0)
    self.assert_refused(
      models.ClippedAndAveraged, 'not an op of the graph', train_op=lambda _: other
    )


@absltest.skipUnless(_TF1_PYTHON, 'TF1_PYTHON names no Python with TensorFlow 1.x')
class GenuineTf1Test(RecordingTestCase):
  """What is another matter under TensorFlow 1.x: variables by reference, its own optimizers."""

  _SCRIPT = textwrap.dedent(
    """
    import sys
    sys.path[:0] = [{recorder!r}]
    import numpy as np, tensorflow as tf
    import tf1_recorder

    def build(inputs, training):
      kernel = tf.get_variable('kernel', [3, 3])
      bias = tf.get_variable('bias', [3], initializer=tf.zeros_initializer())
      net = tf.matmul(inputs, kernel) + bias
      return tf.nn.dropout(net, keep_prob=0.5) if training else net

    def train_op(loss):
      step = tf.train.get_or_create_global_step()
      pairs = tf.train.RMSPropOptimizer(0.1).compute_gradients(loss)
      keras = tf.keras.optimizers.SGD(0.1, momentum=0.5)
      kernel = [pair for pair in pairs if pair[1].op.name == 'kernel']
      bias = [pair for pair in pairs if pair[1].op.name == 'bias']
      rmsprop = tf.train.RMSPropOptimizer(0.1)
      return [rmsprop.apply_gradients(kernel, step), keras.apply_gradients(bias)]

    inputs = np.random.RandomState(0).standard_normal((4, 3)).astype('f')
    labels = np.random.RandomState(3).standard_normal((4, 3)).astype('f')
    loss = lambda outputs, labels: tf.reduce_mean(tf.square(outputs - labels))
    tf1_recorder.record(
      build, inputs, sys.argv[1], labels=labels, loss=loss, train_op=train_op, noise_runs=4)
    """
  )

  def test_steps(self):
    with tempfile.TemporaryDirectory() as folder:
      out = os.path.join(folder, 'recording')
      script = self._SCRIPT.format(recorder=str(shipped.PATH.parent))
      done = subprocess.run([_TF1_PYTHON, '-c', script, out], capture_output=True, text=True)
      self.assertEqual(done.returncode, 0, done.stderr)
      with Recording.open(out) as recording:
        recording.check()
        steps = recording.steps()
    # What was read is not written to by what is run afterwards.
    values = [_named(steps.values_before), *(_named(step.variables) for step in steps.steps)]
    for before, after in itertools.pairwise(values):
      for name, value in before.items():
        self.assertTrue(np.any(value != after[name]), name)
    names = ['tf.compat.v1.train.RMSPropOptimizer', 'tf.keras.optimizers.legacy.SGD']
    self.assertEqual([optimizer.name for optimizer in steps.optimizers], names)
    self.assertEqual([optimizer.rule for optimizer in steps.optimizers], ['rmsprop', 'momentum'])
    self.assertAlmostEqual(steps.optimizers[1].setting('momentum'), 0.5)
    slots = {(slot.role, slot.variable): slot.value for slot in steps.slots_before}
    np.testing.assert_array_equal(slots['squared gradient', 'kernel'], np.ones([3, 3]))
    self.assertIn(('velocity', 'bias'), slots)
    self.assertEqual([step.global_step for step in steps.steps], [1, 2, 3])
    self.assertLen(steps.steps[0].applied_gradients, 2)


def _fields(folder):
  """Returns the fields of a recording and of its training steps."""
  manifest = json.loads(pathlib.Path(folder, 'manifest.json').read_text(encoding='utf-8'))
  return {*manifest, *(f'steps/{field}' for field in manifest['steps'] or ())}


def _settings(run):
  return [(o.name, o.rule, sorted(o.settings)) for o in run.optimizers]


def _named(records):
  return {record.name: record.value for record in records}


def _changes(run):
  before, after = _named(run.values_before), _named(run.steps[0].variables)
  return {name: after[name].astype(np.float64) - before[name] for name in before}


def _raising(outputs, labels):
  raise ValueError('no')


def _save(prefix, values):
  names = list(values)
  tensors = [tf.constant(values[name]) for name in names]
  tf.raw_ops.SaveV2(prefix=prefix, tensor_names=names, shape_and_slices=[''] * 3, tensors=tensors)


if __name__ == '__main__':
  absltest.main()
