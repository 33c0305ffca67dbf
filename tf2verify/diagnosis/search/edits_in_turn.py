"""Several mistakes, found one after the other by what each of them alone concerns.

No single edit makes a stage pass then. But of the tensors that differ some are computed of fewer
of the places where the sides diverge than others: with the right edit, these agree. A search in
the port with that edit goes on with what is left.
"""

import itertools
import time
from collections.abc import Callable, Iterator, Sequence

from tf2verify.diagnosis.edits.mistakes import Mistake
from tf2verify.diagnosis.places.bench import Bench, Judged, Left
from tf2verify.diagnosis.places.looking import Looking
from tf2verify.sides.graphs.edits.wiring import CannotRepair

_MOST_MISTAKES = 4
# Edits of one part that are judged; each takes a run of the stage.
_MOST_JUDGED = 6
# It begins after another search has found nothing that makes the stage pass.
_SECONDS = 12.0


def edits_in_turn(
  bench: Bench, looking: Looking, run: str, proposed: Callable[[Looking], Iterator[Mistake]]
) -> tuple[list[Mistake], Judged] | None:
  """Returns edits with all of which a stage passes, and what it says then; None where not found.

  Args:
    bench: the runs of the stage.
    looking: the search in the port as it is.
    run: the run that this looks into, as differences name it.
    proposed: returns single edits with which what a search looks behind may agree.
  """
  mistakes: list[Mistake] = []
  judged = bench.judged([])
  until = time.perf_counter() + _SECONDS
  while len(mistakes) < _MOST_MISTAKES and time.perf_counter() < until:
    part = _least_part(looking)
    if not part:
      # What is left may be of one mistake.
      part = list(looking.targets) if mistakes else []
    edits = proposed(looking.of(part)) if part else iter(())
    found = _next(bench, run, edits, (mistakes, judged), until)
    if found is None:
      return None
    mistakes, judged = [*mistakes, found[0]], found[1]
    if judged.passes:
      return mistakes, judged
    try:
      looked_at = bench.looked_at([one.repair for one in mistakes], judged.left)
    except CannotRepair:
      return None
    looking, run = looking.again(looked_at, judged.left), looked_at.name
  return None


def _next(
  bench: Bench,
  run: str,
  proposed: Iterator[Mistake],
  known: tuple[Sequence[Mistake], Judged],
  until: float,
) -> tuple[Mistake, Judged] | None:
  """Returns the edit with which least differs in a run, and what the stage says then.

  A number of one line alone may mend what the line yields, and stand in others as well.
  """
  mistakes, before = known
  repairs = [one.repair for one in mistakes]
  found: list[tuple[Mistake, Judged]] = []
  for mistake in itertools.islice(proposed, _MOST_JUDGED):
    if time.perf_counter() > until:
      break
    try:
      judged = bench.judged([*repairs, mistake.repair])
    except CannotRepair:
      continue
    if judged.passes:
      return mistake, judged
    if _of(judged.left, run) < _of(before.left, run):
      found.append((mistake, judged))
  return min(found, key=lambda one: (len(_of(one[1].left, run)), one[1].distance), default=None)


def _of(left: Left, run: str) -> set[tuple[str, str]]:
  return {(quantity, name) for quantity, name, of_run in left if of_run == run}


def _least_part(looking: Looking) -> list[str]:
  """Returns what differs behind the fewest places; nothing where all is behind the same ones."""
  graph = looking.tf2.op_graph
  targets = graph.targets()
  sources = looking.divergence.all_sources()
  ends = {one.regions.tf2.end for one in sources if not one.agreement.is_rounding}
  behind = {
    name: frozenset(ends & graph.ancestors([targets[name]]))
    for name in looking.targets
    if name in targets
  }
  found = [known for known in behind.values() if known]
  if len(set(found)) <= 1:
    return []
  least = min(found, key=len)
  return [name for name, known in behind.items() if known and known <= least]
