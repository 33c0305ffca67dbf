"""Causes whose rule predicts all of the port's numbers of a kind, and what else is said of them."""

import dataclasses
from collections.abc import Sequence

from tf2verify.diagnosis.causes import causes_of
from tf2verify.diagnosis.evidence.failed_stage import FailedStage
from tf2verify.diagnosis.mistakes import Found, Mistake
from tf2verify.records.diagnosis import Cause, Source
from tf2verify.records.op_graph import TARGET

_PENALTIES = 'regularization loss '


def proven_first(evidence: FailedStage, causes: Sequence[Cause]) -> tuple[Cause, ...]:
  """Returns causes that numbers prove ahead of others, without other words for the same places.

  Args:
    evidence: what the rules have seen.
    causes: what they have found.
  """
  proven = [cause for cause in causes if cause.numbers]
  if not proven:
    return tuple(causes)
  places = _Penalties(evidence)
  elsewhere = tuple(one for one in evidence.sources if not places.are_all_at(one.source))
  kept = {c.rule for c in causes_of(dataclasses.replace(evidence, sources=elsewhere))}
  return (*proven, *(one for one in causes if not one.numbers and one.rule in kept))


def joined_by_proof(evidence: FailedStage, causes: Sequence[Cause], found: Found) -> Found:
  """Returns the mistakes at places of which numbers prove one cause as one mistake."""
  if not any(cause.numbers for cause in causes):
    return found
  places = _Penalties(evidence)
  same = [one for one in found.mistakes if places.are_all_at(*one.sources)]
  return found.joined(same) if len(same) > 1 else found


def proven_cause_at(
  mistake: Mistake, evidence: FailedStage, causes: Sequence[Cause]
) -> Cause | None:
  """Returns the cause that numbers prove of the places of a mistake; None where none does."""
  proven = next((cause for cause in causes if cause.numbers), None)
  if proven is None or not _Penalties(evidence).are_all_at(*mistake.sources):
    return None
  return dataclasses.replace(proven, experiment=mistake.experiment, predicts=True)


class _Penalties:
  """Which operations serve regularization losses alone."""

  def __init__(self, evidence: FailedStage) -> None:
    graph = evidence.tf1_graph
    self._other: set[int] = set()
    self._positions: dict[str, int] = {}
    if graph is None:
      return
    ends = [
      n
      for n, op in enumerate(graph.ops)
      if op.op_type == TARGET and not op.name.startswith(_PENALTIES)
    ]
    self._other = graph.ancestors(ends)
    self._positions = {op.name: n for n, op in enumerate(graph.ops)}

  def are_all_at(self, *sources: Source) -> bool:
    """Returns whether nothing but regularization losses is computed from any of some places."""
    found = [self._positions.get(source.tf1_op) for source in sources]
    return all(position is not None and position not in self._other for position in found)
