"""What follows from an operation within a region of a graph."""

from collections.abc import Iterator, Sequence

from tf2verify.records.op_graph import VARIABLE, OpGraph, OpRecord, TensorKey


def after(graph: OpGraph, place: int, among: Sequence[int]) -> set[int]:
  """Returns the operations of a region that are computed from one of them."""
  found = {place}
  for n in sorted(among):
    if n > place and any(producer in found for producer, _ in graph.ops[n].inputs):
      found.add(n)
  return found - {place}


def with_variables(graph: OpGraph, place: int, among: Sequence[int]) -> list[int]:
  """Returns those of them into which a variable has come on the way.

  What is computed without one from the same numbers is the same wherever it stands: every norm
  takes the mean of what it is given.
  """
  later = after(graph, place, among)
  weighted: set[int] = set()
  for n in sorted(later):
    producers = [producer for producer, _ in graph.ops[n].inputs]
    if any(producer in weighted for producer in producers) or any(
      _reads_variable(graph, producer) for producer in producers if producer not in later | {place}
    ):
      weighted.add(n)
  return sorted(weighted)


def _reads_variable(graph: OpGraph, position: int) -> bool:
  """Returns whether a value is a variable's, as it is or in another shape or layout."""
  return any(op.op_type == VARIABLE for op in _origins(graph, position))


def _origins(graph: OpGraph, position: int) -> Iterator[OpRecord]:
  pending = [position]
  while pending:
    op = graph.ops[pending.pop()]
    yield op
    inputs: Sequence[TensorKey] = op.inputs
    if len(inputs) > 0 and op.op_type in ('Reshape', 'Transpose', 'ExpandDims', 'Squeeze', 'Cast'):
      pending.append(inputs[0][0])
