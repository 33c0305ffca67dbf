"""Results for journals, written by hand."""

import json

from tf2verify.fleet.journal import now
from tf2verify.fleet.results import Entry, Result, without_deviations
from tf2verify.records.difference import Aspect, Deviation, Difference, Judgement
from tf2verify.records.status import Status
from tf2verify.records.verdict import CaseVerdict, Compared, ErrorRecord, StageVerdict
from tf2verify.records.verdict_json import case_from_fields


def verdict(target, status, share=0.0):
  """Returns a verdict of two stages, the first with a pair that uses a share of its tolerance."""
  module, _, case = target.partition('::')
  deviations, differences, error = (), (), None
  if share:
    judgement = Judgement.FAILED if share > 1 else Judgement.PASSED
    frontier = ((1.0, share * 2e-5),)
    deviations = (
      Deviation('gradient', 'kernel', 'training', 'float32', 1e-5, 1e-5, frontier, 1.0, judgement),
    )
  if status is Status.FAILED:
    differences = (Difference('gradient', 'kernel', Aspect.VALUES, '1', '2', 'training'),)
  if status is Status.ERROR:
    error = ErrorRecord('tf1', 'build_tf1_graph raised KeyError: 3', 'Traceback')
  reason = 'nothing can be told' if status in (Status.BLOCKED, Status.INCONCLUSIVE) else ''
  stages = (
    StageVerdict(
      'gradients',
      6,
      status,
      Compared(1, 10),
      differences,
      1.5,
      reason,
      error=error,
      deviations=deviations,
    ),
    StageVerdict('loss', 7, Status.NOT_APPLICABLE, reason='no loss <&> \x00'),
  )
  environment = (('python', '3.11.7'), ('tensorflow', '2.21.0'))
  return CaseVerdict(case, module, stages, environment, f'python {module}')


def result(run, target, status, share=0.0, attempt=1, files=None):
  """Returns the result of `verdict`."""
  whole = json.loads(verdict(target, status, share).to_json())
  fields, deviations = without_deviations(whole)
  entry = Entry(run, target, status, attempt, now(), 1.5, 2**20, files or {}, (), run)
  return Result(entry, case_from_fields(fields), deviations)
