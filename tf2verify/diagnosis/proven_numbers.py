"""Causes whose rule predicts all of the port's numbers of a kind, and what else is said of them."""

import dataclasses
from collections.abc import Collection, Sequence

from tf2verify.diagnosis.causes import causes_of
from tf2verify.diagnosis.edits.mistakes import Found, Mistake
from tf2verify.diagnosis.evidence.failed_stage import FailedStage
from tf2verify.records.diagnosis import Cause, Source
from tf2verify.records.op_graph import TARGET

# What the targets are called that a rule predicts, but for those on regularization losses.
_TARGETS = {'moving_average_momentum': 'update of ', 'biased_variance': 'update of '}
_PENALTIES = 'regularization loss '
# Rules on loops that end for an example.
_OF_ENDS = ('forgotten_mask', 'needless_mask')


def proven_first(evidence: FailedStage, causes: Sequence[Cause]) -> tuple[Cause, ...]:
  """Returns causes that numbers prove ahead of others, without other words for the same places.

  Args:
    evidence: what the rules have seen.
    causes: what they have found.
  """
  proven = [cause for cause in causes if cause.numbers]
  if not proven:
    return tuple(causes)
  places = _Places(evidence)
  elsewhere = tuple(
    one for one in evidence.sources if not any(places.are_all_of(c, one.source) for c in proven)
  )
  kept = {c.rule for c in causes_of(dataclasses.replace(evidence, sources=elsewhere))}
  return (*proven, *(one for one in causes if not one.numbers and one.rule in kept))


def joined_by_proof(evidence: FailedStage, causes: Sequence[Cause], found: Found) -> Found:
  """Returns the mistakes at places of which numbers prove one cause as one mistake."""
  for cause in causes:
    if cause.numbers:
      places = _Places(evidence)
      same = [one for one in found.mistakes if places.are_all_of(cause, *one.sources)]
      found = found.joined(same) if len(same) > 1 else found
  return found


def proven_cause_at(
  mistake: Mistake, evidence: FailedStage, causes: Sequence[Cause]
) -> Cause | None:
  """Returns the cause that numbers prove of the places of a mistake; None where none does."""
  places = _Places(evidence)
  for cause in causes:
    if cause.numbers and places.are_all_of(cause, *mistake.sources):
      return dataclasses.replace(cause, experiment=mistake.experiment, predicts=True)
  return None


def leaves_nothing(evidence: FailedStage, causes: Sequence[Cause]) -> bool:
  """Returns whether numbers prove one cause of all places where the sides part."""
  places, sources = _Places(evidence), [one.source for one in evidence.sources]
  return bool(sources) and any(
    places.are_all_of(cause, *sources) for cause in causes if cause.rule in _OF_ENDS
  )


class _Places:
  """Which places a cause accounts for that numbers prove.

  Those behind what ends in a loop, for a cause that is about this; for others, those that serve
  targets of one kind alone: updates of variables, or regularization losses.
  """

  def __init__(self, evidence: FailedStage) -> None:
    self._graph = evidence.tf1_graph
    self._ends = [one for one in evidence.loop_ends if one.explains]
    ops = () if self._graph is None else self._graph.ops
    self._positions = {op.name: n for n, op in enumerate(ops)}

  def are_all_of(self, cause: Cause, *sources: Source) -> bool:
    """Returns whether a cause accounts for what differs at some places."""
    if cause.rule in _OF_ENDS:
      return any(all(_name(s, one.side) in one.behind for s in sources) for one in self._ends)
    found = [self._positions.get(source.tf1_op) for source in sources]
    other = self._behind_others(_TARGETS.get(cause.rule, _PENALTIES))
    return all(position is not None and position not in other for position in found)

  def _behind_others(self, targets: str) -> Collection[int]:
    """Returns what is behind targets that are called something else."""
    if self._graph is None:
      return ()
    ops = enumerate(self._graph.ops)
    ends = [n for n, op in ops if op.op_type == TARGET and not op.name.startswith(targets)]
    return self._graph.ancestors(ends)


def _name(source: Source, side: str) -> str:
  return source.tf1_op if side == 'tf1' else source.tf2_op
