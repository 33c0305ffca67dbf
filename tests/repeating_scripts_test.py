import contextlib
import io
import os
from unittest import mock

import pytest
from absl.testing import absltest, parameterized

from tests import console
from tf2verify.commands import cli, repeating_scripts
from tf2verify.errors import UsageError

pytestmark = pytest.mark.starts_processes

# Stands in for TensorFlow, which takes seconds to import: what is set in it can be printed.
_TENSORFLOW = """
import types

SET = []
random = types.SimpleNamespace(set_seed=lambda seed: SET.append(f'seed {seed}'))
config = types.SimpleNamespace(
  experimental=types.SimpleNamespace(enable_op_determinism=lambda: SET.append('determinism')),
  threading=types.SimpleNamespace(
    set_inter_op_parallelism_threads=lambda n: SET.append(f'inter {n}'),
    set_intra_op_parallelism_threads=lambda n: SET.append(f'intra {n}'),
  ),
)
"""
_TRAIN = """
import os
import random
import sys

import numpy as np
import tensorflow

assert 'tf2verify' not in sys.modules
print('Epoch 1/2: loss=9.0, ignored: accuracy: 0.3')
print(f'loss={random.random()!r} noise={np.random.rand()!r} hash={hash("a")}')
print(f'steps=3 rate=1e-3 bad=x1 path=/a/b=2.5.1')
print('set', tensorflow.SET, 'hash seed', os.environ.get('PYTHONHASHSEED'), sys.argv[1:])
"""


class ScriptTestCase(parameterized.TestCase):
  def setUp(self):
    super().setUp()
    self.folder = console.own_folder(self)
    console.write_files(self.folder, train=_TRAIN, tensorflow=_TENSORFLOW)
    self.script = str(self.folder / 'train.py')

  def repeat(self, *names, runs=2, arguments=(), **options):
    settings = repeating_scripts.settings_named(names)
    return repeating_scripts.repeat(self.script, arguments, settings, runs, **options)


class MetricsTest(absltest.TestCase):
  def test_last_value_of_each_name(self):
    output = 'loss=2.0\nloss=1.5 top/5=.5, val_loss=-1e-3\nlearning_rate=inf x=nan\n'
    found = repeating_scripts.metrics_of(output)
    self.assertEqual(str(found.pop('x')), 'nan')
    self.assertEqual(
      found, {'loss': 1.5, 'top/5': 0.5, 'val_loss': -0.001, 'learning_rate': float('inf')}
    )

  def test_what_is_no_metric(self):
    for text in ('loss: 1.0', '2=3', 'version=1.2.3', 'name=x', 'a==1', 'seconds=3s', '--rate=1'):
      with self.subTest(text):
        self.assertEmpty(repeating_scripts.metrics_of(text))


class RepeatTest(ScriptTestCase):
  def test_nothing_set_varies_and_seeds_repeat(self):
    none, seeds = self.repeat('none', 'seeds', runs=3)
    self.assertFalse(none.repeatable)
    self.assertTrue(seeds.repeatable)
    self.assertEqual([name for name, _ in none.metrics], ['loss', 'noise', 'hash', 'steps', 'rate'])
    self.assertEqual(repeating_scripts.distinct(dict(none.metrics)['loss']), 3)
    self.assertLen(seeds.seconds, 3)

  def test_another_seed_gives_other_values(self):
    (one,), (other,) = self.repeat('seeds', runs=1), self.repeat('seeds', runs=1, seed=1)
    for name, values in one.metrics[:3]:
      self.assertNotEqual(values, dict(other.metrics)[name])

  @parameterized.parameters(
    ('none', "set [] hash seed None ['--epochs', '3']"),
    ('seeds', "set ['seed 5'] hash seed 5 ['--epochs', '3']"),
    ('seeds+op_determinism', "set ['seed 5', 'determinism'] hash seed 5 ['--epochs', '3']"),
    (
      'seeds+op_determinism+one_thread',
      "set ['seed 5', 'determinism', 'inter 1', 'intra 1'] hash seed 5 ['--epochs', '3']",
    ),
  )
  def test_what_is_set(self, name, said):
    (setting,) = repeating_scripts.settings_named([name])
    with mock.patch.dict(os.environ):
      os.environ.pop('PYTHONHASHSEED', None)
      output = repeating_scripts._output_of(self.script, ['--epochs', '3'], setting, 5)
    self.assertIn(said, output)

  def test_chosen_metrics(self):
    (runs,) = self.repeat('seeds', wanted=('steps',))
    self.assertEqual(runs.metrics, (('steps', (3.0, 3.0)),))

  def test_report(self):
    lines = repeating_scripts.report_lines(self.repeat('none', 'seeds', wanted=('loss', 'steps')))
    text = '\n'.join(lines)
    self.assertRegex(text, r'loss:\n  setting +runs +mean +variance +max - min +different')
    self.assertRegex(text, r'\n  seeds +2 +0\.\d+ +0 +0 +1\nsteps:\n')
    self.assertRegex(text, r'time:\n  setting +seconds a run +times none\n  none +\d\.\d\d +1\.00')

  def test_bad_input(self):
    with self.assertRaisesRegex(UsageError, 'absent.py is not a file'):
      repeating_scripts.repeat('absent.py', (), repeating_scripts.SETTINGS, 1)
    with self.assertRaisesRegex(UsageError, "'seed' is not a setting; there are none, seeds, "):
      repeating_scripts.settings_named(['seed'])
    with self.assertRaisesRegex(UsageError, 'no metric auc: print each to .* found: loss, noise'):
      self.repeat('none', wanted=('loss', 'auc'))
    console.write_files(self.folder, train="print('done')\n")
    with self.assertRaisesRegex(UsageError, 'no metric at all: .* found: none'):
      self.repeat('none')
    console.write_files(self.folder, train="raise KeyError('batch')\n")
    with self.assertRaisesRegex(UsageError, r"status 1 \[none\]\n(.*\n)*KeyError: 'batch'"):
      self.repeat('none')


class CommandTest(ScriptTestCase):
  def _run(self, *arguments):
    said, complained = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(complained):
      try:
        status = cli.main(['repeat', *arguments])
      except SystemExit as ended:
        status = int(ended.code or 0)
    return status, said.getvalue(), complained.getvalue()

  def test_repeatable(self):
    status, said, _ = self._run(self.script, '--runs', '2', '--settings', 'seeds', '--', '--seed')
    self.assertEqual(status, 0)
    self.assertEndsWith(said, 'every metric repeats with seeds\n')

  def test_not_repeatable(self):
    status, said, _ = self._run(
      self.script, '--runs', '2', '--settings', 'none', '--metrics', 'loss'
    )
    self.assertEqual(status, 1)
    self.assertNotIn('hash', said)
    self.assertEndsWith(said, 'not every metric repeats with none\n')

  def test_bad_usage(self):
    for arguments, text in (
      (['absent.py'], 'absent.py is not a file'),
      ([self.script, '--runs', '0'], "'0' is not a whole number of at least 1"),
      ([self.script, '--settings', 'all'], "'all' is not a setting"),
    ):
      with self.subTest(text):
        status, said, complained = self._run(*arguments)
        self.assertEqual((status, said), (2, ''))
        self.assertIn(text, complained)

  def test_it_takes_no_tensorflow_and_chooses_no_keras(self):
    console.write_files(
      self.folder,
      train="import os\nprint('chosen=%d' % ('TF_USE_LEGACY_KERAS' in os.environ))\n",
      tensorflow='raise ImportError("it was imported")\n',
    )
    with mock.patch.dict(os.environ):
      os.environ.pop('TF_USE_LEGACY_KERAS', None)
      done = console.run('-m', 'tf2verify', 'repeat', 'train.py', '--runs', '1', folder=self.folder)
    self.assertEqual(done.returncode, 0, done.stderr)
    self.assertRegex(done.stdout, r'chosen:\n.*\n  none +1 +0 ')


class SeededScriptTest(ScriptTestCase):
  def test_modules_of_the_script_come_first(self):
    console.write_files(self.folder, train='import errors\nprint(f"own={errors.OWN}")\n')
    console.write_files(self.folder, errors='OWN = 1\n')
    (runs,) = self.repeat('seeds', runs=1)
    self.assertEqual(runs.metrics, (('own', (1.0,)),))

  def test_a_script_without_tensorflow(self):
    console.write_files(self.folder, train='import sys\nprint(f"n={len(sys.argv)}")\n')
    (runs,) = self.repeat('seeds+op_determinism', runs=1)
    self.assertEqual(runs.metrics, (('n', (1.0,)),))


if __name__ == '__main__':
  absltest.main()
