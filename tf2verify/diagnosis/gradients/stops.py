"""Stops of the gradient that one side alone has, found by experiment.

The gradients are formed anew with each edit.
"""

import itertools
from collections.abc import Iterator, Sequence

import numpy as np

from tf2verify.diagnosis.divergence.tensors.regions import Region, RegionPair
from tf2verify.diagnosis.divergence.tensors.sources import FoundSource
from tf2verify.diagnosis.edits.mistakes import Mistake
from tf2verify.diagnosis.edits.needed import NEARER, without_needless
from tf2verify.diagnosis.evidence.failed_stage import SourceEvidence
from tf2verify.diagnosis.gradients.stop_edits import (
  StopEdit,
  edits_of,
  stop_mistake,
  stopped_tensors,
)
from tf2verify.diagnosis.places.bench import Bench, Judged, LookedAt
from tf2verify.diagnosis.places.looking import Place
from tf2verify.diagnosis.places.source_records import bare_source
from tf2verify.numerics.agreement import IDENTICAL
from tf2verify.sides.graphs.edits.repairs import Repair
from tf2verify.sides.graphs.edits.wiring import CannotRepair

_MOST_TENSORS = 16


class GradientStops:
  """Stops gradients of the port's forward pass, or lets them pass, until they are those of tf1."""

  def __init__(self, bench: Bench) -> None:
    """Takes the run of the stage `gradients`."""
    self._bench = bench

  def mistakes(self) -> list[Mistake]:
    """Returns as few stops as the stage passes with, each needed; none where it does not."""
    before = self._bench.judged([])
    looked = self._bench.looked_at([], before.left)
    edits = list(_edits(looked))
    needed = self._needed(edits, before)
    return [_mistake(looked, one) for one in needed]

  def _needed(self, edits: Sequence[StopEdit], before: Judged) -> list[StopEdit]:
    nearer: list[tuple[float, StopEdit]] = []
    for one in edits:
      judged = self._judged([one])
      if judged is not None and judged.passes:
        return [one]
      if judged is not None and judged.distance <= NEARER * before.distance:
        nearer.append((judged.distance, one))
    kept: list[StopEdit] = []
    distance = before.distance
    for _, one in sorted(nearer, key=lambda known: known[0]):
      if any(one.tensor is known.tensor for known in kept):
        continue
      judged = self._judged([*kept, one])
      if judged is None or not (judged.passes or judged.distance <= NEARER * distance):
        continue
      kept.append(one)
      distance = judged.distance
      if judged.passes:
        return without_needless(kept, self._passes)
    return []

  def _passes(self, edits: Sequence[StopEdit]) -> bool:
    judged = self._judged(edits)
    return judged is not None and judged.passes

  def _judged(self, edits: Sequence[StopEdit]) -> Judged | None:
    """Returns what the stage says with some edits; None where they make no graph, or too late."""
    if self._bench.is_over():
      return None
    try:
      return self._bench.judged([Repair(changes=one.changes) for one in edits])
    except CannotRepair:
      return None


def _edits(looked: LookedAt) -> Iterator[StopEdit]:
  """Yields other stops, the simplest ones of all tensors first."""
  graph = looked.tf2.op_graph
  # Those first that one side alone stops.
  tensors = [*itertools.chain(*stopped_tensors(looked.tf1, looked.tf2))]
  by_tensor = [list(edits_of(graph, one)) for one in tensors[:_MOST_TENSORS]]
  for row in itertools.zip_longest(*by_tensor):
    yield from (one for one in row if one is not None)


def _mistake(looked: LookedAt, edit: StopEdit) -> Mistake:
  position = 0 if edit.tensor.like is None else edit.tensor.like[0]
  other = edit.tensor.keys[0][0]
  nothing = np.zeros(0, np.float32)
  pair = RegionPair(Region(position, (), ()), Region(other, (), ()), ())
  source = FoundSource(pair, IDENTICAL, False, nothing, nothing)
  bare = bare_source((looked.tf1.op_graph, position), (looked.tf2.op_graph, other))
  place = Place(source, SourceEvidence(bare, nothing, nothing), (), frozenset())
  return stop_mistake((looked.tf1, looked.tf2), place, [edit])
