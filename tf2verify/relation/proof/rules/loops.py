"""Loops as the rounds that they go through, where constants tell how many these are.

What a loop and what code without one compute is one value then, for the lengths that the graphs
have.
"""

import dataclasses
from collections.abc import Callable, Collection, Sequence

from tf2verify.records.op_graph import OpGraph, OpRecord
from tf2verify.relation.proof.normal_forms.operation import Operation
from tf2verify.relation.proof.normal_forms.shapes import reshape, source
from tf2verify.relation.proof.normal_forms.terms import Terms, size_of
from tf2verify.relation.proof.rules.lists import LIST, UNSET
from tf2verify.relation.proof.rules.masks import select

_BRANCHES = ('then_branch', 'else_branch')
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


@dataclasses.dataclass(frozen=True)
class _Stop:
  """A loop that goes on while its count is below `min(most, max(least, max(lengths)))`.

  So `dynamic_rnn` stops after the longest sequence, whose state it keeps from there on.
  """

  count: int
  least: int
  most: int | None
  lengths: int | None  # the term

  @property
  def goes_on(self) -> bool | None:
    """Whether there is a round of this count; None where lengths decide."""
    if self.most is not None and self.count >= self.most:
      return False
    return True if self.count < self.least else None


def taken_apart(
  terms: Terms, op: OpRecord, inputs: Sequence[int], compute: Compute, rounds: Rounds
) -> Sequence[int] | None:
  """Returns the terms of a loop, or of the branches of a condition.

  Args:
    terms: all terms.
    op: the loop or condition.
    inputs: what it reads.
    compute: computes a function.
    rounds: of the graph.

  Returns:
    None where values decide how many rounds there are; but for rounds beyond all lengths that leave
    the state as it is.
  """
  functions = dict(op.functions)
  if op.op_type.endswith('If'):
    if not functions.keys() >= set(_BRANCHES) or terms.shape(inputs[0]) != ():
      return None
    chosen = terms.single(inputs[0])
    if chosen is None:
      return _choices(terms, op, inputs, [functions[name] for name in _BRANCHES], compute, rounds)
    branch = _BRANCHES[0 if chosen else 1]
    return compute(functions[branch], branch, inputs[1:])
  if not {'cond', 'body'} <= functions.keys():
    return None
  state: Sequence[int] = inputs
  size = len(functions['cond'].ops) + len(functions['body'].ops)
  number, counters = 0, set[int]()
  while True:
    decided = compute(functions['cond'], f'cond {number}', state)
    if decided is None or len(decided) != 1:
      return None
    goes_on = terms.single(decided[0])
    stop = _stop_of(terms, decided[0]) if goes_on is None else None
    goes_on = stop.goes_on if stop is not None else goes_on
    if goes_on is None and (stop is None or stop.most is None):
      return None
    if goes_on is False or goes_on == 0:
      return _without_counters(terms, op, state, counters)
    if rounds.left < size:
      return None
    rounds.left -= size
    after = compute(functions['body'], f'body {number}', state)
    if after is None or len(after) != len(state):
      return None
    if goes_on is None and stop is not None:
      counted = _counted_beyond(terms, state, after, stop)
      if counted is None:
        return None
      counters |= counted
    state, number = after, number + 1


def _choices(
  terms: Terms,
  op: OpRecord,
  inputs: Sequence[int],
  branches: Sequence[OpGraph],
  compute: Compute,
  rounds: Rounds,
) -> Sequence[int] | None:
  """Returns the terms of a condition that a value decides: a choice of what its branches yield.

  So what a branch reads, and in which order, is no matter. None where that is not known.
  """
  size = sum(len(branch.ops) for branch in branches)
  if terms.dtype(inputs[0]) != 'bool' or rounds.left < size:
    return None
  rounds.left -= size
  yielded = [
    compute(branch, name, inputs[1:]) for name, branch in zip(_BRANCHES, branches, strict=True)
  ]
  results = [known for known in yielded if known is not None and len(known) == len(op.outputs)]
  if len(results) != len(_BRANCHES):
    return None
  chosen: list[int] = []
  for first, second, (dtype, shape) in zip(*results, op.outputs, strict=True):
    read = [inputs[0], first, second]
    made: Sequence[int] | None = None
    if first == second:
      made = [first]
    elif shape is not None and terms.shape(first) == terms.shape(second) == shape:
      made = select(Operation(terms, 'SelectV2', read, {}, [(dtype, shape)]))
    chosen.append(made[0] if made else terms.add('choice', read, (), dtype, shape))
  return chosen


def _stop_of(terms: Terms, condition: int) -> _Stop | None:
  """Returns when a loop stops, by its condition; None where that is not known."""
  term = terms[source(terms, condition)]
  if term.kind == 'LogicalAnd':
    known = [terms.single(n) for n in term.inputs]
    if False in known:
      return _Stop(0, 0, 0, None)
    left = [n for n, value in zip(term.inputs, known, strict=True) if value is None]
    return _stop_of(terms, left[0]) if len(left) == 1 else None
  count = terms.integers(term.inputs[1]) if term.kind == 'Greater' else None
  if not count or len(count) != 1:
    return None
  least, most, bound = 0, None, term.inputs[0]
  while (inner := terms[source(terms, bound)]).kind in ('Minimum', 'Maximum'):
    numbers = [terms.integers(n) for n in inner.inputs]
    others = [n for n, value in zip(inner.inputs, numbers, strict=True) if value is None]
    values = [value[0] for value in numbers if value is not None and len(value) == 1]
    if len(others) != 1 or len(values) != 1:
      return None
    if inner.kind == 'Minimum':
      if least:
        return None
      most = values[0] if most is None else min(most, values[0])
    else:
      least = max(least, values[0])
    bound = others[0]
  if inner.kind != 'Max' or len(terms.shape(inner.inputs[0]) or ()) != 1 or inner.shape != ():
    return None
  return _Stop(count[0], least, most, source(terms, inner.inputs[0]))


def _counted_beyond(
  terms: Terms, before: Sequence[int], after: Sequence[int], stop: _Stop
) -> set[int] | None:
  """Returns what a round counts, if it leaves all else as it is once its count is past all lengths.

  None where it does something then.
  """
  counters: set[int] = set()
  for place, (one, other) in enumerate(zip(before, after, strict=True)):
    if one == other:
      continue
    if terms[one].kind == LIST and terms[other].kind == LIST:
      pairs = zip(terms[one].inputs, terms[other].inputs, strict=False)
      changed = [(old, new) for old, new in pairs if old != new]
      same_length = len(terms[one].inputs) == len(terms[other].inputs)
      # What has no value is read as zeros.
      if not same_length or not all(
        terms[old].kind == UNSET and terms.single(_kept(terms, new, stop)) == 0
        for old, new in changed
      ):
        return None
    elif terms.value(other) is not None and 'int' in terms.dtype(other):
      counters.add(place)
    elif _kept(terms, other, stop) != one:
      return None
  return counters


def _kept(terms: Terms, number: int, stop: _Stop) -> int:
  """Returns what a choice is where the count is past the lengths; a term itself if it is none."""
  term, shape = terms[source(terms, number)], terms.shape(number)
  if term.kind != 'Select' or shape is None:
    return number
  condition = terms[source(terms, term.inputs[0])]
  if condition.kind != 'Greater' or stop.lengths is None:
    return number
  count = terms.single(condition.inputs[1])
  kept = term.inputs[2]
  is_whole = size_of(terms.shape(kept) or ()) == size_of(shape)
  if source(terms, condition.inputs[0]) != stop.lengths or count != stop.count or not is_whole:
    return number
  return reshape(terms, kept, shape)


def _without_counters(
  terms: Terms, op: OpRecord, state: Sequence[int], counters: Collection[int]
) -> list[int]:
  """Returns what a loop yields; of what it counts lengths tell the value, which is not known."""
  return [
    terms.add('unknown', (), (op.name, place, len(terms)), terms.dtype(number), terms[number].shape)
    if place in counters
    else number
    for place, number in enumerate(state)
  ]
