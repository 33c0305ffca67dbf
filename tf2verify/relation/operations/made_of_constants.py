"""Operations that read constants alone: a grid, a draw."""

from collections.abc import Mapping, Sequence

import numpy as np

from tf2verify.records.op_graph import CONSTANT, TARGET, OpGraph, OpRecord

# By type and kind of dtype, in the order of the graph.
MadeOfConstants = Mapping[tuple[str, str], Sequence[int]]
_DRAW = 'Random'


def made_of_constants(graph: OpGraph) -> MadeOfConstants:
  """Returns the operations that read constants alone, by `kind_of`."""
  found: dict[tuple[str, str], list[int]] = {}
  for position, op in enumerate(graph.ops):
    constant = all(graph.ops[producer].op_type == CONSTANT for producer, _ in op.inputs)
    if constant and not op.is_leaf and op.op_type != TARGET:
      found.setdefault(kind_of(op), []).append(position)
  return found


def kind_of(op: OpRecord) -> tuple[str, str]:
  """Returns type and kind of dtype: a mask that is filled is not a gradient that starts at one."""
  dtype = op.outputs[0][0] if op.outputs else ''
  return op.op_type, dtype.rstrip('0123456789').removeprefix('u').removeprefix('b')


def have_same_constants(sides: tuple[OpGraph, OpGraph], op: OpRecord, other: OpRecord) -> bool:
  """Returns whether operations of two graphs read no constants that differ."""
  if len(op.inputs) != len(other.inputs):
    return False
  for (one, _), (two, _) in zip(op.inputs, other.inputs, strict=True):
    constants = sides[0].ops[one].constant, sides[1].ops[two].constant
    if not _are_equal(*constants):
      return False
  return True


def partner_by_constants(
  sides: tuple[OpGraph, OpGraph], ones: Sequence[int], others: Sequence[int], op: OpRecord
) -> int | None:
  """Returns the port's operation of the same constants, where as many on either side have these.

  Names are numbers in the order of creation: the first grid of one side may be the second one of
  the other, which is of another size.

  Args:
    sides: the graphs of tf1 and of the port.
    ones: positions of operations of one kind, in that of tf1.
    others: the same in that of the port.
    op: one of the first ones.
  """
  if _DRAW in op.op_type:  # of another shape, it is still the same draw
    return None
  tf1, tf2 = sides
  own = [n for n in ones if have_same_constants((tf1, tf1), op, tf1.ops[n])]
  alike = [m for m in others if have_same_constants(sides, op, tf2.ops[m])]
  places = [n for n, position in enumerate(own) if tf1.ops[position] is op]
  return alike[places[0]] if places and len(own) == len(alike) else None


def _are_equal(one: np.ndarray | None, other: np.ndarray | None) -> bool:
  return one is None or other is None or np.array_equal(one, other)
