"""Operations of tf1 with an operand of their own that the port lacks, put in between others.

Where the port writes what comes next in another way, and rightly so, tf1's operations in place of
its own undo that as well: a mask that is forgotten before a mean is then two edits, since tf1 sums
and divides at the end. Put in before all that reads the tensor, the mask alone is enough.
"""

import itertools
from collections.abc import Iterator, Sequence

from tf2verify.diagnosis.edits.exchanges import mistake_at
from tf2verify.diagnosis.edits.mistakes import Mistake
from tf2verify.diagnosis.edits.single_insertions import readers_to_change
from tf2verify.diagnosis.patterns.numbers.known_values import constant_or_number
from tf2verify.diagnosis.patterns.operations.op_text import op_text
from tf2verify.diagnosis.places.looking import Looking, Place
from tf2verify.records.diagnosis import GraphAspect, GraphDifference
from tf2verify.records.experiment import Edit
from tf2verify.records.op_graph import TensorKey
from tf2verify.relation.operations.op_pairs import is_backward
from tf2verify.sides.graphs.edits.put_in import read_through
from tf2verify.sides.graphs.edits.repairs import Repair
from tf2verify.sides.graphs.edits.wiring import CannotRepair

_KINDS = frozenset(('Mul', 'AddV2', 'Sub', 'RealDiv', 'Maximum', 'Minimum'))
# Each takes a run of the stage.
_MOST = 4


def operand_insertions(looking: Looking, mistakes: Sequence[Mistake]) -> Iterator[Mistake]:
  """Yields single operations of tf1 with what their other operand is made by, a few at most.

  Args:
    looking: the search in the port as it is.
    mistakes: what was found.
  """
  vague = [one for one in mistakes if one.edit is not Edit.SETTING and not one.is_simple]
  places = [place for one in vague for place in one.places if looking.has(place)]
  edits = (edit for place in places for edit in _at(looking, place))
  yield from itertools.islice(edits, _MOST)


def _at(looking: Looking, place: Place) -> Iterator[Mistake]:
  graph, partner_of = looking.tf1.op_graph, looking.divergence.pairing.tf2_of
  for position in place.source.regions.tf1.inner:
    op = graph.ops[position]
    if op.op_type not in _KINDS or partner_of[position] is not None or is_backward(op):
      continue
    for slot, read in enumerate(op.inputs):
      other = op.inputs[1 - slot]
      # A number is put in as such.
      is_number = constant_or_number(graph, other[0]) is not None
      if not is_number and graph.ops[read[0]].outputs[read[1]] == op.outputs[0]:
        yield from _put_in(looking, place, (position, read, other))


def _put_in(
  looking: Looking, place: Place, what: tuple[int, TensorKey, TensorKey]
) -> Iterator[Mistake]:
  """Yields an operation of tf1 before all that reads the counterpart of a tensor in the port."""
  position, read, other = what
  tf1, tf2 = looking.tf1.op_graph, looking.tf2.op_graph
  pairing, regions = looking.divergence.pairing, place.source.regions
  partner = pairing.tf2_of[read[0]]
  known = () if partner is None else tf2.ops[partner].outputs[read[1] : read[1] + 1]
  if partner is None or [dtype for dtype, _ in known] != ['float32']:
    return
  behind = tf1.ancestors([other[0]])
  inner = [n for n in regions.tf1.inner if n in behind and not tf1.ops[n].is_leaf]
  given = {one: two for one, two in regions.entering if one is not None and two is not None}
  given[read] = partner, read[1]
  readers = [
    (tf2.ops[n].name, slot)
    for n in readers_to_change(looking, read, partner)
    for slot, key in enumerate(tf2.ops[n].inputs)
    if key == (partner, read[1])
  ]
  if not readers or read[0] in inner:
    return
  region, layouts = (inner, position), looking.divergence.layouts
  try:
    inputs = read_through(
      looking.tf1.nodes(), (tf1, tf2), region, readers, given, layouts, pairing.tf2_of
    )
  except CannotRepair:
    return
  text = ' → '.join(op_text(tf1, n) for n in (*inner, position))
  types = tuple(tf1.ops[n].op_type for n in (*inner, position))
  op = tf1.ops[position]
  said = GraphDifference(GraphAspect.MISSING, op.name, op.op_type, '', text, '', types, ())
  yield mistake_at(looking, place.source, Repair(inputs=inputs), (said,))
