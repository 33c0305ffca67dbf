"""Two inputs of the port, each read where tf1 reads the other one.

Where the two sides compute with them in different ways, no operation has a partner whose inputs
could be compared, and no operation of tf1 put into the port helps: it reads the wrong one too.
"""

import dataclasses
import itertools
from collections.abc import Iterator

from tf2verify.diagnosis.looking import Looking, Place
from tf2verify.diagnosis.mistakes import Mistake
from tf2verify.diagnosis.patterns.reads import tensor_text
from tf2verify.records.diagnosis import GraphAspect, GraphDifference
from tf2verify.records.experiment import Edit
from tf2verify.records.op_graph import INPUT, TARGET, OpGraph
from tf2verify.sides.graphs.repairs import Repair

# Each takes a run of the stage.
_MOST = 6
# Operation and number of the input.
_Reader = tuple[int, int]


def exchanges(looking: Looking) -> Iterator[Mistake]:
  """Yields the exchanges of two inputs of one shape and dtype, a few at most.

  Args:
    looking: the search in the port as it is.
  """
  sources = looking.arriving()
  if not sources:
    return
  place = looking.place(sources[0])
  for repair, differences in itertools.islice(_repairs(looking.tf2.op_graph), _MOST):
    record = dataclasses.replace(place.evidence.source, differences=differences)
    evidence = dataclasses.replace(place.evidence, source=record, standings=())
    at = Place(place.source, evidence, (), frozenset())
    yield Mistake((at,), Edit.OPERATIONS, repair)


def _repairs(graph: OpGraph) -> Iterator[tuple[Repair, tuple[GraphDifference, ...]]]:
  consumers = graph.consumers()
  readers: dict[int, list[_Reader]] = {
    position: [(n, slot) for n, slot in consumers[position] if graph.ops[n].op_type != TARGET]
    for position, op in enumerate(graph.ops)
    if op.op_type == INPUT
  }
  for one, other in itertools.combinations([n for n, known in readers.items() if known], 2):
    kinds = graph.ops[one].outputs[0], graph.ops[other].outputs[0]
    if kinds[0] != kinds[1] or not kinds[0][0].startswith('float') or not kinds[0][1]:
      continue
    both = ((one, other), (other, one))
    differences = tuple(_difference(graph, readers[here][0], here, read) for here, read in both)
    tensors = graph.ops[one].tensors[0], graph.ops[other].tensors[0]
    yield Repair(exchanged=(tensors,)), differences


def _difference(graph: OpGraph, reader: _Reader, here: int, read: int) -> GraphDifference:
  op = graph.ops[reader[0]]
  return GraphDifference(
    GraphAspect.ORDER,
    op.name,
    op.op_type,
    op.input_names[reader[1]] if op.input_names else f'input {reader[1]}',
    tensor_text(graph, (read, 0)),
    tensor_text(graph, (here, 0)),
    INPUT,
    INPUT,
  )
