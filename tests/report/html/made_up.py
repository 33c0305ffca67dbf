"""Verdicts written by hand, for tests of the page."""

import dataclasses
import importlib.util
import math
import unittest

from tf2verify.records.diagnosis import (
  Cause,
  Diagnosis,
  GraphAspect,
  GraphDifference,
  GrowthPoint,
  Source,
  Statistics,
)
from tf2verify.records.difference import ArrayDifference, Aspect, Deviation, Difference, Judgement
from tf2verify.records.observation import SourceLine
from tf2verify.records.side_by_side import Curve, RandomOps, VariablePair, VariableSummary
from tf2verify.records.status import Status
from tf2verify.records.table import Table
from tf2verify.records.verdict import CaseVerdict, Compared, ErrorRecord, Figure, StageVerdict

needs_report_extra = unittest.skipIf(
  any(importlib.util.find_spec(name) is None for name in ('jinja2', 'matplotlib')),
  "Jinja2 or matplotlib is not installed: pip install 'tf2verify[report]'",
)
# What does something in a page that does not escape it, in any place.
EVIL = '</script></template><img src=x onerror=alert(1)>"\'&{{7*7}}\u2028'


def deviation(
  name: str, judgement=Judgement.PASSED, difference=1e-7, noise=None, run='training'
) -> Deviation:
  return Deviation(
    'gradient', name, run, 'float32', 1e-6, 1e-5, ((0.5, difference),), 1.0, judgement, noise,
    (5, 3, 0, 1),
  )  # fmt: skip


def difference(name: str, size=0.25, hint='', noise=None) -> Difference:
  array = ArrayDifference(
    (2, 3), 'float32', 1, 6, (1, 2), 0.5, 0.75, size, 0.5, 1e-6, 1e-5, size, 0.5, noise
  )
  return Difference('gradient', name, Aspect.VALUES, run='training', array=array, hint=hint)


def variable(name: str, trainable=True, shape=(2, 3)) -> VariableSummary:
  return VariableSummary(name, shape, 'float32', trainable)


def passed(name: str = 'RightCase', module: str = 'right_case.py') -> CaseVerdict:
  stages = (
    StageVerdict('no_new_variables', 1, Status.PASSED, Compared(3, noun='calls'), seconds=0.2),
    StageVerdict(
      'variable_inventory', 2, Status.PASSED, Compared(1, noun='variables'),
      inventory=(VariablePair(variable('w'), variable('w')),),
    ),
    StageVerdict(
      'zero_randomness', 3, Status.PASSED, Compared(4, 40, rounding=1), seconds=1.5,
      figures=(Figure('regularization loss', 'inference', 0.5, 0.5),),
      deviations=(deviation('logits', Judgement.ROUNDING, 1e-3, 2e-3),),
    ),
    StageVerdict('loss', 7, Status.NOT_APPLICABLE, reason='the case declares no loss'),
  )  # fmt: skip
  return CaseVerdict(name, module, stages, (('python', '3.11'), ('numpy', '2.4')))


def failed_at_two_places() -> CaseVerdict:
  """As `failed`, with a second mistake at a line of its own, whose cause only the stage knows."""
  case = failed()
  stage = next(stage for stage in case.stages if stage.status is Status.FAILED)
  [source] = stage.diagnosis.sources
  other = dataclasses.replace(
    source,
    tf1_op='bias',
    tf1_source=SourceLine('tf1.py', 8, 'call', 'x = bias()'),
    tf2_source=SourceLine('tf2.py', 9, 'call', 'x = bias()'),
    differences=(),
  )
  diagnosis = dataclasses.replace(stage.diagnosis, sources=(source, other))
  found = (difference('dense/kernel'), difference('bias', hint='a hint on bias'))
  stage = dataclasses.replace(stage, diagnosis=diagnosis, differences=found)
  return dataclasses.replace(case, stages=(stage,))


def failed(name: str = 'WrongCase', subject: str = 'dense/kernel') -> CaseVerdict:
  """Fails at the gradients, with every kind of thing that a page can show."""
  lines = [SourceLine(f'{side}.py', 7, 'call', f'x = {side}({subject})') for side in ('tf1', 'tf2')]
  told = Statistics((2, 3), 'float32', -1.0, 1.0, 0.1, 0.0, 0)
  source = Source(
    subject, subject, 'Mul', 'Mul', lines[0], lines[1], ('Mul',), ('Mul',), 0.5, 0.25, False,
    told, told,
    (GraphDifference(GraphAspect.CONSTANT, subject, 'Mul', 'y', '0.1', '0.2', 0.1, 0.2),),
  )  # fmt: skip
  growth = tuple(GrowthPoint(f'{subject}_{n}', 10.0 ** (n - 4)) for n in range(5))
  stages = (
    StageVerdict('no_new_variables', 1, Status.PASSED, Compared(3, noun='calls')),
    StageVerdict(
      'variable_inventory', 2, Status.PASSED, Compared(2, noun='variables'),
      inventory=(
        VariablePair(variable(subject), variable(subject)),
        VariablePair(variable('beta'), variable('norm/beta', trainable=False)),
        VariablePair(None, variable('extra')),
      ),
    ),
    StageVerdict(
      'seeded_num_random_ops', 5, Status.PASSED, Compared(2, 4), notes=(f'a note on {subject}',),
      random_ops=(
        RandomOps(
          'training', ('A (2)', 'B (3)', 'C (4)'), ('A (2)', 'C (4)', 'B (3)'),
          ('a.py:1', 'a.py:2', ''), ('b.py:1', 'b.py:2', 'b.py:3'),
        ),
      ),
    ),
    StageVerdict(
      'gradients', 6, Status.FAILED, Compared(60, 600, inconclusive=1, blind_spots=1),
      (difference(subject, hint=f'a hint on {subject}', noise=1e-7), difference('bias', math.inf)),
      2.5,
      diagnosis=Diagnosis(
        'training', (Cause(f'the cause is {subject}', 'what was seen', 'rule'),), (source,),
        growth=growth, operations=10, paired=9, notes=('a note of the search',),
      ),
      deviations=(
        deviation(subject, Judgement.FAILED, 0.25, 1e-7), deviation('bias', Judgement.FAILED, 9.0),
        *(deviation(f'layer_{n}/kernel', difference=1e-7 * n) for n in range(1, 31)),
        deviation('small', Judgement.DEGENERATE, 1e-3, 1e-3),
      ),
    ),
    StageVerdict(
      'training_steps', 8, Status.BLOCKED, reason='blocked: gradients FAILED',
      tables=(Table('step by step', ('step', 'loss'), (('1', '2.5'), ('2', subject))),),
      curves=(
        Curve('loss', (1, 2), (2.5, 2.0), (2.5, 2.25)),
        Curve('learning rate', (1, 2), (0.1, 0.1), (0.1, None)),
      ),
    ),
  )  # fmt: skip
  environment = (('python', '3.11'), ('numpy', '2.4'))
  return CaseVerdict(name, f'{name}.py', stages, environment, f'python {name}.py {subject}')


def error(name: str = 'RaisingCase') -> CaseVerdict:
  stage = StageVerdict(
    'no_new_variables', 1, Status.ERROR,
    error=ErrorRecord('tf2', 'call raised ValueError: no', 'Traceback:\n  File "port.py"\n'),
  )  # fmt: skip
  return CaseVerdict(name, 'raising.py', (stage,), (('python', '3.10'),), 'python raising.py')
