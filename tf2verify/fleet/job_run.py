"""A job of the fleet, done: in a process that is there for nothing else."""

import contextlib
import faulthandler
import functools
import json
import os
import signal
import sys
import tempfile
from typing import Any

from tf2verify.environment import legacy_keras
from tf2verify.errors import CaseDefinitionError, Tf2VerifyError, UsageError, UserCodeError
from tf2verify.fleet import job as jobs
from tf2verify.fleet.content import FilesRead, files_of_checkpoint, files_of_loaded_modules
from tf2verify.fleet.job import EventWriter, Job
from tf2verify.reference.hidden_arguments import hidden_arguments

# The supervisor asks a process that hangs for its stack.
SHOW_STACK = signal.SIGUSR1


def prepare() -> None:
  """Imports what jobs need: TensorFlow, and the ladder.

  Raises:
    EnvironmentProblem: TF1-style code cannot run here.
  """
  legacy_keras.require()
  import tf2verify.case
  import tf2verify.discovery
  import tf2verify.stages.failures.failed_stage  # noqa: F401
  from tf2verify.sides.process import preloading

  preloading.preload()


def begin(job: Job) -> EventWriter:
  """Sends what the process prints to the job's log, and Python's stack if it crashes."""
  os.mkdir(job.scratch)
  tempfile.tempdir = os.environ['TMPDIR'] = job.scratch
  log = os.open(job.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
  for descriptor in (1, 2):
    os.dup2(log, descriptor)
  os.close(log)
  nothing = os.open(os.devnull, os.O_RDONLY)
  os.dup2(nothing, 0)
  os.close(nothing)
  faulthandler.enable()
  faulthandler.register(SHOW_STACK, all_threads=True)
  return EventWriter(job.events)


def do(job: Job) -> int:
  """Does a job and tells how it went.

  Returns:
    The exit status: 0 if it was done, whatever the verdict.
  """
  events = begin(job)
  with hidden_arguments():  # it is that of the process that was copied
    return _done(job, events)


def _done(job: Job, events: EventWriter) -> int:
  from numpy import random  # its state is the server's, where a fresh process has its own

  random.seed()
  known = frozenset(sys.modules)
  try:
    if job.kind == jobs.CHECK:
      _check(job, events)
    elif job.kind == jobs.DISCOVER:
      _discover(job, events, known)
    else:
      _verify(job, events, known)
  except Tf2VerifyError as error:
    text = error.traceback_text if isinstance(error, UserCodeError) else ''
    files = files_of_loaded_modules(known, job.scratch)
    usage = isinstance(error, UsageError)
    events.tell(jobs.REFUSED, error=str(error), traceback=text, files=files, usage=usage)
  for stream in (sys.stdout, sys.stderr):
    with contextlib.suppress(OSError, ValueError):  # the case has closed it
      stream.flush()
  return 0


def _check(job: Job, events: EventWriter) -> None:
  from tf2verify.selection import stage_names

  try:
    stage_names(job.stages or ())
  except CaseDefinitionError as error:
    raise UsageError(str(error)) from error
  events.tell(jobs.FOUND, cases={}, files={}, file=None)


def _discover(job: Job, events: EventWriter, known: frozenset[str]) -> None:
  from tf2verify.discovery import find_cases
  from tf2verify.records.resources import resources_of

  found = find_cases(job.target, may_have_none=True)
  cases: dict[str, dict[str, Any]] = {}
  for case in found:
    cases[case.case.__name__] = {}
    with contextlib.suppress(CaseDefinitionError):  # of which the case's own verdict tells
      cases[case.case.__name__] = resources_of(case.case).to_fields()
  # Modules of the file's own folder are kept apart from those of this process.
  for case in found:
    sys.modules.update(dict(case.modules))
  homes = {sys.modules[case.case.__module__].__file__ for case in found}
  files = files_of_loaded_modules(known, job.scratch)
  events.tell(jobs.FOUND, cases=cases, files=files, file=next(iter(homes), None))


def _verify(job: Job, events: EventWriter, known: frozenset[str]) -> None:
  from tf2verify.case import verify
  from tf2verify.discovery import find_cases
  from tf2verify.records.verdict import CaseVerdict, StageVerdict
  from tf2verify.selection import stage_names
  from tf2verify.sides.process import logical_devices
  from tf2verify.stages import STAGES

  logical_devices.ask_for_two_cpus()
  read = FilesRead(job.scratch)
  found = find_cases(job.target)[0]  # several: one class under two names
  wanted = None if job.stages is None else stage_names(job.stages)
  checkpoints: list[str] = []
  _note_checkpoint(found.case, checkpoints)

  def told(stage: StageVerdict) -> None:
    single = CaseVerdict(found.case.__name__, job.target, (stage,))
    events.tell(jobs.STAGE, verdict=json.loads(single.to_json()))

  with found.importable():
    events.tell(
      jobs.STARTED,
      case=found.case.__name__,
      stages=[stage.name for stage in STAGES if wanted is None or stage.name in wanted],
      files=files_of_loaded_modules(known, job.scratch),
    )
    verdict = verify(found.case, wanted, told, lambda step: events.tell(jobs.DOING, step=step))
    files = read.files() | files_of_loaded_modules(known, job.scratch)
  for prefix in checkpoints:
    files |= files_of_checkpoint(prefix)
  events.tell(jobs.DONE, verdict=json.loads(verdict.to_json()), files=files)


def _note_checkpoint(case: Any, noted: list[str]) -> None:
  """Has the checkpoint noted that a case names, when it is asked for it."""
  from tf2verify.optional_hooks import OptionalHooks

  original = case.tf1_checkpoint
  if original is OptionalHooks.tf1_checkpoint:
    return

  @functools.wraps(original)
  def noting(self: Any) -> Any:
    path = original(self)
    if isinstance(path, (str, os.PathLike)):
      noted.append(os.fspath(path))
    return path

  case.tf1_checkpoint = noting
