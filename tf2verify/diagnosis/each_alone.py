"""Mistakes of which little is known, looked into with all others corrected.

Of several mistakes each may hide what would tell of another one. One that was told by a long list
of operations may be one edit of a line, once the port computes with it what tf1 does elsewhere.
"""

import dataclasses
from collections.abc import Iterator

from tf2verify.diagnosis.bench import Bench, Judged
from tf2verify.diagnosis.line_edits import line_edits
from tf2verify.diagnosis.looking import Looking
from tf2verify.diagnosis.mistakes import Found, Mistake
from tf2verify.diagnosis.operand_exchanges import operand_exchanges, says_one_thing
from tf2verify.diagnosis.order_edits import order_edits
from tf2verify.records.experiment import Edit, Experiment
from tf2verify.sides.graphs.repairs import Repair
from tf2verify.sides.graphs.wiring import CannotRepair

# Each takes a search.
_MOST = 2


def with_each_alone(bench: Bench, looking: Looking, found: Found) -> Found:
  """Returns mistakes with a simple edit in place of those that say little, where one is enough.

  Args:
    bench: the runs of the stage.
    looking: the search in the port as it is.
    found: the mistakes.
  """
  if not found.passes or len(found.mistakes) == 1:
    return found
  vague_ones = [one for one in found.mistakes if not says_one_thing(one) or _is_form(looking, one)]
  for vague in vague_ones[:_MOST]:
    if bench.is_over():
      break
    others = [one.repair for one in found.mistakes if one is not vague]
    known = _simpler(bench, looking, vague, others)
    if known is not None:
      mistakes = tuple(known if one is vague else one for one in found.mistakes)
      found = _counted(dataclasses.replace(found, mistakes=mistakes))
  return found


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
  known = _simpler(bench, looking, vague[0], [one.repair for one in others])
  return None if known is None else [*others, known]


def _is_vague(one: Mistake) -> bool:
  """Returns whether a mistake says so little that many edits are worth a try."""
  return not one.text or one.is_long or one.lists_many or one.is_scaled or one.edit is Edit.VALUE


def _is_form(looking: Looking, one: Mistake) -> bool:
  """Returns whether operations of a step were replaced that may be another form of a formula.

  A decay that differs in `x += (1 - decay) * (y - x)` and `decay * x + (1 - decay) * y`, say.
  """
  is_formula = looking.is_of_step and one.edit is Edit.OPERATIONS
  return is_formula and (one.is_scaled or not one.is_simple)


def _simpler(
  bench: Bench, looking: Looking, vague: Mistake, others: list[Repair]
) -> Mistake | None:
  """Returns one edit that makes the stage pass in place of another one; None where none does."""
  try:
    left = bench.judged(others).left
    alone = looking.again(bench.looked_at(others, left), left)
  except CannotRepair:
    return None
  for one in _proposed(alone, vague, bench):
    try:
      judged = bench.judged_if_passing([*others, one.repair])
    except CannotRepair:
      continue
    if judged is not None and vague.experiment is not None:
      return dataclasses.replace(one, experiment=_experiment(vague.experiment, one, judged))
  return None


def _proposed(alone: Looking, vague: Mistake, bench: Bench) -> Iterator[Mistake]:
  yield from operand_exchanges(alone, [vague], passes=True)
  yield from order_edits(alone, [vague])
  if (_is_vague(vague) or _is_form(alone, vague)) and not bench.is_over():
    yield from line_edits(alone)


def _experiment(known: Experiment, one: Mistake, judged: Judged) -> Experiment:
  return dataclasses.replace(known, edit=one.edit, text=one.text, apart=judged.apart)


def _counted(found: Found) -> Found:
  """Returns mistakes that know how many of them are corrected by a value of tf1."""
  by_value = sum(one.edit is Edit.VALUE for one in found.mistakes)
  experiments = [
    None if one.experiment is None else dataclasses.replace(one.experiment, by_value=by_value)
    for one in found.mistakes
  ]
  both = zip(found.mistakes, experiments, strict=True)
  mistakes = tuple(dataclasses.replace(one, experiment=known) for one, known in both)
  return dataclasses.replace(found, mistakes=mistakes)
