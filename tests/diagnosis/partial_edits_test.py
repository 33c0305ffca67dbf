"""Edits that correct a part of what differs: of many operations they are no cause."""

from types import SimpleNamespace

from absl.testing import absltest

from tests.diagnosis.rules_test import difference, source
from tf2verify.diagnosis import tested_causes
from tf2verify.diagnosis.edits.mistakes import Found, Mistake
from tf2verify.diagnosis.evidence.failed_stage import FailedStage
from tf2verify.records.diagnosis import GraphAspect
from tf2verify.records.experiment import Edit, Experiment, Outcome
from tf2verify.sides.graphs.edits.repairs import Repair

_MANY = ' → '.join(['Reshape', 'Fill', 'Mul', 'Pack', 'StridedSlice', 'Tile', 'AddV2', 'Cast'])


class PartialEditsTest(absltest.TestCase):
  def causes(self, aspect, tf1, tf2, outcome):
    at = source(differences=[difference(aspect, 'Mul', 'y', tf1, tf2)])
    experiment = Experiment(Edit.OPERATIONS, 'the edit', outcome, 1, 1, 0.1, 2, 1, 0)
    mistake = Mistake((SimpleNamespace(evidence=at),), Edit.OPERATIONS, Repair(), experiment)
    known = FailedStage('zero_randomness', (), (), sources=(at,))
    return [cause.text for cause in tested_causes.tested_causes(known, [], Found((mistake,)))]

  def test_many_operations(self):
    for aspect, tf2 in ((GraphAspect.MISSING, ''), (GraphAspect.CONSTANT, 'another constant')):
      self.assertEqual(self.causes(aspect, _MANY, tf2, Outcome.PARTLY), [])
      self.assertEqual(self.causes(aspect, _MANY, tf2, Outcome.PROVEN), ['the edit'])

  def test_one_operation(self):
    self.assertEqual(self.causes(GraphAspect.MISSING, 'Relu', '', Outcome.PARTLY), ['the edit'])


if __name__ == '__main__':
  absltest.main()
