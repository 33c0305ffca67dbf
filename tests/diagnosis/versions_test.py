import numpy as np
from absl.testing import absltest

from tests.diagnosis.hand_made import HandMade
from tf2verify.diagnosis import versions
from tf2verify.records.diagnosis import Diagnosis
from tf2verify.records.failed_tensor import FailedTensor
from tf2verify.records.observation import Observation, TensorRecord
from tf2verify.records.recorded_on_current_tf import RecordedGraphHere

_RUN = 'inference, distinct values'
_VALUES = np.linspace(1, 2, 8, dtype=np.float32)


def _here(value, intermediates=None):
  outputs = (TensorRecord('logits', np.array(value)),)
  observation = Observation('tf1', _RUN, 'Tensor', outputs)
  return RecordedGraphHere(
    'TensorFlow 1.15.5', 'TensorFlow 2.21.0', observation, intermediates or {}
  )


def _diagnosed(recorded, here, port, run=None):
  failed = [FailedTensor('output', 'logits', _RUN, recorded, port)]
  return versions.with_versions(Diagnosis(_RUN), failed, here, run)


class VersionsTest(absltest.TestCase):
  def test_a_graph_that_gives_here_what_was_recorded_leaves_the_port(self):
    diagnosis = _diagnosed(_VALUES, _here(_VALUES * np.float32(1 + 3e-7)), _VALUES + 1)
    self.assertEqual(diagnosis.causes, ())
    (note,) = diagnosis.notes
    self.assertIn('run by TensorFlow 2.21.0 here, gives what TensorFlow 1.15.5 recorded', note)
    self.assertIn("the difference is the port's", note)

  def test_a_graph_that_differs_as_the_port_does_is_another_kernel(self):
    diagnosis = _diagnosed(_VALUES, _here(_VALUES + 0.5), _VALUES + 0.5)
    (cause,) = diagnosis.causes
    self.assertEqual(cause.rule, 'kernel_of_another_version')
    self.assertIn('the port is not to blame', cause.text)
    self.assertIn('has a relative difference of 0.25 from the recording', cause.evidence)
    self.assertIn('record with --intermediates summary', cause.evidence)

  def test_recorded_intermediates_tell_the_first_operation(self):
    graph = HandMade('tf1')
    x = graph.input(_VALUES)
    first = graph.op('Square', 'square', x)
    graph.target('output logits', graph.op('Neg', 'negative', first))
    run = graph.run()
    square, negative = (
      next(op.tensors[0] for op in run.op_graph.ops if op.name == name)
      for name in ('square', 'negative')
    )
    for recorded, expected in (
      ({square: _VALUES**2, negative: -(_VALUES**2) + 1}, 'first at negative (Neg'),
      ({square: _VALUES**2 + 1, negative: -(_VALUES**2) + 1}, 'first at square (Square'),
    ):
      here = _here(_VALUES + 0.5, recorded)
      (cause,) = _diagnosed(_VALUES, here, _VALUES + 0.5, run).causes
      self.assertIn(expected, cause.text)

  def test_what_lies_between_is_said_so(self):
    (note,) = _diagnosed(_VALUES, _here(_VALUES + 0.5), _VALUES + 1).notes
    self.assertIn('part of the difference may be due to the versions', note)

  def test_nothing_is_said_of_what_the_graph_does_not_yield(self):
    failed = [FailedTensor('initial value', 'w', _RUN, _VALUES, _VALUES + 1)]
    diagnosis = Diagnosis(_RUN)
    self.assertIs(versions.with_versions(diagnosis, failed, _here(_VALUES)), diagnosis)


if __name__ == '__main__':
  absltest.main()
