"""A fleet: finds the cases, runs what has to be run, and keeps every verdict in the journal."""

import dataclasses
import glob
import importlib.metadata
import os
import platform
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from tf2verify.case_files import case_files
from tf2verify.errors import UsageError
from tf2verify.fleet import job as jobs
from tf2verify.fleet.content import are_unchanged
from tf2verify.fleet.ended import Ended, verdict_of
from tf2verify.fleet.journal import Discovery, Journal, Result, now
from tf2verify.fleet.local_engine import Request
from tf2verify.records.verdict import CaseVerdict, Status

_PACKAGES = ('tensorflow', 'tf-keras', 'tf-slim', 'numpy', 'tf2verify')


class Engine(Protocol):
  """Does jobs, each apart from the others."""

  def run(
    self, requests: 'Iterator[Request]', started: Callable[[Request], None]
  ) -> Iterator[tuple[Request, Ended]]:
    """Does jobs, and yields each as soon as it has ended."""


@dataclasses.dataclass(frozen=True)
class Options:
  """What a run is asked for.

  Attributes:
    targets: files, folders or modules, with or without `::Case`.
    stages: names of stages; empty for all.
    resume: whether to go on with the last run of the journal.
    retry: whether cases that ended with ERROR are run again, too.
  """

  targets: tuple[str, ...]
  stages: tuple[str, ...] = ()
  resume: bool = False
  retry: bool = False


class Watcher(Protocol):
  """Is told how a run goes on."""

  def planned(self, to_run: int, kept: int) -> None: ...
  def started(self, target: str) -> None: ...
  def ended(self, result: Result) -> None: ...


def versions() -> dict[str, str]:
  """Returns what a verdict depends on beside the case's own files."""
  found = {'python': platform.python_version(), 'machine': platform.machine()}
  for package in _PACKAGES:
    try:
      found[package] = importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
      continue
  return found


def run_fleet(options: Options, journal: Journal, engine: Engine, watcher: Watcher) -> list[Result]:
  """Runs the cases of some targets.

  Returns:
    The results of the run, those kept from before it went on among them.

  Raises:
    UsageError: a target is not there, or has no case.
  """
  number, kept = _begun(options, journal)
  targets, unusable = _cases(options, journal, engine, number)
  for result in unusable:
    journal.write(result)
  known = {result.target: result for result in kept}
  keep = {target for target in targets if target in known and _still_holds(known[target], options)}
  requests = [
    Request(jobs.VERIFY, target, options.stages or None, target)
    for target in targets
    if target not in keep
  ]
  watcher.planned(len(requests), len(keep))
  for result in unusable:
    watcher.ended(result)
  for request, ended in engine.run(iter(requests), lambda one: watcher.started(one.target)):
    attempt = known[request.target].attempt + 1 if request.target in known else 1
    result = _result(number, request.target, ended, options, attempt)
    journal.write(result)
    watcher.ended(result)
  journal.end_run(number)
  wanted = {*targets, *(result.target for result in unusable)}
  return [result for result in journal.results(number) if result.target in wanted]


def _begun(options: Options, journal: Journal) -> tuple[int, list[Result]]:
  """Returns the number of the run, and the results that it has already."""
  here = versions()
  runs = journal.runs()
  if options.resume and runs and runs[-1].versions == here:
    journal.go_on(runs[-1].number)
    return runs[-1].number, journal.results(runs[-1].number)
  return journal.begin_run(options.targets, here), []


def _still_holds(result: Result, options: Options) -> bool:
  if options.retry and result.verdict.status is Status.ERROR:
    return False
  return result.stages == options.stages and are_unchanged(result.files)


def _cases(
  options: Options, journal: Journal, engine: Engine, run: int
) -> tuple[list[str], list[Result]]:
  """Returns `path::Case` of every case, and an error per file that cannot be imported."""
  found: dict[str, list[str]] = {}
  wanted: dict[str, set[str]] = {}
  for target in options.targets:
    place, _, case = target.partition('::')
    for file in case_files(place):
      found.setdefault(file, [])
      wanted.setdefault(file, set()).add(case)
  requests, errors = [], []
  for file in found:
    known = journal.discovery(file)
    if known is not None and known.files and are_unchanged(known.files):
      found[file] = list(known.cases)
    else:
      requests.append(Request(jobs.DISCOVER, file, None, file))
  for request, ended in engine.run(iter(requests), lambda _: None):
    told = ended.last(jobs.FOUND)
    if told is None:
      errors.append(_result(run, request.target, ended, options, 1))
      continue
    found[request.target] = list(told['cases'])
    journal.write_discovery(Discovery(request.target, told['files'], tuple(told['cases'])))
  targets = []
  for file, cases in found.items():
    asked = wanted[file] - {''}
    unknown = asked - set(cases)
    if unknown and file not in {error.target for error in errors}:
      raise UsageError(
        f'{file} has no case {sorted(unknown)[0]}; its cases: {", ".join(cases) or "none"}'
      )
    targets += [f'{file}::{name}' for name in cases if '' in wanted[file] or name in asked]
  return targets, errors


def _result(run: int, target: str, ended: Ended, options: Options, attempt: int) -> Result:
  place, _, case = target.partition('::')
  verdict = verdict_of(ended, case or os.path.basename(place), place)
  told = ended.last(jobs.DONE) or ended.last(jobs.REFUSED) or {}
  files = told.get('files') or _files_around(place)
  return Result(run, target, attempt, now(), ended.seconds, files, options.stages, verdict)


def _files_around(place: str) -> dict[str, str]:
  """Returns the digests of the files beside one of which no process could tell its imports."""
  from tf2verify.fleet.content import sha256_of

  beside = glob.glob(os.path.join(glob.escape(os.path.dirname(place) or '.'), '*.py'))
  return {os.path.abspath(path): sha256_of(path) for path in (place, *sorted(beside))}


def passed(results: Sequence[Result]) -> int:
  """Returns how many cases passed."""
  return sum(result.verdict.status is Status.PASSED for result in results)


def verdicts(results: Sequence[Result]) -> list[CaseVerdict]:
  """Returns the verdicts alone."""
  return [result.verdict for result in results]
