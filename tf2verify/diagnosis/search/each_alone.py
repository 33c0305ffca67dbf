"""Mistakes of which little is known, looked into with all others corrected.

Of several mistakes each may hide what would tell of another one. One that was told by a long list
of operations may be one edit of a line, once the port computes with it what tf1 does elsewhere.
"""

import collections
import dataclasses
import time
from collections.abc import Iterator, Sequence

from tf2verify.diagnosis.edits.mistakes import Found, Mistake
from tf2verify.diagnosis.edits.operand_exchanges import operand_exchanges, says_one_thing
from tf2verify.diagnosis.edits.order_edits import order_edits
from tf2verify.diagnosis.places.bench import Bench, Judged
from tf2verify.diagnosis.places.looking import Looking
from tf2verify.diagnosis.search.line_edits import line_edits, nearer_edits
from tf2verify.records.diagnosis import GraphAspect
from tf2verify.records.experiment import Edit, Experiment
from tf2verify.relation.operations.op_pairs import is_backward
from tf2verify.relation.proof.differences.pairs import UNARY
from tf2verify.sides.graphs.edits.contents import numbers_of
from tf2verify.sides.graphs.edits.repairs import Repair
from tf2verify.sides.graphs.edits.wiring import CannotRepair

# Each takes a search.
_MOST = 2
# For all of them; what several mistakes are is worth more than that.
_SECONDS = 8.0
_OF_ONE_SIDE = (GraphAspect.EXTRA, GraphAspect.MISSING)


def with_each_alone(bench: Bench, looking: Looking, found: Found) -> Found:
  """Returns mistakes with a simple edit in place of those that say little, where one is enough.

  Args:
    bench: the runs of the stage.
    looking: the search in the port as it is.
    found: the mistakes.
  """
  if not found.passes or len(found.mistakes) == 1:
    return found
  before, until = found, time.perf_counter() + _SECONDS
  vague_ones = [
    one
    for one in found.mistakes
    if says_little(looking, one) and not _is_half_of_move(one, found.mistakes)
  ]
  # An operation of tf1 tells what to look for; where it is but a shape, none does.
  for vague in sorted(vague_ones, key=lambda one: one.is_of_shapes)[:_MOST]:
    if time.perf_counter() > until:
      break
    others = [one for one in found.mistakes if one is not vague]
    known = None
    if len(others) == len(found.mistakes) - 1:  # it was not left out meanwhile
      known = _simpler(bench, looking, vague, others)
    if known is not None:
      one, needed = known
      mistakes = [one if m is vague else m for m in found.mistakes]
      kept = tuple(m for m in mistakes if m is one or any(m is other for other in needed))
      found = _counted(dataclasses.replace(found, mistakes=kept))
  return found if found is before else _without_needless(bench, found)


def _without_needless(bench: Bench, found: Found) -> Found:
  """Returns mistakes without those that only undid what the edits did that others have replaced."""
  kept = list(found.mistakes)
  for one in found.mistakes:
    rest = [known for known in kept if known is not one]
    if rest and bench.judged_if_passing([known.repair for known in rest]) is not None:
      kept = rest
  return _counted(dataclasses.replace(found, mistakes=tuple(kept)))


def in_sequence(bench: Bench, looking: Looking, found: Found) -> list[Mistake] | None:
  """Returns simple edits in place of the only mistake that says little, where it is several.

  Two mistakes of one formula are one list of operations. With the first of them corrected the port
  computes more of what tf1 does there, and the second one is an edit of a line in its turn.

  Args:
    bench: the runs of the stage.
    looking: the search in the port as it is.
    found: the mistakes.
  """
  vague = [one for one in found.mistakes if says_little(looking, one)]
  if not found.passes or len(vague) != 1 or vague[0].is_simple:
    return None
  others = [one for one in found.mistakes if one is not vague[0]]
  repairs = [one.repair for one in others]
  try:
    alone = _looked_at(bench, looking, repairs) if others else looking
    for first in nearer_edits(alone):
      further = _looked_at(bench, looking, [*repairs, first.repair])
      for second in line_edits(further):
        edits = [*repairs, first.repair, second.repair]
        if bench.judged_if_passing(edits) is not None:
          return [*others, first, second]
  except CannotRepair:
    return None
  return None


def completed(bench: Bench, looking: Looking, found: Found) -> list[Mistake] | None:
  """Returns mistakes with one edit in place of the only vague one, where the stage passes so.

  A value of tf1 mends what is computed from it, and not what its gradient leads to.

  Args:
    bench: the runs of the stage.
    looking: the search in the port as it is.
    found: the mistakes, with which it does not pass.
  """
  vague = [one for one in found.mistakes if _is_vague(one)]
  if found.passes or len(vague) != 1 or len(found.mistakes) == 1:
    return None
  others = [one for one in found.mistakes if one is not vague[0]]
  known = _simpler(bench, looking, vague[0], others)
  return None if known is None else [*known[1], known[0]]


def says_little(looking: Looking, one: Mistake) -> bool:
  """Returns whether a simple edit would say more than a mistake does."""
  if any(d.elsewhere for source in one.sources for d in source.differences):
    return False  # that it is moved, and where to, is said
  return not says_one_thing(one) or _is_form(looking, one) or _is_moved(looking, one)


def _is_vague(one: Mistake) -> bool:
  """Returns whether a mistake says so little that many edits are worth a try."""
  is_long = one.is_long or one.lists_many or one.is_scaled
  return is_long or not one.text or one.is_of_shapes or one.edit is Edit.VALUE


def _is_form(looking: Looking, one: Mistake) -> bool:
  """Returns whether operations of a step were replaced that may be another form of a formula.

  A decay that differs in `x += (1 - decay) * (y - x)` and `decay * x + (1 - decay) * y`, say.
  """
  is_formula = looking.is_of_step and one.edit is Edit.OPERATIONS
  return is_formula and (one.is_scaled or not one.is_simple)


def _is_half_of_move(one: Mistake, mistakes: Sequence[Mistake]) -> bool:
  """Returns whether one side has a function at a place of a mistake, and the other at another's.

  Both together say that it was moved.
  """
  return any(
    _types(one, aspect) & _types(other, opposite) & UNARY
    for aspect, opposite in (_OF_ONE_SIDE, _OF_ONE_SIDE[::-1])
    for other in mistakes
    if other is not one
  )


def _types(one: Mistake, aspect: GraphAspect) -> set[object]:
  """Returns the types of the operations that one side alone has at the places of a mistake."""
  known = [d for source in one.sources for d in source.differences if d.aspect is aspect]
  return {step for d in known for steps in (d.tf1_value, d.tf2_value) for step in steps or ()}


def _is_moved(looking: Looking, one: Mistake) -> bool:
  """Returns whether a function that one side alone has at a place is one of as many of the other.

  It is before a normalization there, say, and behind it here.
  """
  known = [d for source in one.sources for d in source.differences if d.aspect in _OF_ONE_SIDE]
  types = {step for d in known for steps in (d.tf1_value, d.tf2_value) for step in steps or ()}
  graphs = looking.tf1.op_graph, looking.tf2.op_graph
  counts = [
    collections.Counter(op.op_type for op in graph.ops if not is_backward(op)) for graph in graphs
  ]
  return any(counts[0][kind] == counts[1][kind] > 0 for kind in types & UNARY)


def _looked_at(bench: Bench, looking: Looking, repairs: list[Repair]) -> Looking:
  """Returns the search in the port with edits.

  Raises:
    CannotRepair: they make no graph.
  """
  left = bench.judged(repairs).left
  return looking.again(bench.looked_at(repairs, left), left)


def _simpler(
  bench: Bench, looking: Looking, vague: Mistake, others: Sequence[Mistake]
) -> tuple[Mistake, Sequence[Mistake]] | None:
  """Returns one edit that makes the stage pass in place of another one, and what it needs besides.

  One number that stands in two lines may have been two mistakes.

  Returns:
    None where none does.
  """
  one = _first_passing(bench, looking, vague, others)
  if one is None:
    return None
  numbers = numbers_of(one.repair)
  for known in others:
    if numbers & numbers_of(known.repair):
      rest = [other for other in others if other is not known]
      wider = _first_passing(bench, looking, vague, rest)
      if wider is not None:
        return wider, rest
  return one, others


def _first_passing(
  bench: Bench, looking: Looking, vague: Mistake, others: Sequence[Mistake]
) -> Mistake | None:
  """Returns the first edit in place of a mistake that makes the stage pass with some others."""
  repairs = [one.repair for one in others]
  try:
    alone = _looked_at(bench, looking, repairs) if repairs else looking
  except CannotRepair:
    return None
  for one in _proposed(alone, vague):
    try:
      judged = bench.judged_if_passing([*repairs, one.repair])
    except CannotRepair:
      continue
    if judged is not None and vague.experiment is not None:
      return dataclasses.replace(one, experiment=_experiment(vague.experiment, one, judged))
  return None


def _proposed(alone: Looking, vague: Mistake) -> Iterator[Mistake]:
  yield from operand_exchanges(alone, [vague], passes=True)
  yield from order_edits(alone, [vague])
  if _is_vague(vague) or _is_form(alone, vague) or _is_moved(alone, vague):
    yield from line_edits(alone)


def _experiment(known: Experiment, one: Mistake, judged: Judged) -> Experiment:
  return dataclasses.replace(known, edit=one.edit, text=one.text, apart=judged.apart)


def _counted(found: Found) -> Found:
  """Returns mistakes that know how many there are, and are corrected by a value of tf1."""
  by_value = sum(one.edit is Edit.VALUE for one in found.mistakes)
  count = len(found.mistakes)
  mistakes = tuple(
    one
    if one.experiment is None
    else dataclasses.replace(
      one,
      experiment=dataclasses.replace(
        one.experiment, number=number, mistakes=count, by_value=by_value
      ),
    )
    for number, one in enumerate(found.mistakes, 1)
  )
  return dataclasses.replace(found, mistakes=mistakes)
