"""Losses of which one side alone stops the gradient of an output: wherever it reads it, or once."""

import abc

import numpy as np
import tensorflow as tf
from absl.testing import absltest

from tests.stages import tiny_models
from tests.stages.first_failure import causes_of

v1 = tf.compat.v1
_STAGE = 'loss'


class Agreeing(tiny_models.OneModel, abc.ABC):
  """A student and a teacher; the loss of each reads both, written differently on the two sides."""

  stop_in_tf1 = stop_twice = stop_once = staticmethod(tf.identity)

  def model(self, inputs, training):
    return {name: v1.layers.dense(inputs, 3, name=name) for name in ('student', 'teacher')}

  def make_labels(self):
    return np.array([0.5, 1.0, -1.0, 2.0], np.float32)

  def tf1_loss(self, outputs, labels):
    student, teacher = outputs['student'], self.stop_in_tf1(outputs['teacher'])
    agreement = tf.reduce_mean(tf.square(student - teacher))
    return agreement + tf.reduce_mean(tf.square(tf.reduce_sum(teacher, 1) - labels))

  def tf2_loss(self, outputs, labels):
    teacher = self.stop_twice(outputs['teacher'])
    apart = tf.math.squared_difference(outputs['student'], self.stop_once(teacher))
    error = tf.keras.losses.MeanSquaredError()(labels, tf.einsum('bc->b', teacher))
    return tf.reduce_sum(apart) / tf.cast(tf.size(apart), tf.float32) + error


_STOP = staticmethod(tf.stop_gradient)


class StoppedOutputsTest(absltest.TestCase):
  def test_right(self):
    for settings in ({}, {'stop_in_tf1': _STOP, 'stop_twice': _STOP}):
      found, text = causes_of(self, Agreeing, _STAGE, **settings)
      self.assertEmpty(found, text)
      self.assertNotIn('FAILED', text)

  def test_the_port_stops_one_of_two_ways(self):
    [found], text = causes_of(self, Agreeing, _STAGE, stop_once=_STOP)
    self.assertIn("the port stops the gradient of the input outputs['teacher']", found)
    self.assertIn('(stopped_outputs_test.py:', found)
    self.assertIn('proven', text)

  def test_the_port_stops_all_ways(self):
    [found], text = causes_of(self, Agreeing, _STAGE, stop_twice=_STOP)
    self.assertIn("the loss of the port stops the gradient of outputs['teacher']", found, text)
    self.assertIn('(read at stopped_outputs_test.py:', found)

  def test_tf1_stops_all_ways(self):
    [found], text = causes_of(self, Agreeing, _STAGE, stop_in_tf1=_STOP)
    self.assertIn("the loss of tf1 stops the gradient of outputs['teacher']", found, text)
    self.assertIn('put tf.stop_gradient into the port', found)


if __name__ == '__main__':
  absltest.main()
