"""Operations of the port that reduce other axes, as TF1 does somewhere."""

import dataclasses
from collections.abc import Iterator, Sequence

import numpy as np

from tf2verify.diagnosis.patterns.numbers.known_values import constant_or_number
from tf2verify.records.op_graph import NodeChange, OpGraph, OpRecord
from tf2verify.relation.operations.op_pairs import is_backward

_AXES = 'reduction_indices'
Axes = tuple[int, ...]


@dataclasses.dataclass(frozen=True, eq=False)
class Reduced:
  """Other axes for some operations of the port.

  Attributes:
    changes: of these, and of those that have to reduce fewer or more axes for it.
    places: positions of these.
    own: the axes that they have.
    other: those of tf1.
    like: positions of the operations of tf1 that have them.
  """

  changes: tuple[NodeChange, ...]
  places: tuple[int, ...]
  own: Axes
  other: Axes
  like: tuple[int, ...]


def reductions(
  tf1: OpGraph,
  graph: OpGraph,
  consumers: Sequence[Sequence[tuple[int, int]]],
  positions: Sequence[int],
) -> Iterator[Reduced]:
  """Yields axes of tf1 for operations of one type that reduce the same axes.

  Args:
    tf1: the reference's operations.
    graph: the port's.
    consumers: for every operation of the port, who reads it.
    positions: the operations of a line of the port.
  """
  alike: dict[tuple[str, Axes], list[int]] = {}
  for n in positions:
    axes = axes_of(graph, n)
    if axes is not None:
      alike.setdefault((graph.ops[n].op_type, axes), []).append(n)
  known: dict[tuple[str, Axes], list[int]] = {}
  types = {op_type for op_type, _ in alike}
  for n, op in enumerate(tf1.ops):
    axes = axes_of(tf1, n) if op.op_type in types and not is_backward(op) else None
    if axes is not None:
      known.setdefault((op.op_type, axes), []).append(n)
  for (op_type, own), places in alike.items():
    rank = min(_rank(graph, graph.ops[n]) for n in places)
    for (of_type, other), like in known.items():
      if of_type == op_type and other != own and other and other[-1] < rank:
        # What follows on two of them is there once.
        changes = {c.op: c for n in places for c in _changes(graph, consumers, n, own, other)}
        yield Reduced(tuple(changes.values()), tuple(places), own, other, tuple(like))


def axes_of(graph: OpGraph, position: int) -> Axes | None:
  """Returns the axes that an operation reduces, counted from the front; None for no reduction."""
  op = graph.ops[position]
  if _AXES not in op.input_names or not _rank(graph, op):
    return None
  value = constant_or_number(graph, op.inputs[op.input_names.index(_AXES)][0])
  if value is None or value.dtype.kind != 'i':
    return None
  return tuple(sorted({int(axis) % _rank(graph, op) for axis in value.ravel()}))


def axes_text(axes: Sequence[int]) -> str:
  """Returns axes as causes write them."""
  if len(axes) == 1:
    return f'axis {axes[0]}'
  return f'axes {", ".join(map(str, axes))}' if axes else 'no axis'


def _changes(
  graph: OpGraph,
  consumers: Sequence[Sequence[tuple[int, int]]],
  position: int,
  own: Axes,
  other: Axes,
) -> Iterator[NodeChange]:
  """Yields other axes for one operation, and all axes again for what reduces all that is left."""
  yield _with_axes(graph.ops[position], other)
  if graph.ops[position].attribute('keep_dims') or len(own) == len(other):
    return
  fewer = len(other) - len(own)
  waiting, seen = [position], {position}
  while waiting:
    n = waiting.pop()
    shape = graph.ops[n].outputs[0][1]
    for reader, _ in consumers[n]:
      op = graph.ops[reader]
      if reader in seen or shape is None or is_backward(op):
        continue
      seen.add(reader)
      axes = axes_of(graph, reader)
      if axes is not None:
        if axes == tuple(range(len(shape))):
          yield _with_axes(op, tuple(range(len(shape) - fewer)))
      elif op.outputs and op.outputs[0][1] == shape:
        waiting.append(reader)


def _with_axes(op: OpRecord, axes: Axes) -> NodeChange:
  slot = op.input_names.index(_AXES)
  return NodeChange(op.name, inputs=((slot, np.asarray(axes, np.int32)),))


def _rank(graph: OpGraph, op: OpRecord) -> int:
  """Returns how many axes its input has; 0 where that is not known."""
  producer, number = op.inputs[0]
  shape = graph.ops[producer].outputs[number][1]
  return 0 if shape is None else len(shape)
