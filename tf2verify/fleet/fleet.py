"""A fleet: finds the cases, runs what has to be run, and keeps every verdict in the journal."""

import dataclasses
import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

from tf2verify.errors import UsageError
from tf2verify.fleet import job as jobs
from tf2verify.fleet import plan as plans
from tf2verify.fleet.content import Digests, files_around, versions
from tf2verify.fleet.ended import Asked, Ended, verdict_of
from tf2verify.fleet.journal import Journal, Unstorable, now
from tf2verify.fleet.local_engine import Request
from tf2verify.fleet.places import places_of
from tf2verify.fleet.results import Entry, Result, Run
from tf2verify.fleet.sharding import Shard
from tf2verify.records.status import Status
from tf2verify.records.verdict import CaseVerdict, ErrorRecord, StageVerdict


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
    resume: whether verdicts of the journal are kept whose case is unchanged.
    retry: whether cases that ended with ERROR are run again, too.
    shard: which part of the cases.
  """

  targets: tuple[str, ...]
  stages: tuple[str, ...] = ()
  resume: bool = False
  retry: bool = False
  shard: Shard = dataclasses.field(default_factory=Shard)


class Watcher(Protocol):
  """Is told how a run goes on."""

  def planned(self, plan: plans.Plan, to_run: int, kept: int) -> None: ...
  def damaged(self, how: str) -> None: ...
  def not_kept(self, changes: list[str]) -> None: ...
  def again(self, why: Mapping[str, str]) -> None: ...
  def started(self, target: str) -> None: ...
  def ended(self, result: Result) -> None: ...


@dataclasses.dataclass(frozen=True)
class Outcome:
  """How a run ended.

  Attributes:
    run: its number.
    statuses: by target, of what was asked for.
    kept: how many of them are of before.
  """

  run: int
  statuses: Mapping[str, Status]
  kept: int

  @property
  def passed(self) -> int:
    """How many cases passed."""
    return sum(status is Status.PASSED for status in self.statuses.values())


def run_fleet(options: Options, journal: Journal, engine: Engine, watcher: Watcher) -> Outcome:
  """Runs the cases of some targets.

  Raises:
    UsageError: a target is not there, has no case, or the journal cannot be written.
  """
  for damage in journal.mend():
    watcher.damaged(damage)
  digests = Digests()
  places = places_of(options.targets)
  if options.stages:
    _check_stages(options, engine)
  wanted = plans.requests(places, journal, digests)
  plan = plans.discovered(places, journal, digests, engine.run(wanted, lambda _: None))
  units = options.shard.part_of(plan.units)
  keys = [unit.key for unit in units]
  number, known = _begun(options, journal, watcher, plan, keys)
  why = {u.key: _why_again(known[u.key], u, options, digests) for u in units if u.key in known}
  kept = {key for key, reason in why.items() if not reason}
  for key in kept:
    if known[key].run != number:
      journal.keep(known[key], number)
  to_run = [unit for unit in units if unit.key not in kept]
  watcher.planned(dataclasses.replace(plan, units=tuple(units)), len(to_run), len(kept))
  watcher.again({key: reason for key, reason in why.items() if reason})
  for unit, ended in _done(to_run, options, engine, watcher):
    before = known.get(unit.key)
    attempt = before.attempt + 1 if before is not None and before.run == number else 1
    result = _result(number, unit, ended, options, attempt)
    try:
      journal.write(result)
    except Unstorable as error:
      result = _without_verdict(result, error)
      journal.write(result)
    watcher.ended(result)
  return _outcome(journal, number, keys, len(kept))


def _outcome(journal: Journal, number: int, keys: list[str], kept: int) -> Outcome:
  statuses = {entry.target: entry.status for entry in journal.entries(number)}
  (run,) = (run for run in journal.runs() if run.number == number)
  if statuses.keys() >= set(run.planned):
    journal.end_run(number)
  return Outcome(number, {key: statuses[key] for key in keys}, kept)


def _done(
  units: list[plans.Unit], options: Options, engine: Engine, watcher: Watcher
) -> Iterator[tuple[plans.Unit, Ended]]:
  for unit in units:
    if unit.failed is not None:
      yield unit, unit.failed
  wanted = (
    Request(jobs.VERIFY, unit.target, options.stages or None, unit, unit.resources)
    for unit in units
    if unit.failed is None
  )
  for request, ended in engine.run(wanted, lambda one: watcher.started(one.key.key)):
    yield request.key, ended


def _check_stages(options: Options, engine: Engine) -> None:
  request = Request(jobs.CHECK, '', options.stages)
  for _, ended in engine.run(iter([request]), lambda _: None):
    refused = ended.last(jobs.REFUSED)
    if refused is not None:
      raise UsageError(refused['error'])


def _begun(
  options: Options, journal: Journal, watcher: Watcher, plan: plans.Plan, keys: list[str]
) -> tuple[int, dict[str, Entry]]:
  """Returns the number of the run, and the results that there are already, by target.

  A run that was cut off goes on; one that had ended stays as it is, and a new one takes
  over what is unchanged, so that the journal tells the history of each case.
  """
  here, shard = versions(), str(options.shard)
  runs = [run for run in journal.runs() if run.shard == shard]
  last = runs[-1] if options.resume and runs else None
  changes = _changes(last, here) if last is not None else []
  if changes:
    watcher.not_kept(changes)
  if last is None or changes:
    return journal.begin_run(options.targets, here, shard, keys), {}
  known = {entry.target: entry for entry in journal.entries(last.number)}
  if last.ended:
    return journal.begin_run(options.targets, here, shard, keys), known
  journal.plan(last.number, _planned_with(last, plan, keys))
  return last.number, known


def _changes(run: Run, here: Mapping[str, str]) -> list[str]:
  names = [name for name in {**run.versions, **here} if run.versions.get(name) != here.get(name)]
  return [f'{name} {run.versions.get(name, "-")} -> {here.get(name, "-")}' for name in names]


def _planned_with(run: Run, plan: plans.Plan, keys: list[str]) -> list[str]:
  """Returns what a run that was cut off is to have results for: all but what is gone."""
  there = [
    key for key in run.planned if key in plan.declared or key.partition('::')[0] not in plan.files
  ]
  return [*dict.fromkeys((*there, *keys))]


def _why_again(entry: Entry, unit: plans.Unit, options: Options, digests: Digests) -> str:
  """Returns why a case with a verdict has to run again; '' where that still holds."""
  if unit.failed is not None:
    return 'its file cannot be imported now'
  if options.retry and entry.status is Status.ERROR:
    return 'it ended with ERROR'
  if unit.place.is_file and unit.place.target not in entry.files:
    return 'its verdict is of a different file'
  if entry.stages != options.stages:
    return f'--stages was {" ".join(entry.stages) or "not given"}'
  changed = [*digests.changed(entry.files)]
  if not changed:
    return ''
  others = len(changed) - 1
  more = f' and {others} more file{"s" * (others > 1)}' if others else ''
  return f'{_as_typed(changed[0])}{more} changed'


def _result(number: int, unit: plans.Unit, ended: Ended, options: Options, attempt: int) -> Result:
  case = unit.key.partition('::')[2] or os.path.basename(unit.place.target)
  target = _as_typed(unit.target)
  verdict, deviations = verdict_of(ended, Asked(case, unit.place.key, target, versions()))
  entry = Entry(
    run=number,
    target=unit.key,
    status=verdict.status,
    attempt=attempt,
    ended=now(),
    seconds=ended.seconds,
    memory=ended.greatest_memory,
    files=_files(ended, unit),
    stages=options.stages,
    kept_from=number,
  )
  return Result(entry, verdict, deviations)


def _without_verdict(result: Result, error: Unstorable) -> Result:
  """Returns what can be stored of a result."""
  summary = f'its verdict ({result.verdict.status.value}) could not be stored: {error}'
  stage = StageVerdict('journal', 0, Status.ERROR, error=ErrorRecord('case', summary))
  verdict = CaseVerdict(result.verdict.case, result.verdict.module, (stage,))
  return Result(dataclasses.replace(result.entry, status=Status.ERROR), verdict, {})


def _files(ended: Ended, unit: plans.Unit) -> dict[str, str]:
  done = ended.last(jobs.DONE)
  if done is not None:
    return _digests(done)
  told = ended.last(jobs.REFUSED, jobs.STARTED)
  around = files_around(unit.place.target) if unit.place.is_file else {}
  return {**({} if told is None else _digests(told)), **around}


def _digests(event: Mapping[str, Any]) -> dict[str, str]:
  found = event.get('files', {})
  return {str(path): str(digest) for path, digest in found.items()}


def _as_typed(target: str) -> str:
  """Returns a target as one would type it in this folder."""
  below = os.path.relpath(target) if os.path.isabs(target) else target
  return target if below.startswith('..') else below
