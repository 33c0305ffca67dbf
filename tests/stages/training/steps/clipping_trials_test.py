import abc
import os
import tempfile

import keras as k3
import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

import tf2verify
from tests.sides import recorded_cases
from tests.stages.first_failure import LadderTestCase
from tests.stages.training.training_steps_test import RATE, OwnLoop, Trained

v1 = tf.compat.v1
keras = tf.keras.optimizers
STAGE = 'training_steps'
# The gradients of these models are of norm 1.7.
LIMIT = 50.0
FAR = 5000.0  # beside which they are nothing


class Clipped(Trained, abc.ABC):
  """A train op that clips gradients which are not there in the first steps."""

  def clip(self, gradients):
    return tf.clip_by_global_norm(gradients, LIMIT)[0]

  def make_tf1_train_op(self, loss):
    optimizer = v1.train.GradientDescentOptimizer(RATE)
    gradients, variables = zip(*optimizer.compute_gradients(loss), strict=True)
    pairs = zip(self.clip(gradients), variables, strict=True)
    return optimizer.apply_gradients(pairs, v1.train.get_or_create_global_step())


class Right(Clipped, abc.ABC):
  def make_tf2_optimizer(self):
    return keras.SGD(RATE, global_clipnorm=LIMIT)


class Missing(Clipped, abc.ABC):
  def make_tf2_optimizer(self):
    return keras.SGD(RATE)


class Lopsided(Clipped, abc.ABC):
  def clip(self, gradients):
    return [tf.clip_by_value(gradient, -1.0, 40.0) for gradient in gradients]

  def make_tf2_optimizer(self):
    return keras.SGD(RATE)

  def tf1_loss(self, outputs, labels):
    return 0.01 * tf.reduce_mean(tf.square(outputs - labels))

  tf2_loss = tf1_loss


def with_optimizer(make, base=Clipped):
  return type('Case', (base,), {'make_tf2_optimizer': lambda self: make()})


class ClippingTrialsTest(parameterized.TestCase, LadderTestCase):
  def passed(self, case):
    found = tf2verify.verify(case, stages=[STAGE]).stages[-1]
    self.assertIs(found.status, tf2verify.Status.PASSED, found.to_text())
    return ' '.join(found.notes), found.compared.blind_spots

  @parameterized.named_parameters(
    ('keras', lambda: keras.SGD(RATE, global_clipnorm=LIMIT)),
    ('legacy', lambda: keras.legacy.SGD(RATE, global_clipnorm=LIMIT)),
  )
  def test_the_same_clipping_is_tried_and_told(self, make):
    notes, blind = self.passed(with_optimizer(make))
    self.assertIn('global norm, to 50', notes)
    self.assertRegex(notes, r'do not reach that \(largest global norm 1\.\d+\)')
    self.assertEqual(blind, 0)

  @parameterized.named_parameters(
    ('missing', lambda: keras.SGD(RATE), 'pass global_clipnorm=50'),
    ('limit', lambda: keras.SGD(RATE, global_clipnorm=40.0), 'global norm, to 40'),
    ('kind', lambda: keras.SGD(RATE, clipnorm=LIMIT), 'each gradient by its own norm, to 50'),
    ('of_tf1', lambda: v1.train.GradientDescentOptimizer(RATE), 'the gradients unchanged'),
  )
  def test_another_clipping_fails_although_no_step_shows_it(self, make, words):
    self.assert_first_failure(
      with_optimizer(make), STAGE, 'clipping differs', 'larger gradients', words
    )

  @parameterized.product(adam=(False, True), limit=(LIMIT, 40.0, None))
  def test_clipping_in_the_update_of_the_port(self, adam, limit):
    """TF1 clips before it; an update of Adam does not depend on the size of gradients."""
    parent = k3.optimizers.Adam if adam else k3.optimizers.SGD

    class Clips(parent):
      def update_step(self, gradient, variable, learning_rate):
        if limit is not None:
          gradient = k3.ops.clip(gradient, -limit, limit)
        super().update_step(gradient, variable, learning_rate)

    class Case(tf2verify.EquivalenceCase):
      def build_tf1_graph(self, inputs, training):
        return v1.layers.dense(inputs, 2)

      def make_tf2_layer(self):
        return k3.Sequential([k3.layers.Dense(2)])

      def make_inputs(self):
        return tf2verify.normal_inputs((5, 4))

      def tf1_loss(self, outputs, labels):
        return tf.reduce_mean(tf.square(outputs - 1.0))

      tf2_loss = tf1_loss

      def make_tf1_train_op(self, loss):
        descent = v1.train.GradientDescentOptimizer(RATE)
        optimizer = v1.train.AdamOptimizer(RATE) if adam else descent
        pairs = optimizer.compute_gradients(loss)
        clipped = [(tf.clip_by_value(g, -LIMIT, LIMIT), v) for g, v in pairs]
        return optimizer.apply_gradients(clipped)

      def make_tf2_optimizer(self):
        return Clips(RATE, epsilon=1e-8) if adam else Clips(RATE)

    if limit == LIMIT:
      notes, blind = self.passed(Case)
      self.assertIn('and the port does so in its update', notes)
      self.assertEqual(blind, 0)
    else:
      self.assert_first_failure(Case, STAGE, 'clips each element at 50', 'clipping differs')

  def test_slots_that_are_not_compared_tell_nothing_of_a_lost_clipping(self):
    """An update of Adam is the same at larger gradients; what would tell lies in other shapes."""

    class Flat(k3.optimizers.Optimizer):
      def build(self, variables):
        if not self.built:
          super().build(variables)
          sizes = [int(np.prod(variable.shape)) for variable in variables]
          self.kept = [self.add_variable((2 * n,), 'zeros', name=f'k{n}') for n in sizes]

      def update_step(self, gradient, variable, learning_rate):
        kept = self.kept[self._get_variable_index(variable)]
        flat = tf.reshape(gradient, [-1])
        first, second = tf.split(tf.convert_to_tensor(kept), 2)
        first, second = 0.9 * first + 0.1 * flat, 0.999 * second + 0.001 * flat**2
        kept.assign(tf.concat([first, second], 0))
        count = tf.cast(self.iterations + 1, tf.float32)
        rate = learning_rate * tf.sqrt(1.0 - 0.999**count) / (1.0 - 0.9**count)
        step = rate * first / (tf.sqrt(second) + 1e-8)
        variable.assign_sub(tf.reshape(step, variable.shape))

    class Case(tf2verify.EquivalenceCase):
      def build_tf1_graph(self, inputs, training):
        return v1.layers.dense(inputs, 2)

      def make_tf2_layer(self):
        return k3.Sequential([k3.layers.Dense(2)])

      def make_inputs(self):
        return tf2verify.normal_inputs((5, 4))

      def tf1_loss(self, outputs, labels):
        return tf.reduce_mean(tf.square(outputs - 1.0))

      tf2_loss = tf1_loss

      def make_tf1_train_op(self, loss):
        optimizer = v1.train.AdamOptimizer(RATE)
        pairs = optimizer.compute_gradients(loss)
        return optimizer.apply_gradients([(tf.clip_by_value(g, -FAR, FAR), v) for g, v in pairs])

      def make_tf2_optimizer(self):
        return Flat(RATE)

    self.assert_first_failure(Case, STAGE, 'clips each element at 5000', 'clipping differs')

  def test_clipping_in_the_port_alone(self):
    case = with_optimizer(lambda: keras.SGD(RATE, clipvalue=LIMIT), Trained)
    self.assert_first_failure(case, STAGE, 'clips each element at 50', 'remove clipnorm')

  def test_a_loop_of_the_port(self):
    class Case(OwnLoop, Right):
      def make_tf2_optimizer(self):
        return keras.SGD(RATE)

      def update(self, optimizer, gradients, variables):
        optimizer.apply_gradients(zip(self.clip(gradients), variables, strict=True))

    class Wrong(Case):
      def update(self, optimizer, gradients, variables):
        optimizer.apply_gradients(zip(gradients, variables, strict=True))

    self.passed(Case)
    self.assert_first_failure(Wrong, STAGE, 'clipping differs')

  def test_gradients_that_are_clipped_and_added_up(self):
    """What the update is given depends on the steps before: no side is to be blamed for that."""

    class Case(OwnLoop, Trained):
      training_steps_to_take = 4
      limit = 1.0

      def make_tf1_train_op(self, loss):
        variables = v1.trainable_variables()
        count = v1.train.get_or_create_global_step()
        sums = [
          v1.get_variable(f'{v.op.name}/sum', initializer=tf.zeros(v.shape)) for v in variables
        ]
        every = tf.cast(tf.equal(count % 2, 1), tf.float32)
        clipped, _ = tf.clip_by_global_norm(tf.gradients(loss, variables), 1.0)
        totals = [s + g for s, g in zip(sums, clipped, strict=True)]
        pairs = [(t * every / 2.0, v) for t, v in zip(totals, variables, strict=True)]
        update = v1.train.MomentumOptimizer(RATE, 0.9).apply_gradients(pairs)
        with tf.control_dependencies([update]):
          kept = [s.assign(t * (1.0 - every)) for s, t in zip(sums, totals, strict=True)]
        with tf.control_dependencies(kept):
          return count.assign_add(1)

      def make_tf2_optimizer(self):
        return {'sgd': keras.SGD(RATE, 0.9), 'sums': {}, 'count': tf.Variable(0)}

      def update(self, optimizer, gradients, variables):
        sums, count = optimizer['sums'], optimizer['count']
        every = tf.cast(count % 2 == 1, tf.float32)
        clipped, _ = tf.clip_by_global_norm(gradients, self.limit)
        pairs = []
        for gradient, variable in zip(clipped, variables, strict=True):
          kept = sums.setdefault(variable.name, tf.Variable(tf.zeros_like(variable)))
          pairs.append(((kept + gradient) * every / 2.0, variable))
          kept.assign((kept + gradient) * (1.0 - every))
        optimizer['sgd'].apply_gradients(pairs)
        count.assign_add(1)

    class Wrong(Case):
      limit = 1.2

    self.passed(Case)
    self.assert_first_failure(Wrong, STAGE, 'kernel [step 2]')

  def test_gradients_that_are_multiplied_are_not_clipped(self):
    class Case(OwnLoop, Clipped):
      def clip(self, gradients):
        return [0.5 * gradient for gradient in gradients]

      def make_tf2_optimizer(self):
        return keras.SGD(RATE)

      def update(self, optimizer, gradients, variables):
        optimizer.apply_gradients(zip(self.clip(gradients), variables, strict=True))

    notes, blind = self.passed(Case)
    self.assertNotIn('clip', notes)
    self.assertEqual(blind, 0)

  def test_a_clipping_that_is_not_known_is_compared_by_what_it_makes(self):
    class Case(OwnLoop, Lopsided):
      def update(self, optimizer, gradients, variables):
        optimizer.apply_gradients(zip(self.clip(gradients), variables, strict=True))

    class Other(Case):
      def update(self, optimizer, gradients, variables):
        clipped = [tf.clip_by_value(gradient, -2.0, 40.0) for gradient in gradients]
        optimizer.apply_gradients(zip(clipped, variables, strict=True))

    notes, blind = self.passed(Case)
    self.assertIn('how they change larger ones was compared', notes)
    self.assertEqual(blind, 0)
    self.assert_first_failure(
      Other, STAGE, 'clipping differs', 'change the same larger gradients differently'
    )

  def test_a_clipping_that_is_not_known_and_that_the_port_has_lost(self):
    case = type('Case', (Lopsided,), {})
    self.assert_first_failure(
      case, STAGE, 'clipping differs', 'change the same larger gradients differently'
    )

  def test_a_clipping_that_is_not_known_of_gradients_that_differ_is_a_blind_spot(self):
    class Case(OwnLoop, Lopsided):
      def update(self, optimizer, gradients, variables):
        assert max(float(tf.reduce_max(tf.abs(one))) for one in gradients) < 100, 'exploded'
        super().update(optimizer, gradients, variables)

    notes, blind = self.passed(Case)
    self.assertIn('clipping was not compared', notes)
    self.assertEqual(blind, 1)

  def test_a_step_that_refuses_large_gradients(self):
    class Case(OwnLoop, Right):
      def update(self, optimizer, gradients, variables):
        assert float(tf.linalg.global_norm(gradients)) < 100, 'exploded'
        super().update(optimizer, gradients, variables)

    notes, blind = self.passed(Case)
    self.assertIn('AssertionError: exploded', notes)
    self.assertEqual(blind, 1)


def embedded(inputs, scale=1e-5):
  table = v1.get_variable('table', [7, 3], initializer=v1.random_normal_initializer())
  kernel = v1.get_variable('kernel', [3, 2], initializer=v1.random_normal_initializer())
  # The table's gradient is so small that it adds nothing to a global norm.
  return tf.matmul(scale * tf.nn.embedding_lookup(table, inputs) + 1.0, kernel)


class Shim(tf.keras.layers.Layer):
  def __init__(self, scale):
    super().__init__()
    self.scale = scale

  @v1.keras.utils.track_tf1_style_variables
  def call(self, inputs, training):
    return embedded(inputs, self.scale)


class RepeatedRows(OwnLoop, abc.ABC):
  """A global norm to which `IndexedSlices` with repeated rows add next to nothing."""

  limit, scale = LIMIT, 1e-5

  def build_tf1_graph(self, inputs, training):
    return embedded(inputs, self.scale)

  def make_tf2_layer(self):
    return Shim(self.scale)

  def make_inputs(self):
    return np.array([[1, 2, 2], [2, 3, 0]], np.int32)

  def make_labels(self):
    return tf2verify.normal_inputs((2, 3, 2), seed=3)

  def make_tf1_train_op(self, loss):
    optimizer = v1.train.GradientDescentOptimizer(RATE)
    gradients, variables = zip(*optimizer.compute_gradients(loss), strict=True)
    clipped, _ = tf.clip_by_global_norm(gradients, self.limit)
    pairs = zip(clipped, variables, strict=True)
    return optimizer.apply_gradients(pairs, v1.train.get_or_create_global_step())

  def update(self, optimizer, gradients, variables):
    clipped, _ = tf.clip_by_global_norm(gradients, self.limit)
    optimizer.apply_gradients(zip(clipped, variables, strict=True))


class MadeDense(RepeatedRows, abc.ABC):
  def update(self, optimizer, gradients, variables):
    super().update(optimizer, list(map(tf.convert_to_tensor, gradients)), variables)


class RowsTest(LadderTestCase):
  def test_rows_that_repeat(self):
    right, wrong = (type('Case', (base,), {}) for base in (RepeatedRows, MadeDense))
    found = tf2verify.verify(right, stages=[STAGE]).stages[-1]
    self.assertIs(found.status, tf2verify.Status.PASSED, found.to_text())
    self.assert_first_failure(
      wrong, STAGE, 'clipping differs', 'IndexedSlices with repeated rows', 'table'
    )

  def test_rows_that_repeat_in_a_norm_that_is_reached(self):
    for scale in (1e-2, 1.0):  # the norms are 0.003 % apart, and far apart
      with self.subTest(scale):
        wrong, right = (
          type('Case', (base,), {'limit': 0.5, 'scale': scale})
          for base in (MadeDense, RepeatedRows)
        )
        found = tf2verify.verify(right, stages=[STAGE]).stages[-1]
        self.assertIs(found.status, tf2verify.Status.PASSED, found.to_text())
        self.assert_first_failure(wrong, STAGE, 'the port adds up rows of table', 'clip before')


class RecordedTest(LadderTestCase):
  def record(self, case):
    folder = self.enter_context(tempfile.TemporaryDirectory())
    return recorded_cases.record(case, os.path.join(folder, 'recording'))

  def test_the_recorded_train_op_is_tried_here(self):
    right, missing = self.record(Right), self.record(Missing)
    found = tf2verify.verify(right, stages=[STAGE]).stages[-1]
    self.assertIs(found.status, tf2verify.Status.PASSED, found.to_text())
    self.assertIn('tried with larger ones', ' '.join(found.notes))
    self.assert_first_failure(missing, STAGE, 'clipping differs', 'pass global_clipnorm=50')

  def test_without_clipping_nothing_is_said(self):
    case = self.record(with_optimizer(lambda: keras.SGD(RATE), Trained))
    found = tf2verify.verify(case, stages=[STAGE]).stages[-1]
    self.assertIs(found.status, tf2verify.Status.PASSED, found.to_text())
    self.assertNotIn('clip', ' '.join(found.notes))


if __name__ == '__main__':
  absltest.main()
