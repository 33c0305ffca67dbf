"""Where two sides part first.

Both sides are run on the same inputs and the same variable values. Operations in
pairs are compared by what they yield. One is a *source* where its inputs agree and its
outputs do not; one whose inputs differ already is run alone on the tf1 side's inputs,
which tells a fault of its own from a difference that it only passes on.
"""

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from tf2verify.diagnosis.divergence.judging.behind_updates import behind_updates
from tf2verify.diagnosis.divergence.judging.held_otherwise import HeldOtherwise
from tf2verify.diagnosis.divergence.judging.reach import Reach, is_gone
from tf2verify.diagnosis.divergence.judging.settled_gradients import pair_settled_gradients
from tf2verify.diagnosis.divergence.judging.shared_ends import shared_end
from tf2verify.diagnosis.divergence.judging.unjudged import sources_as_they_are
from tf2verify.diagnosis.divergence.judging.updates import Updates
from tf2verify.diagnosis.divergence.tensors.outputs import can_fetch, read_in_parts, size_arithmetic
from tf2verify.diagnosis.divergence.tensors.portions import Repeats, past_the_first, portions
from tf2verify.diagnosis.divergence.tensors.reassociation import reassociated
from tf2verify.diagnosis.divergence.tensors.region_noise import settled
from tf2verify.diagnosis.divergence.tensors.regions import RegionPair, region_pair
from tf2verify.diagnosis.divergence.tensors.sources import (
  FoundSource,
  InspectableRun,
  compared,
  found_source,
  without_echoes,
)
from tf2verify.diagnosis.divergence.tensors.value_pairs import pair_by_value
from tf2verify.diagnosis.divergence.tensors.variable_views import variable_views
from tf2verify.numerics.agreement import IDENTICAL, Agreement
from tf2verify.numerics.relayout import Relayout
from tf2verify.records.op_graph import TARGET, TensorKey
from tf2verify.relation.operations.op_pairs import Pairing, is_backward

# Operations run alone in one session.
_PARTS = 64
# Operations of which the noise is measured, a few sessions each.
_MOST_SETTLED = 48
# Searches for operations that have the port's own order of elements.
_MOST_ORDERS = 8


class Divergence:
  """Finds the sources of what differs between two runs.

  Attributes:
    pairing: the operations in pairs.
    behind: positions of the tf1 operations behind the targets.
    ends: positions of the targets in pairs.
    agreements: of the outputs of pairs, by tf1 tensor.
    is_cut_short: whether operations far after the first source were left out.
    as_tf2: returns the value of a tf1 tensor as its partner holds it.
    unjudged: pairs that differ, and cannot be run alone on the tf1 side's inputs.
    between: positions of tf1 operations between two mistakes, of which each shows by itself.
  """

  def __init__(
    self,
    tf1: InspectableRun,
    tf2: InspectableRun,
    targets: Sequence[str],
    whole: bool = False,
    least: float = 0.0,
  ) -> None:
    """Pairs and compares the operations that some targets depend on.

    Args:
      tf1: the tf1 side's run.
      tf2: the tf2 side's.
      targets: names of targets that differ; unknown ones are passed over, all of them for none.
      whole: whether to go on past the first source, however far.
      least: a source that differs by no more of a tensor's size explains nothing, as rounding.
    """
    self._least = least
    self._tf1, self._tf2 = tf1, tf2
    self.pairing = Pairing(tf1.op_graph, tf2.op_graph)
    known = tf1.op_graph.targets()  # `update of v (2)` is the second write to `v`.
    wanted = [end for name, end in known.items() if re.sub(r' \(\d+\)$', '', name) in targets]
    ends = wanted or list(known.values())
    self.behind = tf1.op_graph.ancestors(ends)
    self.ends = [(end, m) for end in ends if (m := self.pairing.tf2_of[end]) is not None]
    self._tf2_behind = tf2.op_graph.ancestors([other for _, other in self.ends])
    self._views = variable_views(tf1.op_graph, tf2.layouts)
    pair_by_value(tf1, tf2, self.pairing, self.behind, self._tf2_behind, self._views)
    pair_settled_gradients(tf1, tf2, self.pairing, self._views, targets)
    in_parts = [*read_in_parts(tf1.op_graph), *reassociated(self.pairing)]
    self.pairing.part(*in_parts, for_good=True)
    self._sizes = size_arithmetic(tf1.op_graph)
    self.agreements: dict[TensorKey, Agreement] = {}
    self._further = len(tf1.op_graph.ops) if whole else past_the_first(tf1.op_graph)
    self._updates = Updates(tf1, tf2)
    self._held = HeldOtherwise(tf1, tf2, self.pairing, self._views)
    self.as_tf2 = self._held.as_tf2
    self.unjudged: list[RegionPair] = []
    self.between: set[int] = set()
    self._settled_so_far, self._in_own_order = 0, set[int]()
    self._searched = self._positions(targets)
    self._found = self._searched_again()
    self._pair_shared()

  @property
  def layouts(self) -> Mapping[TensorKey, Relayout]:
    """How the port holds tensors of tf1 that it has in another shape."""
    return self._held.layouts

  def part(
    self, positions: Iterable[int], layouts: Mapping[TensorKey, Relayout] | None = None
  ) -> None:
    """Takes their partners from tf1 operations that turned out to have none, and looks again.

    Args:
      positions: of the operations.
      layouts: how the port holds tensors of tf1 that no value of this run shows to be alike.
    """
    self.pairing.part(*positions)
    self._held.layouts.clear()
    self._held.layouts.update(layouts or {})
    self._found = self._searched_again()

  def _searched_again(self) -> list[FoundSource]:
    """Searches until no operation turns out to have the port's own order of elements."""
    for _ in range(_MOST_ORDERS):
      for known in (self.agreements, self.unjudged, self._in_own_order):
        known.clear()
      self.is_cut_short, self._judged_since = False, 0
      found = self._search(self._searched)
      if not self._in_own_order:
        break
      self.pairing.part(*self._in_own_order, for_good=True)
    if all(s.agreement.is_rounding or s.agreement.relative <= self._least for s in found):
      runs = self._tf1, self._tf2
      found += sources_as_they_are(self.unjudged, *runs, self.agreements, self._views)
    return found

  def _pair_shared(self) -> None:
    """Pairs what several sources read, where that explains one of them: a mistake read twice."""
    found = shared_end(self._tf1.op_graph, self._tf2.op_graph, self.all_sources())
    if found is None:
      return
    self.pairing.add(found.tf1, found.tf2)
    self.part(())
    ends = {one.regions.tf1.end for one in self.all_sources() if not one.agreement.is_rounding}
    if found.tf1 not in ends or found.ends <= ends:
      self.part([found.tf1])

  def given(
    self, pair: RegionPair, values: Mapping[TensorKey, np.ndarray]
  ) -> dict[str, np.ndarray]:
    """Returns what enters the tf1 region, by the names of the tf2 tensors that it stands for."""
    ops = self._tf2.op_graph.ops
    # A pair of a split and of what has one output: its further parts have no partner.
    both = [
      (one, two)
      for one, two in pair.entering
      if one in values and two is not None and two[1] < len(ops[two[0]].tensors)
    ]
    return {ops[n].tensors[k]: self.as_tf2(one, values[one]) for one, (n, k) in both if one}

  def sources(self) -> list[FoundSource]:
    """Returns those of `all_sources` that have no unpaired operations of one before them."""
    return without_echoes(self.all_sources())

  def pair(self, tf1: int, tf2: int, layout: Relayout | None) -> None:
    """Pairs operations that yield the same from the tf1 side's inputs, in whatever shape."""
    self.pairing.add(tf1, tf2)
    self.agreements[(tf1, 0)] = IDENTICAL
    if layout is not None:
      self._held.layouts[(tf1, 0)] = layout

  def unfiltered_sources(self) -> list[FoundSource]:
    """Returns the sources beyond rounding, also those whose difference goes no further here."""
    return [source for source in self._found if not source.agreement.is_rounding]

  def all_sources(self) -> list[FoundSource]:
    """Returns the sources, also those that have unpaired operations in common."""
    by_end = {source.regions.tf1.end: source for source in self._found}
    found = [by_end[end] for end in sorted(by_end)]
    real = [source for source in found if not source.agreement.is_rounding]
    return [one for one in real if not self.has_faded(one)] or real or found

  def has_faded(self, source: FoundSource) -> bool:
    """Returns whether all that a source leads to agrees; see `Reach`."""
    known = self._tf1.op_graph, self.behind, self.agreements
    return Reach(*known).has_faded(source.regions.tf1.end, source.agreement)

  def reproduces(self, apart: Mapping[str, float]) -> bool:
    """Returns whether this run shows any of the differences that are to be explained.

    Where all targets agree up to rounding, though they were found much further apart, the
    cause lies outside of the computation, as in the initial values; an operation that
    yields something else is then none whose difference gets anywhere.

    Args:
      apart: by the targets' names, how far apart they were found.
    """
    ends = self._tf1.op_graph.targets()
    if apart and not apart.keys() & ends.keys():
      apart = dict.fromkeys(ends, math.inf)  # what differs is not computed here
    partners = {name: self.pairing.tf2_of[ends[name]] for name in apart if name in ends}
    known = {name: other for name, other in partners.items() if other is not None}
    if not known or len(known) < len(partners):
      return True
    self._compare([(ends[name], 0) for name in known], [(other, 0) for other in known.values()])
    found = ((self.agreements.get((ends[name], 0)), apart[name]) for name in known)
    return not all(one is not None and is_gone(one, before) for one, before in found)

  def _positions(self, targets: Sequence[str]) -> set[int]:
    """Returns the tf1 operations to look at.

    Where gradients alone differ and the outputs are the same, bit by bit, those are
    the operations of the backward pass.
    """
    gradients = bool(targets) and all(name.startswith('gradient ') for name in targets)
    ops = self._tf1.op_graph.ops
    targets_at = self._tf1.op_graph.targets()
    outputs = [n for name, n in targets_at.items() if name.startswith('output ')]
    pairs = [(n, other) for n in outputs if (other := self.pairing.tf2_of[n]) is not None]
    if not gradients:
      shared = {n for n in targets_at.values() if self.pairing.tf2_of[n] is not None}
      ends = [n for n, _ in self.ends]
      return behind_updates(self._tf1.op_graph, self.behind, targets, ends, shared)
    if not pairs:
      return self.behind
    self._compare([(n, 0) for n, _ in pairs], [(other, 0) for _, other in pairs])
    if not all(self.agreements[(n, 0)].identical for n, _ in pairs):
      return self.behind
    return {n for n in self.behind if is_backward(ops[n]) or ops[n].op_type == TARGET}

  def _search(self, positions: set[int]) -> list[FoundSource]:
    """Compares portion by portion; past the first source it goes on for a while only."""
    found: list[FoundSource] = []
    self._repeats = Repeats()
    graphs = self._tf1.op_graph, self._tf2.op_graph
    pairs = [(tf1, tf2) for tf1, tf2 in self.pairing.pairs() if tf1 in positions]
    for tf1_keys, tf2_keys in portions(graphs, pairs, (self.behind, self._tf2_behind)):
      if self._judged_since > self._further:
        self.is_cut_short = True
        break
      self._compare(tf1_keys, tf2_keys)
      found += self._sources(dict.fromkeys(n for n, _ in tf1_keys))
    return found

  def growth(self, source: int) -> list[tuple[int, float]]:
    """Returns the operations on the way from a source to what differs, and how far apart."""
    after = {source}
    for position, op in enumerate(self._tf1.op_graph.ops):
      if position > source and any(producer in after for producer, _ in op.inputs):
        after.add(position)
    return [
      (position, self.output_agreement(position).relative)
      for position in sorted(after & self.behind)
      if any((position, n) in self.agreements for n in range(8))
    ]

  def output_agreement(self, tf1: int) -> Agreement:
    """Returns the agreement of an operation's worst output."""
    outputs = range(max(len(self._tf1.op_graph.ops[tf1].tensors), 1))
    known = [self.agreements[(tf1, n)] for n in outputs if (tf1, n) in self.agreements]
    return max(known, key=lambda one: one.relative, default=IDENTICAL)

  def _compare(self, tf1_keys: list[TensorKey], tf2_keys: list[TensorKey]) -> None:
    ones = self._tf1.fetch([self._tf1.op_graph.ops[n].tensors[k] for n, k in tf1_keys])
    others = self._tf2.fetch([self._tf2.op_graph.ops[n].tensors[k] for n, k in tf2_keys])
    self._updates.fetch([(n, other) for (n, _), (other, _) in zip(tf1_keys, tf2_keys, strict=True)])
    for key, other_key, one, other in zip(tf1_keys, tf2_keys, ones, others, strict=True):
      if self._updates.differ(key[0], other_key[0]):
        states = self._updates.states(key[0], other_key[0], one, other)
        if states is None:
          continue
        one, other = states
      op = self._tf1.op_graph.ops[key[0]]
      found, layout = compared(one, other, op, self._views.get(key))
      if found.identical or key[0] not in self._sizes:
        self.agreements[key] = found
        if layout is not None:
          self._held.layouts[key] = layout
      else:
        self.pairing.part(key[0])

  def _sources(self, positions: Iterable[int]) -> Iterator[FoundSource]:
    """Yields the sources among some tf1 operations, which have been compared."""
    suspects: list[RegionPair] = []
    for tf1 in positions:
      tf2 = self.pairing.tf2_of[tf1]
      if tf2 is None or self._tf1.op_graph.ops[tf1].is_leaf:
        continue
      agrees = self.output_agreement(tf1).identical
      if not agrees and not self._repeats.has(self._tf1.op_graph.ops[tf1].name):
        suspects.append(region_pair(self.pairing, tf1, tf2))
    for start in range(0, len(suspects), _PARTS):
      if self._judged_since > self._further:
        self.is_cut_short = True
        return
      part = suspects[start : start + _PARTS]
      for source in self._judged(part):
        self._judged_since += not source.agreement.is_rounding
        yield source
      self._judged_since += len(part) if self._judged_since else 0

  def _judged(self, suspects: list[RegionPair]) -> Iterator[FoundSource]:
    """Yields the sources among some operations whose outputs differ."""
    wanted: dict[TensorKey, None] = {}
    for pair in suspects:
      for one, _ in pair.entering:
        if one is not None and can_fetch(self._tf1.op_graph, one):
          wanted[one] = None
      for key in self._outputs(pair):
        wanted[key] = None
    ops = self._tf1.op_graph.ops
    keys = list(wanted)
    values = dict(zip(keys, self._tf1.fetch([ops[n].tensors[k] for n, k in keys]), strict=True))
    alone = [pair for pair in suspects if not self._inputs_agree(pair)]
    answers = dict(
      zip(
        [pair.tf1.end for pair in alone],
        self._tf2.recompute([self._request(pair, values) for pair in alone]),
        strict=True,
      )
    )
    plain = [pair for pair in suspects if pair.tf1.end not in answers]
    fetched = iter(self._tf2.fetch([name for pair in plain for name in self._tf2_outputs(pair)]))
    for pair in suspects:
      keys = self._outputs(pair)
      if pair.tf1.end not in answers:
        others = [next(fetched) for _ in keys]
      else:
        answer = answers[pair.tf1.end]
        if answer is None:  # not computable from these inputs: they have another shape
          self.unjudged.append(pair)
          continue
        others = answer
      ones = [values[key] for key in keys]
      numbers: list[int | None] = [number for _, number in keys]
      if self._updates.differ(pair.tf1.end, pair.tf2.end):
        states = self._updates.states(pair.tf1.end, pair.tf2.end, ones[0], others[0])
        if states is None:
          continue
        ones, others, numbers = [states[0]], [states[1]], [None]
      op = ops[pair.tf1.end]
      if op.op_type != TARGET and self._held.is_in_own_order(pair.tf2.end, ones, others):
        self._in_own_order.add(pair.tf1.end)
        continue
      is_alone = pair.tf1.end in answers
      source = found_source(pair, ones, others, numbers, is_alone, op, self._views)
      if source is not None and not self._only_alone(source):
        source = self._settled(self._held.signed(source), values)
        origins = [] if source.agreement.is_rounding else self._held.origins(source)
        yield from origins or [source]

  def _only_alone(self, source: FoundSource) -> bool:
    """Returns whether an operation yields the same after all, but for the inputs of tf1.

    One of these is then no counterpart of what it is given to.
    """
    if not source.alone or source.agreement.is_rounding:
      return False
    found = self.output_agreement(source.regions.tf1.end)
    return found.is_rounding and not found.is_doubtful

  def _settled(self, source: FoundSource, values: Mapping[TensorKey, np.ndarray]) -> FoundSource:
    """Returns a source judged element by element, where the greatest may hide the others."""
    is_in_doubt = source.agreement.is_rounding and source.agreement.is_doubtful
    if not is_in_doubt or self._settled_so_far >= _MOST_SETTLED:
      return source
    self._settled_so_far += 1
    ops = self._tf1.op_graph.ops
    known = {one for one, _ in source.regions.entering if one in values}
    given = {ops[n].tensors[k]: values[n, k] for n, k in filter(None, known)}
    _, others = self._request(source.regions, values)
    return settled(source, ((self._tf1, given), (self._tf2, others)))

  def _outputs(self, pair: RegionPair) -> list[TensorKey]:
    numbers = range(len(self._tf1.op_graph.ops[pair.tf1.end].tensors))
    return [(pair.tf1.end, n) for n in numbers if (pair.tf1.end, n) in self.agreements]

  def _tf2_outputs(self, pair: RegionPair) -> list[str]:
    tensors = self._tf2.op_graph.ops[pair.tf2.end].tensors
    return [tensors[number] for _, number in self._outputs(pair)]

  def _inputs_agree(self, pair: RegionPair) -> bool:
    for one, other in pair.entering:
      if one is None or other is None:
        continue
      if one in self.agreements and not self.agreements[one].identical:
        return False
      # A list, say, is as good as what else its maker yields.
      if not can_fetch(self._tf1.op_graph, one) and not self.output_agreement(one[0]).identical:
        return False
    return True

  def _request(
    self, pair: RegionPair, values: Mapping[TensorKey, np.ndarray]
  ) -> tuple[list[str], dict[str, np.ndarray]]:
    return self._tf2_outputs(pair), self.given(pair, values)
