"""What one side alone has and a run does not show, in the operations that are not proven."""

from collections.abc import Collection

from tf2verify.records.observation import SourceLine
from tf2verify.relation.proof.proving import NO_STATES, Proof, StepStates
from tf2verify.sides.graphs.run import GraphRun
from tf2verify.stages.comparison.idle_bounds import idle_bounds
from tf2verify.stages.comparison.one_sided_numbers import one_sided_numbers
from tf2verify.stages.comparison.other_numbers import other_numbers
from tf2verify.stages.comparison.tried_bounds import TriedBounds


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
  numbers = other_numbers(proof, runs, tried, known)
  known |= {line for lines in numbers for line in lines if line is not None}
  return [
    *numbers.values(),
    *idle_bounds(proof, runs, tried, known),
    *one_sided_numbers(proof, tried, known),
  ]
