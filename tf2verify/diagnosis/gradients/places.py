"""Where forward passes that yield the same may let gradients pass differently.

Two spellings of one computation differ at many places, and a mistake that the gradient alone shows
is one of them: a `stop_gradient`, another function with the same values. Each place is an
operation that yields the same on both sides, with what leads to it from tensors that agree as well.
"""

import dataclasses
import enum
from collections import Counter
from collections.abc import Collection, Iterator, Sequence

import numpy as np

from tf2verify.diagnosis.divergence.tensors.outputs import (
  comparable_outputs,
  output_bytes,
  read_outputs,
)
from tf2verify.diagnosis.divergence.tensors.regions import Region, RegionPair, region_pair
from tf2verify.diagnosis.divergence.tensors.sources import FoundSource
from tf2verify.diagnosis.divergence.tensors.value_pairs import pair_by_value
from tf2verify.diagnosis.evidence.failed_stage import SourceEvidence
from tf2verify.diagnosis.gradients.marks import Edge, Variables, marked, without
from tf2verify.diagnosis.patterns.graph_difference import GraphComparison
from tf2verify.diagnosis.patterns.operations.gradient_paths import gradient_difference, marks_of
from tf2verify.diagnosis.places.bench import LookedAt
from tf2verify.diagnosis.places.looking import Place
from tf2verify.diagnosis.places.source_records import source_record
from tf2verify.numerics.agreement import IDENTICAL, agreement
from tf2verify.records.diagnosis import GraphDifference
from tf2verify.records.op_graph import (
  CONSTANT,
  TARGET,
  NodeChange,
  OpGraph,
  OpRecord,
  TensorKey,
)
from tf2verify.relation.operations.op_pairs import Pairing, family
from tf2verify.sides.graphs.edits.gradient_repairs import (
  GradientTransplants,
)
from tf2verify.sides.graphs.edits.repairs import Repair
from tf2verify.sides.graphs.edits.wiring import CannotRepair
from tf2verify.sides.graphs.graph_defs.rewiring import OtherInput

_OUTPUT = 'output '
_CUSTOM = 'custom gradient'
# Values that agree so far are taken for the same: the stages before have passed.
_CLOSE = 1e-4
# Tensors are fetched in portions of about this size, to bound memory.
_PORTION_BYTES = 96 * 2**20


class Suspicion(enum.IntEnum):
  """How a place differs, the most telling first."""

  PATH = 0  # a gradient is stopped, or replaced, on one side, and only that is edited
  REGION = 1  # the same, and other operations yield the same: all of it is edited
  UNSEEN = 2  # both sides have a gradient of their own there, which no graph shows
  OPERATIONS = 3  # other operations yield the same


@dataclasses.dataclass(frozen=True, eq=False)
class GradientPlace:
  """A place, with the edit that makes the port's what tf1 has there."""

  place: Place  # for reports
  repair: Repair  # the edit
  suspicion: Suspicion  # how it differs
  passing: int  # how many gradients that agree come from there
  failing: int  # how many that differ


def gradient_places(looked: LookedAt, failing: Collection[str]) -> list[GradientPlace]:
  """Returns the places, the most suspicious first.

  Args:
    looked: the forward passes of both sides.
    failing: names of the variables whose gradients differ.
  """
  found = list(_ForwardPasses(looked, failing).places())
  return sorted(found, key=lambda one: (one.suspicion, one.passing, -one.failing))


class _ForwardPasses:
  def __init__(self, looked: LookedAt, failing: Collection[str]) -> None:
    self._tf1, self._tf2, self._line_of = looked.tf1, looked.tf2, looked.line_of
    self._graphs = looked.tf1.op_graph, looked.tf2.op_graph
    self._behind, self._tf2_behind = (g.ancestors(_outputs(g)) for g in self._graphs)
    self._pairing = Pairing(*self._graphs)
    known = self._pairing, self._behind, self._tf2_behind
    pair_by_value(self._tf1, self._tf2, *known)
    self._given = self._agreeing()
    self._comparison = GraphComparison(self._pairing)
    self._transplants = GradientTransplants(looked.tf1.nodes(), *self._graphs, self._given)
    self._variables = Variables(self._graphs)
    self._failing = self._variables.bits(failing)
    # What stops or replaces a gradient of the port where tf1 has the same.
    self._right: set[str] = set()

  def places(self) -> Iterator[GradientPlace]:
    """Yields the places from which a gradient that differs comes."""
    for pair in self._pairs():
      _, others = self._marked(pair)
      _, wrong = self._paths(pair)
      right = [edge.nodes for edge in others if edge not in wrong]
      self._right |= {nodes[0] for nodes in right if len(nodes) == 1}
    for pair in self._pairs():
      one, other = self._variables.behind
      variables = one[pair.tf1.end] | other[pair.tf2.end]
      if variables & self._failing:
        yield from self._at(pair, variables)

  def _pairs(self) -> Iterator[RegionPair]:
    for tf1, tf2 in self._pairing.pairs():
      op = self._graphs[0].ops[tf1]
      is_known = tf1 in self._behind and tf2 in self._tf2_behind
      if not is_known or op.is_leaf or not _has_gradient(op):
        continue
      yield region_pair(self._pairing, tf1, tf2)

  def _at(self, pair: RegionPair, variables: int) -> Iterator[GradientPlace]:
    """Yields the edits of a place, the least first."""
    ones, others = self._paths(pair)
    paths = tuple(
      [gradient_difference(*edge.named, edge.marks, ()) for edge in ones]
      + [gradient_difference(*edge.named, (), edge.marks) for edge in others]
    )
    nodes = {('tf1', name) for edge in ones for name in edge.nodes}
    nodes |= {('tf2', name) for edge in others for name in edge.nodes}
    operations = self._comparison.at(pair)
    alone = self._path_repair(pair, ones, others) if paths else None
    if alone is not None:
      yield self._judged(pair, paths, alone, Suspicion.PATH, variables, nodes)
      if not operations:
        return
    differences, suspicion = (*paths, *operations), Suspicion.OPERATIONS
    if paths:
      suspicion = Suspicion.REGION
    elif not differences:
      differences, suspicion = self._unseen(pair), Suspicion.UNSEEN
    changes = tuple(change for _, change in self._comparison.changes(differences))
    try:
      if differences and len(changes) == len(differences):
        repair = Repair(changes=changes)
      elif differences:
        moved = self._transplants.at(pair.tf1.inner, pair.tf1.end, pair.tf2.end)
        repair = Repair(transplants=(moved,))
      else:
        return
    except CannotRepair:
      return
    yield self._judged(pair, differences, repair, suspicion, variables, nodes)

  def _judged(
    self,
    pair: RegionPair,
    differences: tuple[GraphDifference, ...],
    repair: Repair,
    suspicion: Suspicion,
    variables: int,
    nodes: set[tuple[str, str]],
  ) -> GradientPlace:
    failing = (variables & self._failing).bit_count()
    passing = variables.bit_count() - failing
    place = self._shown(pair, differences, repair.changes, nodes)
    return GradientPlace(place, repair, suspicion, passing, failing)

  def _paths(self, pair: RegionPair) -> tuple[list[Edge], list[Edge]]:
    """Returns where a gradient is stopped or replaced on one side of a place alone."""
    ones, others = self._marked(pair)
    both = Counter(edge.key for edge in ones) & Counter(edge.key for edge in others)
    return list(without(ones, both)), list(without(others, both))

  def _marked(self, pair: RegionPair) -> tuple[list[Edge], list[Edge]]:
    name = self._graphs[0].ops[pair.tf1.end].shown_name
    one, other = self._variables.behind
    return (
      [e for e in marked(self._tf1, pair.tf1, name, self._given.get) if one[e.producer]],
      [e for e in marked(self._tf2, pair.tf2, name, lambda key: key) if other[e.producer]],
    )

  def _path_repair(
    self, pair: RegionPair, ones: Sequence[Edge], others: Sequence[Edge]
  ) -> Repair | None:
    """Returns what stops the gradient where tf1 does, and only there; None if that is not known."""
    passing = tuple(name for edge in others for name in edge.nodes)
    if self._right & set(passing):
      return None  # it stands before other operations as well, rightly
    inputs: dict[tuple[str, int], OtherInput] = {}
    try:
      for edge in ones:
        slots = self._reads(pair, edge, inputs)
        if not slots:
          return None
        passed = self._transplants.passed(edge.reader, edge.slot)
        inputs.update({slot: OtherInput(*slot, *passed) for slot in slots})
    except CannotRepair:
      return None
    return Repair(passing=passing, inputs=tuple(inputs.values()))

  def _reads(
    self, pair: RegionPair, edge: Edge, taken: Collection[tuple[str, int]]
  ) -> list[tuple[str, int]]:
    """Returns where the port reads what an operation of tf1 reads, in an operation of its type.

    The last one is that on both sides, of whatever type, and may read it several times:
    a square is also a product.
    """
    ops, found = self._graphs[1].ops, []
    reader = self._graphs[0].ops[edge.reader]
    for position in (*pair.tf2.inner, pair.tf2.end):
      op = ops[position]
      is_end = position == pair.tf2.end and edge.reader == pair.tf1.end
      is_same = family(op.op_type) == family(reader.op_type)
      if edge.entering is None or not (is_same or is_end):
        continue
      name = op.tensors[0].rpartition(':')[0] if op.op_type == TARGET else op.name
      slots = [slot for slot, key in enumerate(op.inputs) if key == edge.entering]
      free = [slot for slot in slots if (name, slot) not in taken]
      if is_same and free:
        return [(name, edge.slot if edge.slot in free else free[0])]
      found += [(name, slot) for slot in free if not is_same]
    return found

  def _unseen(self, pair: RegionPair) -> tuple[GraphDifference, ...]:
    ones, _ = self._marked(pair)
    return tuple(
      gradient_difference(*edge.named, (_CUSTOM,), (_CUSTOM,))
      for edge in ones
      if _CUSTOM in edge.marks
    )

  def _shown(
    self,
    pair: RegionPair,
    differences: tuple[GraphDifference, ...],
    settings: tuple[NodeChange, ...],
    nodes: set[tuple[str, str]],
  ) -> Place:
    nothing = np.zeros(0, np.float32)
    source = FoundSource(pair, IDENTICAL, False, nothing, nothing)
    record = dataclasses.replace(
      source_record(source, *self._graphs, differences),
      tf1_path=_path(self._graphs[0], pair.tf1),
      tf2_path=_path(self._graphs[1], pair.tf2),
      tf1_output=None,
      tf2_output=None,
    )
    lines = [
      line for side, name in sorted(nodes) if side == 'tf2' and (line := self._line_of(name))
    ]
    if lines:  # where a gradient is stopped, rather than where that is read
      reader = () if record.tf2_source in (None, lines[0]) else (record.tf2_source,)
      more = tuple(line for line in (*reader, *record.tf2_lines) if line is not None)
      record = dataclasses.replace(record, tf2_source=lines[0], tf2_lines=more)
    unpaired = nodes | {
      (graph.side, graph.ops[n].name)
      for graph, region in zip(self._graphs, (pair.tf1, pair.tf2), strict=True)
      for n in region.inner
    }
    evidence = SourceEvidence(record, nothing, nothing)
    return Place(source, evidence, settings, frozenset(unpaired))

  def _agreeing(self) -> dict[TensorKey, TensorKey]:
    """Returns tensors of tf1 with those of the port that hold the same; parts other pairs."""
    given: dict[TensorKey, TensorKey] = {}
    read = read_outputs(self._graphs[0], self._behind)
    pending: list[tuple[TensorKey, TensorKey]] = []
    size = 0
    for tf1, tf2 in list(self._pairing.pairs()):
      op, other = self._graphs[0].ops[tf1], self._graphs[1].ops[tf2]
      if tf1 not in self._behind or op.op_type in (CONSTANT, TARGET):
        continue
      if op.is_leaf:
        given[tf1, 0] = tf2, 0
        continue
      for number in comparable_outputs(op, other):
        if (tf1, number) in read:
          pending.append(((tf1, number), (tf2, number)))
          size += output_bytes(op.outputs[number])
      if size > _PORTION_BYTES:
        given.update(self._same(pending))
        pending, size = [], 0
    given.update(self._same(pending))
    return given

  def _same(
    self, keys: Sequence[tuple[TensorKey, TensorKey]]
  ) -> Iterator[tuple[TensorKey, TensorKey]]:
    ones = self._tf1.fetch([self._graphs[0].ops[n].tensors[k] for (n, k), _ in keys])
    others = self._tf2.fetch([self._graphs[1].ops[n].tensors[k] for _, (n, k) in keys])
    for (one, other), tf1, tf2 in zip(keys, ones, others, strict=True):
      found = agreement(tf1, tf2)
      if found.identical or found.relative <= _CLOSE:
        yield one, other
      else:
        self._pairing.part(one[0])


def _has_gradient(op: OpRecord) -> bool:
  return bool(op.outputs) and op.outputs[0][0].startswith(('float', 'bfloat', 'complex'))


def _outputs(graph: OpGraph) -> list[int]:
  return [n for name, n in graph.targets().items() if name.startswith(_OUTPUT)]


def _path(graph: OpGraph, region: Region) -> tuple[str, ...]:
  found: list[str] = []
  for position in (*region.inner, region.end):
    op = graph.ops[position]
    found += [mark for through in op.through for mark in marks_of(through)]
    found.append(op.op_type)
  return tuple(found)
