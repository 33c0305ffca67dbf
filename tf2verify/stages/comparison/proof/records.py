"""The records of what is proven of two graphs, and of where they differ."""

from collections.abc import Iterator, Sequence

from tf2verify.records.observation import SourceLine
from tf2verify.records.op_graph import TARGET, OpGraph
from tf2verify.records.proven import GraphDifference, Proven, TestedRegion
from tf2verify.relation.proof.differences.pairs import EXTRA, Unlike
from tf2verify.relation.proof.differences.stopped_gradients import stopped_on_one_side
from tf2verify.relation.proof.proving import Proof, Side

_SHOWN = 8


def proven_record(proof: Proof, run: str, seconds: float) -> Proven:
  """Returns how much is proven.

  Args:
    proof: of both graphs.
    run: what was related: `inference`.
    seconds: that it took.
  """
  regions: tuple[TestedRegion, ...] = ()
  if proof.tested:
    one, other = _shown(proof.tf1), _shown(proof.tf2)
    regions = (TestedRegion(one, other, proof.tested[:_SHOWN]),)
  return Proven(
    run,
    len(proof.tf1.behind),
    len(proof.tf1.behind) - len(proof.tf1.tested),
    len(proof.tf2.behind),
    len(proof.tf2.behind) - len(proof.tf2.tested),
    len(proof.targets),
    len(proof.targets) - len(proof.tested),
    regions,
    seconds=seconds,
  )


def _shown(side: Side) -> tuple[str, ...]:
  return tuple(_place(side.graph, position) for position in sorted(side.tested)[:_SHOWN])


def _place(graph: OpGraph, position: int) -> str:
  op = graph.ops[position]
  at = '' if op.source is None else f', {op.source}'
  return f'{op.op_type} {op.name}{at}'


def _line(graph: OpGraph, position: int) -> SourceLine | None:
  """Returns the line of an operation, or of what reads it first."""
  readers = graph.consumers()
  pending = [position]
  seen = set(pending)
  while pending:
    op = graph.ops[pending.pop(0)]
    if op.source is not None:
      return op.source
    here = graph.ops.index(op)
    for reader, _ in readers[here]:
      if reader not in seen and graph.ops[reader].op_type != TARGET:
        seen.add(reader)
        pending.append(reader)
  return None


def gradient_stops(proof: Proof) -> Iterator[str]:
  """Yields where one side alone stops a gradient of a value that both sides compute."""
  sides = {'tf1': ('tf1', proof.tf1), 'tf2': ('the port', proof.tf2)}
  for found in stopped_on_one_side(proof)[:_SHOWN]:
    one, stops = sides[found.side]
    other, flows = sides['tf2' if found.side == 'tf1' else 'tf1']
    places = [
      'an unknown place' if line is None else str(line)
      for line in (
        _line(stops.graph, found.reader),
        _line(flows.graph, found.flowing if found.reading is None else found.reading),
      )
    ]
    yield (
      f'{one} stops a gradient that {other} does not: {one} reads the value behind it at '
      f'{places[0]}, {other} {"computes" if found.reading is None else "reads"} it at {places[1]}; '
      'the proof is of values alone, so for this gradient there are only the numbers that were '
      'compared'
    )


def difference_records(proof: Proof, found: Sequence[Unlike]) -> tuple[GraphDifference, ...]:
  """Returns a record for each kind of difference."""
  kinds: dict[tuple[str, str, tuple[str, str]], list[Unlike]] = {}
  for one in found:
    op = proof.tf2.graph.ops[one.tf2]
    kinds.setdefault((one.what, op.op_type, one.values), []).append(one)
  return tuple(
    GraphDifference(
      one.what,
      proof.tf2.graph.ops[one.tf2].op_type,
      *one.values,
      _line(proof.tf1.graph, one.tf1 if one.named is None or one.what == EXTRA else one.named),
      _line(proof.tf2.graph, one.tf2 if one.named is None or one.what != EXTRA else one.named),
      len(same),
    )
    for same in kinds.values()
    for one in same[:1]
  )
