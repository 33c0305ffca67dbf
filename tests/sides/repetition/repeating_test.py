import abc
import dataclasses

import numpy as np
import tensorflow as tf
from absl.testing import absltest
from tensorflow.python.framework import config

from tests.stages import tiny_models
from tf2verify.case import new_ladder
from tf2verify.numerics.repeatability import varying
from tf2verify.records.observation import TensorRecord
from tf2verify.records.training import Slot, TrainingStep
from tf2verify.sides.repetition import repeating
from tf2verify.stages.repetition.repetition import Repeater

v1 = tf.compat.v1


class DroppedCase(tiny_models.Dropped, abc.ABC):
  def model(self, inputs, training):
    net = super().model(inputs, training)
    return v1.layers.batch_normalization(net, training=training, name='norm')


class OpDeterminismTest(absltest.TestCase):
  def test_on_inside_only(self):
    with repeating.op_determinism():
      self.assertTrue(config.is_op_determinism_enabled())
    self.assertFalse(config.is_op_determinism_enabled())

  def test_after_an_error(self):
    with self.assertRaises(KeyError), repeating.op_determinism():
      raise KeyError('x')
    self.assertFalse(config.is_op_determinism_enabled())

  def test_stays_on_where_it_was(self):
    config.enable_op_determinism()
    self.addCleanup(config.disable_op_determinism)
    with repeating.op_determinism():
      pass
    self.assertTrue(config.is_op_determinism_enabled())


class SidesTest(absltest.TestCase):
  def setUp(self):
    super().setUp()
    ladder = new_ladder(type('Case', (DroppedCase,), {}), lambda _: None)
    self.addCleanup(ladder.close)
    self.case = ladder.prepared()
    self.repeater = Repeater.of(self.case)

  def test_both_sides_yield_the_same_tensors(self):
    tf1 = repeating.prepare_tf1(self.case.tf1, self.repeater.tf1_run)()
    tf2 = repeating.observe_tf2(self.case.tf2, self.case.inputs, self.repeater.tf2_run)
    self.assertEqual(sorted(map(str, tf1)), sorted(map(str, tf2)))
    quantities = {tensor.quantity for tensor in tf1}
    self.assertEqual(quantities, {'initial value', 'output', 'state after the call', 'gradient'})
    self.assertEmpty(varying(tf1, repeating.prepare_tf1(self.case.tf1, self.repeater.tf1_run)()))

  def test_another_start_gives_other_tensors(self):
    moved = dataclasses.replace(self.repeater.tf2_run, inputs=2 * self.case.inputs)
    first = repeating.observe_tf2(self.case.tf2, self.case.inputs, self.repeater.tf2_run)
    second = repeating.observe_tf2(self.case.tf2, self.case.inputs, moved)
    runs = {variation.key.run for variation in varying(first, second)}
    self.assertEqual(runs, {'training, distinct values'})


class StepsTest(absltest.TestCase):
  def test_losses_and_gradients_of_each_step_the_rest_of_the_last(self):
    def step(number):
      records = (TensorRecord('w', np.float32([number])),)
      slot = Slot('momentum', 'w', 'w/Momentum', np.float32([number]))
      return TrainingStep(
        number, np.float32(number), 0.1, number, records, records, records, (slot,)
      )

    take = iter((step(1), step(2))).__next__
    found = [
      (str(key), float(value.item())) for key, value in repeating.tensors_of_steps(take, 2).items()
    ]
    self.assertEqual(
      found,
      [
        ('loss of step 1 [2 training steps]', 1.0),
        ('gradient at step 1 w [2 training steps]', 1.0),
        ('loss of step 2 [2 training steps]', 2.0),
        ('gradient at step 2 w [2 training steps]', 2.0),
        ('variable w [2 training steps]', 2.0),
        ('slot w/Momentum [2 training steps]', 2.0),
      ],
    )


if __name__ == '__main__':
  absltest.main()
