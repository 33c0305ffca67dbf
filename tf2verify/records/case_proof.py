"""What of a case is proven without running it."""

import dataclasses

from tf2verify.records.difference import Difference
from tf2verify.records.proven import GraphDifference, Proven
from tf2verify.records.verdict import ErrorRecord


@dataclasses.dataclass(frozen=True)
class ProvenRun:
  """One training mode.

  Attributes:
    proven: how much of it is proven.
    differences: where the graphs are known to differ.
  """

  proven: Proven
  differences: tuple[GraphDifference, ...] = ()


@dataclasses.dataclass(frozen=True)
class CaseProof:
  """What of a case is proven, and what was found besides.

  Attributes:
    case: the class's name.
    module: its file or module.
    runs: one for each training mode.
    only_tf1: names of tf1's variables that no variable of the port is paired with.
    only_tf2: the port's, likewise.
    allocated: why the port's variables had to be allocated, and the port called; '' where they
      were not.
    seconds: wall time, by what was done.
    differing: paired variables that cannot hold the same values, and outputs of which the
      structures differ, once for each training mode.
    ran_both: whether both sides were run, to derive which variables are pairs.
    error: what ended it before anything was related; None where it was not ended.
  """

  case: str
  module: str
  runs: tuple[ProvenRun, ...]
  only_tf1: tuple[str, ...] = ()
  only_tf2: tuple[str, ...] = ()
  allocated: str = ''
  seconds: tuple[tuple[str, float], ...] = ()
  differing: tuple[Difference, ...] = ()
  ran_both: bool = False
  error: ErrorRecord | None = None

  @property
  def is_whole(self) -> bool:
    """Whether all that is compared is proven, in every training mode, and nothing differs."""
    is_proven = bool(self.runs) and all(run.proven.is_whole for run in self.runs)
    return is_proven and not self.differing and self.error is None

  @property
  def was_run(self) -> bool | None:
    """Whether the port was called; None where it ended with an error."""
    return bool(self.allocated) if self.error is None else None
