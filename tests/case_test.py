import abc
import contextlib
import io
import os
import tempfile
import unittest
from unittest import mock

import numpy as np
from absl.testing import absltest

import tf2verify
from tests import small_case
from tests.bad_cases import builder, layer
from tf2verify.stages import STAGES

Status = tf2verify.Status
_TESTS = [f'test_{number + 1:02}_{stage.name}' for number, stage in enumerate(STAGES)]


def _names(case: type[unittest.TestCase]) -> list[str]:
  return list(unittest.TestLoader().getTestCaseNames(case))


def _run(case: type[unittest.TestCase], *tests: str) -> unittest.TestResult:
  """Runs tests of a fresh subclass, since a class keeps its verdicts."""
  fresh = type(case.__name__, (case,), {'__module__': case.__module__})
  result = unittest.TestResult()
  with contextlib.redirect_stdout(io.StringIO()):
    unittest.TestSuite(fresh(test) for test in tests or _names(fresh)).run(result)
  return result


class TestsOfACaseTest(absltest.TestCase):
  def test_one_test_a_stage_in_ladder_order(self) -> None:
    self.assertEqual(_names(small_case.SmallCase), _TESTS)
    documented = small_case.SmallCase('test_06_gradients').shortDescription()
    self.assertIn('gradients: the gradient of the loss agrees', documented)

  def test_bases_own_no_tests(self) -> None:
    class Base(small_case.SmallCase, abc.ABC):
      pass

    class Concrete(Base):
      pass

    self.assertEmpty(_names(tf2verify.EquivalenceCase))
    self.assertEmpty(_names(Base))
    self.assertEqual(_names(Concrete), _TESTS)

  def test_all_pass(self) -> None:
    result = _run(small_case.SmallCase)
    self.assertEqual((result.testsRun, result.failures), (len(STAGES), []))
    skipped = [test._testMethodName for test, _ in result.skipped]
    self.assertEqual(skipped, ['test_07_loss', 'test_08_training_steps'])

  def test_one_alone_computes_what_it_needs(self) -> None:
    result = _run(small_case.SmallCase, 'test_06_gradients')
    self.assertEqual((result.testsRun, result.failures, result.skipped), (1, [], []))

  def test_blocked_stages_are_skipped_with_the_reason(self) -> None:
    result = _run(builder.StructuresDiffer)
    self.assertLen(result.failures, 1)
    self.assertIn("stage 'zero_randomness' FAILED", result.failures[0][1])
    self.assertEqual([why for _, why in result.skipped], ['blocked: zero_randomness FAILED'] * 7)
    self.assertEmpty(result.errors)

  def test_blocked_stage_alone_is_not_green(self) -> None:
    result = _run(builder.StructuresDiffer, 'test_06_gradients', 'test_07_loss')
    self.assertIn("stage 'zero_randomness' FAILED", result.failures[0][1])
    self.assertNotIn('Traceback', result.failures[0][1])
    # What is wrong is told once.
    self.assertEqual([test._testMethodName for test, _ in result.failures], ['test_06_gradients'])
    self.assertEqual([why for _, why in result.skipped], ['blocked: zero_randomness FAILED'])

  def test_stage_with_nothing_to_look_at_is_skipped(self) -> None:
    result = _run(layer.NoTrainableVariables, 'test_06_gradients')
    self.assertRegex(result.skipped[0][1], 'no variable is trainable')

  def test_hook_missing(self) -> None:
    class Incomplete(tf2verify.EquivalenceCase):
      def make_inputs(self):
        return np.ones(3)

    result = _run(Incomplete, 'test_01_no_new_variables')
    self.assertIn('Incomplete does not override build_tf1_graph', result.errors[0][1])


class ConfigurationTest(absltest.TestCase):
  def test_subclass_sets_what_varies_and_has_a_ladder_of_its_own(self) -> None:
    class Scaled(small_case.SmallCase):
      scale = 1.0

      def call_tf2_layer(self, layer, inputs, training):
        return self.scale * layer(inputs, training=training)

    class Doubled(Scaled):
      scale = 2.0

    self.assertEqual(tf2verify.verify(Scaled).status, Status.PASSED)
    verdict = tf2verify.verify(Doubled)
    self.assertEqual((verdict.case, verdict.status), ('Doubled', Status.FAILED))
    self.assertEqual(verdict.first_failure.stage, 'zero_randomness')

  def test_one_training_mode(self) -> None:
    class InferenceOnly(small_case.SmallCase):
      training_modes = (False,)

    verdict = tf2verify.verify(InferenceOnly)
    self.assertEqual(verdict.status, Status.PASSED, verdict.to_text())
    self.assertEqual({figure.run.split(',')[0] for s in verdict.stages for figure in s.figures},
                     {'inference'})  # fmt: skip

  def test_layer_without_training_argument(self) -> None:
    class Plain(small_case.SmallCase):
      def build_tf1_graph(self, inputs, training):
        return small_case.dense(inputs)

      def make_tf2_layer(self):
        return small_case.PlainPort()

    self.assertEqual(tf2verify.verify(Plain).status, Status.PASSED)


class VerifyTest(absltest.TestCase):
  def test_verdicts_are_told_as_they_come(self) -> None:
    told: list[str] = []
    steps: list[str] = []
    verdict = tf2verify.verify(
      small_case.SmallCase, on_stage=lambda v: told.append(v.stage), progress=steps.append
    )
    self.assertEqual(told, [stage.name for stage in STAGES])
    self.assertLen(verdict.stages, len(STAGES))
    self.assertIn('building the TF1 graph, training', steps)

  def test_chosen_stages_and_what_they_need(self) -> None:
    verdict = tf2verify.verify(small_case.SmallCase, stages=['zero_randomness'])
    self.assertEqual(
      [stage.stage for stage in verdict.stages],
      ['no_new_variables', 'variable_inventory', 'zero_randomness'],
    )

  def test_runner_and_verify_do_not_share_verdicts(self) -> None:
    with contextlib.redirect_stdout(io.StringIO()):
      _run(small_case.SmallCase, 'test_01_no_new_variables')
    self.assertIsNone(small_case.SmallCase._ladder)


class FormerNameTest(absltest.TestCase):
  def test_the_former_name_of_evaluate_with_ema_still_counts(self) -> None:
    with self.assertWarnsRegex(DeprecationWarning, 'now called evaluate_with_ema'):

      class Former(small_case.SmallCase):
        evaluates_shadows = True

    class Subclass(Former):
      pass

    self.assertTrue(Former.evaluate_with_ema)
    self.assertTrue(Subclass.evaluate_with_ema)
    self.assertFalse(small_case.SmallCase.evaluate_with_ema)


class ReportTest(absltest.TestCase):
  def test_environment_variable_names_the_folder(self) -> None:
    with tempfile.TemporaryDirectory() as folder:
      with mock.patch.dict(os.environ, TF2VERIFY_REPORT_DIR=f'{folder}/new/report'):
        os.environ.pop('PYTEST_XDIST_TESTRUNUID', None)  # it shares the folder with no other worker
        _run(small_case.SmallCase, 'test_01_no_new_variables')
      names = sorted(os.listdir(f'{folder}/new/report'))
    self.assertLen(names, 2)
    self.assertEqual(names, ['summary.md', 'tests.small_case.SmallCase.json'])


if __name__ == '__main__':
  absltest.main()
