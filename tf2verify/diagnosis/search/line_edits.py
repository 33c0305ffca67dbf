"""Edits of one line of the port that make what fails the same as in tf1.

Where the two sides are written in different ways, an operation of the port has no partner whose
inputs could be compared, and the first divergence is only near the mistake. These edits need no
partner: whatever a line computes is computed with another setting, operation or order of operands,
and what fails is computed again from there.
"""

import dataclasses
import itertools
import math
import time
from collections.abc import Hashable, Iterator, Sequence

import numpy as np

from tf2verify.diagnosis.divergence.effects.cuts import telling
from tf2verify.diagnosis.divergence.effects.trials import explains, is_left
from tf2verify.diagnosis.divergence.tensors.marked_arrays import Marked, Quantities
from tf2verify.diagnosis.divergence.tensors.outputs import is_opaque
from tf2verify.diagnosis.edits.corrections import correction
from tf2verify.diagnosis.edits.mistakes import Mistake
from tf2verify.diagnosis.edits.other_operands import without_inputs
from tf2verify.diagnosis.gradients.stop_edits import stop_edits
from tf2verify.diagnosis.places.looking import Looking, Place
from tf2verify.diagnosis.proposals.code_lines import Line, Proposal
from tf2verify.diagnosis.search.decisions import decides_alike
from tf2verify.diagnosis.search.proposed_edits import ProposedEdits
from tf2verify.diagnosis.steps.count_edits import count_edits
from tf2verify.diagnosis.steps.loss_shares import share_edits
from tf2verify.diagnosis.steps.loss_weights import weight_edits
from tf2verify.diagnosis.steps.update_edits import update_edits
from tf2verify.numerics.agreement import Agreement, agreement
from tf2verify.numerics.relayout import is_constant
from tf2verify.records.diagnosis import GraphAspect, GraphDifference
from tf2verify.records.op_graph import NodeChange, OpRecord
from tf2verify.reference.random_ops import is_random_op
from tf2verify.sides.graphs.edits.repairs import Repair

# Targets that follow from others by differentiation.
_GRADIENTS = ('gradient ', 'loss gradient ')
_UPDATES = 'update of '
_SECONDS = 4.0
_MOST_OPERATIONS = 3000
_MOST_MENDING = 3
# In steps, which the stage judges whatever one run shows.
_MOST_JUDGED = 6
_MOST_PLACES = 4
# A run of what fails that takes longer is not made for every edit of a line at a place.
_SLOW = 0.02
_SECONDS_AT_PLACES = 3.0
# Edits with which more of tf1's quantities are there; each takes another search.
_MOST_NEARER = 2


def line_edits(looking: Looking) -> Iterator[Mistake]:
  """Yields edits of one line of the port with which what fails of one run agrees, a few at most.

  Args:
    looking: the search in the port as it is.
  """
  sources = looking.arriving()
  again = _Again(looking)
  if sources and again.only_gradients:
    yield from stop_edits(looking, looking.place(sources[0]))
  # None may arrive alone where two spellings differ by a sign at several places.
  every = looking.divergence.all_sources() if not sources else ()
  sources = sources or [known for known in every if not known.agreement.is_rounding]
  if not sources or not again.can_judge():
    return
  places = [looking.place(source) for source in sources[:_MOST_PLACES]]
  mending, judged, tried = 0, 0, set[Hashable]()
  proposed = ProposedEdits(looking, again.behind, places)
  until = time.perf_counter() + _SECONDS
  near = again.mending_places(places, proposed) if again.seconds > _SLOW else ()
  for line, proposal in itertools.chain(near, proposed.all()):
    if time.perf_counter() > until or mending == _MOST_MENDING:
      return
    if (key := _key(proposal)) in tried:
      continue
    tried.add(key)
    is_judged = proposal.is_setting and looking.is_of_step and judged < _MOST_JUDGED
    judged += is_judged
    mends = again.mends(proposal.changes)
    if mends or is_judged:
      mending += mends
      instead = proposal.instead
      if instead is not None and again.apart(instead.changes) <= again.apart(proposal.changes):
        proposal = instead
      op = _changed_op(line, proposal)
      found = [again.computed(op.tensors[:1], changes) for changes in ((), proposal.changes)]
      outputs = tuple(None if one is None else one[0] for one in found)
      yield _mistake(looking, (outputs[0], outputs[1]), places[0], line, proposal)


def nearer_edits(looking: Looking) -> Iterator[Mistake]:
  """Yields edits of lines at the first place with which it computes more of what tf1 does there.

  Of several mistakes at one place none alone makes what fails agree. With the first one corrected,
  the quantities up to the second one are those of tf1.

  Args:
    looking: the search in the port as it is.
  """
  sources = looking.arriving()
  again = _Again(looking)
  if not sources or not again.can_judge():
    return
  place = looking.place(sources[0])
  proposed = ProposedEdits(looking, again.behind, [place])
  found: list[tuple[int, Line, Proposal]] = []
  tried = set[Hashable]()
  for line, proposal, alike in again.quantities_with(place, proposed):
    if (key := _key(proposal)) not in tried:
      tried.add(key)
      found.append((alike, line, proposal))
  found.sort(key=lambda one: -one[0])
  for _, line, proposal in found[:_MOST_NEARER]:
    yield _mistake(looking, (None, None), place, line, proposal)


def _key(proposal: Proposal) -> Hashable:
  """Returns what tells an edit from others: several ways lead to one."""
  return tuple(
    (
      *(change.op, change.op_type, change.reads, change.other, repr(change.attributes)),
      *(repr(change.inserted), tuple((slot, value.tobytes()) for slot, value in change.inputs)),
    )
    for change in proposal.changes
  )


def step_edits(looking: Looking) -> Iterator[Mistake]:
  """Yields edits of a training step: of a loss's weights, of a count, or of an update's wiring."""
  sources = looking.arriving() if looking.is_of_step else []
  if not sources:
    return
  place = looking.place(sources[0])
  edits = (
    weight_edits(looking)
    if looking.is_of_gradients
    else itertools.chain(count_edits(looking), update_edits(looking), share_edits(looking))
  )
  for line, proposal in edits:
    yield _mistake(looking, (None, None), place, line, proposal)


class _Again:
  """Computes what fails again, with operations of the port changed."""

  def __init__(self, looking: Looking) -> None:
    self._looking = looking
    self._tf1, self._tf2 = looking.tf1, looking.tf2
    graph = looking.tf2.op_graph
    names = looking.tf1.op_graph.ops
    found = [
      pair for pair in looking.divergence.ends if not names[pair[0]].name.startswith(_GRADIENTS)
    ]
    # What a call writes may be written in another way; outputs say enough.
    ends = [pair for pair in found if not names[pair[0]].name.startswith(_UPDATES)] or found
    self._ends = [graph.ops[other].tensors[0] for _, other in ends]
    self._positions = [one for one, _ in ends], [other for _, other in ends]
    self._wanted_names = [looking.tf1.op_graph.ops[one].tensors[0] for one, _ in ends]
    self.behind = graph.ancestors([other for _, other in ends])
    # Of each end; the one that is computed from the least shows soonest that an edit mends nothing.
    behind_each = (graph.ancestors([other]) for _, other in ends)
    self._names_behind = [{graph.ops[n].name for n in behind} for behind in behind_each]
    self._order = sorted(range(len(ends)), key=lambda number: len(self._names_behind[number]))
    self._given: dict[str, np.ndarray] = {}  # what the port reads
    self._values: dict[str, np.ndarray] = {}  # what it computes, as it is
    self._wanted: list[np.ndarray] = []
    self._apart: list[Agreement] = []
    self._fails: list[bool] = []
    self.seconds = 0.0  # that a run of what fails takes

  @property
  def only_gradients(self) -> bool:
    """Whether all that fails follows from the port by differentiation."""
    return not self._ends and bool(self._looking.divergence.ends)

  def can_judge(self) -> bool:
    """Returns whether what fails can be computed again, as it is, from what the port reads."""
    if not self._ends or len(self.behind) > _MOST_OPERATIONS:
      return False
    graph = self._tf2.op_graph
    ops = (graph.ops[n] for n in sorted(self.behind))
    leaves = [
      op.tensors[0]
      for op in ops
      if (op.is_leaf or is_random_op(op.op_type)) and op.tensors and not is_opaque(op.outputs[0][0])
    ]
    known = [
      tensor
      for n in sorted(self.behind)
      for (dtype, _), tensor in zip(graph.ops[n].outputs, graph.ops[n].tensors, strict=False)
      if not is_opaque(dtype)
    ]
    values = self._tf2.fetch([*known, *self._ends])
    self._values = dict(zip(known, values, strict=False))
    self._given = {name: self._values[name] for name in leaves}
    self._wanted = self._tf1.fetch(self._wanted_names)
    yielded = values[len(known) :]
    self._apart = [agreement(*pair) for pair in zip(self._wanted, yielded, strict=True)]
    self._fails = [not is_left(one, one) for one in self._apart]
    start = time.perf_counter()
    again = self.computed(self._ends, ())
    self.seconds = time.perf_counter() - start
    return again is not None and all(
      one.shape == two.shape and agreement(one, two).is_rounding
      for one, two in zip(yielded, again, strict=True)
    )

  def computed(
    self, tensors: Sequence[str], changes: Sequence[NodeChange]
  ) -> list[np.ndarray] | None:
    """Returns tensors of the port with operations changed; None where it does not run so."""
    given = self._before(changes) if changes else self._given
    (found,) = self._tf2.recompute_changed(tensors, given, [changes])
    return found

  def _before(self, changes: Sequence[NodeChange]) -> dict[str, np.ndarray]:
    """Returns the values that changes do not concern, and from which the rest is computed."""
    graph = self._tf2.op_graph
    changed = {change.op for change in changes}
    after = {n for n in self.behind if graph.ops[n].name in changed}
    for n in sorted(self.behind):
      if any(producer in after for producer, _ in graph.ops[n].inputs):
        after.add(n)
    # A list of a loop, say, has no value to be given: what makes it runs again as well.
    pending = sorted(after)
    given: dict[str, np.ndarray] = {}
    while pending:
      for n, k in graph.ops[pending.pop()].inputs:
        name = graph.ops[n].tensors[k] if k < len(graph.ops[n].tensors) else ''
        if n not in after and name in self._values:
          given[name] = self._values[name]
        elif n not in after:
          after.add(n)
          pending.append(n)
    positions = {tensor: n for n, op in enumerate(graph.ops) for tensor in op.tensors}
    read = [tensor for change in changes for _, tensor in change.other]
    read += [one.tensor for change in changes for one in change.inserted if one.tensor]
    # What nothing that fails is computed from has no value here.
    known = (name for name in read if positions[name] not in after and name in self._values)
    given |= {name: self._values[name] for name in known}
    return given

  def mends(self, changes: Sequence[NodeChange]) -> bool:
    """Returns whether all that fails agrees with operations changed."""
    changed = {change.op for change in changes}
    # What is not computed from them fails as before.
    if any(changed.isdisjoint(self._names_behind[n]) and self._fails[n] for n in self._order):
      return False
    first, *others = self._order
    if not self._mends(changes, [first]) or (others and not self._mends(changes, others)):
      return False
    graph = self._tf2.op_graph
    return decides_alike(self._tf1, graph, self._positions, changes, self.computed)

  def mending_places(
    self, places: Sequence[Place], proposed: ProposedEdits
  ) -> Iterator[tuple[Line, Proposal]]:
    """Yields edits of the lines of places with which these yield what tf1 does.

    Args:
      places: where the search has found a difference.
      proposed: edits.
    """
    graph, until = self._tf2.op_graph, time.perf_counter() + _SECONDS_AT_PLACES
    for place in places:
      source = place.source
      end = graph.ops[source.regions.tf2.end]
      if source.output is None or source.regions.tf2.end not in self.behind:
        continue
      for line, proposal in proposed.at(place):
        if time.perf_counter() > until:
          return
        found = self.computed([end.tensors[source.output]], proposal.changes)
        is_alike = found is not None and found[0].shape == source.tf2.shape
        if found is not None and is_alike and explains(source, found[0]):
          yield line, proposal

  def quantities_with(
    self, place: Place, proposed: ProposedEdits
  ) -> Iterator[tuple[Line, Proposal, int]]:
    """Yields edits of the lines of a place, with how many more quantities of tf1 it has so.

    Args:
      place: where the search has found a difference.
      proposed: edits.
    """
    regions = place.source.regions
    graphs = self._tf1.op_graph, self._tf2.op_graph
    inner = telling(graphs[0], (*regions.tf1.inner, regions.tf1.end))
    names = [graphs[0].ops[n].tensors[0] for n in inner]
    wanted = [Marked.of(one) for one in self._tf1.fetch(names) if not is_constant(one)]
    own = [n for n in (*regions.tf2.inner, regions.tf2.end) if n in self.behind]
    tensors = [graphs[1].ops[n].tensors[0] for n in telling(graphs[1], own)]

    def alike(arrays: Sequence[np.ndarray]) -> int:
      have = Quantities([Marked.of(one) for one in arrays])
      return sum(map(have.have, wanted))

    before = alike([self._values[name] for name in tensors])
    until = time.perf_counter() + _SECONDS_AT_PLACES
    for line, proposal in proposed.at(place):
      if time.perf_counter() > until:
        return
      found = self.computed(tensors, proposal.changes)
      more = 0 if found is None else alike(found) - before
      if more > 0:
        yield line, proposal, more

  def apart(self, changes: Sequence[NodeChange]) -> float:
    """Returns how far apart what fails is with operations changed, relative to tf1's."""
    found = self.computed(self._ends, changes)
    if found is None:
      return math.inf
    pairs = zip(self._wanted, found, strict=True)
    return max(agreement(one, two).relative for one, two in pairs)

  def _mends(self, changes: Sequence[NodeChange], numbers: Sequence[int]) -> bool:
    found = self.computed([self._ends[number] for number in numbers], changes)
    return found is not None and all(
      self._wanted[number].shape == one.shape
      and is_left(agreement(self._wanted[number], one), self._apart[number])
      for number, one in zip(numbers, found, strict=True)
    )


def _changed_op(line: Line, proposal: Proposal) -> OpRecord:
  changed = {change.op for change in proposal.changes}
  # What is put in after a line's operation is read on other lines.
  return next((op for op in line.ops if op.name in changed), line.ops[-1])


def _mistake(
  looking: Looking,
  outputs: tuple[np.ndarray | None, np.ndarray | None],
  place: Place,
  line: Line,
  proposal: Proposal,
) -> Mistake:
  """Returns an edit as a mistake.

  Args:
    looking: the search.
    outputs: what the first operation that is changed yields, as it is and corrected.
    place: where the search has found a difference.
    line: the line.
    proposal: the edit.
  """
  op = _changed_op(line, proposal)
  known = None if proposal.like is None else looking.tf1.op_graph.ops[proposal.like]
  both = proposal.tf1, proposal.tf2
  text = proposal.text + without_inputs(looking.tf2.op_graph, proposal.changes)
  said = GraphDifference(GraphAspect.CORRECTED, op.name, op.op_type, proposal.what, *both, text)
  repair = Repair(changes=proposal.changes, transplants=proposal.transplants)
  found = correction(place, op, known, said, outputs, repair, line.graph)
  return dataclasses.replace(found, only_scales=True) if proposal.only_scales else found
