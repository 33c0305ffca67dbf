"""Tensors of the port that are read in place of others.

Two inputs may each be read where tf1 reads the other one. Where the two sides compute with them in
different ways, no operation has a partner whose inputs could be compared, and no operation of tf1
put into the port helps: it reads the wrong one too. Or one input of an operation is another tensor
than in tf1, and others of it are computed in another way, rightly: the lengths of a CTC loss, say,
beside its labels. Or an operation is one too many, among others that are only written differently.
"""

import dataclasses
import itertools
from collections.abc import Iterator, Sequence

from tf2verify.diagnosis.divergence.tensors.outputs import is_opaque
from tf2verify.diagnosis.divergence.tensors.sources import FoundSource
from tf2verify.diagnosis.edits.mistakes import Mistake
from tf2verify.diagnosis.patterns.operations.op_text import SHAPING, op_text
from tf2verify.diagnosis.patterns.operations.reads import read_alone, reads_another, tensor_text
from tf2verify.diagnosis.places.looking import Looking, Place
from tf2verify.records.diagnosis import GraphAspect, GraphDifference
from tf2verify.records.experiment import Edit
from tf2verify.records.op_graph import (
  CONSTANT,
  INPUT,
  TARGET,
  VARIABLE,
  OpGraph,
  OpRecord,
  TensorKey,
)
from tf2verify.sides.graphs.edits.repairs import Repair, bypass
from tf2verify.sides.graphs.graph_defs.rewiring import OtherInput

# Each takes a run of the stage.
_MOST = 6
_MOST_SOURCES = 3
_SEVERAL = 2
_STEPS_BEFORE = 6
# Edits of one place that are looked at there, before a run of the stage.
_MOST_TRIED = 12
# How the text of a variable that is read begins.
_VARIABLE = 'variable '
# Operation and number of the input.
_Reader = tuple[int, int]


def exchanges(looking: Looking) -> Iterator[Mistake]:
  """Yields single inputs as in tf1, and exchanges of two inputs of the port, a few at most.

  Args:
    looking: the search in the port as it is.
  """
  sources = looking.arriving()
  if not sources:
    return
  for source in sources[:_MOST_SOURCES]:
    yield from _other_tensor(looking, source)
  for source in sources[:_MOST_SOURCES]:
    yield from _single_inputs(looking, source)
  comparable = [source for source in sources[:_MOST_SOURCES] if source.output is not None]
  for source in comparable:
    yield from itertools.islice(_removals(looking, source), _MOST)
  for source in comparable:
    yield from itertools.islice(_read_before(looking, source), _MOST)
  for repair, differences in itertools.islice(_repairs(looking.tf2.op_graph), _MOST):
    yield mistake_at(looking, sources[0], repair, differences)


def exchanged_variables(looking: Looking, mistakes: Sequence[Mistake]) -> Iterator[Mistake]:
  """Yields exchanges of two variables that operations read in place of each other.

  Where they are read, the port may write the same formula differently, and rightly so.

  Args:
    looking: the search in the port as it is.
    mistakes: what was found.
  """
  sources = looking.arriving()
  graph = looking.tf2.op_graph
  positions = {op.name: n for n, op in enumerate(graph.ops) if op.op_type == VARIABLE}
  pairs = dict.fromkeys(
    tuple(sorted((positions[one], positions[other])))
    for mistake in mistakes
    for one, other in _variables_read(mistake)
    if one in positions and other in positions
  )
  for one, other in pairs if sources else ():
    if graph.ops[one].outputs != graph.ops[other].outputs:
      continue
    readers = [_any_reader(graph, n) for n in (one, other)]
    if None not in readers:
      differences = tuple(
        _difference(graph, reader, here, read)
        for reader, here, read in zip(readers, (one, other), (other, one), strict=True)
        if reader is not None
      )
      tensors = graph.ops[one].tensors[0], graph.ops[other].tensors[0]
      yield mistake_at(looking, sources[0], Repair(exchanged=(tensors,)), differences)


def _variables_read(mistake: Mistake) -> Iterator[tuple[str, str]]:
  """Yields the variables that the port reads in place of others, with those of tf1."""
  for source in mistake.sources:
    for known in source.differences:
      names = known.tf1, known.tf2
      if known.aspect is GraphAspect.WIRING and all(n.startswith(_VARIABLE) for n in names):
        yield names[0].removeprefix(_VARIABLE), names[1].removeprefix(_VARIABLE)


def _any_reader(graph: OpGraph, position: int) -> _Reader | None:
  found = [(n, slot) for n, slot in graph.consumers()[position] if graph.ops[n].op_type != TARGET]
  return found[0] if found else None


def is_vague(looking: Looking, one: Mistake) -> bool:
  """Returns whether a mistake says less than one edit could.

  Places that a later search has found, in an edited port, are those of other graphs.
  """
  return not one.text or one.is_long or one.lists_many or _reads_other_inputs(looking, one)


def _reads_other_inputs(looking: Looking, mistake: Mistake) -> bool:
  """Returns whether a place of a mistake may read an input where tf1 reads another one."""
  graphs = looking.tf1.op_graph, looking.tf2.op_graph
  for pair in (place.source.regions for place in mistake.places if looking.has(place)):
    sides: tuple[set[str], set[str]] = (set(), set())
    for region, graph, names in zip((pair.tf1, pair.tf2), graphs, sides, strict=True):
      names |= {graph.ops[n].name for n, _ in region.frontier if graph.ops[n].op_type == INPUT}
    if (sides[0] - sides[1] and sides[1] - sides[0]) or len(sides[0] & sides[1]) > 1:
      return True
    if read_alone(pair) is not None:
      return True
  return False


def _other_tensor(looking: Looking, source: FoundSource) -> Iterator[Mistake]:
  """Yields what has the operations of a place read, in place of one tensor, what tf1 reads."""
  pair = source.regions
  read = read_alone(pair)
  tf1, tf2 = looking.tf1.op_graph, looking.tf2.op_graph
  if read is None or tf1.ops[pair.tf1.end].op_type == TARGET:
    return
  tensor = _in_its_place(looking, read)
  if tensor is None:
    return
  readers = [
    (tf2.ops[n], slot)
    for n in (*pair.tf2.inner, pair.tf2.end)
    for slot, key in enumerate(tf2.ops[n].inputs)
    if key == read[1]
  ]
  repair = Repair(inputs=tuple(OtherInput(op.name, slot, tensor, ()) for op, slot in readers))
  said = reads_another(tf1, tf2, *readers[0], read)
  yield mistake_at(looking, source, repair, (said,))


def mistake_at(
  looking: Looking,
  source: FoundSource,
  repair: Repair,
  differences: tuple[GraphDifference, ...],
) -> Mistake:
  """Returns an edit at a place, with what it says of the graphs.

  Args:
    looking: the search in the port as it is.
    source: the place.
    repair: the edit.
    differences: what the two sides do differently there.
  """
  place = looking.place(source)
  known = place.evidence.source
  # It is told by these, however many operations there are at the place.
  paths = known.tf1_path[-1:], known.tf2_path[-1:]
  record = dataclasses.replace(known, differences=differences, tf1_path=paths[0], tf2_path=paths[1])
  evidence = dataclasses.replace(place.evidence, source=record, standings=())
  at = Place(place.source, evidence, (), frozenset())
  return Mistake((at,), Edit.OPERATIONS, repair)


def _single_inputs(looking: Looking, source: FoundSource) -> Iterator[Mistake]:
  """Yields what has an operation read one tensor as in tf1, of several that it reads otherwise."""
  tf1, tf2 = looking.tf1.op_graph, looking.tf2.op_graph
  op, other = tf1.ops[source.regions.tf1.end], tf2.ops[source.regions.tf2.end]
  if op.op_type != other.op_type or op.op_type == TARGET or len(op.inputs) != len(other.inputs):
    return
  partner_of = looking.divergence.pairing.tf2_of
  different = [
    (slot, one, two)
    for slot, (one, two) in enumerate(zip(op.inputs, other.inputs, strict=True))
    if (partner_of[one[0]], one[1]) != two
  ]
  if len(different) < _SEVERAL:
    return  # what an edit of its operations has shown to be nothing
  for slot, one, two in different:
    tensor = _in_its_place(looking, (one, two))
    if tensor is None:
      continue
    repair = Repair(inputs=(OtherInput(other.name, slot, tensor, ()),))
    said = reads_another(tf1, tf2, op, slot, (one, two))
    yield mistake_at(looking, source, repair, (said,))


def _removals(looking: Looking, source: FoundSource) -> Iterator[Mistake]:
  """Yields single operations left out of the port, where that makes the place what it is in tf1."""
  graph = looking.tf2.op_graph
  removable = [
    (position, key)
    for position in source.regions.tf2.inner
    for key in graph.ops[position].inputs
    if _may_be_left_out(graph, position, key)
  ]
  for position, key in removable[:_MOST_TRIED]:
    op, passed = graph.ops[position], graph.tensor(key)
    (value,) = looking.tf2.fetch([passed])
    if looking.is_mended(source, {op.tensors[0]: value}):
      text, types = op_text(graph, position), (op.op_type,)
      said = GraphDifference(GraphAspect.EXTRA, op.name, op.op_type, '', '', text, (), types)
      repair = Repair(transplants=(bypass(graph, position, key),))
      yield mistake_at(looking, source, repair, (said,))


def _may_be_left_out(graph: OpGraph, position: int, key: TensorKey) -> bool:
  """Returns whether what an operation reads is like what it yields."""
  op, passed = graph.ops[position], graph.ops[key[0]]
  if op.op_type in SHAPING or len(op.outputs) != 1 or is_opaque(op.outputs[0][0]):
    return False
  return passed.op_type != CONSTANT and passed.outputs[key[1]] == op.outputs[0]


def _read_before(looking: Looking, source: FoundSource) -> Iterator[Mistake]:
  """Yields what has operations before a place read what tf1 reads there.

  What they yield may have a partner of its own: tf1 computes the same of both tensors.
  """
  pair, graph = source.regions, looking.tf2.op_graph
  entering, pairing = dict(pair.entering), looking.divergence.pairing
  before = _some_before(graph, pair.tf2.end)
  read_there = dict.fromkeys(key for n in before for key in graph.ops[n].inputs)
  # What tf1 has too says more to a reader.
  keys = sorted(read_there, key=lambda key: pairing.tf1_of[key[0]] is None)
  wanted = [one for one in pair.tf1.frontier if entering.get(one) not in pair.tf2.frontier]
  both = [
    (one, key, tensor)
    for one in wanted
    for key in keys
    if key[0] != pairing.tf2_of[one[0]] and (tensor := _in_its_place(looking, (one, key)))
  ]
  for one, key, tensor in both[:_MOST_TRIED]:
    readers = _readers(graph, before, key)
    partner = pairing.tf2_of[one[0]]
    behind = set() if partner is None else graph.ancestors([partner])
    if any(n in behind for n, _ in readers):
      continue
    (value,) = looking.tf2.fetch([tensor])
    if looking.is_mended(source, {graph.tensor(key): value}):
      inputs = tuple(OtherInput(graph.ops[n].name, k, tensor, ()) for n, k in readers)
      (n, slot), read = readers[0], (one, key)
      said = reads_another(looking.tf1.op_graph, graph, graph.ops[n], slot, read)
      yield mistake_at(looking, source, Repair(inputs=inputs), (said,))


def _readers(graph: OpGraph, among: Sequence[int], key: TensorKey) -> list[_Reader]:
  inputs = ((n, slot, read) for n in among for slot, read in enumerate(graph.ops[n].inputs))
  return [(n, slot) for n, slot, read in inputs if read == key]


def _some_before(graph: OpGraph, end: int) -> list[int]:
  """Returns the operations a few steps before an operation, itself first."""
  found, steps = [end], [end]
  for _ in range(_STEPS_BEFORE):
    read = (key[0] for n in steps for key in graph.ops[n].inputs)
    steps = [n for n in dict.fromkeys(read) if n not in found and not graph.ops[n].is_leaf]
    found += steps
  return found


def _in_its_place(looking: Looking, read: tuple[TensorKey, TensorKey]) -> str | None:
  """Returns the port's tensor for one that tf1 reads where the port reads another one.

  None where it has none, or of another shape or dtype. An input that nothing reads is one.
  """
  tf1, tf2 = looking.tf1.op_graph, looking.tf2.op_graph
  (position, number), (here, output) = read
  known = looking.divergence.pairing.tf2_of[position]
  op = tf1.ops[position]
  if known is not None:
    partner: OpRecord | None = tf2.ops[known]
  else:
    partner = next((p for p in tf2.unread if op.op_type == INPUT and p.name == op.name), None)
  if partner is None or number >= len(partner.tensors):
    return None
  is_alike = partner.outputs[number] == tf2.ops[here].outputs[output]
  return partner.tensors[number] if is_alike else None


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
    op.input_name(reader[1]),
    tensor_text(graph, (read, 0)),
    tensor_text(graph, (here, 0)),
    INPUT,
    INPUT,
  )
