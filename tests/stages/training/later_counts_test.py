"""Losses and gradients that the count of steps has a part in, after the steps that are taken."""

import abc

import keras
import tensorflow as tf
from absl.testing import absltest, parameterized

import tf2verify
from tf2verify import Status

v1 = tf.compat.v1
_STAGE = 'training_steps'


class Annealed(tf2verify.EquivalenceCase, abc.ABC):
  """A dense layer, the second part of whose loss gains weight over a hundred steps."""

  def build_tf1_graph(self, inputs, training):
    return v1.layers.dense(inputs, 3, name='logits')

  def make_tf2_layer(self):
    return keras.Sequential([keras.layers.Dense(3, name='logits')])

  def make_inputs(self):
    return tf2verify.normal_inputs((4, 5))

  def tf1_weight(self):
    step = v1.train.get_or_create_global_step()
    return tf.minimum(1.0, 0.1 + tf.cast(step, tf.float32) / 100.0)

  def tf2_weight(self, step):
    return tf.minimum(1.0, 0.1 + step / 100.0)

  def tf1_loss(self, outputs, labels):
    return tf.reduce_mean(outputs**2) + self.tf1_weight() * tf.reduce_mean(tf.abs(outputs))

  def tf2_loss(self, outputs, labels):
    return tf.reduce_mean(outputs**2) + self.tf2_weight(0.0) * tf.reduce_mean(tf.abs(outputs))

  def make_tf1_optimizer(self):
    return v1.train.AdamOptimizer(0.01)

  def make_tf2_optimizer(self):
    return keras.optimizers.Adam(0.01, epsilon=1e-8)

  def count(self, optimizer):
    return tf.cast(optimizer.iterations.value, tf.float32)

  def tf2_train_step(self, layer, inputs, labels, optimizer):
    weight = self.tf2_weight(self.count(optimizer))
    with tf.GradientTape() as tape:
      outputs = layer(inputs)
      loss = tf.reduce_mean(outputs**2) + weight * tf.reduce_mean(tf.abs(outputs))
    variables = layer.trainable_variables
    gradients = tape.gradient(loss, [variable.value for variable in variables])
    optimizer.apply_gradients(zip(gradients, variables, strict=True))
    return loss


class Branching(Annealed, abc.ABC):
  """Whose second part has another weight after a thousand steps."""

  def tf1_weight(self):
    step = v1.train.get_or_create_global_step()
    return tf.cond(step < 1000, lambda: 0.5, lambda: 0.25)


class LaterCountsTest(parameterized.TestCase):
  def stage(self, case):
    verdict = tf2verify.verify(case, [_STAGE])
    return next(stage for stage in verdict.stages if stage.stage == _STAGE)

  def assert_passes(self, case):
    found = self.stage(case)
    self.assertIs(found.status, Status.PASSED, found.to_text())
    return found

  def assert_fails(self, case, *words):
    found = self.stage(case)
    self.assertIs(found.status, Status.FAILED, found.to_text())
    for word in words:
      self.assertIn(word, ' '.join(found.to_text().split()))

  def test_the_same(self):
    class Case(Annealed):
      pass

    self.assertEmpty(self.assert_passes(Case).blind_spots)

  def test_a_bound_that_no_step_reaches(self):
    class Case(Annealed):
      def tf2_weight(self, step):
        return 0.1 + step / 100.0

    self.assert_fails(
      Case, 'had 1,000 steps been taken before', 'TF1 has 1 (Minimum', '10.1 (AddV2'
    )

  @parameterized.named_parameters(
    ('bound', lambda step: tf.minimum(0.9, 0.1 + step / 100.0), 'the port has 0.9 (Minimum'),
    (
      'jump',
      lambda step: tf.where(step < 5000.0, tf.minimum(1.0, 0.1 + step / 100.0), 0.5),
      'the port has 0.5 (Select',
    ),
  )
  def test_what_comes_later(self, weight, words):
    class Case(Annealed):
      def tf2_weight(self, step):
        return weight(step)

    self.assert_fails(Case, words)

  @parameterized.named_parameters(
    ('clip', lambda step: tf.clip_by_value(0.01 * (step + 10.0), 0.0, 1.0)),
    ('where', lambda step: tf.where(step >= 90.0, 1.0, 0.1 + 0.01 * step)),
  )
  def test_other_spellings(self, weight):
    class Case(Annealed):
      def tf2_weight(self, step):
        return weight(step)

    self.assert_passes(Case)

  def test_a_count_of_its_own_that_starts_at_one(self):
    class Case(Annealed):
      def make_tf2_layer(self):
        layer = super().make_tf2_layer()
        self.step = tf.Variable(1, trainable=False, dtype=tf.int64)
        return layer

      def count(self, optimizer):
        before = tf.cast(self.step, tf.float32) - 1.0
        self.step.assign_add(1)
        return before

    self.assert_passes(Case)

  def test_a_weight_that_each_step_multiplies(self):
    class Case(Annealed):
      def tf1_weight(self):
        step = v1.train.get_or_create_global_step()
        return tf.maximum(0.05, 0.5 * 0.999 ** tf.cast(step, tf.float32))

      def make_tf2_layer(self):
        layer = super().make_tf2_layer()
        self.power = tf.Variable(1.0, trainable=False)
        return layer

      def tf2_weight(self, step):
        return tf.maximum(0.05, 0.5 * step)

      def tf2_loss(self, outputs, labels):
        return tf.reduce_mean(outputs**2) + 0.5 * tf.reduce_mean(tf.abs(outputs))

      def count(self, optimizer):
        power = self.power.read_value()
        self.power.assign(power * 0.999)
        return power

    class Unbounded(Case):
      def tf2_weight(self, step):
        return 0.5 * step

    self.assert_passes(Case)
    self.assert_fails(Unbounded)

  @parameterized.parameters((0.25, True), (0.3, False))
  def test_branches(self, later, is_right):
    class Case(Branching):
      def tf2_weight(self, step):
        return tf.cond(tf.less(step, 1000.0), lambda: 0.5, lambda: later)

    if is_right:
      self.assert_passes(Case)
    else:
      self.assert_fails(Case)

  def test_python_counts(self):
    class Case(Annealed):
      def count(self, optimizer):
        optimizer.taken = getattr(optimizer, 'taken', -1) + 1
        return float(optimizer.taken)

    spots = self.assert_passes(Case).blind_spots
    self.assertIn('computed from the step count', ' '.join(spots))


if __name__ == '__main__':
  absltest.main()
