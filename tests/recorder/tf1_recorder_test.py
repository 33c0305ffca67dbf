"""The recorder: the package's own numbers, what it writes, and what it refuses."""

import contextlib
import glob
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from unittest import mock

import numpy as np
import pytest
from absl.testing import absltest

from tf2verify.numerics import sampling
from tf2verify.reference import arrays, noise_codes

# isort: split
import tensorflow as tf

from tests.recorder import models, shipped
from tests.recorder.shipped import tf1_recorder
from tf2verify.recordings.recording import Recording
from tf2verify.reference import fill_values
from tf2verify.reference import inputs as case_inputs
from tf2verify.reference.weighted_sum import weighted_sum
from tf2verify.sides import fill, side
from tf2verify.sides.process import randomness
from tf2verify.sides.tf1.graph import Tf1Graph

pytestmark = pytest.mark.starts_processes

v1 = tf.compat.v1
_HERE = pathlib.Path(__file__).parent


class Declaration:
  """What the live reference needs of a case."""

  training_modes = (False, True)

  def __init__(self, builder):
    self.build_tf1_graph = builder

  def loss(self, outputs):
    return weighted_sum(outputs)


def live(builder, inputs):
  """Returns the package's own TF1 side, which builds and runs the model here."""
  return Tf1Graph(Declaration(builder), inputs, lambda _: None, lambda: False)


def temporary_folder(test):
  """Returns a new folder that is gone after the test."""
  folder = tempfile.TemporaryDirectory()
  test.addCleanup(folder.cleanup)
  return folder.name


def by_name(records):
  return {record.name: record.value for record in records}


class SameNumbersTest(absltest.TestCase):
  """The recorder's copies give what the package gives, bit for bit."""

  def test_fill(self):
    for name, shape, dtype in (
      ('conv/weights', (3, 3, 4, 5), np.float32),
      ('embedding', (40, 6), np.float64),
      ('bn/moving_variance', (7,), np.float32),
      ('separable/depthwise_weights', (3, 3, 8, 1), np.float16),
      ('scalar', (), np.float32),
      ('empty', (0, 3), np.float32),
      ('complex', (3, 2), np.complex64),
      ('step', (), np.int64),
    ):
      for ours, theirs in (
        (tf1_recorder.distinct_values, fill_values.distinct_values),
        (tf1_recorder.constant_values, fill.ConstantFill()),
      ):
        one = ours(name, shape, np.dtype(dtype))
        other = theirs(name, shape, np.dtype(dtype))
        if other is None:
          self.assertIsNone(one)
        else:
          self.assertEqual((one.dtype, one.tobytes()), (other.dtype, other.tobytes()), name)

  def test_varied_inputs(self):
    inputs = {'a': np.ones((3, 2), np.float32), 'b': (np.zeros(4), np.arange(3.0))}
    one, replaced = tf1_recorder.varied_inputs(inputs)
    other, others_replaced = case_inputs.varied_inputs(inputs)
    self.assertEqual(tuple(replaced), others_replaced)
    np.testing.assert_array_equal(one['a'], other['a'])
    np.testing.assert_array_equal(one['b'][0], other['b'][0])

  def test_default_loss(self):
    outputs = {
      'a': tf.constant(np.random.RandomState(0).standard_normal((5, 7)).astype(np.float32)),
      'b': (tf.constant([1, 2]), tf.constant([0.5, -2.0], tf.float64)),
    }
    one, other = tf1_recorder.weighted_sum(outputs), weighted_sum(outputs)
    self.assertEqual(one.numpy().tobytes(), other.numpy().tobytes())
    self.assertIsNone(tf1_recorder.weighted_sum(tf.constant([1])))

  def test_digests(self):
    for array in (
      np.arange(6, dtype=np.float32).reshape(2, 3),
      np.asfortranarray(np.arange(6.0).reshape(2, 3)),
      np.arange(6, dtype='>i4'),
      np.array(2.5),
      np.zeros((0, 2)),
      np.array([b'ab', b'c'], object),
      np.array(['ä', 'b']),
      tf.constant([1.0, 2.0], tf.bfloat16).numpy(),
    ):
      self.assertEqual(tf1_recorder.array_digest(array), arrays.array_digest(array))

  def test_samples(self):
    for size in (1, 63, 64, 1025, 70000, 600001):
      array = np.random.RandomState(size).standard_normal(size)
      for dtype in (np.float32, np.float64, np.complex64):
        ours = tf1_recorder.sample(array.astype(dtype))
        theirs = np.asarray(sampling.sampled(array.astype(dtype)))
        self.assertEqual((ours.dtype, ours.shape), (theirs.dtype, theirs.shape))
        np.testing.assert_array_equal(ours[: min(size, 1024)], theirs[: min(size, 1024)])
        np.testing.assert_allclose(ours, theirs, rtol=2e-7)  # a sum's order is numpy's affair
    few = np.arange(300, dtype=np.float32)
    np.testing.assert_array_equal(
      tf1_recorder.sample(few, 64, 0), np.asarray(sampling.sampled(few, 64, 0))
    )

  def test_noise_codes(self):
    value = np.random.RandomState(1).standard_normal(1000).astype(np.float32) * 1e-5
    noise = np.abs(np.random.RandomState(2).standard_normal(1000)) * 10.0 ** -np.arange(1000)[::-1]
    noise[:3] = 0.0, np.inf, np.nan
    for array in (value, np.zeros_like(value), np.where(value > 0, np.inf, value)):
      np.testing.assert_array_equal(
        tf1_recorder.noise_codes(noise, array), noise_codes.noise_codes(noise, array)
      )

  def test_moved_values_are_neighbours(self):
    value = np.array([1.0, -1.0, 0.0, np.inf, np.nan] * 50, np.float32)
    moved = tf1_recorder.Perturber(0).variable('w', value)
    finite = np.isfinite(value) & (value != 0.0)
    steps = moved.view(np.int32)[finite].astype(np.int64) - value.view(np.int32)[finite]
    self.assertEqual(set(steps.tolist()), {-1, 1})
    np.testing.assert_array_equal(moved[~finite], value[~finite])
    self.assertFalse(np.array_equal(moved, tf1_recorder.Perturber(1).variable('w', value)))
    integers = np.array([1.0, 3.0])
    self.assertIs(tf1_recorder.Perturber(0).input('labels', integers), integers)
    self.assertIs(tf1_recorder.Perturber(0, 52).variable('w', value), value)


class RecordTest(absltest.TestCase):
  """What `record` writes, read back, against the package's own run of the same builder."""

  def setUp(self):
    super().setUp()
    self.folder = temporary_folder(self)

  def record(self, builder, inputs, name='recording', **options):
    out = os.path.join(self.folder, name)
    with mock.patch.object(tf1_recorder, 'say'):
      tf1_recorder.record(builder, inputs, out, **{'noise_runs': 2, **options})
    recording = Recording.open(out)
    recording.check()
    return recording

  def test_it_holds_what_the_live_reference_gives(self):
    inputs = models.inputs()
    recording = self.record(models.build, inputs)
    reference = live(models.build, inputs)
    self.addCleanup(reference.close)
    for training in (False, True):
      for mode in (randomness.CONSTANT, randomness.NUM_RANDOM_OPS):
        expected = reference.prepare_seeded(mode, training)()
        found = recording.observation(recording.manifest.seeded(mode, training))
        self.assert_same(expected, found)
    varied = case_inputs.varied_inputs(inputs)[0]
    names = {v.name: v.name for v in reference.inventory().variables}
    for training, of, fed, source, gradients in (
      (False, fill.DistinctFill(), 'varied', varied, False),
      (False, fill.ConstantFill(), 'given', inputs, False),
      (True, fill.DistinctFill(), 'varied', varied, True),
    ):
      run = side.RunSpec(source, training, of, names, gradients)
      (expected,) = reference.prepare_filled([run])()
      entry = recording.manifest.filled(training, of.description, fed, gradients)
      self.assert_same(expected, recording.observation(entry))

  def assert_same(self, expected, found):
    self.assertEqual(found.structure, expected.structure)
    self.assertEqual(
      [loss.variables for loss in found.regularization_losses],
      [loss.variables for loss in expected.regularization_losses],
    )
    for quantity in ('outputs', 'initial_values', 'state_after', 'gradients'):
      ours, theirs = getattr(found, quantity), getattr(expected, quantity)
      self.assertEqual([r.name for r in ours], [r.name for r in theirs], quantity)
      for one, other in zip(ours, theirs, strict=True):
        if other.value is None:
          self.assertIsNone(one.value)
        elif other.value.dtype == object:
          self.assertEqual(one.value.tolist(), other.value.tolist())
        else:
          np.testing.assert_array_equal(one.value, other.value, one.name)
    self.assertEqual(found.regularization_total.tobytes(), expected.regularization_total.tobytes())

  def test_it_describes_the_graph(self):
    recording = self.record(models.build, models.inputs())
    built = live(models.build, models.inputs()).built(True)
    entry = recording.manifest.graph(True)
    self.assertEqual(entry.placeholders, built.placeholders)
    self.assertEqual(entry.outputs, built.outputs)
    self.assertEqual(entry.update_ops, built.update_ops)
    self.assertEqual(entry.operation_seeds, built.operation_seeds)
    for ours, theirs in zip(entry.variables, built.variables, strict=True):
      for field in ('name', 'dtype', 'trainable', 'trainable_flag', 'collections'):
        self.assertEqual(getattr(ours, field), getattr(theirs.record, field), field)
      for field in ('read', 'initializer', 'value', 'shares_value', 'may_change', 'global_step'):
        self.assertEqual(getattr(ours, field), getattr(theirs, field), (ours.name, field))
      line = entry.sources[ours.source]
      self.assertEqual(
        (line.path, line.line), (theirs.record.source.path, theirs.record.source.line)
      )
    for ours, theirs in zip(entry.random_draws, built.random_draws, strict=True):
      for field in ('op_type', 'shape', 'variable', 'in_loop', 'op_name', 'feeds_outputs'):
        self.assertEqual(getattr(ours, field), getattr(theirs, field), (ours.op_name, field))
    graph_def = v1.GraphDef.FromString(recording.graph_def(entry))
    lines = recording.op_sources(entry)
    self.assertLen(lines, len(graph_def.node))
    (relu,) = [n for n, node in enumerate(graph_def.node) if node.name == 'Relu']
    self.assertIn('tf.nn.relu(net)', entry.sources[lines[relu]].code)

  def test_its_builder_and_sources_are_named(self):
    builder = self.record(models.build, models.inputs()).manifest.builder
    self.assertEqual(builder.name, 'tests.recorder.models:build')
    self.assertIn('tests/recorder/models.py', [source.path for source in builder.sources])
    self.assertFalse([s.path for s in builder.sources if s.path.startswith('tf2verify/')])

  def test_two_recordings_are_equal_but_for_the_time(self):
    for builder, inputs in (
      (models.build, models.inputs()),
      (models.build_layers, np.eye(3, 4, dtype=np.float32)),
    ):
      np.random.seed(None)
      random.seed()
      one = self.record(builder, inputs, 'one', overwrite=True).manifest
      random.random()
      np.random.rand()
      other = self.record(builder, inputs, 'other', overwrite=True).manifest
      self.assertTrue(one.arrays == other.arrays)
      self.assertTrue(one.runs == other.runs)
      self.assertTrue(one.graphs == other.graphs)

  def test_what_no_seed_reaches_is_said_not_to_repeat(self):
    inputs = np.array([0.5, 0.25])
    recording = self.record(models.build_unseeded, inputs)
    outputs = [run.outputs[0][1].repeats for run in recording.manifest.runs]
    self.assertEqual(set(outputs), {False})
    recording = self.record(models.build, models.inputs(), 'other')
    tensors = [t for run in recording.manifest.runs for _, t in run.outputs + run.state_after]
    self.assertEqual({tensor.repeats for tensor in tensors}, {True})

  def test_noise_is_small_and_of_computed_values_only(self):
    recording = self.record(models.build, models.inputs(), noise_runs=8)
    run = recording.manifest.filled(True, 'distinct values', 'varied', True)
    self.assertEqual(run.noise_runs, 8)
    still, moved = recording.observation(run), recording.observation(run, moved=True)
    noisy = 0
    for one, other in zip(still.gradients, moved.gradients, strict=True):
      self.assertLess(np.abs(other.value - one.value).max(), 1e-5)
      noisy += bool(np.any(other.value != one.value))
    self.assertGreater(noisy, 0)
    seeded = recording.manifest.seeded(randomness.CONSTANT, True)
    self.assertEqual({tensor.noise for _, tensor in seeded.initial_values}, {None})
    noise = {name: tensor.noise is not None for name, tensor in run.outputs}
    self.assertEqual(noise, {"['net']": True, "['step']": False, "['texts']": False})

  def test_large_arrays_are_sampled_but_outputs_are_not(self):
    inputs = np.random.RandomState(0).standard_normal((9, 6)).astype(np.float32)
    recording = self.record(models.build_large, inputs, largest_array=4096)
    run = recording.manifest.filled(True, 'distinct values', 'varied', True)
    (gradient,) = recording.observation(run).gradients
    self.assertEqual((gradient.value.full_shape, gradient.value.samples), ((6, 5000), 1024))
    self.assertEqual(recording.observation(run).outputs[0].value.shape, (9, 5000))
    whole = self.record(models.build_large, inputs, 'whole')
    (expected,) = whole.observation(
      whole.manifest.filled(True, 'distinct values', 'varied', True)
    ).gradients
    self.assertTrue(sampling.is_whole(gradient.value, expected.value))

  def test_less_is_stored_of_a_large_model(self):
    inputs = np.random.RandomState(0).standard_normal((9, 6)).astype(np.float32)
    options = {'optimizer': lambda: v1.train.GradientDescentOptimizer(0.1), 'steps': 1}
    with mock.patch.object(tf1_recorder, 'LARGE_MODEL', 10000):
      recording = self.record(models.build_large, inputs, **options)
    self.assertEqual(recording.manifest.arguments['largest_array'], 4096)
    run = recording.manifest.filled(True, 'distinct values', 'varied', True)
    (gradient,) = recording.observation(run).gradients
    self.assertEqual((gradient.value.samples, gradient.value.block), (1024, 64))
    (step,) = recording.steps().steps
    value = by_name(step.variables)['kernel']
    self.assertEqual((value.samples, value.block), (256, 0))
    whole = self.record(models.build_large, inputs, 'whole', **options)
    self.assertEqual(by_name(whole.steps().steps[0].variables)['kernel'].shape, (6, 5000))

  def test_tensors_on_the_way(self):
    inputs = np.random.RandomState(0).standard_normal((9, 6)).astype(np.float32)
    for level, shape in (('summary', (64,)), ('full', (9, 5000))):
      recording = self.record(models.build_large, inputs, level, intermediates=level)
      taken = recording.manifest.intermediates
      self.assertEqual(taken.level, level)
      for run in taken.runs:
        tensors = {name: recording.array(array) for name, array in run.tensors}
        self.assertEqual(tensors['MatMul:0'].shape, shape)
    none = self.record(models.build_large, inputs).manifest.intermediates
    self.assertEqual((none.level, none.runs), ('none', ()))

  def test_a_user_s_fill(self):
    def half(name, shape, dtype):
      return np.full(shape, 0.5, dtype) if dtype.kind == 'f' else None

    recording = self.record(models.build, models.inputs(), fill=half)
    digests = recording.manifest.fills['distinct values']
    expected = arrays.array_digest(np.full((6,), 0.5, np.float32))
    self.assertEqual(digests['dense/bias'], expected)
    self.assertIsNone(digests['global_step'])

  def test_a_builder_without_a_training_mode(self):
    recording = self.record(models.build_without_training, np.array([1.5, 2.5], np.float32))
    self.assertLen(recording.manifest.graphs, 2)
    only = self.record(models.build, models.inputs(), 'only', training_modes=(False,))
    self.assertEqual([graph.training for graph in only.manifest.graphs], [False])

  def test_the_process_is_left_as_it_was(self):
    from tensorflow.python.framework import random_seed

    before = random_seed.get_seed, random.getstate(), np.random.get_state()[1].tolist()
    equality = tf.Tensor._USE_EQUALITY
    self.record(models.build, models.inputs())
    with self.assertRaises(tf1_recorder.RecorderError):
      self.record(models.build_raising, np.ones(3), 'raising')
    after = random_seed.get_seed, random.getstate(), np.random.get_state()[1].tolist()
    self.assertEqual(before, after)
    self.assertEqual(tf.Tensor._USE_EQUALITY, equality)
    self.assertTrue(tf.executing_eagerly())


class ErrorsTest(absltest.TestCase):
  """Mistakes are told on one line, and leave nothing."""

  def message(self, builder, inputs, **options):
    folder = temporary_folder(self)
    with self.assertRaises(tf1_recorder.RecorderError) as caught:
      tf1_recorder.record(builder, inputs, os.path.join(folder, 'out'), **options)
    self.assertEqual(os.listdir(folder), [])
    self.assertNotIn('\n', str(caught.exception))
    return str(caught.exception)

  def test_builders(self):
    inputs = np.array([1.5, 2.0], np.float32)
    for builder, words in (
      (models.build_nothing, 'returned None: usually a missing `return`'),
      (models.build_in_own_graph, 'a different graph from the one it is called in'),
      (models.build_mixing_graphs, 'a different graph from the one it is called in'),
      (models.build_number, 'contains no tensor'),
      (models.build_object, "['b'] is of type object"),
      (models.build_raising, 'the builder raised ValueError: the depth is odd'),
    ):
      self.assertIn(words, self.message(builder, inputs))

  def test_inputs(self):
    for inputs, words in (
      (np.array([1.0, np.nan]), 'contains NaN (1 of 2 elements)'),
      (np.array([[1], [1, 2]], object), 'has dtype object'),
      (
        np.array(['2020-01-01'], 'datetime64[D]'),
        'has dtype datetime64[D], which TensorFlow does not have',
      ),
      ([1.0, 2.0], 'inputs[0] is of type float'),
      ({}, 'hold no array'),
      ({1: np.ones(2)}, 'has the keys [1]; use strings'),
      (np.zeros((0, 3)), 'the inputs hold no array with any element'),
    ):
      self.assertIn(words, self.message(models.build, inputs))
    self.assertIn('the builder raised', self.message(models.build, np.ones((2, 2))))

  def test_options(self):
    inputs = models.inputs()
    for options, words in (
      ({'training_modes': ()}, 'the training modes are ()'),
      ({'training_modes': (1,)}, 'the training modes are (1,)'),
      ({'intermediates': 'some'}, "intermediates is 'some'; allowed are none, summary, full"),
      ({'steps': 0}, 'steps is 0; it must be at least 1'),
      ({'optimizer': len, 'train_op': len}, 'give the one that trains'),
      ({'labels': np.array([np.nan])}, 'labels contains NaN'),
      ({'fill': lambda name, shape, dtype: np.zeros(3)}, 'the fill gave'),
    ):
      self.assertIn(words, self.message(models.build, inputs, **options))

  def test_old_versions(self):
    with mock.patch.object(tf, '__version__', '1.12.3'):
      self.assertIn('this is TensorFlow 1.12.3', self.message(models.build, models.inputs()))
    with mock.patch.object(np, '__version__', '1.13.1'):
      self.assertIn('this is numpy 1.13.1', self.message(models.build, models.inputs()))

  def test_functions_that_cannot_be_imported(self):
    for name, words in (
      ('models', 'names no function'),
      ('tests/recorder/models.py:build', 'name the module: --builder tests.recorder.models:build'),
      ('tests.recorder.models:bild', "has no 'bild'; it has build"),
      ('tests.recorder.models:v1', 'cannot be called'),
      ('no_such_module:build', 'raised ModuleNotFoundError'),
    ):
      with self.assertRaises(tf1_recorder.RecorderError) as caught:
        tf1_recorder.load_function(name, 'builder')
      self.assertIn(words, str(caught.exception))

  def test_files_of_arrays(self):
    folder = pathlib.Path(temporary_folder(self))
    np.savez(folder / 'one.npz', np.ones(2))
    np.savez(folder / 'two.npz', np.ones(2), np.zeros(3))
    np.savez(folder / 'named.npz', a=np.ones(2), b=np.zeros(3))
    np.save(folder / 'plain.npy', np.ones(2))
    np.savez(folder / 'objects.npz', np.array([{}]))
    (folder / 'text.npz').write_text('no array')
    load = tf1_recorder.load_arrays
    self.assertEqual(load(str(folder / 'one.npz'), 'inputs').shape, (2,))
    self.assertEqual(load(str(folder / 'plain.npy'), 'inputs').shape, (2,))
    self.assertIsInstance(load(str(folder / 'two.npz'), 'inputs'), tuple)
    self.assertEqual(set(load(str(folder / 'named.npz'), 'inputs')), {'a', 'b'})
    for name in ('objects.npz', 'text.npz', 'absent.npz'):
      with self.assertRaisesRegex(tf1_recorder.RecorderError, 'cannot be read'):
        load(str(folder / name), 'inputs')


class FolderTest(absltest.TestCase):
  """The folder is there when all is done, and not before."""

  def setUp(self):
    super().setUp()
    self.folder = temporary_folder(self)
    self.out = os.path.join(self.folder, 'out')

  def record(self, builder, **options):
    with mock.patch.object(tf1_recorder, 'say') as said:
      tf1_recorder.record(
        builder, np.array([1.5, 2.5], np.float32), self.out, noise_runs=0, **options
      )
    return '\n'.join(call.args[0] for call in said.call_args_list)

  def test_an_interrupted_run_leaves_nothing(self):
    with self.assertRaises(KeyboardInterrupt):
      self.record(models.build_interrupted)
    self.assertEqual(os.listdir(self.folder), [])

  def test_a_second_argument_that_is_no_training_mode_is_refused(self):
    with self.assertRaisesRegex(
      tf1_recorder.RecorderError, 'second argument is `labels`.*given False.*build_for_labels'
    ):
      self.record(models.build_for_labels)
    self.assertEqual(os.listdir(self.folder), [])

  def test_ctrl_c_ends_a_long_run(self):
    np.savez(os.path.join(self.folder, 'inputs.npz'), np.ones(3, np.float32))
    # A shell's background jobs ignore Ctrl-C, and so does what they start.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    self.addCleanup(signal.signal, signal.SIGINT, before)
    running = subprocess.Popen(
      [
        *(sys.executable, tf1_recorder.__file__),
        *('--builder', 'tests.recorder.models:build_endless', '--out', self.out),
        *('--inputs', os.path.join(self.folder, 'inputs.npz')),
      ],
      cwd=_HERE.parents[1],
      stderr=subprocess.PIPE,
      text=True,
    )
    with running, contextlib.ExitStack() as stack:
      stack.callback(running.kill)  # before the end of `with`, which waits for it
      said = ''
      while 'running the graph' not in said:
        read = running.stderr.read(1)
        self.assertTrue(read, said)
        said += read
      time.sleep(0.5)
      running.send_signal(signal.SIGINT)
      self.assertEqual(running.wait(30), 130)
      self.assertIn('interrupted; nothing was written', running.stderr.read())
    self.assertEqual(os.listdir(self.folder), ['inputs.npz'])

  def test_a_killed_run_leaves_no_recording_and_is_named_by_the_next(self):
    code = (
      f'import numpy as np; from tests.recorder import models; '
      f'from tests.recorder.shipped import tf1_recorder; '
      f'tf1_recorder.record(models.build_killed, np.ones(3, "f"), {self.out!r}, noise_runs=0)'
    )
    done = subprocess.run(
      [sys.executable, '-c', code], cwd=_HERE.parents[1], capture_output=True, check=False
    )
    self.assertEqual(done.returncode, -signal.SIGKILL)
    (left,) = os.listdir(self.folder)
    self.assertStartsWith(left, 'out.partial-')
    self.assertNotIn('manifest.json', os.listdir(os.path.join(self.folder, left)))
    said = self.record(models.build_without_training)
    self.assertIn(f'{left} left by an interrupted run; delete it', said)
    self.assertIn("set tf1_recording = 'out' in the case of the port", said)

  def test_what_exists_is_replaced_only_if_asked_for_and_a_recording(self):
    self.record(models.build_without_training)
    with self.assertRaisesRegex(tf1_recorder.RecorderError, 'exists; use a different name'):
      self.record(models.build_without_training)
    with self.assertRaises(KeyboardInterrupt):
      self.record(models.build_interrupted, overwrite=True)
    Recording.open(self.out).check()
    self.record(models.build_without_training, overwrite=True)
    self.assertEqual(os.listdir(self.folder), ['out'])
    os.remove(os.path.join(self.out, 'manifest.json'))
    with self.assertRaisesRegex(tf1_recorder.RecorderError, 'is a folder, but not a recording'):
      self.record(models.build_without_training, overwrite=True)

  def test_a_folder_that_cannot_be_written(self):
    self.out = os.path.join(os.devnull, 'out')
    with self.assertRaisesRegex(tf1_recorder.RecorderError, 'cannot write to /dev/null'):
      self.record(models.build_without_training)


def run_command(python, *arguments):
  """Runs the recorder as a user does, in the folder of `models`; the environment is the user's."""
  kept = {k: v for k, v in os.environ.items() if k not in ('PYTHONPATH', 'TF_USE_LEGACY_KERAS')}
  return subprocess.run(
    [python, str(shipped.PATH), *arguments],
    cwd=_HERE,
    env=kept,
    stdout=subprocess.PIPE,
    stderr=subprocess.STDOUT,
    text=True,
    check=False,
  )


class CommandTest(absltest.TestCase):
  """The command, under the TensorFlow that is here."""

  def setUp(self):
    super().setUp()
    self.folder = temporary_folder(self)
    self.inputs = os.path.join(self.folder, 'inputs.npz')
    self.out = os.path.join(self.folder, 'out')
    np.savez(self.inputs, **models.inputs())

  def test_it_records(self):
    done = run_command(
      sys.executable,
      *('--builder', 'models:build', '--inputs', self.inputs, '--out', self.out),
      *('--noise_runs', '1', '--training', 'inference'),
    )
    self.assertEqual(done.returncode, 0, done.stdout)
    self.assertIn('copy the folder to where TensorFlow 2 is', done.stdout.splitlines()[-1])
    recording = Recording.open(self.out)
    recording.check()
    self.assertEqual(recording.manifest.builder.name, 'models:build')
    self.assertEqual([s.path for s in recording.manifest.builder.sources], ['models.py'])
    self.assertEqual(recording.manifest.environment['tensorflow'], tf.__version__)

  def test_a_mistake_is_the_last_line_below_the_user_s_own_traceback(self):
    np.savez(self.inputs, np.ones(3))
    done = run_command(
      sys.executable,
      *('--builder', 'models:build_raising', '--inputs', self.inputs, '--out', self.out),
    )
    self.assertEqual(done.returncode, 2)
    *_, code, error, last = done.stdout.splitlines()
    self.assertIn("raise ValueError('the depth is odd')", code)
    self.assertEqual(error, 'ValueError: the depth is odd')
    self.assertEqual(last, 'tf1_recorder: error: the builder raised ValueError: the depth is odd')
    self.assertNotIn('tf1_recorder.py', done.stdout)
    self.assertFalse(os.path.exists(self.out))

  def test_help_is_a_manual(self):
    done = run_command(sys.executable, '--help')
    self.assertEqual(done.returncode, 0)
    for words in ('--builder my_model:build', "tf1_recording = 'recording'", '--largest_array'):
      self.assertIn(words, done.stdout)


class OldPythonTest(absltest.TestCase):
  """The file is Python 3.6; Python 2 stops at a line that says so."""

  def python(self, version):
    found = shutil.which(f'python{version}')
    pyenv = sorted(glob.glob(os.path.expanduser(f'~/.pyenv/versions/{version}.*/bin/python')))
    for candidate in (found, *pyenv):
      if candidate and not subprocess.run([candidate, '-V'], capture_output=True).returncode:
        return candidate
    raise unittest.SkipTest(f'there is no Python {version} here')

  def test_python_3_6_compiles_it(self):
    code = f'compile(open({str(shipped.PATH)!r}, encoding="utf-8").read(), "recorder", "exec")'
    done = subprocess.run([self.python('3.6'), '-c', code], capture_output=True, check=False)
    self.assertEqual((done.returncode, done.stderr), (0, b''))

  def test_python_2_says_what_it_needs(self):
    done = subprocess.run(
      [self.python('2.7'), str(shipped.PATH)], capture_output=True, text=True, check=False
    )
    self.assertIn('Python 2 stops here: use Python 3.6 or newer', done.stderr)


class Tf1Test(absltest.TestCase):
  """Under genuine TensorFlow 1.x, which TF1_PYTHON names."""

  def setUp(self):
    super().setUp()
    self.python = os.environ.get('TF1_PYTHON', '')
    if not self.python:
      self.skipTest('TF1_PYTHON names no Python that has TensorFlow 1.x')
    self.folder = temporary_folder(self)
    self.inputs = os.path.join(self.folder, 'inputs.npz')
    np.savez(self.inputs, **models.inputs())

  def record(self, name, builder='build', *options):
    out = os.path.join(self.folder, name)
    done = run_command(
      self.python,
      *('--builder', f'models:{builder}', '--inputs', self.inputs, '--out', out),
      *('--noise_runs', '4', *options),
    )
    self.assertEqual(done.returncode, 0, done.stdout)
    recording = Recording.open(out)
    recording.check()
    return recording

  def test_it_draws_what_tensorflow_2_draws_and_computes_nearly_the_same(self):
    recording = self.record('recording')
    self.assertStartsWith(recording.manifest.environment['tensorflow'], '1.')
    reference = live(models.build, models.inputs())
    self.addCleanup(reference.close)
    for training in (False, True):
      for mode in (randomness.CONSTANT, randomness.NUM_RANDOM_OPS):
        expected = reference.prepare_seeded(mode, training)()
        found = recording.observation(recording.manifest.seeded(mode, training))
        drawn = by_name(found.initial_values)
        for name, value in by_name(expected.initial_values).items():
          np.testing.assert_array_equal(drawn[name], value, name)
        ours, theirs = by_name(found.outputs), by_name(expected.outputs)
        np.testing.assert_allclose(ours["['net']"], theirs["['net']"], rtol=1e-5, atol=1e-6)
        self.assertEqual(ours["['texts']"].tolist(), theirs["['texts']"].tolist())

  def test_two_recordings_are_equal_but_for_the_time(self):
    one, other = self.record('one').manifest, self.record('other').manifest
    self.assertTrue(one.arrays == other.arrays)
    self.assertTrue(one.runs == other.runs)

  def test_layers_of_keras_are_seeded(self):
    np.savez(self.inputs, np.eye(3, 4, dtype=np.float32))
    one = self.record('one', 'build_layers').manifest
    other = self.record('other', 'build_layers').manifest
    self.assertTrue(one.arrays == other.arrays)

  def test_tensors_on_the_way(self):
    recording = self.record('full', 'build', '--intermediates', 'full')
    names = [name for run in recording.manifest.intermediates.runs for name, _ in run.tensors]
    self.assertIn('Relu:0', names)


if __name__ == '__main__':
  absltest.main()
