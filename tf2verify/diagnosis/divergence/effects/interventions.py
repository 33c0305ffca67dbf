"""Which sources count: TF1's value put there mends what reads it.

Two spellings of a computation have operations in pairs that are no counterparts: the
product of another factor, a tensor that is negated on the way, one of the same number in
the order of creation. They yield something else from the same inputs, and nothing is wrong
with them. So the port's next operations run twice, from TF1's inputs: as they are, and
with the value that TF1 has at the source. A source is fixed by it. Where nothing is to be
fixed, or the value only does harm, the pair is none.
"""

import math
from collections.abc import Iterable

import numpy as np

from tf2verify.diagnosis.divergence.effects.idle_sources import distance, idle_sources
from tf2verify.diagnosis.divergence.first_divergence import Divergence
from tf2verify.diagnosis.divergence.tensors.outputs import is_opaque
from tf2verify.diagnosis.divergence.tensors.regions import Region, RegionPair, region_pair
from tf2verify.diagnosis.divergence.tensors.sources import FoundSource, InspectableRun
from tf2verify.records.op_graph import TARGET, OpGraph, TensorKey
from tf2verify.relation.operations.op_pairs import family

# Where this share of the distance, or less, is there without TF1's value, it does harm.
_HARM = 0.95
# Of the next operations so many are run.
_MOST_READERS = 8
# Pairs that turn out to be none are parted, and others may show behind them.
_ROUNDS = 4
_ROUNDS_IN_LOOPS = 10
_MOST_TRIED = 32


def arriving_sources(
  divergence: Divergence, tf1: InspectableRun, tf2: InspectableRun
) -> list[FoundSource]:
  """Returns the sources whose difference arrives at what reads them, in order of execution.

  One whose readers cannot be run from TF1's values is kept.

  Args:
    divergence: the search; pairs that turn out to be none are parted in it.
    tf1: the tf1 side's run.
    tf2: the tf2 side's.
  """
  found = _arriving(divergence, tf1, tf2)
  for _ in range(_ROUNDS_IN_LOOPS):
    idle = idle_sources(divergence, tf1, tf2)
    if not idle:
      break
    divergence.part(idle)
    found = divergence.sources()
  return found


def _arriving(
  divergence: Divergence, tf1: InspectableRun, tf2: InspectableRun
) -> list[FoundSource]:
  """Returns the sources that what reads them does not refute."""
  for _ in range(_ROUNDS):
    before = divergence.sources()
    interventions = _Interventions(divergence, tf1, tf2)
    refuted = [pair for pair in interventions.doubted[:_MOST_TRIED] if interventions.refute(pair)]
    if not refuted:
      return before
    ends = [pair.tf1.end for pair in refuted]
    divergence.part(ends)
    found = divergence.sources()
    kept = [source for source in before if source.regions.tf1.end not in ends]
    if kept and all(source.agreement.is_rounding for source in found):
      return kept
  return divergence.sources()


class _Interventions:
  """Runs what reads a source with TF1's value there, and without.

  What is refuted is parted at once, so that the operations behind it are judged without it.
  """

  def __init__(self, divergence: Divergence, tf1: InspectableRun, tf2: InspectableRun) -> None:
    self._divergence = divergence
    self._pairing = divergence.pairing
    self._tf1 = tf1
    self._tf2 = tf2
    self._consumers = tf1.op_graph.consumers()
    sources = [s for s in divergence.all_sources() if not s.agreement.is_rounding]
    self._sources = {source.regions.tf1.end: source for source in sources}
    doubted = [source.regions for source in sources if not self._is_plain(source)]
    doubted += [pair for pair in divergence.unjudged if pair.tf1.end not in self._sources]
    # What reads those is wrong as well, and tells nothing of them.
    doubted = [pair for pair in doubted if pair.tf1.end not in divergence.between]
    self.doubted = sorted(doubted, key=lambda pair: pair.tf1.end)
    self._doubted = {pair.tf1.end for pair in doubted}

  def refute(self, doubted: RegionPair) -> bool:
    """Parts a pair where it is none, and returns whether."""
    end, other = doubted.tf1.end, doubted.tf2.end
    readers, on_the_way = self._readers(end)
    parted = [(n, self._pairing.tf2_of[n]) for n in (end, *on_the_way)]
    for n, _ in parted:
      self._pairing.part(n)
    is_refuted = self._is_harmless(doubted, readers)
    for n, partner in parted:
      if partner is not None and not (is_refuted and n == end):
        self._pairing.add(n, partner)
    assert is_refuted or self._pairing.tf2_of[end] == other
    return is_refuted

  def _is_plain(self, source: FoundSource) -> bool:
    """Returns whether a source is one operation of one kind that reads the same on both sides."""
    regions = source.regions
    op, other = self._tf1.op_graph.ops[regions.tf1.end], self._tf2.op_graph.ops[regions.tf2.end]
    if op.op_type == TARGET:
      return True
    graphs = self._tf1.op_graph, self._tf2.op_graph
    both = zip(graphs, (regions.tf1, regions.tf2), strict=True)
    is_bare = not regions.is_rewired and not any(_computes(*one) for one in both)
    return is_bare and family(op.op_type) == family(other.op_type)

  def _readers(self, end: int) -> tuple[list[int], list[int]]:
    """Returns the next operations that are not in doubt, and those in doubt up to there."""
    readers: dict[int, None] = {}
    on_the_way: list[int] = []
    pending, seen = [end], {end}
    while pending:
      position = pending.pop(0)
      for reader, _ in self._consumers[position]:
        if reader in seen or reader not in self._divergence.behind:
          continue
        seen.add(reader)
        if self._pairing.tf2_of[reader] is None:
          pending.append(reader)
        elif reader in self._doubted:
          on_the_way.append(reader)
          pending.append(reader)
        else:
          readers[reader] = None
    return list(readers)[:_MOST_READERS], on_the_way

  def _is_harmless(self, doubted: RegionPair, readers: Iterable[int]) -> bool:
    """Returns whether what reads a pair is nearer to tf1 without the value that tf1 has there."""
    mend = self._mend(doubted)
    if not mend:
      return False
    wanted: list[TensorKey] = []
    requests: list[tuple[list[str], dict[str, np.ndarray]]] = []
    pairs = [pair for reader in readers if (pair := self._reading(doubted, reader)) is not None]
    values = self._values(pairs)
    for pair in pairs:
      keys = self._outputs(pair)
      wanted += keys
      names = [self._tf2.op_graph.ops[pair.tf2.end].tensors[k] for _, k in keys]
      given = self._divergence.given(pair, values)
      requests += [(names, given), (names, {**given, **mend})]
    answers = self._tf2.recompute(requests)
    right = [values[one] for one in wanted]
    without, with_it = distance(right, answers[::2]), distance(right, answers[1::2])
    if without is None or with_it is None or not math.isfinite(without):
      return False
    return without <= _HARM * with_it  # also where the port's operations cannot take the value

  def _mend(self, doubted: RegionPair) -> dict[str, np.ndarray]:
    """Returns what tf1 has at a pair, by the name of the port's tensor; nothing if unknown."""
    end = doubted.tf1.end
    op, other = self._tf1.op_graph.ops[end], self._tf2.op_graph.ops[doubted.tf2.end]
    source = self._sources.get(end)
    if source is None:
      if not op.tensors or is_opaque(op.outputs[0][0]):
        return {}
      (value,) = self._tf1.fetch(op.tensors[:1])
      return {other.tensors[0]: self._divergence.as_tf2((end, 0), value)}
    if source.output is None:
      return {}
    held = source.tf1 if source.layout is None else source.layout.to_tf2(source.tf1)
    return {other.tensors[source.output]: held}

  def _reading(self, doubted: RegionPair, reader: int) -> RegionPair | None:
    """Returns the regions of a reader; None where it does not read a pair on both sides."""
    partner = self._pairing.tf2_of[reader]
    pair = None if partner is None else region_pair(self._pairing, reader, partner)
    if pair is None or doubted.tf2.end not in pair.tf2.inner or not self._outputs(pair):
      return None
    return pair

  def _values(self, pairs: Iterable[RegionPair]) -> dict[TensorKey, np.ndarray]:
    """Returns what TF1 has where regions begin and end."""
    ops = self._tf1.op_graph.ops
    keys: dict[TensorKey, None] = {}
    for pair in pairs:
      keys.update(dict.fromkeys(self._outputs(pair)))
      keys.update(dict.fromkeys(one for one, _ in pair.entering if one is not None))
    known = [(n, k) for n, k in keys if not is_opaque(ops[n].outputs[k][0])]
    return dict(zip(known, self._tf1.fetch([ops[n].tensors[k] for n, k in known]), strict=True))

  def _outputs(self, pair: RegionPair) -> list[TensorKey]:
    end, partner = pair.tf1.end, pair.tf2.end
    op, other = self._tf1.op_graph.ops[end], self._tf2.op_graph.ops[partner]
    if op.op_type == TARGET and op.attributes:
      return []  # what an update writes: the same state by another way
    numbers = range(min(len(op.tensors), len(other.tensors)))
    return [(end, n) for n in numbers if (end, n) in self._divergence.agreements]


def _computes(graph: OpGraph, region: Region) -> bool:
  """Returns whether operations before the end of a region make anything of what enters it."""
  entering = set(region.frontier)
  return any(not entering.isdisjoint(graph.ops[n].inputs) for n in region.inner)
