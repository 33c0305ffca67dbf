"""Rounds of a loop in Python that tf1 goes through and the port does not.

Each round is made by the same lines. Where all that the port lacks at a place is one run of lines
of tf1 that run several times, these say more than the operations of the round.
"""

import collections

from tf2verify.diagnosis.edits.mistakes import Mistake
from tf2verify.diagnosis.places.looking import Looking
from tf2verify.records.op_graph import OpGraph

_LEAST_LINES = 2
_LEAST_OPERATIONS = 6
_MOST_LINES = 3
# Of the port's operations at such a place: what only shapes, or reads, what comes before it.
_MOST_OF_THE_PORT = 2


def missing_round(looking: Looking, mistake: Mistake) -> str:
  """Returns that the port has a round less of what tf1 repeats, as text; '' if not seen.

  Args:
    looking: the search in the port as it is.
    mistake: one that replaces operations of the port by those of tf1.
  """
  places = [place for place in mistake.places if looking.has(place)]
  own = {n for place in places for n in place.source.regions.tf2.inner}
  missing = {n for place in places for n in place.source.regions.tf1.inner}
  graph = looking.tf1.op_graph
  if len(own) > _MOST_OF_THE_PORT or len(missing) < _LEAST_OPERATIONS:
    return ''
  runs = _runs_of_lines(graph, missing)
  repeated = sorted((at, times) for at, times in runs.items() if times is not None)
  if len(repeated) < _LEAST_LINES or len(repeated) <= len(runs) - len(repeated):
    return ''
  # Helpers run for others as well.
  fewest = sorted(repeated, key=lambda known: known[1])[:_MOST_LINES]
  shown = (f'{at[0].rpartition("/")[2]}:{at[1]} (of {times})' for at, times in sorted(fewest))
  return (
    'the port lacks one round of what tf1 repeats: it has nothing for one run of '
    f'{", ".join(shown)}, and the others have partners'
  )


def _runs_of_lines(graph: OpGraph, missing: set[int]) -> dict[tuple[str, int], int | None]:
  """Returns how often each line runs of which operations are missing; None if not one run is."""
  counts: dict[tuple[str, int], collections.Counter[str]] = {}
  lacking: dict[tuple[str, int], collections.Counter[str]] = {}
  for n, op in enumerate(graph.ops):
    if op.source is None or op.is_leaf:
      continue
    counts.setdefault(op.source.at, collections.Counter())[op.op_type] += 1
    if n in missing:
      lacking.setdefault(op.source.at, collections.Counter())[op.op_type] += 1
  return {at: _times(counts[at], known) for at, known in lacking.items()}


def _times(of_all: collections.Counter[str], missing: collections.Counter[str]) -> int | None:
  times = {of_all[kind] // count for kind, count in missing.items() if of_all[kind] % count == 0}
  return times.pop() if len(times) == 1 and max(times) > 1 else None
