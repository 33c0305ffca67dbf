"""The run of a failed `gradients`, to be made again with edits of the port's forward pass."""

import contextlib
import dataclasses
import functools
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from tf2verify.diagnosis.places.bench import Left, LookedAt
from tf2verify.numerics.agreement import agreement
from tf2verify.records.diagnosis import Cause
from tf2verify.records.difference import Difference
from tf2verify.records.observation import SourceLine, TensorRecord
from tf2verify.sides.graphs.edits.repairs import Repair
from tf2verify.sides.graphs.lines.user_sources import user_source
from tf2verify.sides.graphs.run import GraphRun
from tf2verify.sides.side import RunSpec
from tf2verify.sides.tf2.traces.repaired import given_values, repaired_run, target_tensors
from tf2verify.sides.tf2.traces.tracing import TracedPort
from tf2verify.stages.comparison.noise.reruns import repeated
from tf2verify.stages.failures.failed_stage import traced_port
from tf2verify.stages.passes.gradients import ReferenceGradients, compared_pairs
from tf2verify.stages.stage import CaseUnderTest

GRADIENT, _OUTPUT = 'gradient', 'output '
# An edit may let a loop run for ever.
_RUN_SECONDS = 60
# The edits are made where values agree; what they change in the outputs is rounding.
_CLOSE = 1e-4
# What differs by more of its size, and passes, is smaller than its rounding or the tolerance.
_NOISE = 1e-3


def gradient_run(
  case: CaseUnderTest, failed: RunSpec, differences: Sequence[Difference]
) -> 'GradientRun':
  """Returns the run of the stage.

  Args:
    case: both sides.
    failed: the run, by tf1 names.
    differences: what the stage has found.
  """
  run_tf1 = case.tf1.prepare_filled([failed])
  (tf1,) = run_tf1()
  again = functools.cache(repeated(run_tf1, failed))
  forward = dataclasses.replace(failed, gradients=False, unrolls=True)
  port = traced_port(case, dataclasses.replace(failed, derives=True, unrolls=True))
  reference = ReferenceGradients(failed, tf1, again)
  told = frozenset((d.quantity, d.tf1_subject, d.run) for d in differences)
  return GradientRun(case, reference, case.tf1.inspectable(forward), port, told)


@dataclasses.dataclass(frozen=True, eq=False)
class GradientRun:
  """The run, see `diagnosis.bench.BenchRun`.

  What is looked into is the forward pass of both sides.

  Attributes:
    case: both sides.
    reference: its gradients, and how to compare with them.
    tf1: its forward pass.
    port: the port, traced; its gradients are formed once its graph is made.
    told: what the stage has found to differ.
  """

  case: CaseUnderTest
  reference: ReferenceGradients
  tf1: GraphRun
  port: TracedPort
  told: Left

  @property
  def names(self) -> frozenset[str]:
    """As differences name it."""
    return frozenset([self.reference.tf1.run])

  def why_not(self) -> str:
    """Returns why the port cannot be edited in it; '' where its graph differs as it does."""
    only_here = self.judged([])[0] - self.told
    if not only_here:
      return ''
    quantity, subject, _ = min(only_here)
    return f'{quantity} {subject} differs only in the graph of the port'

  def causes(self, repairs: Sequence[Repair]) -> Sequence[Cause]:
    """Returns none: the stage takes nothing for a cause itself."""
    del repairs
    return ()

  def close(self) -> None:
    """Lets go of the reference."""
    self.tf1.close()

  def looked_at(self, repairs: Sequence[Repair], left: Left) -> LookedAt:
    """Returns the forward passes of both sides, the port with edits."""
    del left
    bare = dataclasses.replace(self.port.traced, derived=None)
    port = dataclasses.replace(self.port, traced=bare)
    run = repaired_run(port, repairs, given_values(self.tf1, repairs))
    return LookedAt(self.reference.tf1.run, self.tf1, run, self._line_of)

  def _line_of(self, name: str) -> SourceLine | None:
    try:
      return user_source(self.port.traced.graph.get_operation_by_name(name))
    except KeyError:  # put there by an edit
      return None

  def judged(self, repairs: Sequence[Repair]) -> tuple[Left, list[float]]:
    """Returns what differs with edits, and how far each pair of gradients is apart."""
    run = self.reference.tf1.run
    values = self._yielded(repairs)
    gradients = self._gradients(values)
    found = self.reference.compared(self.case, gradients).differences
    left = {(d.quantity, d.tf1_subject, run) for d in found}
    for name, before in self._as_it_is.items():
      if name.startswith(_OUTPUT) and not _is_close(before[0], values[name][0]):
        left.add((_OUTPUT.strip(), name.removeprefix(_OUTPUT), run))
    return frozenset(left), self._apart(gradients, {name for _, name, _ in left})

  def still_fails(self, repairs: Sequence[Repair]) -> bool:
    """Returns whether the run still fails with edits."""
    return bool(self.judged(repairs)[0])

  def passes_with_those_of_others(self, repairs: Sequence[Repair]) -> bool:
    """Returns whether the run passes with edits that were made for another stage's runs.

    These are to change outputs.
    """
    gradients = self._gradients(self._yielded(repairs, self.tf1.nodes()))
    return not self.reference.compared(self.case, gradients).differences

  @functools.cached_property
  def _as_it_is(self) -> Mapping[str, tuple[np.ndarray, ...]]:
    return self._yielded([])

  def _yielded(
    self, repairs: Sequence[Repair], other_run: Mapping[str, Any] | None = None
  ) -> Mapping[str, tuple[np.ndarray, ...]]:
    given = given_values(self.tf1, repairs)
    run = repaired_run(self.port, repairs, given, other_run, targets_only=True)
    with contextlib.closing(run):
      return target_tensors(run, _RUN_SECONDS)

  def _gradients(self, values: Mapping[str, tuple[np.ndarray, ...]]) -> tuple[TensorRecord, ...]:
    shown = self.port.shown_gradients
    assert shown is not None, 'the port was traced for its gradients'
    return shown(values)

  def _apart(self, gradients: Sequence[TensorRecord], left: Collection[str]) -> list[float]:
    """Returns how far apart gradients are; one that a side has not is as far as can be.

    A gradient that is nothing but rounding, as the stage has it, agrees.
    """
    ones = {record.name: record.value for record in self.reference.tf1.gradients}
    others = {record.name: record.value for record in gradients}
    shares = []
    for tf1, tf2 in compared_pairs(self.case):
      one, other = ones.get(tf1), others.get(tf2)
      if one is not None and other is not None:
        # Of a gradient that is too large to be recorded, some elements are known.
        share = agreement(one, other).relative if isinstance(one, np.ndarray) else 0.0
        shares.append(share if tf1 in left or share <= _NOISE else 0.0)
      elif one is not other:
        shares.append(1.0)
    return shares


def _is_close(before: np.ndarray, now: np.ndarray) -> bool:
  found = agreement(before, now)
  return found.identical or found.relative <= _CLOSE
