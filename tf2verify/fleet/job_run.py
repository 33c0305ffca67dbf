"""A job of the fleet, done: in a process that is there for nothing else."""

import faulthandler
import json
import os
import signal
import sys

from tf2verify.errors import Tf2VerifyError, UserCodeError
from tf2verify.fleet import job as jobs
from tf2verify.fleet.content import files_of_loaded_modules
from tf2verify.fleet.job import EventWriter, Job

# The supervisor asks a process that hangs for its stack.
SHOW_STACK = signal.SIGUSR1


def do(job: Job) -> int:
  """Does a job and tells how it went.

  Returns:
    The exit status: 0 if it was done, whatever the verdict.
  """
  _print_to(job.log)
  events = EventWriter(job.events)
  # A crash of native code, or a hang, then leaves Python's stack in the log.
  faulthandler.enable()
  faulthandler.register(SHOW_STACK, all_threads=True)
  known = frozenset(sys.modules)
  try:
    if job.kind == jobs.DISCOVER:
      _discover(job, events, known)
    else:
      _verify(job, events, known)
  except Tf2VerifyError as error:
    text = error.traceback_text if isinstance(error, UserCodeError) else ''
    files = files_of_loaded_modules(known)
    events.tell(jobs.REFUSED, error=str(error), traceback=text, files=files)
  sys.stdout.flush()
  sys.stderr.flush()
  return 0


def _print_to(path: str) -> None:
  log = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
  for descriptor in (1, 2):
    os.dup2(log, descriptor)
  os.close(log)
  nothing = os.open(os.devnull, os.O_RDONLY)
  os.dup2(nothing, 0)
  os.close(nothing)


def _discover(job: Job, events: EventWriter, known: frozenset[str]) -> None:
  from tf2verify.discovery import find_cases

  found = find_cases(job.target, may_have_none=True)
  names = [case.case.__name__ for case in found]
  # Modules of the file's own folder are kept apart from those of this process.
  for case in found:
    sys.modules.update(dict(case.modules))
  events.tell(jobs.FOUND, cases=names, files=files_of_loaded_modules(known))


def _verify(job: Job, events: EventWriter, known: frozenset[str]) -> None:
  from tf2verify.case import verify
  from tf2verify.discovery import find_cases
  from tf2verify.records.verdict import CaseVerdict, StageVerdict
  from tf2verify.sides import logical_devices
  from tf2verify.stages import STAGES

  logical_devices.ask_for_two_cpus()
  (found,) = find_cases(job.target)
  events.tell(jobs.STARTED, case=found.case.__name__, stages=[stage.name for stage in STAGES])

  def told(stage: StageVerdict) -> None:
    single = CaseVerdict(found.case.__name__, job.target, (stage,))
    events.tell(jobs.STAGE, verdict=json.loads(single.to_json()))

  with found.importable():
    verdict = verify(found.case, job.stages, told, lambda step: events.tell(jobs.DOING, step=step))
    files = files_of_loaded_modules(known)
  events.tell(jobs.DONE, verdict=json.loads(verdict.to_json()), files=files)
