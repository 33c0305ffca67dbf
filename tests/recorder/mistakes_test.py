"""What a user may do wrong with the recorder: told before anything runs, and what to do."""

import os
import subprocess
import sys
import tempfile
import zipfile
from unittest import mock

import numpy as np
import pytest
import tensorflow as tf
from absl.testing import absltest

from tests.recorder import mistakes
from tests.recorder.shipped import tf1_recorder

pytestmark = pytest.mark.starts_processes

v1 = tf.compat.v1
_INPUTS = np.random.RandomState(0).standard_normal((4, 3)).astype(np.float32)
_LABELS = np.zeros((4, 2), np.float32)


class _MistakeTest(absltest.TestCase):
  def setUp(self):
    super().setUp()
    self.folder = self.enter_context(tempfile.TemporaryDirectory())

  def said(self, builder, inputs=_INPUTS, **options):
    """Records, and returns what was said on the way."""
    out = os.path.join(self.folder, 'out')
    with mock.patch.object(tf1_recorder, 'say') as said:
      tf1_recorder.record(builder, inputs, out, noise_runs=0, overwrite=True, **options)
    return '\n'.join(call.args[0] for call in said.call_args_list)

  def assert_refused(self, builder, *words, inputs=_INPUTS, **options):
    with (
      mock.patch.object(tf1_recorder, 'fetch', side_effect=AssertionError('something was run')),
      self.assertRaises(tf1_recorder.RecorderError) as caught,
    ):
      self.said(builder, inputs, **options)
    message = str(caught.exception)
    self.assertNotIn('\n', message)
    for word in words:
      self.assertIn(word, message)
    self.assertEqual(os.listdir(self.folder), [])


class WaitingTest(_MistakeTest):
  """What would wait forever, or ask for a value, is named before it runs."""

  def test_queues(self):
    place = 'mistakes.py:'
    self.assert_refused(
      mistakes.build_of_queue,
      "the builder reads from a queue, QueueDequeueManyV2 'shuffle_batch' of ",
      place,
      'would wait forever: use the tensors that the builder is given',
      'numpy.savez that, and give the file with --inputs',
    )
    self.assert_refused(mistakes.build_of_files, "reads from a queue, ReaderReadV2 'ReaderReadV2'")

  def test_queues_of_losses_and_train_ops(self):
    def waiting(total):
      queue = v1.FIFOQueue(2, [tf.float32], [[]], name='tokens')
      with tf.control_dependencies([queue.dequeue()]):
        return mistakes.train_op(total)

    for words, options in (
      ('the loss reads from a queue.*--labels', {'loss': mistakes.loss_of_queue}),
      (
        "the train op reads from a queue, QueueDequeueV2 'tokens_Dequeue'.*SyncReplicasOptimizer",
        {'loss': mistakes.loss, 'labels': _LABELS, 'train_op': waiting},
      ),
    ):
      with self.assertRaisesRegex(tf1_recorder.RecorderError, words):
        self.said(mistakes.build, **options)
      self.assertEqual(os.listdir(self.folder), [])

  def test_placeholders_of_the_builder_s_own(self):
    self.assert_refused(
      mistakes.build_of_placeholder,
      "a placeholder of its own, 'features' (float32, shape (?, 3))",
      'in build_of_placeholder; nothing is fed to it',
    )
    self.assert_refused(mistakes.build_with_keep_prob, "'keep_prob' (float32, shape ())")

  def test_what_needs_no_feeding_is_recorded(self):
    self.assertIn('wrote', self.said(mistakes.build_with_defaults))


class CallsTest(_MistakeTest):
  def test_builders(self):
    for builder, words in (
      (
        mistakes.build_of_classes,
        'called as build_of_classes(inputs, is_training=False), which it does not take: missing a '
        "required argument: 'num_classes'",
      ),
      (mistakes.build_of_nothing, 'called as build_of_nothing(inputs), which it does not take'),
      (mistakes.build_after_reset, 'remove that line, each call of the builder gets a fresh graph'),
    ):
      self.assert_refused(builder, words)

  def test_functions(self):
    losses = {'loss': mistakes.loss, 'labels': _LABELS}
    for words, options in (
      (
        r'--optimizer is called as train_op\(\).*given with --train_op',
        {'optimizer': mistakes.train_op},
      ),
      (
        r'--train_op is called as optimizer\(loss\).*given with --optimizer',
        {'train_op': mistakes.optimizer, **losses},
      ),
      (r'--loss is called as <lambda>\(outputs, labels\)', {'loss': lambda outputs: outputs}),
      (
        'made of a loss .--train_op., and none is given: add --loss',
        {'train_op': mistakes.train_op},
      ),
      (
        'not a tf.train.Optimizer: a train op is made by a function of the loss: --train_op',
        {'optimizer': lambda: tf.no_op(), **losses},
      ),
      (
        'not an op of the graph: a function that returns an optimizer takes nothing: --optimizer',
        {'train_op': lambda loss: mistakes.optimizer(), **losses},
      ),
    ):
      with self.subTest(words), self.assertRaisesRegex(tf1_recorder.RecorderError, words):
        self.said(mistakes.build, **options)

  def test_a_loss_without_labels(self):
    with self.assertRaisesRegex(
      tf1_recorder.RecorderError, 'the loss raised .*None for labels, since --labels is not given'
    ):
      self.said(mistakes.build, loss=mistakes.loss)
    with self.assertRaises(tf1_recorder.RecorderError) as caught:
      self.said(mistakes.build, loss=mistakes.loss, labels=np.zeros((5, 7), np.float32))
    self.assertNotIn('--labels is not given', str(caught.exception))

  def test_names_of_inputs(self):
    self.assert_refused(
      mistakes.build,
      "`inputs` was a dictionary of tensors with the keys 'images', as the arrays are named",
      'numpy.savez(FILE, inputs=array)',
      inputs={'images': _INPUTS},
    )
    self.assert_refused(
      mistakes.build_of_keys, "with the keys 'x', 'y'", inputs={'x': _INPUTS, 'y': _INPUTS}
    )
    self.assert_refused(mistakes.build_of_keys, '`inputs` was one tensor')
    self.assertIn('wrote', self.said(mistakes.build_of_keys, {'images': _INPUTS}))


class NotesTest(_MistakeTest):
  def test_the_default_loss(self):
    note = 'no --loss is given: the training steps minimize the default loss'
    self.assertIn(note, self.said(mistakes.build, optimizer=mistakes.optimizer))
    given = {'loss': mistakes.loss, 'labels': _LABELS, 'optimizer': mistakes.optimizer}
    self.assertNotIn(note, self.said(mistakes.build, **given))
    self.assertNotIn(note, self.said(mistakes.build))

  def test_a_builder_that_ignores_its_argument(self):
    note = 'the graphs of inference and training are the same'
    self.assertIn(note, self.said(mistakes.build_ignoring))
    self.assertNotIn(note, self.said(mistakes.build))
    self.assertNotIn(note, self.said(mistakes.build_ignoring, training_modes=(True,)))

  def test_the_version(self):
    note = f'this is TensorFlow {tf.__version__}, not 1.x'
    self.assertIn(note, self.said(mistakes.build))
    with mock.patch.object(tf, '__version__', '1.15.5'):
      self.assertNotIn(note, self.said(mistakes.build))


class FilesTest(_MistakeTest):
  def message(self, name, content):
    path = os.path.join(self.folder, name)
    with open(path, 'wb') as file:
      file.write(content)
    with self.assertRaises(tf1_recorder.RecorderError) as caught:
      tf1_recorder.load_arrays(path, 'inputs')
    self.assertNotIn('\n', str(caught.exception))
    return str(caught.exception).replace(path, 'FILE')

  def test_files_that_are_none(self):
    path = os.path.join(self.folder, 'right.npz')
    np.savez(path, np.arange(1000.0))
    with open(path, 'rb') as file:
      right = file.read()
    fix = '; write it by np.savez, with arrays of numbers'
    self.assertEqual(
      self.message('cut.npz', right[:500]),
      f'--inputs FILE cannot be read: File is not a zip file{fix}',
    )
    damaged = right[:300] + b'x' * 10 + right[310:]
    self.assertIn("Bad CRC-32 for file 'arr_0.npy'; write", self.message('damaged.npz', damaged))
    for content in (b'', b'no array'):
      message = self.message('text.npz', content)
      self.assertIn('cannot be read', message)
      self.assertNotIn('allow_pickle', message)
    with self.assertRaisesRegex(tf1_recorder.RecorderError, 'No such file or directory$'):
      tf1_recorder.load_arrays(os.path.join(self.folder, 'absent.npz'), 'inputs')
    self.assertTrue(zipfile.is_zipfile(path))
    self.assertEqual(tf1_recorder.load_arrays(path, 'inputs').shape, (1000,))


class WithoutTensorFlowTest(_MistakeTest):
  def run_with(self, module, content):
    """Runs the command where a module is another one."""
    with open(os.path.join(self.folder, module + '.py'), 'w', encoding='utf-8') as file:
      file.write(content)
    return subprocess.run(
      [sys.executable, tf1_recorder.__file__, '--help'],
      env={**os.environ, 'PYTHONPATH': self.folder},
      capture_output=True,
      text=True,
      check=False,
    )

  def test_it_says_so_on_one_line(self):
    for module, content, words in (
      ('tensorflow', "raise ModuleNotFoundError('No module named tensorflow')", 'No module named'),
      ('numpy', "raise ImportError('no numpy')", 'ImportError: no numpy'),
      (
        'tensorflow',
        "raise TypeError('Descriptors cannot be created directly.\\nIf')",
        'directly;',
      ),
    ):
      done = self.run_with(module, content)
      os.remove(os.path.join(self.folder, module + '.py'))
      self.assertEqual((done.returncode, done.stdout), (2, ''), done.stderr)
      (line,) = done.stderr.splitlines()
      self.assertStartsWith(line, 'tf1_recorder: error: TensorFlow cannot be imported by ')
      self.assertIn(words, line)
      self.assertIn('run the recorder with the Python in which the model runs', line)


if __name__ == '__main__':
  absltest.main()
