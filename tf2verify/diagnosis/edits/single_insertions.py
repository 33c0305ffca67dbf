"""One operation of tf1 that the port lacks, in place of all that is written differently around it.

Where the port writes a formula in another way, and rightly so, tf1's operations in place of its own
prove where a mistake is, and tell more than what it is: of `Maximum → Mul → Rsqrt → Mul` for
`Mul → Sqrt → RealDiv` the bound alone may be missing. Each of tf1's operations that reads a tensor
of both sides is put in before what reads that tensor in the port.
"""

import collections
import itertools
from collections.abc import Collection, Iterator, Sequence

from tf2verify.diagnosis.edits.exchanges import exchanges, is_vague, mistake_at
from tf2verify.diagnosis.edits.mistakes import Mistake
from tf2verify.diagnosis.edits.operand_exchanges import operand_exchanges
from tf2verify.diagnosis.edits.order_edits import order_edits
from tf2verify.diagnosis.patterns.operations.op_text import op_text
from tf2verify.diagnosis.places.looking import Looking, Place
from tf2verify.diagnosis.proposals.insertions import operand_of
from tf2verify.records.diagnosis import GraphAspect, GraphDifference
from tf2verify.records.experiment import Edit
from tf2verify.records.op_graph import TARGET, Inserted, NodeChange, TensorKey
from tf2verify.relation.operations.op_pairs import is_backward
from tf2verify.sides.graphs.edits.repairs import Repair

# Each takes a run of the stage.
_MOST = 3
_SEVERAL = 2
_WITH_A_NUMBER = frozenset({'Maximum', 'Minimum', 'Mul', 'AddV2', 'Sub', 'RealDiv', 'Pow'})
_OF_ONE = frozenset({'Abs', 'Neg', 'Relu', 'Sigmoid', 'Softplus', 'Sqrt', 'Square', 'Tanh'})


def plainer_edits(looking: Looking, mistakes: Sequence[Mistake], passes: bool) -> Iterator[Mistake]:
  """Yields single edits that may say more than those that were found.

  Args:
    looking: the search in the port as it is.
    mistakes: what was found.
    passes: whether the stage passes with these.
  """
  yield from operand_exchanges(looking, mistakes, passes)
  if not passes or any(is_vague(looking, one) for one in mistakes):
    yield from exchanges(looking)
  if passes:
    yield from order_edits(looking, mistakes)
    yield from single_insertions(looking, mistakes)


def shared_insertions(looking: Looking, proposed: Sequence[Mistake]) -> Iterator[Mistake]:
  """Yields the same of operations that several places read in tf1, as a bound of a learning rate.

  They are tried first: one edit may take the place of many.
  """
  places = [p for one in proposed for p in one.places if looking.has(p)]
  ends = {place.source.regions.tf1.end for place in places}
  if len(ends) < _SEVERAL or any(one.edit is not Edit.OPERATIONS for one in proposed):
    return
  counts = collections.Counter(n for place in places for n in place.source.regions.tf1.inner)
  shared = {n for n, count in counts.items() if count == len(places)}
  yield from itertools.islice(_insertions(looking, places, shared), _MOST)


def single_insertions(looking: Looking, mistakes: Sequence[Mistake]) -> Iterator[Mistake]:
  """Yields single operations of tf1 put into the port, a few at most.

  Args:
    looking: the search in the port as it is.
    mistakes: what was found.
  """
  several = [one for one in mistakes if one.edit is not Edit.SETTING and not one.is_simple]
  places = [place for one in several for place in one.places if looking.has(place)]
  yield from itertools.islice(_insertions(looking, places), _MOST)


def _insertions(
  looking: Looking, places: Sequence[Place], among: Collection[int] | None = None
) -> Iterator[Mistake]:
  tf1, tf2 = looking.tf1.op_graph, looking.tf2.op_graph
  partner_of = looking.divergence.pairing.tf2_of
  seen: set[int] = set()
  for place in places:
    region = place.source.regions.tf1
    for position in (*region.inner, region.end):
      op = tf1.ops[position]
      if position in seen or (among is not None and position not in among):
        continue
      if partner_of[position] is not None or is_backward(op):
        continue
      seen.add(position)
      slot, number = operand_of(tf1, position)
      kinds = _OF_ONE if number is None else _WITH_A_NUMBER
      # A number that comes first is another function, of a division say.
      is_first = slot == 1 and op.op_type in ('Sub', 'RealDiv', 'Pow')
      if op.op_type not in kinds or is_first:
        continue
      producer, output = op.inputs[slot]
      partner = partner_of[producer]
      # The partner may have fewer outputs: a slice for one of the parts of a `Split`.
      known = () if partner is None else tf2.ops[partner].outputs[output : output + 1]
      if partner is None or [dtype for dtype, _ in known] != ['float32']:
        continue
      changes = tuple(
        _change(looking, n, (partner, output), op.op_type, number)
        for n in readers_to_change(looking, (producer, output), partner)
      )
      if changes:
        text, types = op_text(tf1, position), (op.op_type,)
        said = GraphDifference(GraphAspect.MISSING, op.name, op.op_type, '', text, '', types, ())
        yield mistake_at(looking, place.source, Repair(changes=changes), (said,))


def readers_to_change(looking: Looking, read: TensorKey, partner: int) -> list[int]:
  """Returns what reads a tensor in the port, without those whose partners read it in tf1."""
  graph, pairing = looking.tf2.op_graph, looking.divergence.pairing
  found: list[int] = []
  for n, slot in graph.consumers()[partner]:
    op, known = graph.ops[n], pairing.tf1_of[n]
    is_read = known is not None and read in looking.tf1.op_graph.ops[known].inputs
    if op.inputs[slot] == (partner, read[1]) and not (is_read or is_backward(op)):
      found.append(n)
  return [n for n in dict.fromkeys(found) if graph.ops[n].op_type != TARGET]


def _change(
  looking: Looking, position: int, read: TensorKey, kind: str, number: float | None
) -> NodeChange:
  op = looking.tf2.op_graph.ops[position]
  slots = [slot for slot, key in enumerate(op.inputs) if key == read]
  return NodeChange(op.name, inserted=tuple(Inserted(slot, kind, number) for slot in slots))
