"""What is kept by one process is taken by another one, whose sets have another order."""

import pytest
from absl.testing import absltest

from tests import console

pytestmark = pytest.mark.starts_processes

_BINDINGS = """
import json

import keras
import numpy
import tensorflow
import tf_keras
import tf_slim

from tf2verify.sides.kept import installed

print(json.dumps(installed.bindings()))
"""
_LADDER = """
from examples.simple_model.equivalence_test import AdamSimpleModelCase

import tf2verify
from tf2verify.sides.kept import dependencies, installed

before = installed.bindings()
assert tf2verify.verify(AdamSimpleModelCase).passed
after = installed.bindings()
print(dependencies.changes(before, {name: after[name] for name in before}))
"""
_STAGES = 'variable_inventory', 'zero_randomness'


class ProcessesTest(absltest.TestCase):
  def setUp(self):
    super().setUp()
    self.folder = console.own_folder(self)

  def test_modules_look_the_same_in_each(self):
    found = [
      console.run('-c', _BINDINGS, folder=self.folder, PYTHONHASHSEED=seed).stdout
      for seed in ('1', '2')
    ]
    self.assertIn('keras.src.layers.core.dense', found[0])
    self.assertEqual(*found)

  def test_a_whole_ladder_changes_none(self):
    done = console.run('-c', _LADDER, folder=self.folder)
    self.assertEqual(done.stdout.splitlines()[-1:], ['[]'], done.stdout + done.stderr)

  def _runs(self, example, *cases):
    """Returns what the last of some runs says: of a case each, or of all where that is ''."""
    file = str(console.REPOSITORY / 'examples' / example / 'equivalence_test.py')
    for case in cases:
      target = f'{file}::{case}' if case else file
      kept = ('--reuse_reference', str(self.folder), '--stages', *_STAGES)
      done = console.run(
        '-m', 'tf2verify', 'run', target, *kept, folder=self.folder, PYTHONHASHSEED='random'
      )
      self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
    return done.stdout

  def test_of_a_shim_port_by_a_run_of_one_case(self):
    said = self._runs('simple_model', '', 'AdamSimpleModelCase')
    self.assertRegex(said, 'reference: reused: [1-9]')

  def test_of_a_keras3_port(self):
    self.assertRegex(self._runs('keras3_conv_net', '', ''), 'reference: reused: [1-9]')


if __name__ == '__main__':
  absltest.main()
