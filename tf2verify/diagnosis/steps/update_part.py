"""The part of a port's step that makes updates of gradients, run again with other wiring."""

import dataclasses
import graphlib
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from tf2verify.diagnosis.divergence.tensors.outputs import is_opaque, output_bytes
from tf2verify.diagnosis.places.looking import Looking
from tf2verify.diagnosis.steps.ends import StepEnds, shared_targets, written_tensors
from tf2verify.records.op_graph import TARGET, NodeChange, TensorKey
from tf2verify.sides.graphs.edits.repairs import Repair, target_bypass

# What comes before an update.
_BEFORE = ('loss', 'gradient ', 'output ')
_OF_TAPES = 'gradient_tape/'
_UPDATE = 'update of '
# Which input of which operation is to read which tensor.
Wiring = Mapping[tuple[int, int], TensorKey]
_MOST_OPERATIONS = 4000
_MOST_BYTES = 2**27
_AT_ONCE = 24
_SECONDS = 4.0


@dataclasses.dataclass(frozen=True, eq=False)
class Rewired:
  """An edit: operations that are to read other tensors of the graph.

  Attributes:
    wiring: by operation and number of the input.
    place: position of the operation to show.
    text: what is different, as a sentence about the port.
    tf1: what tf1 has, as text.
    tf2: what the port has.
    what: the name of what is edited; '' for the operation itself.
  """

  wiring: Wiring
  place: int
  text: str
  tf1: str
  tf2: str
  what: str = ''

  def joined(self, other: 'Rewired') -> 'Rewired':
    """Returns the same with what another one rewires as well."""
    return dataclasses.replace(self, wiring={**other.wiring, **self.wiring})


class UpdatePart:
  """What the port computes of gradients, slots and rates, up to all updates.

  Attributes:
    graph: the port's.
    consumers: for every operation, who reads it.
    positions: of the operations of the part, in order.
    is_known: whether it can be run again.
  """

  def __init__(self, looking: Looking) -> None:
    """Fetches what the part reads and yields.

    Args:
      looking: the search in the port as it is.
    """
    self._run = looking.tf2
    self.graph = graph = looking.tf2.op_graph
    self.consumers = graph.consumers()
    self._targets = graph.targets()
    names = shared_targets(looking.tf1.op_graph, graph, looking.targets)
    self.positions: list[int] = []
    self.is_known = False
    if not names or any(name.startswith(_BEFORE) for name in looking.targets):
      return
    updates = [n for name, n in self._targets.items() if name.startswith(_UPDATE)]
    self._cone = graph.ancestors([*updates, *(self._targets[name] for name in names)])
    before = graph.ancestors(n for name, n in self._targets.items() if name.startswith(_BEFORE))
    found = [n for n in sorted(self._cone - before) if self._is_inner(n)]
    keys = self._keys(found)
    size = sum(output_bytes(graph.ops[n].outputs[k]) for n, k in keys)
    if not found or len(found) > _MOST_OPERATIONS or size > _MOST_BYTES:
      return
    self._ends = StepEnds(looking.tf1, looking.tf2, names)
    if not self._ends.are_known:
      return
    tensors = [graph.tensor(key) for key in keys]
    self._values = dict(zip(tensors, looking.tf2.fetch(tensors), strict=True))
    self._written = dict(zip(names, written_tensors(graph, names), strict=True))
    part = set(found)
    behind = {n: len(graph.ancestors([self._targets[n]]) & part) for n in names}
    self._first = min(names, key=lambda name: behind[name])
    self._shown = graph.ancestors([self._targets[self._first]]) & part
    self.positions, self.is_known = found, True

  def from_the_end(self, positions: Iterable[int]) -> list[int]:
    """Returns operations of which the first ones are those to show, each after its readers."""
    return sorted(positions, key=lambda n: (n not in self._shown, -n))

  def _is_inner(self, position: int) -> bool:
    op = self.graph.ops[position]
    return not (op.is_leaf or op.op_type == TARGET or op.name.startswith(_OF_TAPES))

  def _keys(self, positions: Iterable[int]) -> list[TensorKey]:
    """Returns the tensors that operations read and yield."""
    ops = self.graph.ops
    keys = [(n, k) for n in positions for k in range(len(ops[n].tensors))]
    keys += [key for n in positions for key in ops[n].inputs]
    return [key for key in dict.fromkeys(keys) if not is_opaque(ops[key[0]].outputs[key[1]][0])]

  def mending(self, edits: Sequence[Rewired]) -> Iterator[Rewired]:
    """Yields the edits with which all that differs agrees; the others are tried at one target."""
    until = time.perf_counter() + _SECONDS
    for start in range(0, len(edits), _AT_ONCE):
      some = [e for e in edits[start : start + _AT_ONCE] if self._is_possible(e.wiring)]
      if time.perf_counter() > until:
        return
      trials = [self._trial(edit.wiring, [self._first]) for edit in some]
      pairs = zip(some, self._run.recompute_trials(trials), strict=True)
      for edit, found in pairs:
        if found is not None and self._agrees(found, [self._first]) and self._mends(edit):
          yield edit

  def _mends(self, edit: Rewired) -> bool:
    (found,) = self._run.recompute_trials([self._trial(edit.wiring, self._ends.names)])
    return found is not None and self._agrees(found, self._ends.names)

  def _agrees(self, found: Sequence[np.ndarray], names: Sequence[str]) -> bool:
    return self._ends.are_near(1, found, names)

  def yielded(self, edit: Rewired) -> np.ndarray | None:
    """Returns what the operation to show yields with an edit; None where it does not run."""
    tensor = self.graph.tensor((edit.place, 0))
    trial = ([tensor], *self._trial(edit.wiring, ())[1:])
    (found,) = self._run.recompute_trials([trial])
    return None if found is None else found[0]

  def changes(self, wiring: Wiring) -> tuple[NodeChange, ...]:
    """Returns an edit as changes of the graph; targets are no operations of it."""
    by_op: dict[int, list[tuple[int, str]]] = {}
    for (n, slot), key in sorted(wiring.items()):
      if self.graph.ops[n].op_type != TARGET:
        by_op.setdefault(n, []).append((slot, self.graph.tensor(key)))
    return tuple(NodeChange(self.graph.ops[n].name, other=tuple(k)) for n, k in by_op.items())

  def repair(self, wiring: Wiring) -> Repair:
    """Returns an edit as one of the whole graph.

    Raises:
      CannotRepair: what the run yields cannot be another tensor.
    """
    ends = {n: key for (n, _), key in wiring.items() if self.graph.ops[n].op_type == TARGET}
    passed = {self.graph.ops[n].tensors[0]: (n, key) for n, key in ends.items()}
    targets = tuple(target_bypass(self.graph, n, key) for n, key in passed.values())
    return Repair(changes=self.changes(wiring), transplants=targets)

  def _affected(self, wiring: Wiring) -> set[int]:
    """Returns what yields something else with other wiring."""
    pending = [n for n, _ in wiring if n in self._cone]
    found = set(pending)
    while pending:
      for reader, slot in self.consumers[pending.pop()]:
        if reader in self._cone and reader not in found and (reader, slot) not in wiring:
          found.add(reader)
          pending.append(reader)
    return found

  def _is_possible(self, wiring: Wiring) -> bool:
    """Returns whether the first target is concerned, and nothing is computed of itself then."""
    ops = self.graph.ops
    affected = self._affected(wiring)
    if self._targets[self._first] not in affected:
      return False
    left = {
      n: {wiring.get((n, slot), key)[0] for slot, key in enumerate(ops[n].inputs)} & affected
      for n in affected
    }
    try:
      graphlib.TopologicalSorter(left).prepare()
    except graphlib.CycleError:
      return False
    return True

  def _trial(
    self, wiring: Wiring, names: Sequence[str]
  ) -> tuple[list[str], dict[str, np.ndarray], tuple[NodeChange, ...]]:
    """Returns what is wanted, the values from which that is computed, and the changes."""
    ops, affected = self.graph.ops, self._affected(wiring)
    given: dict[str, np.ndarray] = {}
    pending = sorted(affected)
    while pending:
      n = pending.pop()
      for slot, own in enumerate(ops[n].inputs):
        key = wiring.get((n, slot), own)
        tensor = self.graph.tensor(key)
        if key[0] in affected:
          continue
        if tensor in self._values:
          given[tensor] = self._values[tensor]
        else:  # a list of a loop has no value to be given: what makes it runs again as well
          affected.add(key[0])
          pending.append(key[0])
    ends = {name: wiring.get((self._targets[name], 0)) for name in names}
    wanted = [
      self._written[name] if key is None else self.graph.tensor(key) for name, key in ends.items()
    ]
    return wanted, given, self.changes(wiring)
