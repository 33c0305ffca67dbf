"""Each kind of bad input, and what the user is told."""

import os
from typing import Any

import numpy as np
from absl.testing import absltest

import tf2verify

# isort: split
import tensorflow as tf

from tests import small_case
from tests.bad_cases import BAD_CASES, layer, raising
from tf2verify.stages import STAGES

Status = tf2verify.Status
# Not a name: a clone lies in a folder called tf2verify as well.
_OWN = os.path.join(os.path.dirname(os.path.abspath(tf2verify.__file__)), '')


class BadInputTest(absltest.TestCase):
  def test_each_mistake_is_found_at_its_stage_and_explained(self) -> None:
    for case in BAD_CASES:
      with self.subTest(case.__name__):
        self._check(case)

  def _check(self, case: type[small_case.SmallCase]) -> None:
    mistake = case.mistake
    verdict = tf2verify.verify(case)
    found = next(stage for stage in verdict.stages if stage.status is not Status.PASSED)
    self.assertEqual((found.stage, found.status), (mistake.stage, mistake.status))
    self.assertEqual(found.error.side if found.error else '', mistake.side)
    text = ' '.join(found.to_text().split())
    for part in mistake.text:
      self.assertIn(' '.join(part.split()), text)
    self.assertLen(verdict.stages, len(STAGES))
    if found.error is not None:
      self.assertNotIn('\n', found.error.summary)
      self.assertNotIn(f'File "{_OWN}', found.error.traceback_text)

  def test_same_case_without_a_mistake_passes(self) -> None:
    verdict = tf2verify.verify(small_case.SmallCase)
    self.assertEqual(verdict.status, Status.PASSED, verdict.to_text())

  def test_traceback_is_the_users_own_and_other_verdicts_are_kept(self) -> None:
    verdict = tf2verify.verify(raising.BuilderRaises)
    self.assertEqual(
      [stage.status for stage in verdict.stages],
      [Status.PASSED, Status.ERROR, *[Status.BLOCKED] * 9],
    )
    self.assertEqual(verdict.stages[5].reason, 'blocked: variable_inventory ERROR')
    text = verdict.stages[1].error.traceback_text
    lines = [line for line in text.splitlines() if line.strip(' ~^')]
    self.assertLen(lines, 4, text)
    self.assertRegex(lines[1], r'File ".*raising.py", line \d+, in build_tf1_graph')
    self.assertEqual(lines[2].strip(), "return inputs[:, {}['width']]")
    self.assertEqual(lines[3], "KeyError: 'width'")

  def test_loss_that_raises_leaves_the_five_stages_before_passed(self) -> None:
    verdict = tf2verify.verify(raising.LossRaises)
    statuses = [stage.status for stage in verdict.stages]
    self.assertEqual(statuses[:6], [*[Status.PASSED] * 5, Status.ERROR])
    left = (Status.NOT_APPLICABLE, Status.BLOCKED, Status.PASSED, Status.BLOCKED, Status.BLOCKED)
    self.assertSequenceEqual(statuses[6:], left)

  def test_interrupt_is_no_verdict(self) -> None:
    class Interrupted(small_case.SmallCase):
      def make_tf2_layer(self):
        raise KeyboardInterrupt

    with self.assertRaises(KeyboardInterrupt):
      tf2verify.verify(Interrupted)

  def test_error_that_only_one_meaning_of_shapes_raises_is_not_the_one_shown(self) -> None:
    class HalfPorted(small_case.SmallCase):
      def build_tf1_graph(self, inputs, training):
        outputs = small_case.model(inputs, training)
        half = outputs * (outputs.shape[1] * 0.5)  # not with TF1's Dimension
        return half.logits

    summary = tf2verify.verify(HalfPorted).first_failure.error.summary
    self.assertRegex(summary, "build_tf1_graph raised AttributeError: .*'logits'")

  def test_mistake_of_one_hook_does_not_call_the_others(self) -> None:
    calls = []

    class Counting(layer.LayerIsNone):
      def make_inputs(self):
        calls.append('make_inputs')
        return super().make_inputs()

    tf2verify.verify(Counting)
    self.assertEqual(calls, ['make_inputs'])


class DeclarationTest(absltest.TestCase):
  def _check(self, case: object, text: str) -> None:
    with self.assertRaisesRegex(tf2verify.Tf2VerifyError, text):
      tf2verify.verify(case)

  def test_abstract_hook_missing(self) -> None:
    class NoInputs(tf2verify.EquivalenceCase):
      def build_tf1_graph(self, inputs, training):
        return inputs

      def make_tf2_layer(self):
        return small_case.Port()

    self._check(
      NoInputs,
      r'NoInputs does not override make_inputs; a case declares .*abc\.ABC among',
    )

  def test_hook_with_other_arguments(self) -> None:
    class WithoutTraining(small_case.SmallCase):
      def build_tf1_graph(self, inputs):
        return inputs

    self._check(
      WithoutTraining,
      r'WithoutTraining\.build_tf1_graph cannot be called: too many positional arguments; write '
      r'it as a method, def build_tf1_graph\(self, inputs, training\)',
    )

  def test_hook_with_arguments_in_another_order(self) -> None:
    class Swapped(small_case.SmallCase):
      def tf1_loss(self, labels, outputs):
        return outputs

    class Early(small_case.SmallCase):
      def tf2_train_step(self, layer, optimizer, inputs, labels):
        return inputs

    class OwnNames(small_case.SmallCase):
      def tf1_loss(self, logits, targets):
        return logits

      def tf2_train_step(self, model, features, optimizer):
        return features

    self._check(
      Swapped,
      r'tf1_loss cannot be called: its parameter labels is where outputs is passed; write it as a '
      r'method, def tf1_loss\(self, outputs, labels\)',
    )
    self._check(
      Early,
      r'its parameter optimizer is where inputs is passed; write it as a method, def '
      r'tf2_train_step\(self, layer, inputs, labels, optimizer\) \(it may leave out labels and opt',
    )
    self.assertIs(tf2verify.verify(OwnNames, ['no_new_variables']).status, Status.PASSED)

  def test_two_train_ops(self) -> None:
    class WithOptimizer(small_case.SmallCase):
      def make_tf1_optimizer(self):
        pass

    class WithTrainOp(WithOptimizer):  # in the place of the optimizer
      def make_tf1_train_op(self, loss):
        pass

    class WithBoth(WithTrainOp):
      def make_tf1_optimizer(self):
        pass

    class WithNeither(WithBoth):
      make_tf1_train_op = tf2verify.EquivalenceCase.make_tf1_train_op

    stages = ['no_new_variables']
    for case in (WithOptimizer, WithTrainOp, WithNeither):
      self.assertIs(tf2verify.verify(case, stages).status, Status.PASSED)
    self._check(WithBoth, 'declares make_tf1_optimizer and make_tf1_train_op: which trains the ref')

  def test_hook_that_is_a_value(self) -> None:
    class ArrayAsHook(small_case.SmallCase):
      make_inputs = np.ones((4, 3))

    self._check(
      ArrayAsHook, r'make_inputs cannot be called: it is a ndarray; .*def make_inputs\(self\)'
    )

  def test_hook_without_self(self) -> None:
    class NoSelf(small_case.SmallCase):
      def make_inputs():  # type: ignore[misc]
        return np.ones((4, 3), np.float32)

    self._check(NoSelf, r'make_inputs cannot be called: it has no parameter self; .*\(self\)')

  def test_inputs_that_contain_themselves_and_numbers_as_objects(self) -> None:
    nested: list[object] = []
    nested.append(nested)
    for inputs, words in (
      (nested, 'contains itself'),
      (np.array([[1.0, 2.0, 3]], object), 'with numbers as elements'),
    ):

      class Inputs(small_case.SmallCase):
        make_inputs = lambda self, inputs=inputs: inputs  # noqa: E731

      verdict = tf2verify.verify(Inputs, stages=['no_new_variables'])
      self.assertIn(words, verdict.to_text())
      self.assertNotIn('defect of tf2verify', verdict.to_text())

  def test_regularization_losses_that_are_no_list(self) -> None:
    class Text(small_case.SmallCase):
      def tf2_regularization_losses(self, layer: Any) -> Any:
        return 'none'

    text = tf2verify.verify(Text, stages=['zero_randomness']).to_text()
    self.assertIn('tf2_regularization_losses returned a str; return a list of scalar', text)

  def test_a_loss_that_is_no_tensor_is_told_alike_by_each_stage(self) -> None:
    class Number(small_case.SmallCase):
      def tf1_loss(self, outputs: Any, labels: Any) -> Any:
        return tf.reduce_mean(outputs)

      def tf2_loss(self, outputs: Any, labels: Any) -> Any:
        return float(tf.reduce_mean(outputs))

    verdict = tf2verify.verify(Number, stages=['loss', 'execution_modes'])
    for stage in verdict.stages:
      if stage.error is not None:
        self.assertIn('tf2_loss returned a float', stage.error.summary)
    self.assertEqual([s.stage for s in verdict.stages if s.error], ['loss', 'execution_modes'])

  def test_instance_instead_of_the_class(self) -> None:
    self._check(
      small_case.SmallCase(),
      r'takes a subclass of tf2verify\.EquivalenceCase, the class itself; got .*SmallC',
    )

  def test_something_else(self) -> None:
    self._check(small_case.Port, 'takes a subclass of tf2verify.EquivalenceCase')

  def test_final_method_overridden(self) -> None:
    for name in ('test_06_gradients', 'setUp', 'tearDownClass'):
      with self.assertRaisesRegex(
        tf2verify.Tf2VerifyError, rf'Overriding overrides {name}, which is final: .*into the hooks'
      ):
        type('Overriding', (small_case.SmallCase,), {name: lambda self: None})

  def test_unknown_stage_of_verify(self) -> None:
    with self.assertRaisesRegex(
      tf2verify.Tf2VerifyError, r"'gradient' is not a stage \(did you mean 'gradients'\?\)"
    ):
      tf2verify.verify(small_case.SmallCase, stages=['gradient'])

  def test_text_as_stages_of_verify(self) -> None:
    with self.assertRaisesRegex(
      tf2verify.Tf2VerifyError,
      r"stages is 'gradients'; it must be a list of names: \['gradients'\]",
    ):
      tf2verify.verify(small_case.SmallCase, stages='gradients')

  def test_place_of_a_hook_that_cannot_be_called(self) -> None:
    class WithoutTraining(small_case.SmallCase):
      def build_tf1_graph(self, inputs):
        return inputs

    self._check(WithoutTraining, r'\(build_tf1_graph: .*bad_input_test.py:\d+\)$')

  def test_callbacks_of_verify(self) -> None:
    for name in ('on_stage', 'progress', 'on_stuck'):
      with self.assertRaisesRegex(
        tf2verify.Tf2VerifyError, rf'{name} is 5; it must be a function .*, {name}=print, or None'
      ):
        tf2verify.verify(small_case.SmallCase, ['no_new_variables'], **{name: 5})

  def test_verdict_has_no_truth_value(self) -> None:
    verdict = tf2verify.verify(small_case.SmallCase, stages=['no_new_variables'])
    with self.assertRaisesRegex(TypeError, 'compare .status with a tf2verify.Status'):
      bool(verdict)


if __name__ == '__main__':
  absltest.main()
