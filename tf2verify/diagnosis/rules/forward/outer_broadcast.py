"""A column beside a row of as many numbers, where one side has a number for each example."""

from collections.abc import Iterator

from tf2verify.diagnosis.evidence.failed_stage import FailedStage
from tf2verify.records.diagnosis import Cause, Source
from tf2verify.records.op_graph import INPUT, OpGraph, OpRecord

_ELEMENTWISE = frozenset(
  ('Add', 'AddV2', 'DivNoNan', 'Mul', 'MulNoNan', 'RealDiv', 'SquaredDifference', 'Sub')
)
_Shape = tuple[int | None, ...]


def outer_broadcast(evidence: FailedStage) -> Cause | None:
  """Shapes (n, 1) and (n,) make (n, n): each example with each other one.

  Looks for that behind a place where the sides part, on one side only.
  """
  if evidence.tf1_graph is None or evidence.tf2_graph is None:
    return None
  found = [list(_squares(graph)) for graph in (evidence.tf1_graph, evidence.tf2_graph)]
  if bool(found[0]) == bool(found[1]):
    return None
  of_port = bool(found[1])
  graph = evidence.tf2_graph if of_port else evidence.tf1_graph
  ends = {one.source.tf2_op if of_port else one.source.tf1_op for one in evidence.sources}
  behind = graph.ancestors(n for n, op in enumerate(graph.ops) if op.name in ends)
  here = [(n, shapes) for n, shapes in found[of_port] if n in behind]
  # A bias, or a scale, of as many elements as there are examples makes a square as well, rightly.
  here = [(n, shapes) for n, shapes in here if _is_of_examples(graph, n)]
  if of_port:
    lines = {place for one in evidence.sources for place in _places(one.source)}
    known = ((n, graph.ops[n].source) for n, _ in here)
    at_lines = {n for n, line in known if line is None or line.at in lines}
    here = [(n, shapes) for n, shapes in here if n in at_lines]
  if not here:
    return None
  position, (one, other) = here[0]
  return Cause(_text(graph.ops[position], one, other, of_port))


def _is_of_examples(graph: OpGraph, position: int) -> bool:
  """Returns whether both operands are computed from inputs or labels: neither is a parameter."""
  return all(
    any(graph.ops[n].op_type == INPUT for n in {one, *graph.ancestors([one])})
    for one, _ in graph.ops[position].inputs
  )


def _places(source: Source) -> set[tuple[str, int]]:
  """Returns the lines at which the port computes what differs, as far as they are known."""
  lines = (source.tf2_source, source.tf2_start, *source.tf2_lines)
  return {line.at for line in lines if line is not None}


def _squares(graph: OpGraph) -> Iterator[tuple[int, tuple[_Shape, _Shape]]]:
  """Yields the operations that make a square of a column and a row."""
  for position, op in enumerate(graph.ops):
    if op.op_type not in _ELEMENTWISE or len(op.inputs) != 2:
      continue
    one, other = (graph.ops[n].outputs[k][1] for n, k in op.inputs)
    if one is None or other is None:
      continue
    row, column = sorted((one, other), key=len)
    known = len(row) == 1 and len(column) == 2 and column[1] == 1
    if known and row[0] == column[0] and row[0] is not None and row[0] > 1:
      yield position, (one, other)


def _text(op: OpRecord, one: _Shape, other: _Shape, of_port: bool) -> str:
  row = min(one, other, key=len)
  where = '' if op.source is None else f' ({op.source.short})'
  shapes = f'{op.op_type} of shapes {one} and {other} makes {(row[0], row[0])}'
  if of_port:
    return (
      f'{shapes} in the port{where}, each example with each other one, which tf1 has nowhere: give '
      'both one shape (tf.squeeze(weights, -1) of weights or labels in a column)'
    )
  return (
    f'{shapes} in tf1{where}, each example with each other one, which the port has nowhere: tf1 '
    'trains with that, so a port that is to be equal has to give it the same shapes'
  )
