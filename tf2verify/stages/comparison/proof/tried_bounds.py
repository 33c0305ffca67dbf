"""Whether the other side has a bound, too: tried with values that reach it.

A bound is written in many ways: `relu6(x + 3) / 6` and a clip from 0 to 1, a choice and a product
with what is chosen. Both sides are given the same other values, in place of a tensor before the
bound that both have; where they agree then, the other side has the bound in another spelling.
"""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from tf2verify.records.op_graph import VARIABLE, OpGraph
from tf2verify.relation.proof.proving import NO_STATES, StepStates
from tf2verify.sides.graphs.run import GraphRun
from tf2verify.stages.comparison.proof.made_up_for import result_tensors

# Of the values before a bound; in some of them it is reached.
_FACTORS = (2.0, -2.0, 6.0, -6.0, 30.0, -30.0, 1e3, -1e3, 0.1, 1e-3)
_MOST_BEFORE, _MOST_TRIED = 40, 4
# Of steps taken before: a schedule may end after any number of them.
_COUNTS = (10, 30, 100, 300, *(10**n for n in range(3, 8)))
# A bound that is reached by little may matter as little as rounding: of several both agree.
_MOST_REACHED = 3
# So many operations are compared in a moment.
_MOST_OPERATIONS = 1500
# Of the greatest element: what is less is rounding.
_SAME = 1e-4
_COMMON = (0.0, 0.5, 1.0, 2.0)

_Graphs = tuple[OpGraph, OpGraph]
_Runs = tuple[GraphRun, GraphRun]


def drawn_tensors(graph: OpGraph) -> frozenset[str]:
  """Returns the tensors that are uniform draws from 0 to 1."""
  return frozenset(t for op in graph.ops if op.op_type == 'RandomUniform' for t in op.tensors)


def other_draws(value: np.ndarray) -> list[np.ndarray]:
  """Returns what may be drawn in the place of numbers: in turn, all the least, all the greatest."""
  greatest = np.asarray(1.0 - np.finfo(value.dtype).eps, value.dtype)
  return [
    np.asarray(value.ravel()[::-1].reshape(value.shape)),
    np.asarray(greatest - value, value.dtype),
    np.zeros_like(value),
    np.full_like(value, greatest),
  ]


class TriedBounds:
  """Tries bounds in one run of both sides, which agree."""

  def __init__(
    self, graphs: _Graphs, runs: _Runs, targets: Sequence[str], states: StepStates = NO_STATES
  ) -> None:
    """Takes both sides.

    Args:
      graphs: of the sides.
      runs: of them, at the case's own inputs.
      targets: names of what is compared.
      states: of a training step, the variables that follow from how many steps were taken.
    """
    self._states = states.tf1, states.tf2
    self._graphs = graphs
    self._runs = runs
    self._targets = [one for one in targets if all(one in graph.targets() for graph in graphs)]
    self._values: tuple[_Values, _Values] | None = None

  def is_on_both_sides(
    self, side: int, position: int, is_idle: Callable[[GraphRun, Mapping[str, np.ndarray]], bool]
  ) -> bool:
    """Returns whether both sides agree where values reach a bound that one of them has.

    Args:
      side: which side has it.
      position: of the bound.
      is_idle: whether it does nothing in a run in which some tensors are given.
    """
    is_small = sum(len(graph.ops) for graph in self._graphs) <= _MOST_OPERATIONS
    tried = self._given(side, position) if is_small else iter(())
    later = self._at_counts(side, position)
    for given in (*later, *itertools.islice(tried, _MOST_TRIED)):
      # A tensor close to the bound may be a part of what the other side reads: others tell then.
      reached = [ones for ones in given if not is_idle(self._runs[side], ones[side])][
        :_MOST_REACHED
      ]
      if reached and all(map(self.agree, reached)):
        return True
    return False

  def is_the_same_for_all_draws(self, side: int, position: int) -> bool:
    """Returns whether an operation yields the same, whatever is drawn before it."""
    graph, run = self._graphs[side], self._runs[side]
    behind = graph.ancestors([position])
    drawn = drawn_tensors(graph) & {t for n in behind for t in graph.ops[n].tensors}
    values = run.refetched(sorted(drawn), {}) if drawn else None
    made = zip(*map(other_draws, values), strict=True) if values else ()
    given = [dict(zip(sorted(drawn), others, strict=True)) for others in made]
    found = [run.refetched(graph.ops[position].tensors[:1], one) for one in ({}, *given)]
    known = [one[0] for one in found if one]
    return 1 < len(known) == len(found) and all(np.array_equal(known[0], one) for one in known)

  def _given(
    self, side: int, position: int
  ) -> Iterator[list[tuple[dict[str, np.ndarray], dict[str, np.ndarray]]]]:
    """Yields, for tensors before a bound that both sides have, what to give in their places."""
    values = self._all_values()
    for tensor in self._before(side, position):
      value = values[side].get(tensor)
      if value is None:
        continue
      alike = [[t for t, v in known.items() if _is_same(v, value)] for known in values]
      if all(alike):
        others = [np.asarray(value * factor, value.dtype) for factor in _FACTORS]
        if not drawn_tensors(self._graphs[side]).isdisjoint(alike[side]):
          others = other_draws(value)
        yield [(dict.fromkeys(alike[0], other), dict.fromkeys(alike[1], other)) for other in others]

  def _at_counts(
    self, side: int, position: int
  ) -> list[list[tuple[dict[str, np.ndarray], dict[str, np.ndarray]]]]:
    """Returns what both sides hold at later counts of steps, if a bound is computed from these."""
    graph = self._graphs[side]
    if all(graph.ops[n].name not in self._states[side] for n in graph.ancestors([position])):
      return []
    return [[(self._after(0, count), self._after(1, count)) for count in _COUNTS]]

  def _after(self, side: int, steps: int) -> dict[str, np.ndarray]:
    """Returns what a side's variables of counts hold after steps, by the tensors that read them."""
    return {
      op.tensors[0]: np.asarray(self._states[side][op.name].after(steps), op.outputs[0][0])
      for op in self._graphs[side].ops
      if op.op_type == VARIABLE and op.name in self._states[side]
    }

  def _before(self, side: int, position: int) -> Iterator[str]:
    """Yields the tensors that lead to a bound, the nearest first."""
    graph = self._graphs[side]
    pending, seen = [position], {position}
    while pending and len(seen) < _MOST_BEFORE:
      op = graph.ops[pending.pop(0)]
      for producer, number in op.inputs:
        known = graph.ops[producer]
        if number < len(known.tensors):
          yield known.tensors[number]
        if producer not in seen:
          seen.add(producer)
          pending.append(producer)

  def _all_values(self) -> 'tuple[_Values, _Values]':
    if self._values is None:
      one, other = map(_floating, self._graphs, self._runs)
      self._values = one, other
    return self._values

  def agree(self, given: tuple[dict[str, np.ndarray], dict[str, np.ndarray]]) -> bool:
    """Returns whether results agree that change with what is given.

    Args:
      given: values of each side's tensors by name, in place of what its graph computes.
    """
    before, after = self._results(({}, {})), self._results(given)
    if before is None or after is None:
      return False
    # Where both have another layout, or a count of steps another kind of number, nothing is seen.
    seen = [n for n, pair in enumerate(before) if _is_same(*pair)]
    changed = [n for n in seen if not _is_same(before[n][0], after[n][0])]
    finite = all(bool(np.isfinite(after[n][0]).all()) for n in changed)
    return bool(changed) and finite and all(_is_same(*after[n]) for n in seen)

  def _results(
    self, given: tuple[dict[str, np.ndarray], dict[str, np.ndarray]]
  ) -> list[tuple[np.ndarray, np.ndarray]] | None:
    found = []
    for graph, run, ones in zip(self._graphs, self._runs, given, strict=True):
      values = run.refetched(result_tensors(graph, self._targets), ones)
      if values is None:
        return None
      found.append(values)
    return list(zip(*found, strict=True))


_Values = dict[str, np.ndarray]


def _floating(graph: OpGraph, run: GraphRun) -> _Values:
  """Returns the floating tensors of a run that are not the same number everywhere.

  Of scalars, such as a norm, those that are no common number.
  """
  names = [
    tensor
    for op in graph.ops
    for tensor, (dtype, _) in zip(op.tensors, op.outputs, strict=False)
    if dtype.startswith('float') and op.constant is None
  ]
  names = list(dict.fromkeys(names))
  values = run.refetched(names, {})
  if values is None:
    return {}
  known = zip(names, values, strict=True)
  return {name: v for name, v in known if _tells(v) and np.isfinite(v).all()}


def _tells(value: np.ndarray) -> bool:
  """Returns whether two tensors of the same value are hardly so by chance."""
  if value.size == 1:
    return float(value.reshape(())) not in _COMMON
  return value.size > 1 and bool(np.ptp(value) > 0)


def _is_same(one: np.ndarray, other: np.ndarray) -> bool:
  if one.shape != other.shape or not {one.dtype.kind, other.dtype.kind} <= set('fiub'):
    return False
  first, second = one.astype(np.float64), other.astype(np.float64)
  size = float(np.max(np.abs(first), initial=0.0))
  return bool(np.all(np.abs(first - second) <= _SAME * size))
