import pathlib
import tempfile
from unittest import mock

import pytest
from absl.testing import absltest

import tf2verify
from tests import console
from tests.stages import tiny_models
from tf2verify.discovery import find_cases
from tf2verify.records.tensor_key import TensorKey
from tf2verify.stages.repetition import fresh_processes
from tf2verify.stages.repetition.fresh_processes import Environment

pytestmark = pytest.mark.starts_processes

Status = tf2verify.Status
_CASES = """
import random

import tensorflow as tf

import tf2verify


class Base(tf2verify.EquivalenceCase):
  fresh_processes = 1
  names = [f'name_{n}' for n in range(20)]  # 20! orders: no two processes agree by chance

  def build_tf1_graph(self, inputs, training):
    return inputs * tf.compat.v1.get_variable('factor', (3,))

  def make_tf2_layer(self):
    return Port(self.names)

  def make_inputs(self):
    return tf2verify.normal_inputs((4, 3))


class Port(tf.keras.layers.Layer):
  def __init__(self, names):
    super().__init__()
    self.places = {name: n for n, name in enumerate(names)}

  @tf.compat.v1.keras.utils.track_tf1_style_variables
  def call(self, inputs):
    net = inputs * tf.compat.v1.get_variable('factor', (3,))
    order = [self.places[name] for name in sorted(self.places)]
    return net * (1.0 + 0.1 * random.Random(repr(order)).random())


class BySet(Base):
  names = property(lambda self: set(Base.names))
"""


class InProcessesTest(absltest.TestCase):
  def setUp(self):
    super().setUp()
    folder = tempfile.TemporaryDirectory()
    self.addCleanup(folder.cleanup)
    console.write_files(pathlib.Path(folder.name), set_case=_CASES)
    self.file = f'{folder.name}/set_case.py'

  def _climb(self, name):
    (found,) = find_cases(f'{self.file}::{name}')
    with found.importable():
      return tf2verify.verify(found.case, stages=['determinism']).stages[-1]

  def test_the_order_of_a_set_varies(self):
    found = self._climb('BySet')
    text = found.to_text()
    self.assertIs(found.status, Status.FAILED, text)
    self.assertIn('tf2: different bits in a different process', text)
    self.assertIn('the order of a set of strings, decides', text)

  def test_right(self):
    # In a process of its own, as a user runs it: what this one has done before is no part
    # of what others could repeat.
    target, stages = f'{self.file}::Base', ('--stages', 'determinism')
    folder = pathlib.Path(self.file).parent
    done = console.run('-m', 'tf2verify', 'run', target, *stages, folder=folder)
    self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
    self.assertRegex(done.stdout, r'determinism +PASSED')
    self.assertNotIn('blind spot', done.stdout)
    self.assertNotIn('in this process only', done.stdout)


def climb(case, *processes):
  """Climbs to the stage, with processes that give these digests, or fail with a text."""
  given = iter(processes)

  def digests_of(target, environment):
    del target, environment
    found = next(given)
    return (None, found) if isinstance(found, str) else (found, '')

  with (
    mock.patch.object(fresh_processes, '_digests_of', digests_of),
    mock.patch.object(fresh_processes, '_target', lambda case: 'file.py::Case'),
  ):
    return tf2verify.verify(case, stages=['determinism']).stages[-1]


@mock.patch.dict('os.environ', PYTHONHASHSEED='')
class StandInTest(absltest.TestCase):
  """What processes of their own might give."""

  def test_an_error_is_a_blind_spot(self):
    class Case(tiny_models.Affine):
      fresh_processes = 1

    found = climb(Case, 'ImportError: no module')
    self.assertIs(found.status, Status.PASSED)
    self.assertIn('PYTHONHASHSEED=1 ended with an error: ImportError', found.to_text())
    self.assertEqual(found.compared.blind_spots, 1)

  def test_what_differs_with_one_thread_is_a_note(self):
    class Case(tiny_models.Affine):
      fresh_processes = 2

    def same(target, environment):
      del target
      here = dict(seen)
      return ({**here, 'tf2': {}} if environment.one_thread else here), ''

    seen = {}
    repeated = fresh_processes.repeated

    def remember(case, tf1, tf2):
      seen.update(tf1=dict(tf1), tf2=dict(tf2))
      return repeated(case, tf1, tf2)

    with (
      mock.patch.object(fresh_processes, '_digests_of', same),
      mock.patch.object(fresh_processes, 'repeated', remember),
      mock.patch.object(fresh_processes, '_target', lambda case: 'file.py::Case'),
    ):
      found = tf2verify.verify(Case, stages=['determinism']).stages[-1]
    self.assertIs(found.status, Status.PASSED, found.to_text())
    self.assertIn(
      '8 tensors have different bits in a process with PYTHONHASHSEED=2, one thread',
      found.to_text(),
    )

  def test_a_reference_that_varies_is_not_blamed(self):
    class Case(tiny_models.Affine):
      fresh_processes = 1

    other = {'tf1': {TensorKey('output', 'x', 'training'): '1'}, 'tf2': {}}
    found = climb(Case, other, {'tf1': {}, 'tf2': {}}, other)
    self.assertIs(found.status, Status.INCONCLUSIVE, found.to_text())
    self.assertIn('also differ: it depends on time', found.to_text())

  def test_a_case_in_a_function_cannot_be_found(self):
    class Case(tiny_models.Affine):
      fresh_processes = 2

    found = tf2verify.verify(Case, stages=['determinism']).stages[-1]
    self.assertIs(found.status, Status.PASSED)
    self.assertIn('the case is not declared at the top of a Python file', found.to_text())
    self.assertEqual(found.compared.blind_spots, 1)

  def test_bad_number(self):
    for number in (-1, 2.0, True, 'two'):
      with self.subTest(number):

        class Case(tiny_models.Affine):
          fresh_processes = number

        found = tf2verify.verify(Case, stages=['determinism']).stages[-1]
        self.assertIs(found.status, Status.ERROR)
        self.assertIn(f'fresh_processes is {number!r}; it must be the number', found.error.summary)


class EnvironmentsTest(absltest.TestCase):
  def test_none_has_the_hash_seed_of_this_process(self):
    with mock.patch.dict('os.environ', PYTHONHASHSEED='2'):
      found = fresh_processes.environments(3)
    self.assertEqual([environment.hash_seed for environment in found], [1, 3, 4])

  @mock.patch.dict('os.environ', PYTHONHASHSEED='')
  def test_kinds(self):
    self.assertEqual(
      fresh_processes.environments(5),
      [
        Environment(1),
        Environment(2, one_thread=True),
        Environment(3, op_determinism=True),
        Environment(4, one_thread=True, op_determinism=True),
        Environment(5),
      ],
    )
    self.assertEqual(
      str(Environment(4, True, True)), 'PYTHONHASHSEED=4, one thread, op determinism'
    )


if __name__ == '__main__':
  absltest.main()
