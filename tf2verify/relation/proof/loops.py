"""Loops as the rounds that they go through, where constants tell how many these are.

What a loop and what code without one compute is one value then, for the lengths that the graphs
have.
"""

import dataclasses
from collections.abc import Callable, Sequence

from tf2verify.records.op_graph import OpGraph, OpRecord
from tf2verify.relation.proof.terms import Terms

# Of operations in the rounds of all loops of a graph.
_MOST_OPERATIONS = 8_000

# Returns what a function computes, given its scope and arguments; None where it draws numbers.
Compute = Callable[[OpGraph, str, Sequence[int]], Sequence[int] | None]


@dataclasses.dataclass(eq=False)
class Rounds:
  """What is gone through of a graph's loops.

  Attributes:
    left: how many operations may still be.
    inside: the terms of what was computed in rounds.
  """

  left: int = _MOST_OPERATIONS
  inside: set[int] = dataclasses.field(default_factory=set)


def taken_apart(
  terms: Terms, op: OpRecord, inputs: Sequence[int], compute: Compute, rounds: Rounds
) -> Sequence[int] | None:
  """Returns the terms of a loop, or of the branch that a condition takes.

  Args:
    terms: all terms.
    op: the loop or condition.
    inputs: what it reads.
    compute: computes a function.
    rounds: of the graph.

  Returns:
    None where values decide how many rounds there are, or which branch is taken.
  """
  functions = dict(op.functions)
  if op.op_type.endswith('If'):
    chosen = terms.single(inputs[0])
    if chosen is None or terms.shape(inputs[0]) != ():
      return None
    branch = 'then_branch' if chosen else 'else_branch'
    return compute(functions[branch], branch, inputs[1:]) if branch in functions else None
  if not {'cond', 'body'} <= functions.keys():
    return None
  state: Sequence[int] = inputs
  size = len(functions['cond'].ops) + len(functions['body'].ops)
  number = 0
  while True:
    decided = compute(functions['cond'], f'cond {number}', state)
    goes_on = None if decided is None or len(decided) != 1 else terms.single(decided[0])
    if goes_on is None:
      return None
    if not goes_on:
      return state
    if rounds.left < size:
      return None
    rounds.left -= size
    after = compute(functions['body'], f'body {number}', state)
    if after is None or len(after) != len(state):
      return None
    state, number = after, number + 1
