"""Stops of the gradient that one side alone has, as edits of the port: found by values, not pairs.

What tf1 stops is found in the port by its values, in whatever shape, and stopped there as well: for
all that reads it, or for some lines of the port's code, in all rounds of a loop. What the port
stops is let pass in the same way.
"""

import dataclasses
import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence

import numpy as np

from tf2verify.diagnosis.divergence.tensors.sources import InspectableRun
from tf2verify.diagnosis.edits.corrections import correction
from tf2verify.diagnosis.edits.mistakes import Mistake
from tf2verify.diagnosis.patterns.numbers.known_values import is_computed_float
from tf2verify.diagnosis.patterns.operations.reads import tensor_text
from tf2verify.diagnosis.places.looking import Looking, Place
from tf2verify.numerics.agreement import agreement
from tf2verify.records import rounds
from tf2verify.records.diagnosis import GraphAspect, GraphDifference
from tf2verify.records.op_graph import (
  TARGET,
  Inserted,
  NodeChange,
  OpGraph,
  TensorKey,
)
from tf2verify.relation.operations.op_pairs import is_backward
from tf2verify.sides.graphs.edits.repairs import Repair

# Of the tensors of the port that hold what tf1 stops, the last ones.
_MOST_PLACES = 4
# Of as many lines that read a tensor, all subsets are tried.
_MOST_LINES = 4
# Of what one side alone stops, as much is tried on a line.
_MOST = 8
# Tensors are fetched so many at once, to bound memory.
_PORTION = 64
_LinePlace = tuple[str, int] | None


@dataclasses.dataclass(frozen=True)
class _Reader:
  """Where an operation of the port reads a tensor."""

  position: int  # of the operation
  slot: int  # the number of the input
  key: TensorKey  # what it reads
  is_stopped: bool  # whether through a stop


@dataclasses.dataclass(frozen=True, eq=False)
class StoppedTensor:
  """A tensor of the port whose gradient is stopped on a side, for some of what reads it.

  Or several that one line computes, in the rounds of a loop.
  """

  keys: tuple[TensorKey, ...]
  like: TensorKey | None  # tf1's tensor with these values that is stopped; None where it is not
  readers: Mapping[_LinePlace, Sequence[_Reader]]  # by the line that reads


@dataclasses.dataclass(frozen=True, eq=False)
class StopEdit:
  """A stop that is put before what some lines read, and taken away before others."""

  tensor: StoppedTensor
  changes: tuple[NodeChange, ...]
  put: frozenset[_LinePlace]
  removed: frozenset[_LinePlace]


def stop_edits(looking: Looking, place: Place) -> Iterator[Mistake]:
  """Yields stops of one side alone, for all that reads a tensor; a few at most.

  Each one alone, then all together: those that the port lacks, then those that it has.

  Args:
    looking: the search in the port as it is.
    place: where it has found a difference.
  """
  runs = looking.tf1, looking.tf2
  lacking, extra, _ = stopped_tensors(*runs)
  # A single number may be one that tf1 stops as well: rules say where.
  telling = dict(_sorted_values(looking.tf2, [key for one in extra for key in one.keys]))
  for tensors in (lacking, [one for one in extra if telling.keys() >= {*one.keys}]):
    some = (edits_of(runs[1].op_graph, one) for one in tensors[:_MOST])
    found = [edit for edits in some for edit in itertools.islice(edits, 1)]
    yield from (stop_mistake(runs, place, [one]) for one in found)
    # The last place of each.
    each = {one.tensor.like or one.tensor.keys[0]: one for one in reversed(found)}
    if len(each) > 1:
      yield stop_mistake(runs, place, [*each.values()][::-1])


def stopped_tensors(tf1: InspectableRun, tf2: InspectableRun) -> list[list[StoppedTensor]]:
  """Returns the tensors that tf1 alone stops, those that the port does, and those of both sides."""
  graph = tf2.op_graph
  ones, others = _stopped(tf1.op_graph), _stopped(graph)
  likes: dict[TensorKey, TensorKey] = {}
  for one, keys in _alike(tf1, tf2, ones).items():
    for key in keys:
      likes.setdefault(key, one)
  lacking = [key for key in likes if key not in others]
  extra = [key for key in others if key not in likes]
  both = [key for key in others if key in likes]
  return [
    [
      StoppedTensor(tuple(some), likes.get(some[0]), _readers(graph, some))
      for some in _of_a_line(graph, keys)
    ]
    for keys in (lacking, extra, both)
  ]


def _of_a_line(graph: OpGraph, keys: Sequence[TensorKey]) -> list[list[TensorKey]]:
  """Returns the tensors of one line together, then each one of several alone."""
  lines: dict[object, list[TensorKey]] = {}
  for n, k in keys:
    op = graph.ops[n]
    place = (n, k) if op.source is None else (op.source.path, op.source.line, op.op_type, k)
    lines.setdefault(place, []).append((n, k))
  several = [some for some in lines.values() if len(some) > 1]
  return [*lines.values(), *([key] for some in several for key in some)]


def edits_of(graph: OpGraph, tensor: StoppedTensor) -> Iterator[StopEdit]:
  """Yields a stop for all lines that read a tensor, for none, and for some of them."""
  lines = list(tensor.readers)
  some: set[frozenset[_LinePlace]] = set()
  if len(lines) <= _MOST_LINES:
    sizes = range(1, len(lines))
    some.update(frozenset(s) for size in sizes for s in itertools.combinations(lines, size))
  else:
    some.update(frozenset([line]) for line in lines)
    some.update(frozenset(lines) - {line} for line in lines)
  ordered = sorted(some, key=lambda one: (len(one), sorted(map(lines.index, one))))
  for stopped in (frozenset(lines), frozenset[_LinePlace](), *ordered):
    edit = _edit(graph, tensor, stopped)
    # What tf1 stops nowhere is to be stopped nowhere else.
    if edit.changes and (tensor.like is not None or not edit.put):
      yield edit


def _edit(graph: OpGraph, tensor: StoppedTensor, stopped: frozenset[_LinePlace]) -> StopEdit:
  put, removed = set[_LinePlace](), set[_LinePlace]()
  inserted: dict[int, list[Inserted]] = {}
  other: dict[int, list[tuple[int, str]]] = {}
  for line, readers in tensor.readers.items():
    for one in readers:
      if line in stopped and not one.is_stopped:
        inserted.setdefault(one.position, []).append(Inserted(one.slot, 'StopGradient'))
        put.add(line)
      elif line not in stopped and one.is_stopped:
        other.setdefault(one.position, []).append((one.slot, graph.tensor(one.key)))
        removed.add(line)
  changes = tuple(
    NodeChange(
      graph.ops[n].name, inserted=tuple(inserted.get(n, ())), other=tuple(other.get(n, ()))
    )
    for n in sorted({*inserted, *other})
  )
  return StopEdit(tensor, changes, frozenset(put), frozenset(removed))


def _readers(graph: OpGraph, keys: Collection[TensorKey]) -> dict[_LinePlace, list[_Reader]]:
  found: dict[_LinePlace, list[_Reader]] = {}
  for n, op in enumerate(graph.ops):
    if op.op_type == TARGET or is_backward(op):
      continue
    for slot, read in enumerate(op.inputs):
      if read in keys:
        line = None if op.source is None else op.source.at
        found.setdefault(line, []).append(_Reader(n, slot, read, op.is_stopped(slot)))
  return found


def _stopped(graph: OpGraph) -> list[TensorKey]:
  """Returns the tensors that operations read through a stop, each once."""
  found = {
    key: None
    for op in graph.ops
    if not is_backward(op)
    for slot, key in enumerate(op.inputs)
    if op.is_stopped(slot) and is_computed_float(graph, key)
  }
  return list(found)


def _alike(
  tf1: InspectableRun, tf2: InspectableRun, keys: Sequence[TensorKey]
) -> dict[TensorKey, list[TensorKey]]:
  """Returns the port's tensors that hold the values of some of tf1, in any order."""
  wanted = dict(_sorted_values(tf1, keys))
  sizes = {value.size for value in wanted.values()}
  graph = tf2.op_graph
  candidates = [
    (n, k)
    for n, op in enumerate(graph.ops)
    if op.op_type != TARGET and not is_backward(op)
    for k, (_, shape) in enumerate(op.outputs[: len(op.tensors)])
    if is_computed_float(graph, (n, k)) and _may_have(shape, sizes)
  ]
  found: dict[TensorKey, list[TensorKey]] = {key: [] for key in keys}
  for key, value in _sorted_values(tf2, candidates if wanted else ()):
    for one, other in wanted.items():
      if other.shape == value.shape and agreement(other, value).is_rounding:
        found[one].append(key)
  return {one: places[-_MOST_PLACES:][::-1] for one, places in found.items()}


def _may_have(shape: Sequence[int | None] | None, sizes: Collection[int]) -> bool:
  if shape is None or None in shape:
    return bool(sizes)
  return int(np.prod([size for size in shape if size is not None])) in sizes


def _sorted_values(
  run: InspectableRun, keys: Sequence[TensorKey]
) -> Iterator[tuple[TensorKey, np.ndarray]]:
  """Yields what tensors hold, sorted; not what tells nothing: a single number, or equal ones."""
  for start in range(0, len(keys), _PORTION):
    some = keys[start : start + _PORTION]
    for key, value in zip(some, run.fetch([run.op_graph.tensor(k) for k in some]), strict=True):
      if value.size and np.ptp(value) > 0:
        yield key, np.sort(value, axis=None)


def stop_mistake(
  runs: tuple[InspectableRun, InspectableRun], place: Place, edits: Sequence[StopEdit]
) -> Mistake:
  """Returns stops that are one edit as a mistake.

  Args:
    runs: of tf1 and of the port.
    place: where a search has found a difference.
    edits: the stops.
  """
  tf1, graph = (run.op_graph for run in runs)
  tensor = edits[0].tensor
  op = graph.ops[tensor.keys[0][0]]
  if op.is_leaf:  # it has no line: what reads it has
    op = next(one for one in graph.ops if one.name == edits[0].changes[0].op)
  known = None if tensor.like is None else tf1.ops[tensor.like[0]]
  text = '; '.join(_text(tf1, graph, one) for one in edits)
  both = ('StopGradient', '') if edits[0].put else ('', 'StopGradient')
  said = GraphDifference(GraphAspect.CORRECTED, op.name, op.op_type, 'gradient', *both, text)
  repair = Repair(changes=tuple(change for one in edits for change in one.changes))
  return correction(place, op, known, said, (None, None), repair, graph)


def _text(tf1: OpGraph, graph: OpGraph, edit: StopEdit) -> str:
  """Returns what is different, as a sentence."""
  tensor = edit.tensor
  own = _named(graph, tensor.keys[0])
  texts = []
  if edit.put and tensor.like is not None:
    known = _named(tf1, tensor.like)
    where = _where(graph, tensor, edit.put)
    texts.append(
      f'tf1 stops the gradient of {known}; the port computes the same at {own} and lets its '
      f'gradient through{where}: put tf.stop_gradient there'
    )
  if edit.removed:
    where = _where(graph, tensor, edit.removed)
    texts.append(
      f'the port stops the gradient of {own}{where}, tf1 lets it pass: remove tf.stop_gradient '
      'there'
    )
  return '; '.join(texts)


def _where(graph: OpGraph, tensor: StoppedTensor, lines: Collection[_LinePlace]) -> str:
  """Returns which of the lines that read a tensor; '' for all of them."""
  if len(lines) == len(tensor.readers):
    return ''
  readers = [
    graph.ops[tensor.readers[line][0].position] for line in tensor.readers if line in lines
  ]
  return ' where it is read by ' + ', '.join(
    rounds.without(op.name) if op.source is None else f'{op.op_type} ({op.source.short})'
    for op in readers
  )


def _named(graph: OpGraph, key: TensorKey) -> str:
  op = graph.ops[key[0]]
  if op.is_leaf:
    return tensor_text(graph, key)
  place = '' if op.source is None else f', {op.source.short}'
  return f'{rounds.without(op.name)} ({op.op_type}{place})'
