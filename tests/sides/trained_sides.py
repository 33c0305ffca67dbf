"""Both sides in training, without a stage around them."""

import abc
import contextlib

import numpy as np
import tensorflow as tf

import tf2verify
from tests.stages import tiny_models
from tf2verify.ladder import CaseName, Ladder
from tf2verify.sides.process import state as process_state
from tf2verify.sides.side import RunSpec
from tf2verify.stages.passes.zero_randomness import CaseFill

v1 = tf.compat.v1
RATE = 0.25


class Trained(tiny_models.Affine, abc.ABC):
  """An affine map, trained by gradient descent on both sides."""

  def make_labels(self):
    return tf2verify.normal_inputs((4, 3), seed=3)

  def tf1_loss(self, outputs, labels):
    return tf.reduce_mean(tf.square(outputs - labels))

  tf2_loss = tf1_loss

  def make_tf1_optimizer(self):
    return v1.train.GradientDescentOptimizer(RATE)

  def make_tf2_optimizer(self):
    return tf.keras.optimizers.SGD(RATE)


@contextlib.contextmanager
def prepared(case_class):
  """Yields both sides of a case, and a run in training mode from distinct values."""
  case = case_class()
  ladder = Ladder(case, CaseName(case_class.__name__, __file__, lambda name: name))
  try:
    with process_state.preserved():
      under_test = ladder.prepared()
      names = {variable.name: variable.name for variable in under_test.tf1.inventory().variables}
      yield under_test, RunSpec(under_test.inputs, True, CaseFill(case), names, gradients=True)
  finally:
    ladder.close()


def by_name(records):
  return {record.name: record.value for record in records}


def updates(run, number=1):
  """Returns what a step adds to each variable."""
  before = run.values_before if number == 1 else run.steps[number - 2].variables
  before, after = by_name(before), by_name(run.steps[number - 1].variables)
  return {name: np.asarray(after[name], np.float64) - before[name] for name in before}
