"""Initial values of a cell that TF1 and the port hold in other variables."""

import abc

import keras
import tensorflow as tf
from keras import initializers, ops

import tf2verify
from tests.stages import tiny_models
from tests.stages.first_failure import LadderTestCase
from tf2verify import Status

v1 = tf.compat.v1
_STAGE = 'seeded_constant'
_INPUTS, _UNITS = 5, 16


def _limit(columns):
  return (6.0 / (_INPUTS + _UNITS + columns)) ** 0.5


_GATES, _CANDIDATE = _limit(2 * _UNITS), _limit(_UNITS)


class ByGate(initializers.Initializer):
  """Draws gates and candidate apart, each as the kernel of TF1 that it belongs to."""

  def __init__(self, gates=_GATES, candidate=_CANDIDATE):
    self.parts = [(2, initializers.RandomUniform(-gates, gates))]
    self.parts.append((1, initializers.RandomUniform(-candidate, candidate)))

  def __call__(self, shape, dtype=None):
    made = [draw((shape[0], times * _UNITS), dtype=dtype) for times, draw in self.parts]
    return ops.concatenate(made, axis=1)


class Cell(tiny_models.OneModel, abc.ABC):
  """A GRU of TF1, and one of Keras with its initial values."""

  variable_map = 'derive'
  training_modes = (False,)
  kernel, recurrent = ByGate, ByGate

  def model(self, inputs, training):
    cell = v1.nn.rnn_cell.GRUCell(_UNITS, bias_initializer=v1.zeros_initializer())
    return v1.nn.dynamic_rnn(cell, inputs, dtype=tf.float32)[0]

  def make_tf2_layer(self):
    made = {'kernel_initializer': self.kernel(), 'recurrent_initializer': self.recurrent()}
    gru = keras.layers.GRU(_UNITS, reset_after=False, return_sequences=True, **made)
    return keras.Sequential([gru])

  def make_inputs(self):
    return tf2verify.normal_inputs((2, 3, _INPUTS))


class GroupedStartsTest(LadderTestCase):
  def stage(self, case):
    verdict = tf2verify.verify(case, [_STAGE])
    return next(stage for stage in verdict.stages if stage.stage == _STAGE)

  def test_each_part_drawn_as_in_tf1(self):
    class Case(Cell):
      pass

    found = self.stage(Case)
    self.assertIs(found.status, Status.PASSED, found.to_text())

  def test_one_limit_for_all_gates(self):
    class Case(Cell):
      def recurrent(self):
        return ByGate(candidate=_GATES)

    found = self.stage(Case)
    self.assertIs(found.status, Status.FAILED, found.to_text())
    self.assertIn('candidate/kernel', found.to_text())

  def test_the_default_of_keras_names_both_variables(self):
    class Case(Cell):
      kernel = initializers.GlorotUniform
      recurrent = initializers.Orthogonal

    found = self.stage(Case)
    self.assertIs(found.status, Status.FAILED, found.to_text())
    self.assertRegex(found.to_text(), r'gru_cell/kernel: uniform in ±0\.\d+; \S*recurrent_kernel: ')
