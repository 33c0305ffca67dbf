"""Where two graphs begin to differ, though the numbers agree, and go on alike afterwards."""

import dataclasses
import functools
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence

from tf2verify.records.op_graph import OpGraph, TensorKey
from tf2verify.relation.proof.differences.bounds import unlike_bounds
from tf2verify.relation.proof.differences.bypasses import bypasses
from tf2verify.relation.proof.differences.moved_factors import is_moved
from tf2verify.relation.proof.differences.pairs import (
  EXTRA,
  FUNCTIONS,
  MISSING,
  Unlike,
  candidates,
  pairs,
  ties,
)
from tf2verify.relation.proof.differences.terms import unlike_terms
from tf2verify.relation.proof.differences.witnesses import same_function, told_apart
from tf2verify.relation.proof.normal_forms.shapes import source
from tf2verify.relation.proof.numbering import Variables
from tf2verify.relation.proof.proving import NO_STATES, Proof, Side, prove

_MOST = 6
_OUTPUT = 'output '
_CONDITIONS = ('If', 'StatelessIf')
_COMPARISONS = ('Greater', 'GreaterEqual', 'Less', 'LessEqual')
# Each relates the graphs once more.
_MOST_TRIALS = 16


Proposed = Callable[[Proof], Iterator[Unlike]]


@dataclasses.dataclass(frozen=True)
class _Granted:
  """What is taken for granted, to see what follows.

  Attributes:
    tensors: those of the port that are taken for tensors of the reference.
    passed: operations of both sides that are taken to yield what they read.
    terms: those of the port that are taken for terms of the reference.
  """

  tensors: Mapping[TensorKey, TensorKey] = dataclasses.field(default_factory=dict)
  passed: tuple[frozenset[int], frozenset[int]] = (frozenset(), frozenset())
  terms: Mapping[int, int] = dataclasses.field(default_factory=dict)

  def and_also(self, pair: Unlike, graph: OpGraph) -> '_Granted':
    """Returns this with the two sides of a pair taken for the same.

    Args:
      pair: what differs.
      graph: the reference's.
    """
    if pair.terms is not None:
      one, other = pair.terms
      return dataclasses.replace(self, terms={**self.terms, other: one})
    if pair.chain:
      number = 0 if pair.what == MISSING else 1
      passed = list(self.passed)
      passed[number] |= frozenset(pair.chain)
      return dataclasses.replace(self, passed=(passed[0], passed[1]))
    outputs = range(len(graph.ops[pair.tf1].outputs))
    more = {(pair.tf2, n): (pair.tf1, n) for n in outputs}
    return dataclasses.replace(self, tensors={**self.tensors, **more})


def unlike(
  proof: Proof, variables: Variables, targets: Collection[str] | None = None
) -> tuple[list[Unlike], Proof]:
  """Returns the operations at which two graphs begin to differ, and what is proven without them.

  Only those are returned after which the graphs go on alike: were they the same, what reads them
  would be proven. So a spelling that no rule knows is not taken for a difference.

  Args:
    proof: what is proven of the graphs.
    variables: as for `prove`.
    targets: likewise.
  """
  found, after = explained(proof, variables, targets)
  if proof.states is not NO_STATES:
    return found, after
  places = {(pair.tf1, pair.tf2) for pair in found}
  more = [
    pair for pair in (*ties(after), *unlike_bounds(after)) if (pair.tf1, pair.tf2) not in places
  ]
  return [*found, *more[: _MOST - len(found)]], after


def explained(
  proof: Proof, variables: Variables, targets: Collection[str] | None = None
) -> tuple[list[Unlike], Proof]:
  """Returns what `unlike` does, of what is proven if all of it is taken for the same."""
  search = _Search(proof, variables, targets)
  # Terms have their numbers from what was granted before: these come last.
  stages: Sequence[Proposed] = (candidates, functools.partial(told_apart, known={}), _of_terms)
  if proof.states is not NO_STATES:
    # What is in a branch is a term, and no operation of the graph.
    graphs = proof.tf1.graph, proof.tf2.graph
    chooses = any(op.op_type in _CONDITIONS for graph in graphs for op in graph.ops)
    stages = (_pairs_of_steps, _of_terms) if chooses else (_pairs_of_steps,)
  else:
    # What reads the same with another number or attribute; then, what only looks different.
    search.alone(pairs)
    search.spellings()
    search.alone(bypasses)
  later: list[tuple[Proposed, Unlike]] = []
  for proposed in stages:
    for first in search.alone(proposed):
      # What one side alone has may be part of another spelling, which numbers tell better.
      if first.what in (MISSING, EXTRA):
        later.append((proposed, first))
      else:
        search.both(proposed, first)
  for proposed, first in later:
    search.both(proposed, first)
  return search.found, search.proof


class _Search:
  """Takes proposed pairs for the same, and keeps those after which the graphs go on alike.

  Attributes:
    found: those.
    proof: what is proven with them.
  """

  def __init__(self, proof: Proof, variables: Variables, targets: Collection[str] | None) -> None:
    self.found: list[Unlike] = []
    self.proof = proof
    self._granted = _Granted(_outputs(proof, targets))
    self._question = (proof.tf1.graph, proof.tf2.graph, variables, targets)
    self._given = (proof.arguments, proof.states, proof.in_rounds)
    self._same: dict[Hashable, bool] = {}
    if self._granted.tensors and proof.tested:
      self.proof = self._proven(self._granted)

  def alone(self, proposed: Proposed) -> list[Unlike]:
    """Looks for single pairs; returns those that are not all that differs at their place."""
    tried: set[Hashable] = set()
    refused: list[Unlike] = []
    while len(self.found) < _MOST and len(tried) < _MOST_TRIALS and self.proof.tested:
      pair = next((new for new in proposed(self.proof) if _key(new) not in tried), None)
      if pair is None:
        break
      known = _known(self.proof, pair)
      if known is not None and (self._is_no_matter(known) or is_moved(self.proof, known)):
        known = None
      if known is None or not self._takes(self._granted.and_also(known, self._tf1), known):
        tried.add(_key(pair))
        refused += [known] if known is not None else []
    return refused

  def _is_no_matter(self, pair: Unlike) -> bool:
    """Returns whether a comparison is strict on one side alone, and what comes of it is the same.

    Both branches agree there, as those of Huber's loss do.
    """
    ops = self.proof.tf1.graph.ops[pair.tf1], self.proof.tf2.graph.ops[pair.tf2]
    if pair.chain or any(op.op_type not in _COMPARISONS for op in ops):
      return False
    return any(
      pair.tf1 in same.of_tf1 and pair.tf2 in same.of_tf2
      for same in same_function(self.proof, self._same, from_afar=True)
      if same.tf1 != pair.tf1
    )

  def spellings(self) -> None:
    """Takes for the same what is spelled in two ways, and no value tells apart."""
    taken: set[int] = set()
    while self.proof.tested:
      same = [
        one
        for from_afar in (False, True)
        for one in same_function(self.proof, self._same, from_afar)
        if one.tf2 not in taken
      ]
      if not same:
        return
      taken.update(one.tf2 for one in same)
      tensors = {(one.tf2, 0): (one.tf1, 0) for one in same}
      merged = {**self._granted.tensors, **tensors}
      self._granted = dataclasses.replace(self._granted, tensors=merged)
      self.proof = self._proven(self._granted)

  def both(self, proposed: Proposed, first: Unlike) -> None:
    """Looks for a second pair that reads what the first one yields: both bounds of a clipping."""
    if not self.proof.tested or len(self.found) >= _MOST:
      return
    if self._granted.terms and first.terms is None:
      return
    more = self._granted.and_also(first, self._tf1)
    further = self._proven(more)
    after = next((new for new in proposed(further) if _follows(further, first, new)), None)
    second = None if after is None else _known(further, after)
    if second is not None:
      self._takes(more.and_also(second, self._tf1), first, second)

  @property
  def _tf1(self) -> OpGraph:
    return self._question[0]

  def _proven(self, given: _Granted) -> Proof:
    return prove(*self._question, given.tensors, given.passed, given.terms, *self._given)

  def _takes(self, granted: _Granted, *pairs: Unlike) -> bool:
    """Takes pairs if the graphs go on alike after the last of them; returns whether they do."""
    further = self._proven(granted)
    if not _goes_on(self.proof, further, pairs[-1]):
      return False
    self._granted, self.proof = granted, further
    self.found.extend(pairs)
    return True


def _outputs(proof: Proof, targets: Collection[str] | None) -> Mapping[TensorKey, TensorKey]:
  """Returns the outputs of the models, whose losses are related: they agree, and were related."""
  if targets is None or proof.states is not NO_STATES:
    return {}
  graphs = proof.tf1.graph, proof.tf2.graph
  ends = [graph.targets() for graph in graphs]
  both = [n for n in ends[0] if n in ends[1] and n not in targets and n.startswith(_OUTPUT)]
  found = [[graph.ops[by[n]].inputs for n in both] for graph, by in zip(graphs, ends, strict=True)]
  pairs_of_outputs = (
    (one[0], other[0]) for one, other in zip(*found, strict=True) if len(one) == len(other) == 1
  )
  return {
    other: one
    for one, other in pairs_of_outputs
    if graphs[0].ops[one[0]].outputs[one[1]] == graphs[1].ops[other[0]].outputs[other[1]]
  }


def _pairs_of_steps(proof: Proof) -> Iterator[Unlike]:
  """Yields pairs that both sides have.

  Differentiation makes operations that only change signs and shapes, and that the other side has
  elsewhere: what one side alone has says little of a step.
  """
  return (pair for pair in candidates(proof) if pair.what not in (MISSING, EXTRA))


def _known(proof: Proof, pair: Unlike) -> Unlike | None:
  """Returns a pair, of loops with what differs in their functions; None where that is not known."""
  return _in_functions(proof, pair) if pair.what == FUNCTIONS else pair


def _key(pair: Unlike) -> Hashable:
  return pair.tf1, pair.tf2, len(pair.chain), pair.what, pair.terms


def _follows(proof: Proof, pair: Unlike, after: Unlike) -> bool:
  """Returns whether one pair reads what the other yields, as the second bound of a clipping."""
  sides = ((proof.tf1, pair.tf1, after.tf1), (proof.tf2, pair.tf2, after.tf2))
  return all(
    any(producer == first for producer, _ in side.graph.ops[second].inputs)
    for side, first, second in sides
  )


def _of_terms(proof: Proof) -> Iterator[Unlike]:
  for found in unlike_terms(proof):
    yield Unlike(*found.places, found.what, found.values, terms=(found.tf1, found.tf2))


def _goes_on(before: Proof, after: Proof, pair: Unlike) -> bool:
  """Returns whether what reads two operations is proven, if they are taken for the same."""
  if len(after.tested) < len(before.tested):
    return True
  of_tf1 = {pair.tf1, *(pair.chain if pair.what == MISSING else ())}
  of_tf2 = {pair.tf2, *(pair.chain if pair.what == EXTRA else ())}
  gone = before.tf1.tested - after.tf1.tested - of_tf1
  lost = before.tf2.tested - after.tf2.tested - of_tf2
  if pair.terms is not None:
    (one, first), (other, second) = (
      (side, _yielding(before, side, number, place))
      for side, number, place in (
        (before.tf1, pair.terms[0], pair.tf1),
        (before.tf2, pair.terms[1], pair.tf2),
      )
    )
    return _reads(one.graph, gone - first, first) and _reads(other.graph, lost - second, second)
  if not pair.chain:
    return _reads(before.tf1.graph, gone, [pair.tf1]) and _reads(before.tf2.graph, lost, [pair.tf2])
  if pair.what == MISSING:
    return bool(lost) and _reads(before.tf1.graph, gone, [pair.tf1])
  return bool(gone) and _reads(before.tf2.graph, lost, [pair.tf2])


def _yielding(proof: Proof, side: Side, number: int, place: int) -> set[int]:
  """Returns the operations that yield a term, in whatever shape, or have it within."""
  wanted = source(proof.terms, number)
  return {n for (n, _), value in side.values.items() if source(proof.terms, value) == wanted} or {
    place
  }


def _reads(graph: OpGraph, readers: Collection[int], of: Collection[int]) -> bool:
  return any(producer in of for n in readers for producer, _ in graph.ops[n].inputs)


def _in_functions(proof: Proof, pair: Unlike) -> Unlike | None:
  """Returns what tells two loops or conditions apart, of the same values, by their functions.

  Only if nothing else does: with it taken for the same, all that they compute is proven.
  """
  one, other = proof.tf1.graph.ops[pair.tf1], proof.tf2.graph.ops[pair.tf2]
  read = [
    [side.values[key] for key in op.inputs] for side, op in ((proof.tf1, one), (proof.tf2, other))
  ]
  terms, passed = proof.terms, read[0][1:] if one.op_type.endswith('If') else read[0]
  arguments = [(terms.dtype(number), terms[number].shape) for number in passed]
  functions = dict(one.functions), dict(other.functions)
  if read[0] != read[1] or functions[0].keys() != functions[1].keys():
    return None
  found: list[Unlike] = []
  for name, function in functions[0].items():
    inner, after = explained(prove(function, functions[1][name], {}, arguments=arguments), {})
    if after.tested:
      return None
    found += inner
  if not found:
    return None
  alike = [inner for inner in found if inner.what == found[0].what]
  first, second = (', '.join(dict.fromkeys(one.values[n] for one in alike)) for n in range(2))
  return dataclasses.replace(pair, what=found[0].what, values=(first, second))
