"""`watch`: the ladder again at each change of a file, the reference kept."""

import contextlib
import io
import os
import sys
import tempfile
from unittest import mock

from absl.testing import absltest

from tf2verify.commands import changed_modules, cli
from tf2verify.commands.watch import Watch, show
from tf2verify.records.status import Status

_MODEL = """
import tensorflow as tf

BUILDS = []


def net(x):
  w = tf.compat.v1.get_variable('w', (3, 2))
  return tf.nn.relu(tf.matmul(x, w))
"""
_PORT = """
import tensorflow as tf


class Port(tf.Module):
  def __init__(self):
    self.w = None

  def __call__(self, x):
    if self.w is None:
      self.w = tf.Variable(tf.compat.v1.glorot_uniform_initializer()((3, 2)), name='w')
    return tf.nn.relu(tf.matmul(x, self.w))
"""
_CASE = """
import watched_model
import watched_port

import tf2verify


class WatchedCase(tf2verify.EquivalenceCase):
  def build_tf1_graph(self, inputs, training):
    return watched_model.net(inputs)

  def make_tf2_layer(self):
    return watched_port.Port()

  def make_inputs(self):
    return tf2verify.normal_inputs((4, 3))
"""
_RELU, _ELU = 'relu(tf.matmul(x, self.w))', 'elu(tf.matmul(x, self.w))'
_STAGES = ['no_new_variables', 'variable_inventory', 'zero_randomness', 'gradients']


class WatchTest(absltest.TestCase):
  def setUp(self):
    super().setUp()
    self.folder = self.enter_context(tempfile.TemporaryDirectory())
    self.case = self._write('watched_case.py', _CASE)
    self._write('watched_model.py', _MODEL)
    self.port = self._write('watched_port.py', _PORT)
    self.enter_context(mock.patch.object(sys, 'path', list(sys.path)))

  def _write(self, name, text):
    path = os.path.join(self.folder, name)
    with open(path, 'w') as file:
      file.write(text)
    return path

  def _rounds(self, *changes):
    """Returns the first round, and the one after each change."""
    found = []
    rounds = Watch(self.case, _STAGES).rounds(len(changes) + 1)
    for change in (*changes, None):
      found.append(next(rounds))
      if change is not None:
        self._write(*change)
    return found

  def _statuses(self, found):
    return {stage.stage: stage.status for stage in found.verdicts[-1].stages}

  def test_a_fault_is_found_at_once_and_the_ladder_begins_there(self):
    wrong = ('watched_port.py', _PORT.replace(_RELU, _ELU))
    first, second, third = self._rounds(wrong, ('watched_port.py', _PORT))
    self.assertTrue(first.verdicts[-1].passed)
    self.assertEqual(first.order, tuple(_STAGES))
    self.assertIs(self._statuses(second)['zero_randomness'], Status.FAILED)
    self.assertNotIn('gradients', self._statuses(second))
    self.assertEqual(second.reference, 'the one of the round before')
    # It goes on after the stage that had failed, and leaves out none before it.
    self.assertEqual(third.order, ('zero_randomness', 'gradients', *_STAGES[:2]))
    self.assertTrue(third.verdicts[-1].passed)
    self.assertContainsSubset(_STAGES, self._statuses(third))

  def test_a_change_of_the_reference_builds_it_anew(self):
    elu = _MODEL.replace('tf.nn.relu', 'tf.nn.elu')
    _, second = self._rounds(('watched_model.py', elu))
    self.assertIn('rebuilt: watched_model.net', second.reference)
    self.assertIs(self._statuses(second)['zero_randomness'], Status.FAILED)

  def test_the_modules_of_the_reference_are_not_imported_again(self):
    said = _MODEL + "\nprint('imported')\n"
    self._write('watched_model.py', said)
    with contextlib.redirect_stdout(io.StringIO()) as printed:
      self._rounds(('watched_port.py', _PORT + '\n# changed\n'))
    self.assertEqual(printed.getvalue().count('imported'), 1)

  def test_other_inputs_build_it_anew(self):
    _, second = self._rounds(('watched_case.py', _CASE.replace('(4, 3)', '(5, 3)')))
    self.assertEqual(second.reference, 'rebuilt: make_inputs returns different arrays')

  def test_a_syntax_error_is_shown_and_it_goes_on(self):
    broken = ('watched_port.py', _PORT + '\ndef (:\n')
    _, second, third = self._rounds(broken, ('watched_port.py', _PORT))
    self.assertIn('SyntaxError', second.error)
    self.assertEmpty(second.verdicts)
    self.assertTrue(third.verdicts[-1].passed)

  def test_an_import_error_is_shown_and_it_goes_on(self):
    broken = ('watched_port.py', 'import no_such_module\n' + _PORT)
    _, second, third = self._rounds(broken, ('watched_port.py', _PORT))
    self.assertIn('no_such_module', second.error)
    self.assertTrue(third.verdicts[-1].passed)

  def test_one_that_cannot_be_imported_at_first(self):
    self._write('watched_port.py', 'x =')
    first, second = self._rounds(('watched_port.py', _PORT))
    self.assertIn('SyntaxError', first.error)
    self.assertTrue(second.verdicts[-1].passed)

  def test_the_cause_comes_first(self):
    self._write('watched_port.py', _PORT.replace(_RELU, _ELU))
    (found,) = self._rounds()
    with contextlib.redirect_stdout(io.StringIO()) as printed:
      show(found, 3, _STAGES)
    text = printed.getvalue()
    self.assertStartsWith(text, 'round 1\n')
    self.assertLess(text.index('differ'), text.index('no_new_variables'))
    self.assertIn('not run, until this one passes: gradients', text)

  def test_the_command(self):
    with contextlib.redirect_stdout(io.StringIO()) as printed:
      status = cli.main(['watch', self.case, '--stages', 'no_new_variables', '--rounds', '1'])
    self.assertEqual(status, 0)
    self.assertIn('WatchedCase: PASSED', printed.getvalue())

  def test_what_is_not_there_is_not_waited_for(self):
    empty = self._write('empty_case.py', 'x = 1\n')
    absent = os.path.join(self.folder, 'absent_case.py')
    for target, said in (
      (absent, 'absent_case.py does not exist'),
      ('no_such_module', 'no_such_module is neither a file or folder nor a module'),
      (empty, 'declares no complete EquivalenceCase'),
      (f'{self.case}::Absent', 'has no case Absent'),
    ):
      for rounds in ((), ('--rounds', '1')):
        with contextlib.redirect_stderr(io.StringIO()) as complained:
          self.assertEqual(cli.main(['watch', target, *rounds]), 2)
        self.assertIn(said, complained.getvalue())

  def test_a_file_that_goes_away_is_waited_for(self):
    rounds = Watch(self.case, _STAGES).rounds(2)
    next(rounds)
    os.remove(self.case)
    self.assertIn('watched_case.py does not exist', next(rounds).error)

  def test_who_imports_what_has_changed(self):
    watch = Watch(self.case, _STAGES)
    next(watch.rounds(1))
    known = changed_modules.user_modules(watch._modules)
    outdated = changed_modules.outdated(known, [self.port])
    self.assertContainsSubset({'watched_port', 'watched_case'}, outdated)
    self.assertNotIn('watched_model', outdated)


if __name__ == '__main__':
  absltest.main()
