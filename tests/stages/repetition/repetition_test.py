from unittest import mock

import numpy as np
import tensorflow as tf
from absl.testing import absltest
from tensorflow.python.framework import config

import tf2verify
from tests.stages import tiny_models
from tests.stages.tiny_models import bias, kernel
from tf2verify.case import new_ladder
from tf2verify.records.repetition import Variation
from tf2verify.records.tensor_key import TensorKey
from tf2verify.stages.repetition import repetition
from tf2verify.stages.repetition.repetition import Repeater, merged

v1 = tf.compat.v1


def repeater(case, test):
  ladder = new_ladder(case, lambda _: None)
  test.addCleanup(ladder.close)
  return Repeater.of(ladder.prepared())


class MergedTest(absltest.TestCase):
  def test_the_greatest_of_each(self):
    def variation(subject, amount):
      return Variation(TensorKey('output', subject, 'training'), 1, 2, amount, amount)

    runs = [[variation('x', 1.0), variation('y', 1.0)], [variation('x', 3.0)], []]
    self.assertEqual(merged(runs), (variation('x', 3.0), variation('y', 1.0)))
    self.assertEqual(merged([[], []]), ())


class LargeTest(absltest.TestCase):
  """What a model is taken for that yields more elements than are kept."""

  def setUp(self):
    super().setUp()
    self.enter_context(mock.patch.object(repetition, 'LARGE', 10))

  def test_repeatable(self):
    class Case(tiny_models.Dropped):
      pass

    found = repeater(Case, self)
    for side in (found.tf1(), found.tf2()):
      self.assertEqual((side.runs, side.tensors, side.varying), (2, 8, ()))

  def test_two_training_steps(self):
    class Case(tiny_models.Affine):
      training_steps_to_take = 5

      def make_tf1_optimizer(self):
        return tf.compat.v1.train.MomentumOptimizer(0.1, 0.9)

      make_tf2_optimizer = make_tf1_optimizer

    for large, steps in ((10, 2), (100, 3)):
      with mock.patch.object(repetition, 'LARGE', large):
        side = repeater(Case, self).tf2()
      runs = {key.run for key in side.digests if 'training steps' in key.run}
      self.assertEqual(runs, {f'{steps} training steps'})

  def test_a_variation_has_its_numbers(self):
    class Case(tiny_models.Affine):
      def port(self, inputs, training):
        return inputs @ kernel() + bias() + 1e-6 * np.random.default_rng().random(3)

    side = repeater(Case, self).tf2()
    self.assertEqual(side.runs, 3)  # the switch alone would tell nothing
    self.assertNotEmpty(side.varying)
    for variation in side.varying:
      self.assertEqual((variation.other, variation.size), ('', 12))
      self.assertLess(variation.greatest_absolute, 1e-5)
    self.assertIn('default_rng', side.first.source.code)

  def test_other_bits_by_the_switch_are_no_variation(self):
    class Case(tiny_models.Affine):
      def port(self, inputs, training):
        step = 1e-6 if config.is_op_determinism_enabled() else 0.0
        return inputs @ kernel() + bias() + step

    side = repeater(Case, self).tf2()
    self.assertEmpty(side.varying)
    self.assertNotEmpty(side.other_bits)
    found = tf2verify.verify(Case, stages=['determinism']).stages[-1]
    self.assertIs(found.status, tf2verify.Status.PASSED)
    self.assertIn(
      'enable_op_determinism() 2 tensors of the port have different bits', found.to_text()
    )


class FirstVariationTest(absltest.TestCase):
  def test_writes_that_nothing_orders(self):
    class Case(tiny_models.Affine):
      def model(self, inputs, training):
        total = v1.get_variable('total', [3], trainable=False, initializer=v1.zeros_initializer())
        for number in (1.0, 2.0, 3.0):
          v1.add_to_collection('update_ops', total.assign_add(tf.fill([3], 0.1 / number)))
        return super().model(inputs, training)

    found = repeater(Case, self).tf1()
    self.assertEqual({race.variable for race in found.races}, {'total'})
    self.assertIn('total.assign_add', found.races[0].first.source.code)
    self.assertEmpty(found.varying)  # since it runs in one order

  def test_an_initializer(self):
    class Case(tiny_models.Affine):
      pass

    variation = Variation(TensorKey('initial value', 'kernel', 'training, constant'), 1, 9)
    found = repeater(Case, self)._first_tf1([variation])
    self.assertStartsWith(str(found), 'initial value of kernel at ')

  def test_nothing_to_be_seen(self):
    class Case(tiny_models.Affine):
      pass

    variation = Variation(TensorKey('output', '(the output)', 'training, constant'), 1, 9)
    self.assertIsNone(repeater(Case, self)._first_tf1([variation]))


class SearchTest(absltest.TestCase):
  def test_a_fault_of_the_search_is_said(self):
    def search():
      raise KeyError('while_grad')

    self.assertIn(
      "the search for it was abandoned: KeyError: 'while_grad'", str(repetition._looked_for(search))
    )


if __name__ == '__main__':
  absltest.main()
