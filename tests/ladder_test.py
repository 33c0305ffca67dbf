import gc
from unittest import mock

import tensorflow as tf
from absl.testing import absltest

import tf2verify
import tf2verify.ladder as ladder_module
from tests import small_case
from tests.bad_cases import builder, raising
from tf2verify.case import new_ladder
from tf2verify.stages import STAGES
from tf2verify.stages.passes.gradients import Gradients

Status = tf2verify.Status


def _ladder(case: type[tf2verify.EquivalenceCase], steps: list[str] | None = None):
  return new_ladder(case, (lambda _: None) if steps is None else steps.append)


def _stage(name: str):
  return next(stage for stage in STAGES if stage.name == name)


class LadderTest(absltest.TestCase):
  def test_stage_runs_once(self) -> None:
    steps: list[str] = []
    ladder = _ladder(small_case.SmallCase, steps)
    first = ladder.stage(_stage('zero_randomness'))
    self.assertEqual(first.status, Status.PASSED)
    self.assertIn('building the TF1 graph, inference', steps)
    steps.clear()
    self.assertIs(ladder.stage(_stage('zero_randomness')), first)
    self.assertEmpty(steps)
    ladder.close()

  def test_stage_runs_what_it_needs_first_and_nothing_else(self) -> None:
    ladder = _ladder(small_case.SmallCase)
    ladder.stage(_stage('zero_randomness'))
    self.assertEqual(
      [stage.stage for stage in ladder.verdict().stages],
      ['no_new_variables', 'variable_inventory', 'zero_randomness'],
    )
    ladder.close()

  def test_stage_is_blocked_by_the_failure_at_the_root(self) -> None:
    for case, reason in (
      (builder.StructuresDiffer, 'blocked: zero_randomness FAILED'),
      (raising.BuilderRaises, 'blocked: variable_inventory ERROR'),
      (raising.LayerRaises, 'blocked: no_new_variables ERROR'),
    ):
      with self.subTest(case.__name__):
        verdict = _ladder(case).stage(_stage('gradients'))
        self.assertEqual((verdict.status, verdict.reason), (Status.BLOCKED, reason))

  def test_defect_of_a_stage_is_an_error_of_this_stage_alone(self) -> None:
    with mock.patch.object(Gradients, 'check', side_effect=KeyError('lost')):
      verdict = tf2verify.verify(small_case.SmallCase, ['gradients', 'loss', 'checkpoint'])
    found = {stage.stage: stage for stage in verdict.stages}
    self.assertIs(verdict.status, Status.ERROR)
    self.assertIs(found['gradients'].status, Status.ERROR)
    self.assertIn("raised KeyError: 'lost'; this is a defect", found['gradients'].error.summary)
    self.assertIn('Traceback', found['gradients'].error.traceback_text)
    self.assertIs(found['checkpoint'].status, Status.PASSED)

  def test_variables_of_one_name_and_two_shapes_end_no_run(self) -> None:
    class Dense(tf.Module):
      def __init__(self, units):
        super().__init__()
        self.units = units

      @tf.compat.v1.keras.utils.track_tf1_style_variables
      def __call__(self, x):
        return tf.compat.v1.layers.dense(x, self.units, use_bias=False, name='fc')

    class Port(tf.Module):
      def __init__(self):
        super().__init__()
        self.parts = [Dense(4), Dense(2)]

      def __call__(self, x):
        return self.parts[1](self.parts[0](x))

    class Case(small_case.SmallCase):
      def make_tf2_layer(self):
        return Port()

    verdict = tf2verify.verify(Case, ['determinism'])
    self.assertIs(verdict.status, Status.ERROR)
    said = "2 variables of the port are called 'fc/kernel', and have different shapes"
    self.assertIn(said, verdict.first_failure.error.summary)

  def test_stage_left_out_shows_the_reason_and_blocks_nothing(self) -> None:
    class WithoutConstant(small_case.SmallCase):
      stages = tf2verify.all_stages_except(zero_randomness='fills break the table')

    verdict = tf2verify.verify(WithoutConstant)
    self.assertEqual(verdict.status, Status.PASSED, verdict.to_text())
    self.assertEqual(verdict.stages[2].status, Status.NOT_APPLICABLE)
    self.assertEqual(verdict.stages[2].reason, 'left out by the case: fills break the table')
    self.assertEqual([s.status for s in verdict.stages[3:6]], [Status.PASSED] * 3)

  def test_stages_that_are_no_selection_are_told_once(self) -> None:
    class Unselected(small_case.SmallCase):
      stages = ['gradient']

    verdict = tf2verify.verify(Unselected)
    self.assertEqual(verdict.stages[0].status, Status.ERROR)
    self.assertEqual({one.status for one in verdict.stages[1:]}, {Status.BLOCKED})

  def test_verdict_names_the_command_to_run_again(self) -> None:
    verdict = tf2verify.verify(builder.StructuresDiffer)
    self.assertStartsWith(verdict.run_again, 'python -m tf2verify run ')
    self.assertEndsWith(verdict.run_again, 'builder.py::StructuresDiffer --stages zero_randomness')
    self.assertEqual(tf2verify.verify(small_case.SmallCase).run_again, '')

  def test_verdicts_stay_after_close(self) -> None:
    ladder = _ladder(small_case.SmallCase)
    ladder.stage(_stage('variable_inventory'))
    before = ladder.verdict()
    ladder.close()
    self.assertEqual(ladder.verdict(), before)

  def test_cases_leave_no_garbage_behind(self) -> None:
    tf2verify.verify(small_case.SmallCase)
    before = len(gc.get_objects())
    for _ in range(4):
      tf2verify.verify(small_case.SmallCase)
    # A case makes some 2,600 objects that only the collector frees.
    self.assertLess(len(gc.get_objects()) - before, 2000)

  def test_test_names_sort_into_ladder_order(self) -> None:
    names = [ladder_module.test_name(stage) for stage in STAGES]
    self.assertEqual(names, sorted(names))
    self.assertEqual(names[5], 'test_06_gradients')

  def test_environment_names_what_a_reader_needs(self) -> None:
    names = dict(ladder_module.environment())
    self.assertContainsSubset({'python', 'platform', 'tensorflow', 'tf-keras', 'numpy'}, names)


if __name__ == '__main__':
  absltest.main()
