"""Tensors that the port stacks, joins or takes apart in another order than tf1.

Where tf1 writes the same without a stack (three slices that are multiplied and added up, for a
stack times a vector), no operation there has a partner, and all of them are replaced. That two
parts of the stack stand in each other's place can be tried there, without a run of the stage.
"""

import itertools
from collections.abc import Iterator, Sequence

import numpy as np

from tf2verify.diagnosis.edits.exchanges import mistake_at
from tf2verify.diagnosis.edits.mistakes import Mistake
from tf2verify.diagnosis.patterns.operations.reads import tensor_text
from tf2verify.diagnosis.places.looking import Looking, Place
from tf2verify.records.diagnosis import GraphAspect, GraphDifference
from tf2verify.records.op_graph import INPUT, TARGET, OpGraph
from tf2verify.relation.operations.op_pairs import is_backward
from tf2verify.sides.graphs.edits.repairs import Repair
from tf2verify.sides.graphs.graph_defs.rewiring import OtherInput

_STACKS = ('Pack', 'ConcatV2')
_PARTS = ('Unpack', 'Split', 'SplitV')
# More tensors than these are seldom written by hand.
_MOST_TENSORS = 6
# Each takes a run of the stage.
_MOST_UNTRIED = 4
# An operation, and the numbers of two of its inputs, or of its outputs.
_Exchange = tuple[int, int, int]


def order_edits(looking: Looking, mistakes: Sequence[Mistake]) -> Iterator[Mistake]:
  """Yields what has two tensors in each other's place in all places that this mends.

  Args:
    looking: the search in the port as it is.
    mistakes: what was found.
  """
  graph = looking.tf2.op_graph
  seen: set[_Exchange] = set()
  untried = _MOST_UNTRIED
  for place in (place for one in mistakes for place in one.places if looking.has(place)):
    region = {*place.source.regions.tf2.inner, place.source.regions.tf2.end}
    for n, one, other in _exchanges(looking, place):
      # In later rounds of a loop in Python the port goes on from what went wrong before.
      all_rounds = [(m, one, other) for m in _of_same_line(graph, n)]
      if (n, one, other) in seen:
        continue
      if len(region.intersection(m for m, *_ in all_rounds)) > 1:
        untried -= 1  # not all rounds can be tried here
      elif not _mends(looking, place, (n, one, other)):
        continue
      seen.update(all_rounds)
      if untried < 0:
        continue
      inputs = tuple(edit for exchange in all_rounds for edit in _edits(graph, exchange))
      said = _differences(graph, (n, one, other))
      yield mistake_at(looking, place.source, Repair(inputs=inputs), said)


def _of_same_line(graph: OpGraph, position: int) -> list[int]:
  op = graph.ops[position]
  if op.source is None:
    return [position]
  return [
    n
    for n, known in enumerate(graph.ops)
    if known.op_type == op.op_type
    and known.source == op.source
    and not is_backward(known)
    and (len(known.inputs), len(known.outputs)) == (len(op.inputs), len(op.outputs))
  ]


def _exchanges(looking: Looking, place: Place) -> Iterator[_Exchange]:
  """Yields operations of a place of the port with two inputs, or two outputs, that are alike."""
  graph, region = looking.tf2.op_graph, place.source.regions.tf2
  before = {key[0] for n in (*region.inner, region.end) for key in graph.ops[n].inputs}
  for n in sorted({*region.inner, region.end, *before}):
    op = graph.ops[n]
    if op.op_type in _STACKS:
      kinds = [graph.ops[k].outputs[number] for k, number in op.inputs[: _MOST_TENSORS + 1]]
    elif op.op_type in _PARTS:
      kinds = list(op.outputs)
    else:
      continue
    floats = [slot for slot, kind in enumerate(kinds) if kind[0].startswith('float')]
    for one, other in itertools.combinations(floats[:_MOST_TENSORS], 2):
      if kinds[one] == kinds[other] and not is_backward(op):
        yield n, one, other


def _mends(looking: Looking, place: Place, exchange: _Exchange) -> bool:
  """Returns whether a place of the port yields what tf1 yields with the two exchanged."""
  graph, source = looking.tf2.op_graph, place.source
  end = graph.ops[source.regions.tf2.end]
  n, one, other = exchange
  op = graph.ops[n]
  if end.op_type == TARGET:
    return False
  if op.op_type in _PARTS:
    names = op.tensors[one], op.tensors[other]
    first, second = looking.tf2.fetch(names)
    given = {names[0]: second, names[1]: first}
  else:
    made = _stacked(looking, exchange)
    if made is None:
      return False
    given = {op.tensors[0]: made}
  return looking.is_mended(source, given)


def _stacked(looking: Looking, exchange: _Exchange) -> np.ndarray | None:
  """Returns what a stack yields with two of its inputs exchanged; None where that is not known."""
  graph = looking.tf2.op_graph
  n, one, other = exchange
  op = graph.ops[n]
  keys = list(op.inputs)
  axis = op.attribute('axis')
  if op.op_type == 'ConcatV2':
    axis = graph.ops[keys.pop()[0]].constant
  if axis is None:
    return None
  parts = looking.tf2.fetch([graph.tensor(key) for key in keys])
  parts[one], parts[other] = parts[other], parts[one]
  join = np.stack if op.op_type == 'Pack' else np.concatenate
  joined: np.ndarray = join(parts, int(axis))
  return joined


def _edits(graph: OpGraph, exchange: _Exchange) -> Iterator[OtherInput]:
  n, one, other = exchange
  op = graph.ops[n]
  if op.op_type in _STACKS:
    for slot, read in ((one, other), (other, one)):
      yield OtherInput(op.name, slot, graph.tensor(op.inputs[read]), ())
    return
  for reader, slot in graph.consumers()[n]:
    number = graph.ops[reader].inputs[slot][1]
    if number in (one, other) and graph.ops[reader].op_type != TARGET:
      read = other if number == one else one
      yield OtherInput(graph.ops[reader].name, slot, op.tensors[read], ())


def _differences(graph: OpGraph, exchange: _Exchange) -> tuple[GraphDifference, ...]:
  n, one, other = exchange
  op = graph.ops[n]
  if op.op_type in _STACKS:
    both = [
      (n, one, op.inputs[one], op.inputs[other]),
      (n, other, op.inputs[other], op.inputs[one]),
    ]
  else:
    readers = [
      (reader, slot, graph.ops[reader].inputs[slot])
      for reader, slot in graph.consumers()[n]
      if not is_backward(graph.ops[reader])
    ]
    both = [
      (reader, slot, key, (n, other if key[1] == one else one))
      for reader, slot, key in readers
      if key[1] in (one, other)
    ][:2]
  return tuple(
    GraphDifference(
      GraphAspect.ORDER,
      graph.ops[reader].name,
      graph.ops[reader].op_type,
      graph.ops[reader].input_name(slot),
      tensor_text(graph, read),
      tensor_text(graph, here),
      INPUT,
      INPUT,
    )
    for reader, slot, here, read in both
  )
