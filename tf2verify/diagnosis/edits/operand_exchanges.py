"""Two tensors that lines of the port read in place of each other.

Queries and keys, say, or two columns of the inputs. Every operation that reads them is right, and
may be written differently than in tf1, so that tf1's operations put into the port prove where the
mistake is, and tell of what is harmless. That the two are exchanged is one edit, and tried whenever
more would have to be said.
"""

import dataclasses
import itertools
import time
from collections.abc import Collection, Iterable, Iterator, Sequence

import numpy as np

from tf2verify.diagnosis.divergence.effects.trials import is_left
from tf2verify.diagnosis.divergence.tensors.outputs import is_opaque
from tf2verify.diagnosis.edits.corrections import correction, lines_at
from tf2verify.diagnosis.edits.edit_texts import READABLE
from tf2verify.diagnosis.edits.mistakes import Mistake
from tf2verify.diagnosis.patterns.operations.op_text import op_text
from tf2verify.diagnosis.patterns.operations.reads import tensor_text
from tf2verify.diagnosis.places.looking import Looking, Place
from tf2verify.diagnosis.proposals.code_lines import Line, lines_of_code
from tf2verify.numerics.agreement import agreement
from tf2verify.records.diagnosis import GraphAspect, GraphDifference
from tf2verify.records.observation import SourceLine
from tf2verify.records.op_graph import CONSTANT, INPUT, TARGET, VARIABLE, OpGraph, TensorKey
from tf2verify.relation.operations.op_pairs import is_backward
from tf2verify.sides.graphs.edits.repairs import Repair
from tf2verify.sides.graphs.graph_defs.rewiring import OtherInput

_SECONDS = 2.0
# Each takes a run of the stage.
_MOST_MENDING = 3
_MOST_PLACES = 4
_MOST_OPERATIONS = 1500
# Of one line: more tensors than these are seldom written by hand, or run again.
_MOST_TENSORS = 8
MOST_ROUNDS = 12
# A cell that Python unrolls over steps, layers and directions: all of them are one edit.
_MOST_TOGETHER = 200
_MOST_LINES = 4
_SEVERAL = 2
_MOST_PARTS = 30
_STACKS = frozenset(('ConcatV2', 'Pack'))
_SLICES = frozenset(('Slice', 'StridedSlice'))
# Targets that follow from others by differentiation.
_GRADIENTS = ('gradient ', 'loss gradient ')
# Operation and number of the input.
_Reader = tuple[int, int]


@dataclasses.dataclass(frozen=True)
class _Round:
  """Two tensors in one run of a line, with what reads each of them there."""

  tensors: tuple[TensorKey, TensorKey]
  readers: tuple[tuple[_Reader, ...], tuple[_Reader, ...]]


def operand_exchanges(
  looking: Looking, mistakes: Sequence[Mistake], passes: bool
) -> Iterator[Mistake]:
  """Yields exchanges of two tensors that lines of the port read, where they mend it; a few at most.

  Args:
    looking: the search in the port as it is.
    mistakes: what was found.
    passes: whether the stage passes with these.
  """
  if passes and all(map(says_one_thing, mistakes)):
    return
  sources = looking.arriving()
  ends = _Ends(looking)
  if not sources or not ends.positions or len(ends.behind) > _MOST_OPERATIONS:
    return
  places = [looking.place(source) for source in sources[:_MOST_PLACES]]
  until = time.perf_counter() + _SECONDS
  mending = 0
  for rounds in _exchanges(looking.tf2.op_graph, ends.behind, places):
    if time.perf_counter() > until or mending == _MOST_MENDING:
      return
    if ends.are_mended(rounds, places[0]):
      mending += 1
      yield _mistake(looking, places[0], rounds)


def says_one_thing(mistake: Mistake) -> bool:
  """Returns whether a mistake is one edit for a reader, and not two different parts left out."""
  known = (d for source in mistake.sources for d in source.differences)
  parts = {(d.tf1, d.tf2) for d in known if d.aspect in (GraphAspect.EXTRA, GraphAspect.MISSING)}
  return mistake.is_simple and len(parts) <= 1 and not mistake.is_of_shapes


def _exchanges(
  graph: OpGraph, behind: Collection[int], places: Sequence[Place]
) -> Iterator[Sequence[_Round]]:
  """Yields exchanges: those at the lines of places, then those elsewhere."""
  shown = [one for place in places for one in lines_at(place)]
  lines = lines_of_code(graph, behind)
  known = [line for line in lines if line.place in shown]
  known.sort(key=lambda line: shown.index(line.place))
  for line in known:
    yield from _at_line(graph, line)
  yield from itertools.islice(_parts(graph, behind), _MOST_PARTS)
  for line in lines:
    if line.place not in shown:
      yield from _at_line(graph, line)


def _parts(graph: OpGraph, among: Collection[int]) -> Iterator[Sequence[_Round]]:
  """Yields exchanges of two parts of one tensor that several lines take: columns of the inputs."""
  consumers = graph.consumers()
  taken: dict[TensorKey, dict[str, list[int]]] = {}
  for n in sorted(among):
    op = graph.ops[n]
    if op.op_type == 'StridedSlice' and not is_backward(op):
      taken.setdefault(op.inputs[0], {}).setdefault(op_text(graph, n), []).append(n)
  for by_text in taken.values():
    parts = [places for places in by_text.values() if len(places) >= _SEVERAL][:_MOST_TENSORS]
    for one, other in itertools.combinations(parts, 2):
      rounds = [
        _Round(((a, 0), (b, 0)), (_forward(graph, consumers[a]), _forward(graph, consumers[b])))
        for a, b in zip(one, other, strict=False)
        if graph.ops[a].outputs == graph.ops[b].outputs
      ]
      if len(rounds) == len(one) == len(other) and all(all(known.readers) for known in rounds):
        yield rounds


def _forward(graph: OpGraph, readers: Iterable[_Reader]) -> tuple[_Reader, ...]:
  ops = ((one, graph.ops[one[0]]) for one in readers)
  return tuple(one for one, op in ops if op.op_type != TARGET and not is_backward(op))


def _at_line(graph: OpGraph, line: Line) -> Iterator[Sequence[_Round]]:
  """Yields exchanges of two tensors that a line reads: each time that it runs, and once alone."""
  positions = [n for n in line.positions if not is_backward(graph.ops[n])]
  runs = runs_of(graph, positions)
  if not runs or len(runs) > _MOST_TOGETHER:
    return
  read = [read_by(graph, run) for run in runs]
  most = max(read, key=len)
  found: list[list[_Round]] = []
  for of_both in itertools.combinations([*most.values()][:_MOST_TENSORS], 2):
    # The first of some layers may read one tensor as both, which stays so.
    pairs = [(run, keys) for run, keys in zip(runs, read, strict=True) if not _one(keys, of_both)]
    made = [_round(graph, run, keys, of_both) for run, keys in pairs]
    rounds = [one for one in made if one is not None]
    if rounds and len(rounds) == len(pairs):
      found.append(rounds)
  yield from found
  if 1 < len(runs) <= MOST_ROUNDS:
    yield from ([one] for rounds in found for one in rounds)


def runs_of(graph: OpGraph, positions: Sequence[int]) -> list[Sequence[int]]:
  """Returns a line's operations, by each time that it runs: in a loop of Python, or a layer."""
  types = [graph.ops[n].op_type for n in positions]
  count = len(types)
  for length in range(1, count + 1):
    if count % length == 0 and types == types[:length] * (count // length):
      return [positions[start : start + length] for start in range(0, count, length)]
  return []


def read_by(graph: OpGraph, run: Sequence[int]) -> dict[TensorKey, list[_Reader]]:
  """Returns the tensors that enter a run of a line, with who reads them by number in the run."""
  found: dict[TensorKey, list[_Reader]] = {}
  inside = set(run)
  for number, n in enumerate(run):
    for slot, key in enumerate(graph.ops[n].inputs):
      op = graph.ops[key[0]]
      if key[0] not in inside and op.op_type != CONSTANT and not is_opaque(op.outputs[key[1]][0]):
        found.setdefault(key, []).append((number, slot))
  return found


def _one(
  read: dict[TensorKey, list[_Reader]], of_both: tuple[list[_Reader], list[_Reader]]
) -> bool:
  """Returns whether a run of a line reads one tensor at two places."""
  return any(sorted((*of_both[0], *of_both[1])) == readers for readers in read.values())


def _round(
  graph: OpGraph,
  run: Sequence[int],
  read: dict[TensorKey, list[_Reader]],
  of_both: tuple[list[_Reader], list[_Reader]],
) -> _Round | None:
  """Returns what a run of a line reads at two places; None where they cannot be exchanged."""
  keys = [key for known in of_both for key, readers in read.items() if readers == known]
  if len(keys) != _SEVERAL:
    return None
  one, other = keys
  readers = tuple(tuple((run[number], slot) for number, slot in known) for known in of_both)
  if graph.ops[one[0]].outputs[one[1]] != graph.ops[other[0]].outputs[other[1]]:
    return None
  places = {n for known in readers for n, _ in known}
  if {graph.ops[n].op_type for n in places} <= _STACKS and len(places) == 1:
    return None  # an order of parts, which `order_edits` and rules tell
  # The one may not be computed from what reads the other.
  if max(one[0], other[0]) > min(places) and places & graph.ancestors([one[0], other[0]]):
    return None
  return _Round((one, other), (readers[0], readers[1]))


class _Ends:
  """What fails, computed again with two tensors in each other's place."""

  def __init__(self, looking: Looking) -> None:
    self._looking = looking
    self._tf2 = looking.tf2
    self._graph = looking.tf2.op_graph
    names = looking.tf1.op_graph.ops
    ends = [p for p in looking.divergence.ends if not names[p[0]].name.startswith(_GRADIENTS)]
    self.positions = [other for _, other in ends]
    self.behind = self._graph.ancestors(self.positions)
    self._names = [self._graph.ops[n].tensors[0] for n in self.positions]
    self._wanted = looking.tf1.fetch([names[one].tensors[0] for one, _ in ends])
    self._own = looking.tf2.fetch(self._names)

  def are_mended(self, rounds: Sequence[_Round], place: Place) -> bool:
    """Returns whether what fails is that of tf1 with two tensors exchanged, or a place is."""
    given: dict[str, np.ndarray] = {}
    for one in rounds:  # what a round reads may be computed from those before it
      names = [self._graph.tensor(key) for key in one.tensors]
      found = self._tf2.refetched(names, given)
      if found is None or found[0].shape != found[1].shape:
        return False
      given |= {names[0]: found[1], names[1]: found[0]}
    source = place.source
    end = self._graph.ops[source.regions.tf2.end]
    if end.op_type != TARGET and self._looking.is_mended(source, given):
      return True
    found = self._tf2.refetched(self._names, given)
    return found is not None and all(
      wanted.shape == own.shape == now.shape
      and is_left(agreement(wanted, now), agreement(wanted, own))
      for wanted, own, now in zip(self._wanted, self._own, found, strict=True)
    )


def _mistake(looking: Looking, place: Place, rounds: Sequence[_Round]) -> Mistake:
  graph = looking.tf2.op_graph
  inputs = tuple(
    OtherInput(graph.ops[n].name, slot, graph.tensor(read), ())
    for one in rounds
    for readers, read in zip(one.readers, one.tensors[::-1], strict=True)
    for n, slot in readers
  )
  first = rounds[0]
  reader = min((one for readers in first.readers for one in readers), key=lambda one: one[0])
  op = graph.ops[reader[0]]
  one, other = (_text(graph, key) for key in first.tensors)
  names = [tensor_text(graph, key) for key in first.tensors]
  by_map = ', or the map of the variables has them so' if _by_map(looking, first) else ''
  said = GraphDifference(
    GraphAspect.CORRECTED,
    op.name,
    op.op_type,
    'operands',
    ', '.join(names[::-1]),
    ', '.join(names),
    f'the port has {one} and {other} in place of each other{_where(graph, rounds)}{by_map}',
  )
  value = looking.tf2.fetch([graph.tensor(first.tensors[0])])[0]
  regions = place.source.regions
  # The line of tf1 is known where few operations of the port lead to the place.
  is_near = len(regions.tf2.inner) <= READABLE and reader[0] in (
    *regions.tf2.inner,
    regions.tf2.end,
  )
  like = looking.tf1.op_graph.ops[regions.tf1.end] if is_near else None
  return correction(place, op, like, said, (value, None), Repair(inputs=inputs), graph)


def _by_map(looking: Looking, known: _Round) -> bool:
  """Returns whether two tensors are parts of one that is computed from a joined variable."""
  graph, tf1 = looking.tf2.op_graph, looking.tf1.op_graph
  one, other = (graph.ops[n] for n, _ in known.tensors)
  is_taken = {one.op_type, other.op_type} <= _SLICES and one.inputs[0] == other.inputs[0]
  if one is not other and not is_taken:
    return False
  names = {op.name for op in tf1.ops if op.op_type == VARIABLE}
  behind = (graph.ops[n] for n in graph.ancestors([known.tensors[0][0]]))
  return any(op.op_type == VARIABLE and op.name not in names for op in behind)


def _where(graph: OpGraph, rounds: Sequence[_Round]) -> str:
  """Returns the lines that read two tensors in place of each other, as an addition to a text."""
  readers = sorted(n for one in rounds for known in one.readers for n, _ in known)
  lines = [line for n in readers if (line := graph.ops[n].source) is not None]
  shown = list(dict.fromkeys(line.short for line in lines))[:_MOST_LINES]
  calls = _calls(graph, lines, rounds)
  by = f' (or at {", ".join(calls[:_MOST_LINES])}, which calls it)' if calls else ''
  if len(shown) == 1 and len(rounds) > 1:
    return f' at {shown[0]}{by}, each of the {len(rounds)} times that it runs'
  return f' at {", ".join(shown)}{by}' if shown else ''


def _calls(graph: OpGraph, lines: Sequence[SourceLine], rounds: Sequence[_Round]) -> list[str]:
  """Returns what calls the function of some lines with two tensors; nothing if it has made one."""
  functions = {(line.path, line.function) for line in lines}
  ops = (graph.ops[n] for one in rounds for n, _ in one.tensors)
  made = {op.source for op in ops if op.op_type != INPUT} - set(lines)
  known = {None if line is None else (line.path, line.function) for line in made}
  if len(functions) > 1 or None in known or functions & known:
    return []
  return list(dict.fromkeys(line.callers[0].short for line in lines if line.callers))


def _text(graph: OpGraph, key: TensorKey) -> str:
  """Returns what a tensor is called, and by what operation it is made."""
  op, name = graph.ops[key[0]], tensor_text(graph, key)
  return name if op.op_type in (INPUT, VARIABLE) else f'{name} ({op_text(graph, key[0])})'
