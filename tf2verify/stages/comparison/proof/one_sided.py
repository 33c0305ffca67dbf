"""What one side alone has and a run does not show, in the operations that are not proven."""

from collections.abc import Collection, Iterator, Sequence

from tf2verify.records.observation import SourceLine
from tf2verify.relation.proof.proving import NO_STATES, Proof, StepStates
from tf2verify.sides.graphs.run import GraphRun
from tf2verify.sides.graphs.step_run import is_decision_target
from tf2verify.stages.comparison.proof.idle_bounds import idle_bounds
from tf2verify.stages.comparison.proof.one_sided_numbers import one_sided_numbers
from tf2verify.stages.comparison.proof.quantities import EQUAL, Quantity, quantities
from tf2verify.stages.comparison.proof.tried_bounds import TriedBounds

# Of quantities that are told.
_MOST = 3

_Lines = tuple[SourceLine | None, SourceLine | None]


def one_sided(
  proof: Proof,
  runs: tuple[GraphRun, GraphRun],
  states: StepStates = NO_STATES,
  told: Collection[SourceLine | None] = (),
) -> list[str]:
  """Returns a sentence for each number, bound, choice or kind of operation of one side alone.

  Args:
    proof: of graphs whose results agree.
    runs: of both.
    states: of a training step, the variables that follow from how many steps were taken.
    told: lines of which is told already that they differ.
  """
  tried = TriedBounds((proof.tf1.graph, proof.tf2.graph), runs, proof.targets, states)
  known = {line for line in told if line is not None}
  numbers = _other_numbers(proof, runs, tried, known)
  known |= {line for lines in numbers for line in lines if line is not None}
  return [
    *numbers.values(),
    *idle_bounds(proof, runs, tried, known),
    *one_sided_numbers(proof, tried, known),
  ]


def _other_numbers(
  proof: Proof,
  runs: tuple[GraphRun, GraphRun],
  tried: TriedBounds,
  told: Collection[SourceLine] = (),
) -> dict[_Lines, str]:
  """Returns a sentence for each quantity held against another number, by the lines of both sides.

  A threshold, a bound or an epsilon that makes no difference in a run: what comes before need not
  be proven, nor need the sides do the same with the result.

  Args:
    proof: of graphs whose results agree.
    runs: of both.
    tried: of both.
    told: lines of which is told already that they differ.
  """
  sides = proof.tf1, proof.tf2
  every = [quantities(side.graph, run, side.behind) for side, run in zip(sides, runs, strict=True)]
  alone = [
    [
      one
      for one in every[number]
      if one.position in side.tested
      and one.op.source not in told
      and not any(one.has_number_of(same) and one.is_same(same) for same in every[1 - number])
    ]
    for number, side in enumerate(sides)
  ]
  found: dict[_Lines, str] = {}
  for one, other in _pairs(*alone):
    lines = one.op.source, other.op.source
    if lines not in found and len(found) < _MOST and not _is_no_matter(proof, tried, one, other):
      found[lines] = _said(one, other)
  return found


def _pairs(
  ones: Sequence[Quantity], others: Sequence[Quantity]
) -> Iterator[tuple[Quantity, Quantity]]:
  return (
    (one, other)
    for one in ones
    for other in others
    if one.may_stand_for(other) and one.is_same(other)
  )


def _said(one: Quantity, other: Quantity) -> str:
  places = ['' if known.op.source is None else f' at {known.op.source}' for known in (one, other)]
  return (
    f'tf1 has {one.text}{places[0]}, and the port has {other.text}{places[1]}, for a quantity that '
    'is the same on both sides at these inputs, where this makes no difference, and not all '
    'operations are proven: make the port the same as tf1, or give inputs for which it matters'
  )


def _is_no_matter(proof: Proof, tried: TriedBounds, one: Quantity, other: Quantity) -> bool:
  """Returns whether both sides agree where the quantity is between both numbers.

  Then each of them has the number of the other one as well, in another spelling. This only acquits:
  a quantity that is computed twice is read elsewhere, too.
  """
  for side, known in ((proof.tf1, one), (proof.tf2, other)):
    ends = [n for name, n in side.graph.targets().items() if not is_decision_target(name)]
    if known.position not in side.graph.ancestors(ends):
      return False  # nothing that is compared shows which branch is taken
  numbers: Sequence[float] = ((one.between + other.between) / 2,)
  if one.kind == EQUAL:
    numbers = one.number, other.number
  return all(
    tried.agree(({one.tensor: one.filled(number)}, {other.tensor: other.filled(number)}))
    for number in numbers
  )
