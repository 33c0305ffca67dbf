"""Recorded references whose graph leaves the order of reads and writes open."""

import abc
import os
import tempfile
from unittest import mock

import tensorflow as tf
from absl.testing import absltest

import tf2verify
from tests.sides import recorded_cases
from tests.stages import tiny_models
from tf2verify import Status
from tf2verify.reference.private_tensorflow import v1 as v1_of_recorder
from tf2verify.sides.recorded import graph_safety
from tf2verify.sides.recorded.build import RecordedBuild

v1 = tf.compat.v1
train = v1.train
_RACE = 'nothing in the graph of the reference orders these accesses to a variable'


class Schedule(tf.keras.optimizers.schedules.PolynomialDecay):
  """A rate that is read after so many counts of the step."""

  def __init__(self, late, steps=8):
    super().__init__(0.1, steps, 0.0)
    self.late = late

  def __call__(self, step):
    return super().__call__(step + self.late)


class RacingRate(tiny_models.Affine, abc.ABC):
  """The rate reads a step that is assigned in no order to it."""

  late, steps = 0, 8

  def tf1_loss(self, outputs, labels):
    return tf.reduce_mean(outputs**2)

  tf2_loss = tf1_loss

  def make_tf1_train_op(self, loss):
    step = train.get_or_create_global_step()
    optimizer = train.GradientDescentOptimizer(train.polynomial_decay(0.1, step, 8, 0.0))
    update = optimizer.minimize(loss)
    return tf.group(update, step.assign(step + 1))

  def make_tf2_optimizer(self):
    return tf.keras.optimizers.legacy.SGD(Schedule(self.late, self.steps))


class _OneThreadSession(v1.Session):
  """It runs what a graph leaves open in the same order every time, as one thread comes to it."""

  def __init__(self, graph, config):
    config.inter_op_parallelism_threads = 1
    config.use_per_session_threads = True
    super().__init__(graph=graph, config=config)


class RecordedRacesTest(absltest.TestCase):
  def setUp(self):
    super().setUp()
    self.folder = self.enter_context(tempfile.TemporaryDirectory())
    # Two threads may take another order in each step, and then no port agrees with the recording.
    self.enter_context(mock.patch.object(v1_of_recorder, 'Session', _OneThreadSession))

  def verdicts(self, late, steps=8, stage='training_steps'):
    class Case(RacingRate):
      pass

    Case.late, Case.steps = late, steps
    path = os.path.join(self.folder, 'recording')
    if os.path.exists(path):
      case = recorded_cases.replayed(Case, path)
    else:
      case = recorded_cases.record(Case, path)
    return tf2verify.verify(case, stages=[stage]).stages[-1]

  def test_a_port_in_either_order(self):
    found = [self.verdicts(late) for late in (0, 1)]
    for verdict in found:
      self.assertIs(verdict.status, Status.PASSED, verdict.to_text())
      self.assertIn(_RACE, '\n'.join(verdict.blind_spots))
      self.assertIn('step.assign(step + 1)', '\n'.join(verdict.blind_spots))
    texts = '\n'.join('\n'.join(verdict.blind_spots) for verdict in found)
    self.assertIn('as they happened to run when the reference was recorded', texts)

  def test_another_rate(self):
    verdict = self.verdicts(0, steps=16)
    self.assertIs(verdict.status, Status.FAILED, verdict.to_text())
    self.assertIn('agrees with none of the orders', verdict.to_text())

  def test_a_graph_that_is_not_run_here(self):
    self.verdicts(0)
    refused = graph_safety.RefusedOp
    with mock.patch.object(
      RecordedBuild, 'stand_ins_behind', lambda *_: (refused('op', 'PyFunc', True, False),)
    ):
      found = [self.verdicts(late) for late in (0, 1)]
    statuses = {verdict.status for verdict in found}
    self.assertEqual(statuses, {Status.PASSED, Status.INCONCLUSIVE})
    undecided = next(v for v in found if v.status is Status.INCONCLUSIVE)
    self.assertIn('which came first when the reference was recorded is not known', undecided.reason)
    self.assertIn('of global_step: the read', undecided.reason)

  def test_determinism_names_it(self):
    verdict = self.verdicts(0, stage='determinism')
    self.assertIn('of global_step: the read', verdict.to_text())
    self.assertNotIn('not found', verdict.to_text())


if __name__ == '__main__':
  absltest.main()
