"""The same case across runs, and versions of what it ran on."""

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tf2verify.fleet.journal import Journal
from tf2verify.fleet.results import Deviations, Entry, Run
from tf2verify.records.difference import Judgement
from tf2verify.records.status import Status

# A pair of tensors that rounding explains may be beyond the tolerance for good.
_EXCUSED = (Judgement.ROUNDING.value, Judgement.DEGENERATE.value)
# A difference grows if it is this many times what it was, and this much of the tolerance.
GROWTH = 2.0
NOTABLE = 0.1


@dataclasses.dataclass(frozen=True)
class Share:
  """How much of its tolerance a stage uses."""

  share: float  # greatest |tf2 - tf1| / (atol + rtol·|tf1|); from 1 on it fails
  tensor: str  # where that is


@dataclasses.dataclass(frozen=True)
class Point:
  """A case in one run."""

  when: str  # the end of the case, ISO 8601, UTC
  versions: Mapping[str, str]  # of what it ran on
  status: Status  # of the case
  first_failure: str  # name and status of the first stage that is not well; '' without one
  stages: Mapping[str, Status]  # status by stage
  shares: Mapping[str, Share]  # by stage, of those that compare values


@dataclasses.dataclass(frozen=True)
class CaseHistory:
  """A case in all runs that ran it, the oldest first."""

  target: str
  points: tuple[Point, ...]

  @property
  def has_changed(self) -> bool:
    """Whether its status, or the first stage that is not well, is another than in a run before."""
    return len({(point.status, point.first_failure) for point in self.points}) > 1

  @property
  def got_worse(self) -> bool:
    """Whether its status is graver than in the run before."""
    order = list(Status)
    last = [order.index(point.status) for point in self.points[-2:]]
    return len(last) == 2 and last[1] > last[0]

  @property
  def growing(self) -> list[str]:
    """The stages whose difference grows towards the tolerance, or has grown beyond it."""
    return [stage for stage in self.points[-1].shares if self._grows(stage)]

  def shares(self, stage: str) -> list[float]:
    """Returns the share of a stage in each run in which it compared values."""
    return [
      point.shares[stage].share if stage in point.shares else 0.0
      for point in self.points
      if point.stages.get(stage) in (Status.PASSED, Status.FAILED, Status.INCONCLUSIVE)
    ]

  def _grows(self, stage: str) -> bool:
    *before, last = self.shares(stage) or [0.0]
    return bool(before) and last >= NOTABLE and last >= GROWTH * min(before)


def histories(journals: Sequence[Journal]) -> list[CaseHistory]:
  """Returns the history of every case, in the order of their targets.

  A verdict that a run has taken over from one before counts once.

  Raises:
    UsageError: a verdict cannot be read.
  """
  points: dict[str, list[Point]] = {}
  for journal in journals:
    for run in journal.runs():
      for entry in journal.entries(run.number):
        if entry.kept_from == entry.run:
          points.setdefault(entry.target, []).append(_point(journal, run, entry))
  return [
    CaseHistory(target, tuple(sorted(found, key=lambda point: point.when)))
    for target, found in sorted(points.items())
  ]


def _point(journal: Journal, run: Run, entry: Entry) -> Point:
  verdict = journal.verdict(entry)
  failure = verdict.first_failure
  return Point(
    when=entry.ended,
    versions=run.versions,
    status=verdict.status,
    first_failure='' if failure is None else f'{failure.stage} {failure.status.value}',
    stages={stage.stage: stage.status for stage in verdict.stages},
    shares=shares_of(journal.deviations(entry)),
  )


def shares_of(deviations: Deviations) -> dict[str, Share]:
  """Returns how much of its tolerance each stage uses."""
  found = {}
  for stage, pairs in deviations.items():
    shares = [Share(_share(pair), _name(pair)) for pair in pairs if _counts(pair)]
    if shares:
      found[stage] = max(shares, key=lambda share: share.share)
  return found


def _counts(pair: Mapping[str, Any]) -> bool:
  return bool(pair['frontier']) and pair['judgement'] not in _EXCUSED


def _share(pair: Mapping[str, Any]) -> float:
  return max(_quotient(pair, *map(float, point)) for point in pair['frontier'])


def _quotient(pair: Mapping[str, Any], magnitude: float, difference: float) -> float:
  allowed = float(pair['atol']) + float(pair['rtol']) * magnitude
  return difference / allowed if allowed else math.inf


def _name(pair: Mapping[str, Any]) -> str:
  return f'{pair["quantity"]} {pair["subject"]}' + (f', {pair["run"]}' if pair['run'] else '')


def history_lines(found: Sequence[CaseHistory]) -> Iterator[str]:
  """Yields what changed, then what grows, and how many cases did either."""
  told = [case for case in found if case.has_changed or case.growing]
  for case in sorted(told, key=lambda one: not one.has_changed):
    yield from _case_lines(case)
    yield ''
  runs = len({tuple(point.versions.items()) for case in found for point in case.points})
  same = 'no verdict or first failing stage changed, no difference grew'
  quiet = len(found) - len(told)
  if told:
    rest = f'; in the other {"one" if quiet == 1 else quiet} {same}' if quiet else ''
    yield f'{len(told)} of {len(found)} cases changed{rest}'
  else:
    yield f'{quiet} of {len(found)} cases: {same}'
  yield f'{runs} combination{"s" * (runs != 1)} of versions'


def _case_lines(case: CaseHistory) -> Iterator[str]:
  yield case.target
  before: Mapping[str, str] = {}
  for point in case.points:
    said = [point.first_failure] if point.first_failure else []
    said += [
      f'{name} {before[name]} -> {value}'
      for name, value in point.versions.items()
      if name in before and before[name] != value
    ]
    if not before:
      said.append(f'tensorflow {point.versions.get("tensorflow", "unknown")}')
    when = point.when[:16].replace('T', ' ')
    yield f'  {when}  {point.status.value:<14} {"; ".join(said)}'.rstrip()
    before = point.versions
  for stage in case.growing:
    figures = ', '.join(f'{100 * share:.2g} %' for share in case.shares(stage))
    tensor = case.points[-1].shares[stage].tensor
    yield f'  {stage}: its difference grows: {figures} of the tolerance ({tensor})'
