"""What `verify()` leaves behind in the process: nothing."""

import contextlib
import gc
import importlib
import random
import resource
from collections.abc import Iterator

import numpy as np
from absl.testing import absltest

import tf2verify
import tf2verify.sides.process.state as process_state_of_tf2verify
from tests import small_case
from tests.bad_cases import BAD_CASES, builder, layer
from tests.global_probes import process_state
from tests.turning_cases import TURNS, turning_case
from tf2verify.records.execution_mode import JIT, MODES

# isort: split
import tensorflow as tf

Status = tf2verify.Status
# Those with which the model still is the same on both sides.
_HARMLESS = sorted(
  set(TURNS)
  - {'draws', 'clear_session', 'tf.random.set_global_generator', 'mixed precision'}
  - {'set_floatx'}
)


def _use_the_process() -> None:
  """Leaves every counter and generator somewhere else than at its start."""
  tf.keras.utils.set_random_seed(7)
  tf.random.set_global_generator(tf.random.Generator.from_seed(7))
  tf.random.normal([1])
  tf.random.get_global_generator().normal([1])
  tf.keras.layers.Dense(1)
  tf.keras.initializers.GlorotUniform()((2, 2))
  with tf.compat.v1.variable_scope('used'):
    tf.compat.v1.add_to_collection('used', 1)
  random.random()
  np.random.rand()


def _draws() -> list[float]:
  return [
    random.random(),
    float(np.random.rand()),
    float(tf.random.normal(())),
    float(tf.random.get_global_generator().normal(())),
    float(tf.keras.initializers.RandomNormal()(())),
  ]


class ProcessGlobalsTest(absltest.TestCase):
  def setUp(self) -> None:
    super().setUp()
    # What another test has frozen and still holds: with each object that dies the count falls.
    gc.unfreeze()
    # Modules that load at first use register functions to call at exit.
    tf2verify.verify(small_case.SmallCase)
    importlib.import_module('keras')
    _use_the_process()

  def test_every_global_is_as_it_was_after_every_case(self) -> None:
    for case in (small_case.SmallCase, *BAD_CASES):
      # AutoGraph leaves an exit function, which removes its file, for code that it sees first.
      tf2verify.verify(case, stages=['zero_randomness'])
      with self.subTest(case.__name__), self._unchanged():
        tf2verify.verify(case)

  def test_global_that_user_code_turns_is_as_it_was_and_does_not_change_the_verdict(self) -> None:
    for name in TURNS:
      with self.subTest(name):
        with self._unchanged():
          verdict = tf2verify.verify(turning_case(name), stages=['zero_randomness'])
        if name in _HARMLESS:
          self.assertEqual(verdict.status, Status.PASSED, verdict.to_text())

  @contextlib.contextmanager
  def _unchanged(self) -> Iterator[None]:
    before = process_state()
    yield
    after = process_state()
    changed = {key: (before[key], after[key]) for key in before if before[key] != after[key]}
    self.assertEmpty(changed)

  def test_every_global_is_as_it_was_after_an_interrupt(self) -> None:
    for hook in ('make_inputs', 'make_tf2_layer', 'build_tf1_graph', 'loss'):
      with self.subTest(hook), self._unchanged(), self.assertRaises(KeyboardInterrupt):
        tf2verify.verify(_interrupted_in(hook))

  def test_probes_see_what_the_turning_cases_turn(self) -> None:
    """Else the first test would pass whatever is left behind."""
    with process_state_of_tf2verify.preserved():
      for name in ('set_floatx', 'os.chdir', 'random.seed', 'tf.random.set_seed', 'collections'):
        before = process_state()
        TURNS[name]()
        after = process_state()
        self.assertNotEmpty([key for key in before if before[key] != after[key]], name)

  def test_random_numbers_go_on_as_if_nothing_had_been(self) -> None:
    _use_the_process()
    expected = _draws()
    _use_the_process()
    tf2verify.verify(small_case.SmallCase)
    self.assertEqual(_draws(), expected)


class LeakTest(absltest.TestCase):
  def setUp(self) -> None:
    super().setUp()
    # What another test has frozen and still holds would not be counted, and then not be let go.
    gc.unfreeze()

  def test_second_run_of_a_case_gives_the_same_verdict(self) -> None:
    for case in (small_case.SmallCase, layer.ScopeCountsUp, builder.StructuresDiffer):
      with self.subTest(case.__name__):
        first = tf2verify.verify(case)
        tf2verify.verify(turning_case('layer names'))
        with tf.compat.v1.variable_scope(None, default_name='block'):
          tf.keras.layers.Dense(1)
        self.assertEqual(_facts(tf2verify.verify(case)), _facts(first))

  def test_many_cases_do_not_grow(self) -> None:
    class Case(small_case.SmallCase):
      # TensorFlow keeps what XLA has compiled for as long as the process lives: 1 MB each.
      modes_to_run = tuple(mode for mode in MODES if mode != JIT)

    for _ in range(6):
      tf2verify.verify(Case)
    start = _resident_bytes()
    for _ in range(12):
      tf2verify.verify(Case)
    grown = (_resident_bytes() - start) / 12
    self.assertLess(grown, 1e6, f'{grown:,.0f} bytes a case')

  def test_graphs_layers_and_variables_are_let_go(self) -> None:
    tf2verify.verify(small_case.SmallCase)
    before = _living()
    tf2verify.verify(small_case.SmallCase)
    self.assertEqual(_living(), before)
    tf2verify.verify(layer.ScopeCountsUp)
    self.assertEqual(_living(), before)


def _interrupted_in(hook: str) -> type[small_case.SmallCase]:
  def interrupt(*_):
    tf.keras.backend.set_floatx('float16')
    random.seed(1)
    raise KeyboardInterrupt

  arguments = {
    'make_inputs': lambda self: interrupt(),
    'make_tf2_layer': lambda self: interrupt(),
    'build_tf1_graph': lambda self, inputs, training: interrupt(),
    'loss': lambda self, outputs: interrupt(),
  }
  return type('Interrupted', (small_case.SmallCase,), {hook: arguments[hook]})


def _facts(verdict: tf2verify.CaseVerdict) -> list[object]:
  return [
    (s.stage, s.status, s.compared, s.differences, s.notes, s.figures, s.reason)
    for s in verdict.stages
  ]


def _living() -> dict[str, int]:
  gc.collect()
  kinds = (tf.Graph, tf.compat.v1.Session, tf.Variable, tf.keras.layers.Layer)
  objects = gc.get_objects()
  return {kind.__name__: sum(issubclass(type(o), kind) for o in objects) for kind in kinds}


def _resident_bytes() -> int:
  gc.collect()
  with open('/proc/self/statm', encoding='ascii') as file:
    return int(file.read().split()[1]) * resource.getpagesize()


if __name__ == '__main__':
  absltest.main()
