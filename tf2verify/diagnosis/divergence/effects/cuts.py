"""Where a mistake ends in two spellings of which hardly any operations go together.

After a mistake no value of one side is that of the other, and where the sides are written
differently no structure pairs them either: all that is known is the place before the mistake and
the end of the computation. In between, a quantity of tf1 is looked for that, put in the place of
one of the port, makes what the port computes from it that of tf1. There both sides go together
again, and what is wrong lies before it.
"""

import dataclasses
import time
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from tf2verify.diagnosis.divergence.effects.results import Results
from tf2verify.diagnosis.divergence.first_divergence import Divergence
from tf2verify.diagnosis.divergence.tensors.following import after, with_variables
from tf2verify.diagnosis.divergence.tensors.made_of import made_of, share
from tf2verify.diagnosis.divergence.tensors.marked_arrays import Marked, Quantities
from tf2verify.diagnosis.divergence.tensors.outputs import is_opaque, output_bytes, size_arithmetic
from tf2verify.diagnosis.divergence.tensors.regions import RegionPair
from tf2verify.diagnosis.divergence.tensors.sources import FoundSource, InspectableRun
from tf2verify.diagnosis.divergence.tensors.value_pairs import pair_alike
from tf2verify.diagnosis.divergence.tensors.written_rounds import pair_in_written_rounds
from tf2verify.numerics.relayout import (
  Relayout,
  alike_as_held,
  is_constant,
  relayout,
)
from tf2verify.records.op_graph import OpGraph, TensorKey
from tf2verify.relation.operations.op_pairs import family, is_backward

# Regions with fewer unpaired operations are short enough to read; and with hardly any on one side.
_LONG, _SHORT = 4, 1
_NUMBERS = ('float', 'bfloat', 'int')
# Runs of the port for one region.
_MOST_RUNS = 640
# Which those of all regions may take, in the first search and in those that go on from it.
_SECONDS = 12.0
# Quantities of tf1 tried in one place of the port.
_TRIED = 5
# Long regions that are cut short, one after the other.
_MOST_CUTS = 32
_MOST_BYTES = 64 * 2**20
# Share of the quantities alike from there on that tells a cut; of those that a variable enters.
_MOST_ALIKE = 0.5
# So many are enough, where more is wrong further on.
_MANY = 6


@dataclasses.dataclass(eq=False)
class TimeForCuts:
  """How long searches that go on from one another may still look for cuts, in seconds."""

  left: float = dataclasses.field(default_factory=lambda: _SECONDS)


@dataclasses.dataclass(frozen=True, eq=False)
class Cut:
  """A quantity of both sides that differs, from which on they go together."""

  tf1: int  # the operation's position
  tf2: int
  before: frozenset[int]  # operations of the region in tf1 that it is computed from
  # What comes after it in tf1, by position, and in the port from the quantity of tf1.
  tf1_values: Mapping[int, np.ndarray]
  tf2_values: Mapping[int, np.ndarray]


def pair_cuts(
  divergence: Divergence, tf1: InspectableRun, tf2: InspectableRun, known: TimeForCuts
) -> bool:
  """Pairs quantities inside of long regions from which on the sides go together.

  Args:
    divergence: the search; what is found becomes a pair, and it looks again.
    tf1: the tf1 side's run.
    tf2: the port's.
    known: how long it may take; what it takes is taken away.

  Returns:
    Whether any was found.
  """
  start = time.perf_counter()
  try:
    return _pair_cuts(divergence, tf1, tf2, start + known.left)
  finally:
    known.left -= time.perf_counter() - start


def _pair_cuts(
  divergence: Divergence, tf1: InspectableRun, tf2: InspectableRun, until: float
) -> bool:
  ops = tf1.op_graph.ops
  results = Results(divergence, tf1, tf2)
  looked_into: set[RegionPair] = set()

  def cut_of(source: FoundSource) -> Cut | None:
    if source.regions in looked_into or time.perf_counter() > until:
      return None
    looked_into.add(source.regions)
    entering = dict.fromkeys(one for one, _ in source.regions.entering if one is not None)
    keys = [(n, k) for n, k in entering if not is_opaque(ops[n].outputs[k][0])]
    fetched = tf1.fetch([ops[n].tensors[k] for n, k in keys])
    given = divergence.given(source.regions, dict(zip(keys, fetched, strict=True)))
    return CutSearch((tf1, tf2), source, given, until, results).found()

  layouts: dict[TensorKey, Relayout] = {}
  tried: set[int] = set()
  for number in range(_MOST_CUTS):
    cut = next(filter(None, map(cut_of, divergence.all_sources())), None)
    if cut is None:
      return number > 0
    before = divergence.pairing.partners()
    known = divergence.pairing.tf1_of[cut.tf2]
    # What they were paired with before was not found by numbers.
    divergence.pairing.part(cut.tf1, *(() if known is None else (known,)))
    divergence.pairing.add(cut.tf1, cut.tf2)
    pair_in_written_rounds(divergence.pairing, [(cut.tf1, cut.tf2)])
    for one, other in pair_alike(divergence.pairing, cut.tf1_values, cut.tf2_values):
      layout = relayout(cut.tf1_values[one], cut.tf2_values[other])
      if layout is not None:
        layouts[one, 0] = layout
    divergence.pairing.complete()
    # What has the same place before it was tried, and is not a quantity of both sides.
    tried |= cut.before
    divergence.part(tried, layouts)
    if all(source.regions.tf1.end != cut.tf1 for source in divergence.all_sources()):
      # What is wrong does not end there after all.
      divergence.pairing.restore(before)
      divergence.part((), layouts)
      tried -= cut.before
  return True


class CutSearch:
  """Looks for the cut in the regions of a source."""

  def __init__(
    self,
    runs: tuple[InspectableRun, InspectableRun],
    source: FoundSource,
    given: Mapping[str, np.ndarray],
    until: float,
    results: Results,
  ) -> None:
    """Takes a source.

    Args:
      runs: the tf1 side's and the port's.
      source: whose regions are looked into.
      given: what enters them, of tf1, by the port's tensors.
      until: when no further run is made, in seconds of `time.perf_counter`.
      results: what is compared in the end.
    """
    self._results = results
    self._until = until
    self._tf1, self._tf2 = runs
    self._pair: RegionPair = source.regions
    self._source = source
    self._given = given
    self._runs_left = _MOST_RUNS
    self._marks: dict[int, Marked] = {}
    # By the position of an operation in the regions: of which tensors that enter it is computed.
    both = [(one, two) for one, two in self._pair.entering if one is not None and two is not None]
    self._entering = (
      made_of(self._tf1.op_graph, self._pair.tf1.inner, [one for one, _ in both]),
      made_of(self._tf2.op_graph, self._pair.tf2.inner, [two for _, two in both]),
    )

  def found(self) -> Cut | None:
    """Returns the first cut in the order of the port; None without any."""
    shorter, longer = sorted((len(self._pair.tf1.inner), len(self._pair.tf2.inner)))
    if shorter < _SHORT or longer < _LONG:
      return None
    ones = telling(self._tf1.op_graph, self._pair.tf1.inner)
    others = telling(self._tf2.op_graph, self._pair.tf2.inner)
    if not ones or not others:
      return None
    values = dict(zip(ones, self._tf1.fetch(_names(self._tf1.op_graph, ones)), strict=True))
    before = self._port(others, {})
    if before is None:
      return None
    # What a place is computed by may be read beside the region as well: the results tell.
    for place, one in self._in_order(others, values, before):
      if not self._results.may_be_run:
        break
      # At the end of the region nothing is gained, and a place of two mistakes is one of neither.
      if _is_inside(self._tf2, self._pair, place) and self._mends(one, place, values, before):
        found = self._from(one, place, values, before)
        if found is not None:
          return self._cut(one, place, found, values, before)
    for place, one in self._in_order(others, values, before) if shorter >= _LONG else ():
      if not self._runs_left or time.perf_counter() > self._until:
        return None
      self._runs_left -= 1
      found = self._from(one, place, values, before)
      if found is not None and self._goes_together(one, place, found, values, before):
        for other in self._candidates(place, values, before):
          if self._results.may_be_run and self._mends(other, place, values, before):
            known = self._from(other, place, values, before)
            return self._cut(other, place, known or found, values, before)
        place, found = self._of_its_type(one, place, found, values, before)
        return self._cut(one, place, found, values, before)
    return None

  def _in_order(
    self,
    places: Sequence[int],
    values: Mapping[int, np.ndarray],
    before: Mapping[int, np.ndarray],
  ) -> Iterator[tuple[int, int]]:
    """Yields places of the port with what of tf1 may stand there."""
    for place in places:
      for one in self._candidates(place, values, before):
        yield place, one

  def _cut(
    self,
    one: int,
    place: int,
    found: Mapping[int, np.ndarray],
    values: Mapping[int, np.ndarray],
    before: Mapping[int, np.ndarray],
  ) -> Cut:
    later = after(self._tf1.op_graph, one, self._pair.tf1.inner)
    known = {n: values[n] for n in sorted(later) if n in values}
    theirs = {n: a for n, a in found.items() if n in before}
    earlier = self._tf1.op_graph.ancestors([one]) - {one}
    return Cut(one, place, frozenset(earlier & set(self._pair.tf1.inner)), known, theirs)

  def _of_its_type(
    self,
    one: int,
    place: int,
    found: dict[int, np.ndarray],
    values: Mapping[int, np.ndarray],
    before: Mapping[int, np.ndarray],
  ) -> tuple[int, dict[int, np.ndarray]]:
    """Returns a later place of the type of tf1's operation, if the sides go together there, too.

    What is masked once is masked again without an effect: where tf1's masked values mend the port
    before its own mask, they do so in place of what that yields.
    """
    ones, others = self._tf1.op_graph.ops, self._tf2.op_graph.ops
    kind = family(ones[one].op_type)
    if family(others[place].op_type) == kind:
      return place, found
    readers = {n for n, op in enumerate(others) if any(key[0] == place for key in op.inputs)}
    for later in sorted(readers & before.keys()):
      if family(others[later].op_type) != kind or not _fits(values[one], before[later]):
        continue
      self._runs_left -= 1
      again = self._from(one, later, values, before)
      if again is not None and self._goes_together(one, later, again, values, before):
        return later, again
    return place, found

  def _port(
    self, wanted: Sequence[int], given: Mapping[str, np.ndarray]
  ) -> dict[int, np.ndarray] | None:
    """Returns what operations of the port and the region's end yield, given further values."""
    graph = self._tf2.op_graph
    positions = [*wanted, self._pair.tf2.end]
    end = graph.ops[self._pair.tf2.end]
    names = [*_names(graph, wanted), end.tensors[self._source.output or 0]]
    found = self._tf2.refetched(names, {**self._given, **given})
    return None if found is None else dict(zip(positions, found, strict=True))

  def _candidates(
    self, place: int, values: Mapping[int, np.ndarray], before: Mapping[int, np.ndarray]
  ) -> list[int]:
    """Returns what of tf1 may stand in a place of the port, likely ones first."""
    mine = before[place]
    fitting = [n for n, value in values.items() if _fits(value, mine)]
    if not fitting:
      return []
    peers = [n for n, value in before.items() if _fits(value, mine)]
    kind = self._tf2.op_graph.ops[place].op_type
    # By the place among those of the same size, where values say nothing.
    at = peers.index(place) / len(peers)
    ranks = {n: abs(number / len(fitting) - at) for number, n in enumerate(fitting)}
    likeness = {n: _likeness(values[n], mine) for n in fitting}
    by_value = sorted(fitting, key=lambda n: -likeness[n])[: _TRIED // 2]
    mine_of = self._entering[1][place]
    rest = [n for n in fitting if n not in by_value]
    rest.sort(
      key=lambda n: (
        -share(self._entering[0][n], mine_of),
        self._tf1.op_graph.ops[n].op_type != kind,
        ranks[n],
      )
    )
    return [*by_value, *rest][:_TRIED]

  def _from(
    self,
    one: int,
    place: int,
    values: Mapping[int, np.ndarray],
    before: Mapping[int, np.ndarray],
  ) -> dict[int, np.ndarray] | None:
    """Returns what the port computes from a quantity of tf1 in a place of it."""
    tensor = self._tf2.op_graph.ops[place].tensors[0]
    later = sorted(after(self._tf2.op_graph, place, self._pair.tf2.inner))
    given = {tensor: values[one].reshape(before[place].shape)}
    return self._port([n for n in later if n in before], given)

  def _mends(
    self, one: int, place: int, values: Mapping[int, np.ndarray], before: Mapping[int, np.ndarray]
  ) -> bool:
    """Returns whether all that fails agrees with a quantity of tf1 in a place of the port."""
    known, own = self._tf1.op_graph.ops[one], self._tf2.op_graph.ops[place]
    if is_backward(known) or is_backward(own):  # which has what the forward pass has not computed
      return False
    given = {own.tensors[0]: values[one].reshape(before[place].shape)}
    return self._results.agree_with(given) or self._results.agree_in_rounds(one, place)

  def _goes_together(
    self,
    one: int,
    place: int,
    found: Mapping[int, np.ndarray],
    values: Mapping[int, np.ndarray],
    before: Mapping[int, np.ndarray],
  ) -> bool:
    """Returns whether the port computes from a quantity of tf1 what tf1 does."""
    if alike_as_held(self._source.tf1, found[self._pair.tf2.end]):
      return True
    ours = with_variables(self._tf1.op_graph, one, self._pair.tf1.inner)
    telling = [n for n in ours if n in values and not is_constant(values[n])]
    changed = (array for n, array in found.items() if not _same(before[n], array))
    theirs = Quantities([Marked.of(array) for array in changed])
    alike = [n for n in telling if theirs.have(self._marked(n, values[n]))]
    if len(alike) >= min(_MOST_ALIKE * len(telling), _MANY):
      return bool(alike)
    # Where more is wrong further on: all that reads it has to be a quantity of tf1.
    ops = self._tf2.op_graph.ops
    readers = [n for n in found if (place, 0) in ops[n].inputs]
    if not alike or not readers:
      return False
    later = after(self._tf1.op_graph, one, self._pair.tf1.inner)
    known = Quantities([self._marked(n, values[n]) for n in later if n in values])
    return all(known.have(Marked.of(found[n])) for n in readers)

  def _marked(self, tf1: int, value: np.ndarray) -> Marked:
    if tf1 not in self._marks:
      self._marks[tf1] = Marked.of(value)
    return self._marks[tf1]


def _is_inside(tf2: InspectableRun, pair: RegionPair, place: int) -> bool:
  """Returns whether more than the end of a region is computed from a place of the port."""
  return bool(after(tf2.op_graph, place, pair.tf2.inner) - {pair.tf2.end})


def _same(one: np.ndarray, other: np.ndarray) -> bool:
  return bool(np.array_equal(one, other)) or alike_as_held(one, other)


def telling(graph: OpGraph, positions: Sequence[int]) -> list[int]:
  """Returns the operations that yield numbers other than sizes, as many as memory allows."""
  sizes = size_arithmetic(graph)
  found, size = [], 0
  for n in sorted(positions):
    op = graph.ops[n]
    if n in sizes or not op.tensors or not op.outputs[0][0].startswith(_NUMBERS):
      continue
    size += output_bytes(op.outputs[0])
    if size > _MOST_BYTES:
      break
    found.append(n)
  return found


def _names(graph: OpGraph, positions: Sequence[int]) -> list[str]:
  return [graph.ops[n].tensors[0] for n in positions]


def _fits(one: np.ndarray, other: np.ndarray) -> bool:
  """Returns whether one array may stand in the place of another, in its shape or flattened."""
  if one.dtype != other.dtype or one.size != other.size or one.size < 2:
    return False
  return one.shape == other.shape or one.ndim != other.ndim


def _likeness(one: np.ndarray, other: np.ndarray) -> float:
  """Returns the magnitude of the correlation of two arrays of one size; 0 where there is none."""
  ones, others = (array.astype(np.float64).ravel() for array in (one, other))
  if not (np.isfinite(ones).all() and np.isfinite(others).all()):
    return 0.0
  ones, others = ones - ones.mean(), others - others.mean()
  size = float(np.sqrt(np.square(ones).sum() * np.square(others).sum()))
  return abs(float((ones * others).sum())) / size if size else 0.0
