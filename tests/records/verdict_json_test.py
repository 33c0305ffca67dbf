"""Tests of tf2verify.records.verdict_json: there and back, and what is refused."""

import json
import math

from absl.testing import absltest, parameterized

from tf2verify.errors import UsageError
from tf2verify.records.diagnosis import Diagnosis, GraphAspect, GraphDifference
from tf2verify.records.difference import (
  ArrayDifference,
  Aspect,
  Deviation,
  Difference,
  ErrorSummary,
  Judgement,
)
from tf2verify.records.proven import GraphDifference as UnseenDifference
from tf2verify.records.proven import Proven, TestedRegion
from tf2verify.records.side_by_side import Curve, RandomOps, VariablePair, VariableSummary
from tf2verify.records.status import Status
from tf2verify.records.verdict import CaseVerdict, Compared, ErrorRecord, Figure, StageVerdict
from tf2verify.records.verdict_json import case_from_json

_ARRAY = ArrayDifference(
  (2, 3), 'float32', 1, 6, (1, 2), 0.5, math.inf, math.inf, 0.5, 1e-6, 1e-5, math.inf, 0.25, 1e-9
)
_DIFFERENCE = Difference('output', "['a']", Aspect.VALUES, run='training', array=_ARRAY, hint='why')
_DEVIATION = Deviation(
  'output', "['a']", 'training', 'float32', 1e-6, 1e-5, ((0.5, 0.25), (1.0, 0.5)), 2.0,
  Judgement.FAILED, 1e-9, (3, 0, 1),
)  # fmt: skip
_GRAPH = GraphDifference(
  GraphAspect.CONSTANT, 'pad', 'Pad', 'paddings', '(1, 1)', '(0, 2)', ((1, 1),), ((0, 2),)
)
_VARIABLE = VariableSummary('w', (2, None), 'float32', True)
_REGION = TestedRegion(('Relu net/Relu',), ('Relu6 net/Relu6',), ('output (the output)',))
_UNSEEN = UnseenDifference('constant', 'Mul', '0.0001', '0.0002', count=2)
_PROVEN = Proven('inference', 9, 8, 9, 8, 2, 1, (_REGION,), seconds=0.5, differences=(_UNSEEN,))
CASE = CaseVerdict(
  'Case',
  'case.py',
  (
    StageVerdict('a', 1, Status.ERROR, error=ErrorRecord('tf2', 'it raised', 'Traceback')),
    StageVerdict(
      'b',
      2,
      Status.FAILED,
      Compared(3, 12, 1, 2, rounding=1),
      (_DIFFERENCE, Difference('variable', 'w', Aspect.PRESENCE, 'here', 'missing')),
      1.5,
      notes=('a note',),
      figures=(Figure('loss', 'training', 1.0, 2.0),),
      diagnosis=Diagnosis('training', gradient_differences=(_GRAPH,)),
      deviations=(_DEVIATION,),
      inventory=(VariablePair(_VARIABLE, None, 'duplicate'), VariablePair(None, _VARIABLE)),
      random_ops=(RandomOps('training', ('A',), ('B', 'C'), ('a.py:1',), ('', '')),),
      curves=(Curve('loss', (1, 2), (0.5, None), (0.5, math.inf)),),
      extents=(ErrorSummary('step 1', 1, 0.5, math.inf, 1.5, 0.5, math.inf, None, (3, 0, 1)),),
    ),
    StageVerdict('c', 3, Status.BLOCKED, reason='blocked: b FAILED'),
    StageVerdict('d', 4, Status.PASSED, proven=_PROVEN),
  ),
  (('python', '3.11'), ('numpy', '2')),
  'python case.py',
)


class RoundTripTest(parameterized.TestCase):
  def test_the_record_comes_back(self):
    self.assertEqual(case_from_json(CASE.to_json()), CASE)

  @parameterized.parameters(
    ('float32', 1.5), ('float64', -math.inf), ('int64', 3), ('bool', True), ('str', 'inf'),
    ('complex64', 1 + 2j),
  )  # fmt: skip
  def test_elements(self, dtype, element):
    array = ArrayDifference((), dtype, 1, 1, (), element, element, 0.0, 0.0, 0.0, 0.0)
    stage = StageVerdict(
      's', 1, Status.FAILED, differences=(Difference('output', 'x', Aspect.VALUES, array=array),)
    )
    case = CaseVerdict('Case', 'case.py', (stage,))
    self.assertEqual(case_from_json(case.to_json()), case)

  def test_nan_comes_back_as_nan(self):
    array = ArrayDifference((), 'float32', 1, 1, (), math.nan, 1.0, math.nan, 0.0, 0.0, 0.0)
    stage = StageVerdict(
      's', 1, Status.FAILED, differences=(Difference('output', 'x', Aspect.VALUES, array=array),)
    )
    found = case_from_json(CaseVerdict('Case', 'case.py', (stage,)).to_json())
    again = found.stages[0].differences[0].array
    self.assertTrue(math.isnan(again.tf1) and math.isnan(again.greatest_absolute))

  def test_unknown_fields_are_passed_over_and_new_ones_have_their_default(self):
    report = json.loads(CASE.to_json())
    report['later'] = 1
    report['stages'][1]['later'] = {}
    del report['stages'][1]['deviations']
    self.assertEqual(case_from_json(json.dumps(report)).stages[1].deviations, ())


class RefusedTest(parameterized.TestCase):
  @parameterized.parameters(
    ('', 'is not JSON'),
    ('{"schema_version": 2, "stages": [', 'is not JSON'),
    ('[]', 'is not a report'),
    ('{"a": 1}', 'is not a report'),
    ('{"schema_version": 1, "stages": []}', 'has schema_version 1; this tf2verify reads 2'),
    ('{"schema_version": 2, "stages": []}', 'has no case'),
    (
      '{"schema_version": 2, "case": 3, "module": "", "stages": []}',
      'case = 3; it must be a string',
    ),
  )
  def test_no_report(self, text, message):
    with self.assertRaisesRegex(UsageError, message):
      case_from_json(text)

  @parameterized.parameters(
    (('stages',), {}, r'stages = \{\}; it must be an array'),
    (('stages', 0), 1, r'stages\[0\] = 1; it must be an object'),
    (('stages', 0, 'number'), '1', r"stages\[0\].number = '1'; it must be an integer"),
    (('stages', 0, 'number'), True, 'number = True; it must be an integer'),
    (('stages', 0, 'seconds'), 'long', "seconds = 'long'; it must be a number"),
    (('stages', 0, 'status'), 'GOOD', "status = 'GOOD'; it must be one of PASSED, "),
    (('stages', 1, 'deviations', 0, 'frontier', 0), [1.0], r'frontier\[0\]; there are 2'),
    (
      ('stages', 1, 'differences', 0, 'array', 'rtol'),
      None,
      'array.rtol = None; it must be a number',
    ),
    (('environment',), [], r'environment = \[\]; it must be an object'),
    (('environment', 'numpy'), 2, 'environment'),
  )
  def test_wrong_types(self, path, value, message):
    report = json.loads(CASE.to_json())
    place = report
    for key in path[:-1]:
      place = place[key]
    place[path[-1]] = value
    with self.assertRaisesRegex(UsageError, message):
      case_from_json(json.dumps(report))

  def test_every_cut_is_refused(self):
    text = CASE.to_json()
    for end in range(0, len(text) - 1, 37):
      with self.assertRaises(UsageError):
        case_from_json(text[:end])


if __name__ == '__main__':
  absltest.main()
