import os
import tempfile

import numpy as np
import tensorflow as tf
from absl.testing import absltest

import tf2verify
from tests.sides.trained_sides import RATE, Trained, by_name, prepared, updates
from tests.stages import tiny_models
from tf2verify.errors import BuilderError, CaseDefinitionError, NotApplicable, UserCodeError
from tf2verify.reference.perturbation import Perturber

v1 = tf.compat.v1


def steps_of(case_class, count=2, perturber=None):
  with prepared(case_class) as (case, run):
    return case.tf1_training.prepare_steps(run, count)(perturber)


class LossesTest(absltest.TestCase):
  def test_loss_and_outputs(self):
    with prepared(Trained) as (case, run):
      losses = case.tf1_training.observe_losses(run)
    labels = tf2verify.normal_inputs((4, 3), seed=3)
    self.assertAlmostEqual(losses.loss, np.mean(np.square(losses.outputs - labels)), places=6)
    self.assertEqual(losses.loss, losses.total_loss)
    self.assertIsNone(losses.regularization_total)

  def test_regularization_is_added_once(self):
    class Case(tiny_models.Regularized):
      def tf1_loss(self, outputs, labels):
        loss = tf.reduce_sum(outputs)
        return loss + v1.losses.get_regularization_loss() if self.adds_itself else loss

      adds_itself = False

    class AddsItself(Case):
      adds_itself = True

    for case_class in (Case, AddsItself):
      with self.subTest(case_class.__name__), prepared(case_class) as (case, run):
        losses = case.tf1_training.observe_losses(run)
        total = np.sum(losses.outputs) + losses.regularization_total
        self.assertAlmostEqual(float(losses.total_loss), float(total), places=5)

  def test_structure_of_outputs_is_kept(self):
    class Case(Trained):
      def model(self, inputs, training):
        return {'sum': super().model(inputs, training), 'none': None}

      def tf1_loss(self, outputs, labels):
        return tf.reduce_sum(outputs['sum'])

    with prepared(Case) as (case, run):
      outputs = case.tf1_training.observe_losses(run).outputs
    self.assertEqual(outputs['sum'].shape, (4, 3))
    self.assertIsNone(outputs['none'])

  def test_a_loss_for_each_example_is_not_reduced(self):
    class Case(Trained):
      def tf1_loss(self, outputs, labels):
        return tf.reduce_mean(tf.square(outputs - labels), axis=1)

    taken = steps_of(Case, 1)
    self.assertEqual(taken.steps[0].loss.shape, (4,))
    with prepared(Trained) as (case, run):
      mean = case.tf1_training.prepare_steps(run, 1)(None)
    np.testing.assert_allclose(updates(taken)['bias'], 4 * updates(mean)['bias'], rtol=1e-5)

  def test_code_that_counts_on_shapes_of_tf1_or_tf2(self):
    class One(Trained):
      def tf1_loss(self, outputs, labels):
        return tf.reduce_sum(outputs) / labels.shape[0].value

    class Two(Trained):
      def tf1_loss(self, outputs, labels):
        return tf.reduce_sum(outputs) / (labels.shape[0] ** 0.5)

    for case_class in (One, Two):
      with self.subTest(case_class.__name__):
        self.assertIsNotNone(steps_of(case_class, 1).steps[0].loss)

  def test_what_is_no_loss(self):
    class Case(Trained):
      def tf1_loss(self, outputs, labels):
        pass

    with self.assertRaisesRegex(CaseDefinitionError, 'tf1_loss returned None.*missing `return`'):
      steps_of(Case)

  def test_labels_of_another_batch_size(self):
    class Case(Trained):
      def make_labels(self):
        return tf2verify.normal_inputs((5, 3))

    with self.assertRaisesRegex(UserCodeError, 'tf1_loss raised'):
      steps_of(Case)


class StepsTest(absltest.TestCase):
  def test_gradient_descent(self):
    taken = steps_of(Trained)
    self.assertEqual([step.number for step in taken.steps], [1, 2])
    self.assertEqual([step.global_step for step in taken.steps], [1, 2])
    self.assertEqual(taken.steps[0].learning_rate, RATE)
    self.assertEqual([record.rule for record in taken.optimizers], ['sgd'])
    self.assertLess(taken.steps[1].loss, taken.steps[0].loss)
    for number in (1, 2):
      gradients = by_name(taken.steps[number - 1].gradients)
      for name, update in updates(taken, number).items():
        np.testing.assert_allclose(update, -RATE * gradients[name], atol=1e-6)

  def test_loss_and_learning_rate_are_those_before_the_update(self):
    class Case(Trained):
      def make_tf1_optimizer(self):
        step = v1.train.get_or_create_global_step()
        return v1.train.GradientDescentOptimizer(1.0 / (1.0 + tf.cast(step, tf.float32)))

    taken = steps_of(Case, 3)
    np.testing.assert_allclose([s.learning_rate for s in taken.steps], [1, 1 / 2, 1 / 3])
    with prepared(Case) as (case, run):
      self.assertEqual(case.tf1_training.observe_losses(run).loss, taken.steps[0].loss)

  def test_clipping_slots_and_a_moving_average_of_the_weights(self):
    class Case(Trained):
      def make_tf1_train_op(self, loss):
        optimizer = v1.train.AdamOptimizer(RATE)
        gradients, variables = zip(*optimizer.compute_gradients(loss), strict=True)
        clipped, _ = tf.clip_by_global_norm(gradients, 0.1)
        train_op = optimizer.apply_gradients(zip(clipped, variables, strict=True))
        with tf.control_dependencies([train_op]):
          return tf.train.ExponentialMovingAverage(0.5).apply(variables)

    taken = steps_of(Case, 1)
    (step,) = taken.steps
    raw, applied = by_name(step.gradients), by_name(step.applied_gradients)
    norm = np.sqrt(sum(np.sum(np.square(value)) for value in raw.values()))
    self.assertGreater(norm, 0.1)
    np.testing.assert_allclose(applied['bias'], raw['bias'] * 0.1 / norm, rtol=1e-5)
    self.assertIsNone(step.global_step)
    roles = {(slot.role, slot.variable) for slot in step.slots}
    self.assertContainsSubset(
      {('first moment', 'bias'), ('second moment', 'kernel'), ('shadow', 'kernel')}, roles
    )
    shadow = next(s for s in step.slots if (s.role, s.variable) == ('shadow', 'bias'))
    before, after = by_name(taken.values_before)['bias'], by_name(step.variables)['bias']
    np.testing.assert_allclose(shadow.value, (before + after) / 2, rtol=1e-6)

  def test_gradients_of_code_that_differentiates_itself(self):
    class Case(Trained):
      def make_tf1_train_op(self, loss):
        variables = v1.trainable_variables()
        pairs = zip(tf.gradients(loss, variables), variables, strict=True)
        return tf.group([v1.assign_sub(variable, RATE * grad) for grad, variable in pairs])

    (step,) = steps_of(Case, 1).steps
    self.assertEqual(set(by_name(step.gradients)), {'kernel', 'bias'})
    self.assertEmpty(step.applied_gradients)
    self.assertIsNone(step.learning_rate)

  def test_update_ops_that_the_train_op_leaves_out(self):
    class Case(tiny_models.Normalized):
      def make_tf1_optimizer(self):
        return v1.train.GradientDescentOptimizer(RATE)

    class LeftOut(Case):
      run_update_ops = False

    ran, left_out = steps_of(Case, 1), steps_of(LeftOut, 1)
    self.assertEmpty(ran.updates_left_out)
    self.assertLen(left_out.updates_left_out, 2)
    self.assertTrue(updates(ran)['norm/moving_mean'].any())
    self.assertFalse(updates(left_out)['norm/moving_mean'].any())

  def test_random_ops_start_again_at_each_step(self):
    class Case(tiny_models.Dropped):
      def make_tf1_optimizer(self):
        return v1.train.GradientDescentOptimizer(0.0)

    class InAFunction(Case):
      def model(self, inputs, training):
        net = tiny_models.Affine.model(self, inputs, training)
        dropped = tf.function(lambda net: v1.nn.dropout(net, rate=0.2))
        return dropped(net) if training else net

    self.assert_one_loss(Case)
    self.assert_one_loss(InAFunction)

  def assert_one_loss(self, case_class):
    with prepared(case_class) as (case, run):
      taken = case.tf1_training.prepare_steps(run, 3)(None)
      loss = case.tf1_training.observe_losses(run).total_loss
    self.assertEqual({float(step.loss) for step in taken.steps}, {float(loss)})

  def test_repeated_and_moved(self):
    with prepared(Trained) as (case, run):
      repeat = case.tf1_training.prepare_steps(run, 2)
      first, again, moved = repeat(None), repeat(None), repeat(Perturber(0))
    self.assertEqual(first.steps[1].loss, again.steps[1].loss)
    before, after = by_name(first.values_before)['kernel'], by_name(moved.values_before)['kernel']
    self.assertTrue(np.all(before != after))
    np.testing.assert_allclose(before, after, rtol=1e-6)


class WrongHooksTest(absltest.TestCase):
  def assert_refused(self, words, hook, error=CaseDefinitionError, train_op=False):
    name = 'make_tf1_train_op' if train_op else 'make_tf1_optimizer'
    case = type('Case', (Trained,), {name: hook})
    with self.assertRaisesRegex(error, words):
      steps_of(case)

  def test_optimizers(self):
    shared = v1.train.GradientDescentOptimizer(RATE)
    self.assert_refused('missing `return`', lambda self: None)
    self.assert_refused('it is the class', lambda self: v1.train.AdamOptimizer)
    self.assert_refused('belongs in make_tf2_optimizer', lambda self: tf.keras.optimizers.SGD())
    self.assert_refused('made before the hook was called', lambda self: shared)
    self.assert_refused('declare make_tf1_train_op', lambda self: 'adam')

  def test_train_ops(self):
    self.assert_refused('missing `return`', lambda self, loss: None, train_op=True)
    self.assert_refused(
      'return its minimize', lambda self, loss: v1.train.AdamOptimizer(), train_op=True
    )
    self.assert_refused('session.run', lambda self, loss: 7, train_op=True)

  def test_a_session_of_its_own(self):
    self.assert_refused(
      'make_tf1_train_op opened a session',
      lambda self, loss: v1.Session(),
      BuilderError,
      train_op=True,
    )

  def test_code_that_raises(self):
    self.assert_refused(
      'make_tf1_optimizer raised ZeroDivisionError', lambda _: 1 / 0, UserCodeError
    )

  def test_no_hook(self):
    class Case(tiny_models.Affine):
      pass

    with self.assertRaisesRegex(NotApplicable, 'neither make_tf1_optimizer nor'):
      steps_of(Case)


class SaveTest(absltest.TestCase):
  def test_variables_slots_and_counter(self):
    class Case(Trained):
      def make_tf1_optimizer(self):
        return v1.train.MomentumOptimizer(RATE, 0.9)

    with tempfile.TemporaryDirectory() as folder, prepared(Case) as (case, run):
      taken = case.tf1_training.prepare_steps(run, 2)(None)
      prefix = case.tf1_training.save(run, 2, os.path.join(folder, 'new', 'model'))
      reader = tf.train.load_checkpoint(prefix)
      keys = set(reader.get_variable_to_shape_map())
      saved = reader.get_tensor('kernel')
    self.assertEqual(keys, {'kernel', 'bias', 'kernel/Momentum', 'bias/Momentum', 'global_step'})
    np.testing.assert_array_equal(saved, by_name(taken.steps[1].variables)['kernel'])

  def test_without_training(self):
    class Case(tiny_models.Affine):
      pass

    with tempfile.TemporaryDirectory() as folder, prepared(Case) as (case, run):
      prefix = case.tf1_training.save(run, 0, os.path.join(folder, 'model'))
      keys = [name for name, _ in tf.train.list_variables(prefix)]
    self.assertEqual(keys, ['bias', 'kernel'])


if __name__ == '__main__':
  absltest.main()
