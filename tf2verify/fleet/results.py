"""What a journal holds: runs, results, and the cases of files."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from tf2verify.records.resources import Resources
from tf2verify.records.status import Status
from tf2verify.records.verdict import CaseVerdict

# By stage: the fields of its `Deviation`s. Most of a report, and of use to few readers.
Deviations = Mapping[str, list[Any]]


def without_deviations(report: Mapping[str, Any]) -> tuple[dict[str, Any], Deviations]:
  """Splits the fields of a case's JSON; `with_deviations` puts them together again."""
  known = [stage for stage in report['stages'] if stage.get('deviations')]
  found = {stage['stage']: stage['deviations'] for stage in known}
  stages = [{**stage, 'deviations': []} for stage in report['stages']]
  return {**report, 'stages': stages}, found


def with_deviations(report: Mapping[str, Any], deviations: Deviations) -> dict[str, Any]:
  """Returns the fields of a whole report."""
  stages = [
    {**stage, 'deviations': deviations.get(stage['stage'], [])} for stage in report['stages']
  ]
  return {**report, 'stages': stages}


@dataclasses.dataclass(frozen=True)
class Run:
  """One run of a fleet."""

  number: int  # from 1
  started: str  # ISO 8601, UTC
  ended: str  # the same; '' while it goes on, or where it was cut off
  versions: Mapping[str, str]  # of what it ran on
  shard: str  # `2/4` for the second of four; '' for a whole run
  planned: tuple[str, ...]  # the targets that it is to have results for


@dataclasses.dataclass(frozen=True)
class Entry:
  """What is told of a result without its verdict."""

  run: int  # the number of the run
  target: str  # `path::Case`; the path alone for a file whose cases could not be found
  status: Status  # of the verdict
  attempt: int  # 1 for the first in this run
  ended: str  # ISO 8601, UTC
  seconds: float  # of wall time, with the start of its process
  memory: int  # the greatest, in bytes, as seen from outside
  files: Mapping[str, str]  # path and SHA-256 of what the verdict depends on
  stages: tuple[str, ...]  # the stages asked for; empty for all
  kept_from: int  # the run that the result is of; `run` itself where it was run in it


@dataclasses.dataclass(frozen=True)
class Result:
  """A result to be kept."""

  entry: Entry  # all but the verdict
  verdict: CaseVerdict  # what was found, without deviations
  deviations: Deviations  # those


@dataclasses.dataclass(frozen=True)
class Discovery:
  """The cases of a file or module."""

  place: str  # as the journal names it
  files: Mapping[str, str]  # path and SHA-256 of what was imported to find them
  cases: Mapping[str, Resources]  # what each needs, by name
