"""Losses, training steps, checkpoint and repetition of a recorded reference, on the ladder."""

import abc
import contextlib
import os
import tempfile

import numpy as np
import tensorflow as tf
from absl.testing import absltest

import tf2verify
from tests import recorded_small
from tests.port_bugs import losses, optimizers, schedules, train_ops
from tests.recorder import trained_models as models
from tests.sides import recorded_cases
from tests.stages.first_failure import LadderTestCase
from tf2verify.case import new_ladder
from tf2verify.sides.fill import RecordedFill
from tf2verify.sides.process import state as process_state
from tf2verify.sides.side import RunSpec
from tf2verify.sides.tf1 import checkpoint as tf1_checkpoint
from tf2verify.stages.passes.zero_randomness import CaseFill

v1 = tf.compat.v1
train = v1.train
keras = tf.keras.optimizers
_STEPS = 'training_steps'


class Nesterov(models.DecayedNesterov, abc.ABC):
  """Nesterov momentum and a staircase: what of TF1 works in eager mode is the port."""

  def make_tf2_optimizer(self):
    rate = keras.schedules.ExponentialDecay(0.1, 2, 0.5, staircase=True)
    return _KeptMomentum(rate, 0.9, nesterov=True)


class _KeptMomentum(keras.SGD):
  """TF1's momentum: a sum of gradients, whatever the learning rate was."""

  def update_step(self, gradient, variable):
    rate = tf.cast(self.learning_rate, variable.dtype)
    kept = self.momentums[self._index_dict[self._var_key(variable)]]
    kept.assign(self.momentum * kept + gradient)
    variable.assign_sub(rate * (gradient + self.momentum * kept))


class LateDecay(models.DecayedNesterov, abc.ABC):
  """A schedule that is one step late."""

  def make_tf2_optimizer(self):
    class Late(keras.schedules.ExponentialDecay):
      def __call__(self, step):
        return super().__call__(tf.maximum(step - 1, 0))

    return _KeptMomentum(Late(0.1, 2, 0.5, staircase=True), 0.9, nesterov=True)


class Wide(models.Trained, abc.ABC):
  """A variable of which a recording holds a part."""

  def model(self, inputs, training):
    return tf.matmul(inputs, v1.get_variable('kernel', [3, 5000]))

  def make_labels(self):
    return tf2verify.normal_inputs((4, 5000), seed=7)

  def make_tf1_optimizer(self):
    return train.AdamOptimizer(0.01)

  def make_tf2_optimizer(self):
    return keras.Adam(0.01, epsilon=1e-8)


class WideWithEpsilonOfKeras(Wide, abc.ABC):
  def make_inputs(self):
    return 1e-4 * super().make_inputs()

  def make_tf2_optimizer(self):
    return keras.Adam(0.01)


class WideUnclipped(Wide, abc.ABC):
  def make_tf1_train_op(self, loss):
    variables = v1.trainable_variables()
    gradients, _ = tf.clip_by_global_norm(tf.gradients(loss, variables), 1e-3)
    pairs = zip(gradients, variables, strict=True)
    step = train.get_or_create_global_step()
    return train.GradientDescentOptimizer(0.1).apply_gradients(pairs, step)

  def make_tf2_optimizer(self):
    return keras.SGD(0.1)


class RecordedTrainingTestCase(LadderTestCase):
  def record(self, case_class, **options):
    """Records a case into a folder that is gone after the test."""
    folder = self.enter_context(tempfile.TemporaryDirectory())
    return recorded_cases.record(case_class, os.path.join(folder, 'recording'), **options)

  def last(self, case_class, stage):
    """Returns the verdict of a stage, and asserts that all before it are well."""
    verdict = tf2verify.verify(case_class, stages=[stage])
    return verdict.stages[-1]


class StepsTest(RecordedTrainingTestCase):
  def test_right_ports_pass(self):
    for case in (optimizers.KeptRmsProp, optimizers.Adam, Nesterov, train_ops.ClippedTogether):
      with self.subTest(case.__name__):
        found = self.last(self.record(case), _STEPS)
        self.assertIs(found.status, tf2verify.Status.PASSED, found.to_text())

  def test_wrong_ports_fail_with_the_cause_that_a_live_reference_gives(self):
    wrong = (
      optimizers.RmsPropOfKeras,
      optimizers.AdamWithEpsilonOfKeras,
      schedules.Slope,
      schedules.DecayedOnce,
      train_ops.ClippedApart,
      train_ops.AveragedByKeras,
      LateDecay,
    )
    for case in wrong:
      with self.subTest(case.__name__):
        live, recorded = (self.last(each, _STEPS) for each in (case, self.record(case)))
        self.assertIs(recorded.status, tf2verify.Status.FAILED, recorded.to_text())
        self.assertEqual(_hints(recorded), _hints(live))
        if 'learning rate' not in {found.quantity for found in recorded.differences}:
          self.assertIn("takes the recorded step: what differs is the port's", recorded.to_text())

  def test_kernels_of_another_version(self):
    case = self.record(optimizers.Adam)

    def another_kernel(manifest, arrays):
      step = manifest['steps']['steps'][1]
      for _, tensor in [*step['gradients'], *step['variables']]:
        arrays[tensor['value']] = (arrays[tensor['value']] * 1.01).astype(np.float32)

    recorded_small.altered(case.tf1_recording, another_kernel)
    found = self.last(case, _STEPS)
    self.assertIs(found.status, tf2verify.Status.FAILED, found.to_text())
    self.assertIn('what differs are the kernels of the two versions of TensorFlow', found.to_text())

  def test_more_steps_than_were_recorded(self):
    case = self.record(models.Trained, steps=2)
    more = type('More', (case,), {'training_steps_to_take': 3})
    found = self.last(more, _STEPS)
    self.assertIs(found.status, tf2verify.Status.ERROR)
    self.assertRegex(found.error.summary, 'is 3, and .* has 2 steps: record with --steps 3')
    fewer = type('Fewer', (case,), {'training_steps_to_take': 1})
    self.assertIs(self.last(fewer, _STEPS).status, tf2verify.Status.PASSED)

  def test_as_many_steps_as_were_recorded(self):
    for steps in (2, 5):
      found = self.last(self.record(models.Trained, steps=steps), _STEPS)
      self.assertIs(found.status, tf2verify.Status.PASSED, found.to_text())
      self.assertIn(f'note: {steps} steps: ', found.to_text())

  def test_steps_of_the_default_loss(self):
    class OwnLoss(models.Trained):
      make_labels = tf2verify.EquivalenceCase.make_labels

      def tf2_loss(self, outputs, labels):
        return tf.reduce_mean(outputs)

    class Default(OwnLoss):
      tf2_loss = tf2verify.EquivalenceCase.tf2_loss

    without = {'loss': None, 'labels': None}
    found = self.last(self.record(OwnLoss, **without), _STEPS)
    self.assertIs(found.status, tf2verify.Status.ERROR)
    self.assertRegex(found.error.summary, 'steps of the default loss.*record with --loss, or leave')
    found = self.last(self.record(Default, **without), _STEPS)
    self.assertIs(found.status, tf2verify.Status.PASSED, found.to_text())

  def test_a_loss_without_recorded_labels(self):
    class Unlabelled(models.Trained):
      make_labels = tf2verify.EquivalenceCase.make_labels

    class Ignoring(Unlabelled):
      def tf2_loss(self, outputs, labels):
        return tf.reduce_mean(outputs)

    without = {'loss': None, 'labels': None, 'optimizer': None}
    found = self.last(self.record(Unlabelled, **without), 'execution_modes')
    self.assertIs(found.status, tf2verify.Status.ERROR)
    self.assertRegex(
      found.error.summary,
      'tf2_loss raised .*given None for labels: the recording has none.*record with --loss and',
    )
    found = self.last(self.record(Ignoring, **without), 'execution_modes')
    self.assertIs(found.status, tf2verify.Status.PASSED, found.to_text())
    found = self.last(Unlabelled, 'execution_modes')
    self.assertIn('labels: the case declares no make_labels', found.error.summary)

  def test_other_update_ops(self):
    class Normed(models.RegularizedNorm):
      run_update_ops = True

    case = self.record(Normed)
    other = type('Other', (case,), {'run_update_ops': False})
    self.assertIs(self.last(case, _STEPS).status, tf2verify.Status.PASSED)
    found = self.last(other, _STEPS)
    self.assertRegex(found.error.summary, 'run_update_ops of the case is False.*--run_update_ops')

  def test_nothing_was_recorded(self):
    found = self.last(self.record(models.Trained, optimizer=None), _STEPS)
    self.assertIs(found.status, tf2verify.Status.NOT_APPLICABLE)
    self.assertIn('record with --optimizer', found.reason)


class LargeVariablesTest(RecordedTrainingTestCase):
  """Compared by samples and signed means."""

  def test_a_right_port_passes(self):
    found = self.last(self.record(Wide, largest_array=2000), _STEPS)
    self.assertIs(found.status, tf2verify.Status.PASSED, found.to_text())
    self.assertIn('signed means', found.to_text())

  def test_the_rule_of_the_update_is_found_from_samples(self):
    found = self.last(self.record(WideWithEpsilonOfKeras, largest_array=2000), _STEPS)
    self.assertIs(found.status, tf2verify.Status.FAILED)
    self.assertIn('epsilon is 1e-08 in TF1 and 1e-07 in the port', found.to_text())

  def test_what_is_of_all_elements_is_left_out(self):
    live = self.last(WideUnclipped, _STEPS)
    self.assertIn('by its own norm', live.to_text())
    found = self.last(self.record(WideUnclipped, largest_array=2000), _STEPS)
    self.assertIs(found.status, tf2verify.Status.FAILED)
    self.assertNotIn('norm', ' '.join(difference.hint for difference in found.differences))


class LossTest(RecordedTrainingTestCase):
  def test_right_losses_pass(self):
    for case in (losses.Classified, losses.Weighted, losses.PerExample):
      with self.subTest(case.__name__):
        found = self.last(self.record(case), 'loss')
        self.assertIs(found.status, tf2verify.Status.PASSED, found.to_text())
        self.assertIn('the recorded graph of the loss, run here', found.to_text())

  def test_wrong_losses_fail_with_the_cause_that_a_live_reference_gives(self):
    for case in (losses.PerExampleAveraged, losses.WeightedByKeras, losses.ClassifiedBySoftmax):
      with self.subTest(case.__name__):
        live, recorded = (self.last(each, 'loss') for each in (case, self.record(case)))
        self.assertIs(recorded.status, tf2verify.Status.FAILED, recorded.to_text())
        self.assertEqual(_hints(recorded), _hints(live))

  def test_a_loss_that_cannot_be_run_alone(self):
    class NeedsModel(models.Trained):
      def tf1_loss(self, outputs, labels):
        kernel = v1.trainable_variables()[0]
        return models.Trained.tf1_loss(self, outputs, labels) + 0.0 * kernel[0, 0]

    found = self.last(self.record(NeedsModel), 'loss')
    self.assertIs(found.status, tf2verify.Status.PASSED, found.to_text())
    self.assertIn('tf1_loss cannot be run without the model', found.to_text())

  def test_examples_of_other_shapes_are_left_out(self):
    class Case(models.Trained):
      def loss_examples(self):
        yield 'two', np.ones([2, 3], np.float32), np.zeros([2, 3], np.float32)

    found = self.last(self.record(Case), 'loss')
    self.assertIs(found.status, tf2verify.Status.PASSED, found.to_text())
    self.assertIn('left out: two: the recording has the graph of the loss for', found.to_text())

  def test_nothing_was_recorded(self):
    found = self.last(self.record(models.Trained, loss=None, optimizer=None), 'loss')
    self.assertIs(found.status, tf2verify.Status.NOT_APPLICABLE)
    self.assertIn('the recording has no losses: record with --loss', found.reason)

  def test_another_run_is_run_here(self):
    values = {'kernel': np.ones([3, 3], np.float32), 'bias': np.arange(3, dtype=np.float32)}
    found = []
    for case_class in (models.Trained, self.record(models.Trained)):
      with prepared_of(case_class) as (case, run):
        other = RunSpec(run.inputs, True, RecordedFill('other values', values), run.tf1_names)
        found.append(case.tf1_training.observe_losses(other))
        if case_class is not models.Trained:
          self.assertIn('the recorded graph was run here', case.tf1.pending_notes()[-1])
    self.assertEqual(found[0].total_loss, found[1].total_loss)
    np.testing.assert_array_equal(found[0].outputs, found[1].outputs)


class CheckpointTest(RecordedTrainingTestCase):
  def test_is_written_of_recorded_values(self):
    with prepared_of(self.record(models.Adam)) as (case, run):
      with tempfile.TemporaryDirectory() as folder:
        prefix = case.tf1_training.save(run, 2, os.path.join(folder, 'new', 'model'))
        file = tf1_checkpoint.CheckpointFile(prefix)
        written = {key.name: file.value(key.name) for key in file.keys}
      second = case.tf1.recording.steps().steps[1]
    self.assertEqual(written['global_step'], 2)
    for record in second.variables:
      np.testing.assert_array_equal(written[record.name], record.value)
    self.assertIn('kernel/Adam_1', written)

  def test_of_a_large_model_the_fill_is_written(self):
    found = self.last(self.record(Wide, largest_array=2000), 'checkpoint')
    self.assertIs(found.status, tf2verify.Status.PASSED, found.to_text())
    self.assertIn('stored by samples only', found.to_text())

  def test_of_the_recording(self):
    with tempfile.TemporaryDirectory() as folder:
      values = {'kernel': np.eye(3, dtype=np.float32), 'bias': np.ones(3, np.float32)}
      prefix = tf1_checkpoint.write(os.path.join(folder, 'model'), values)
      case = self.record(models.Trained, checkpoint=prefix)
      found = self.last(case, 'checkpoint')
      self.assertIs(found.status, tf2verify.Status.PASSED, found.to_text())
      tf1_checkpoint.write(prefix, {**values, 'bias': np.zeros(3, np.float32)})
      found = self.last(case, 'checkpoint')
      self.assertIs(found.status, tf2verify.Status.ERROR)
      self.assertRegex(found.error.summary, 'is not the checkpoint that .*: bias has other values')
      copied = tf1_checkpoint.write(os.path.join(folder, 'copied'), values)
      own = type('Own', (case,), {'tf1_checkpoint': lambda self: copied})
      self.assertIs(self.last(own, 'checkpoint').status, tf2verify.Status.PASSED)
    found = self.last(case, 'checkpoint')
    self.assertIs(found.status, tf2verify.Status.NOT_APPLICABLE)
    self.assertIn('which is not here: copy its files, and declare tf1_checkpoint', found.reason)


class KeptOptimizerTest(RecordedTrainingTestCase):
  """One that `tf2_train_step` takes from the case, not from `make_tf2_optimizer`."""

  def _kept(self, make):
    class Kept(models.Adam):
      make_tf2_optimizer = tf2verify.EquivalenceCase.make_tf2_optimizer

      def __init__(self, *arguments):
        super().__init__(*arguments)
        self.optimizer = make()

      def tf2_train_step(self, layer, inputs, labels):
        with tf.GradientTape() as tape:
          loss = self.tf2_loss(layer(inputs), labels)
        variables = layer.trainable_variables
        pairs = zip(tape.gradient(loss, variables), variables, strict=True)
        self.optimizer.apply_gradients(pairs)
        return loss

    return Kept

  def test_it_is_named(self):
    for make in (
      lambda: keras.Adam(0.01, epsilon=1e-8),
      lambda: keras.legacy.Adam(0.01, epsilon=1e-8),
      lambda: train.AdamOptimizer(0.01),
    ):
      case = self._kept(make)
      with self.subTest(type(make()).__module__):
        kept = 'tf2_train_step updates with the tf.*Adam.* of an earlier run.*make it in make_tf2_'
        found = self.last(case, 'determinism')
        self.assertIs(found.status, tf2verify.Status.ERROR, found.to_text())
        self.assertRegex(found.error.summary, kept)
        verdict = tf2verify.verify(case, [_STEPS, 'determinism'])
        self.assertIs(verdict.stages[-2].status, tf2verify.Status.PASSED)
        self.assertRegex(verdict.to_text(), f'training steps of tf2 were not repeated: {kept}')

  def test_one_of_each_run_is_repeated(self):
    found = self.last(models.Adam, 'determinism')
    self.assertNotIn('were not repeated', found.to_text())


class RepetitionTest(RecordedTrainingTestCase):
  def test_a_reference_that_repeats_itself(self):
    found = self.last(self.record(models.Dropped), 'determinism')
    self.assertIs(found.status, tf2verify.Status.PASSED, found.to_text())
    self.assertIn('the reference was run twice when it was recorded', found.to_text())

  def test_one_that_does_not(self):
    case = self.record(models.Trained)

    def change(manifest, _):
      for _, tensor in manifest['steps']['steps'][2]['variables']:
        tensor['repeats'] = False

    recorded_small.altered(case.tf1_recording, change)
    found = self.last(case, 'determinism')
    self.assertIs(found.status, tf2verify.Status.INCONCLUSIVE, found.to_text())
    self.assertIn('other numbers in a second run when it was recorded', found.to_text())

  def test_noise_of_what_does_not_repeat_itself_excuses_nothing(self):
    case = self.record(models.Trained)

    def is_noisy(manifest, arrays):
      loss = manifest['steps']['steps'][1]['loss']
      arrays[loss['value']] = (arrays[loss['value']] * 1.0001).astype(np.float32)
      arrays[loss['noise']] = np.full_like(arrays[loss['noise']], 190)  # 1e-3 of its size

    def does_not_repeat_itself(manifest, _):
      manifest['steps']['steps'][1]['loss']['repeats'] = False

    recorded_small.altered(case.tf1_recording, is_noisy)
    found = self.last(case, _STEPS)
    self.assertIs(found.status, tf2verify.Status.PASSED, found.to_text())
    self.assertIn('1 tensor differs by no more than', found.to_text())
    recorded_small.altered(case.tf1_recording, does_not_repeat_itself)
    found = self.last(case, _STEPS)
    self.assertNotIn('1 tensor differs by no more than', found.to_text())
    # The same graph, run here, still does.
    self.assertIn('as the recorded graph does, run here', found.to_text())


@contextlib.contextmanager
def prepared_of(case_class):
  """Yields both sides of a case, and a run in training mode from distinct values."""
  ladder = new_ladder(case_class, lambda _: None)
  try:
    with process_state.preserved():
      case = ladder.prepared()
      names = {variable.name: variable.name for variable in case.tf1.inventory().variables}
      yield case, RunSpec(case.inputs, True, CaseFill(case.declaration), names, gradients=True)
  finally:
    ladder.close()


def _hints(verdict):
  return {difference.hint for difference in verdict.differences}


if __name__ == '__main__':
  absltest.main()
