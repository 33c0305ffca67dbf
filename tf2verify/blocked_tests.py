"""Which test of a session shows a failure: that of the stage, or of one that it blocks."""

import functools
from collections.abc import Collection
from typing import Any

from tf2verify.records.status import Status
from tf2verify.records.verdict import CaseVerdict, StageVerdict
from tf2verify.selection import StageSelection
from tf2verify.stages import STAGES


def shown_by_test(case: CaseVerdict | None, verdict: StageVerdict) -> StageVerdict:
  """Returns what the test of a stage shows if it is not well: of a blocked one, what blocks it."""
  if verdict.status is not Status.BLOCKED or case is None:
    return verdict
  return next((one for one in case.stages if one.stage == verdict.blocked_by), verdict)


class ShownFailures:
  """Which test shows the failure of a stage.

  A blocked stage is skipped only if a different test shows why: if no such test is among those
  selected, nothing would fail.

  Attributes:
    to_run: the stages whose tests the session runs, in all of its processes; none if not known.
  """

  def __init__(self) -> None:
    self.to_run: frozenset[str] = frozenset()
    # The stage that failed, and that whose test has shown it first, in this process.
    self._shown: dict[str, str] = {}

  def shows(self, verdict: StageVerdict, culprit: str, stages: Any) -> bool:
    """Returns whether the test of a stage shows a failure, and takes note of it.

    Args:
      verdict: of the stage.
      culprit: the stage that failed: this one, or the one that blocks it.
      stages: as the case declares it.
    """
    if verdict.status is Status.BLOCKED:
      if self._shown.get(culprit, verdict.stage) != verdict.stage:
        return False
      left_out = dict(StageSelection.of(stages).left_out)
      if is_shown_elsewhere(verdict.stage, culprit, self.to_run, left_out):
        return False
    self._shown.setdefault(culprit, verdict.stage)
    return True


def is_shown_elsewhere(
  stage: str, culprit: str, to_run: Collection[str], left_out: Collection[str]
) -> bool:
  """Returns whether a different test of the session shows the failure that blocks a stage.

  It is the test of the stage that failed; where that is not to run, that of the first stage that
  depends on it. Processes among which the tests of a case are distributed all come to the same
  answer without asking each other, since it depends only on what the session runs.

  Args:
    stage: the blocked one.
    culprit: the one that did not pass.
    to_run: the stages whose tests the session runs, in all of its processes; none if not known.
    left_out: the stages that the case leaves out.
  """
  if culprit not in _needed_by(stage):
    return False  # it has ended the whole case, in this process
  if culprit in to_run:
    return True
  waiting = (one.name for one in STAGES if one.name in to_run and one.name not in left_out)
  return next((name for name in waiting if culprit in _needed_by(name)), stage) != stage


@functools.cache
def _needed_by(stage: str) -> frozenset[str]:
  """Returns the stages that a stage depends on, directly or through others."""
  direct = next(one.needs for one in STAGES if one.name == stage)
  return frozenset(direct).union(*map(_needed_by, direct))
