"""The process that is copied for every job, without TensorFlow: a case is a Python function.

A file of stand-in cases holds `CASES`: a function of the events and the job by name. What
the function returns is the name of the status of its one stage.
"""

import json
import runpy

from tests.fleet import without_tensorflow  # noqa: F401

# isort: split
from tf2verify.fleet import fork_server, job_run
from tf2verify.fleet import job as jobs
from tf2verify.fleet.content import sha256_of
from tf2verify.records.status import Status
from tf2verify.records.verdict import CaseVerdict, Compared, ErrorRecord, StageVerdict

STAGES = ('first', 'second')


def fields_of(case, module, status, stage='first', number=1):
  error = ErrorRecord('case', 'it raised') if status is Status.ERROR else None
  found = StageVerdict(stage, number, status, Compared(1, 1), reason='so it is', error=error)
  return json.loads(CaseVerdict(case, module, (found,)).to_json())


def _with_resources(cases):
  """Returns what each function needs: its attribute `resources`, fields of `Resources`."""
  return {name: getattr(case, 'resources', {}) for name, case in cases.items()}


def _do(job):
  events = job_run.begin(job)
  place, _, name = job.target.partition('::')
  if job.kind == jobs.CHECK:
    if 'absent' in job.stages:
      events.tell(jobs.REFUSED, error="'absent' is not a stage", traceback='', usage=True)
    return 0
  try:
    cases = runpy.run_path(place)['CASES']
  except SyntaxError as error:
    events.tell(jobs.REFUSED, error=str(error), traceback='', files={}, usage=False)
    return 0
  files = {place: sha256_of(place)}
  if job.kind == jobs.DISCOVER:
    events.tell(jobs.FOUND, cases=_with_resources(cases), files=files, file=place)
    return 0
  events.tell(jobs.STARTED, case=name, stages=STAGES, files=files)
  events.tell(jobs.DOING, step='standing in')
  status = Status(cases[name](events, job))
  events.tell(jobs.DONE, verdict=fields_of(name, place, status), files=files)
  return 0


def main(descriptor, folder):
  fork_server.serve(descriptor, folder, lambda: None, _do)
