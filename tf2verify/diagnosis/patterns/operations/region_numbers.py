"""Numbers of two regions that compute the same in another order."""

import dataclasses
import math
from collections.abc import Sequence

import numpy as np

from tf2verify.diagnosis.divergence.tensors.regions import Region, RegionPair
from tf2verify.diagnosis.patterns.numbers.known_values import computed_number
from tf2verify.diagnosis.patterns.operations.op_text import value_text
from tf2verify.numerics.same_numbers import holds_one_number
from tf2verify.records.diagnosis import GraphAspect, GraphDifference
from tf2verify.records.op_graph import CONSTANT, NodeChange, OpGraph
from tf2verify.relation.operations.op_pairs import family

# Of these it does not matter at which place of a region they are.
_OF_NUMBERS = frozenset({'AddV2', 'Mul', 'RealDiv', 'Sub', 'Pow', 'Maximum', 'Minimum'})
# Whole numbers of these are no sizes: a limit, lengths that are rounded, every other element.
_OF_WHOLE_NUMBERS = frozenset(
  {'GreaterEqual', 'Greater', 'LessEqual', 'Less', 'Equal', 'NotEqual', 'FloorDiv', 'FloorMod'}
)
# What takes elements out of a tensor, or holds them in another shape, computes no number.
_TAKES = frozenset(
  {'Reshape', 'Squeeze', 'ExpandDims', 'Identity', 'Cast', 'StridedSlice', 'GatherV2', 'GatherNd'}
)
_SAME = 1e-5
# What computes something of the result of another, from the same numbers.
_AS_KIND = {'SquaredDifference': 'Sub'}


@dataclasses.dataclass(frozen=True)
class _Number:
  position: int  # of the operation that reads it
  slot: int  # of its input
  kind: str  # the operation's type, the same for all spellings
  value: float
  is_written: bool  # whether it is a constant, and not computed from some


def number_that_differs(
  tf1: OpGraph, tf2: OpGraph, pair: RegionPair
) -> tuple[GraphDifference, NodeChange | None] | None:
  """Returns the only number in which two regions differ, wherever it is read in them.

  A factor may stand beside another operand in the port. None where several numbers are left, or
  one that is used differently.

  Args:
    tf1: the tf1 side's graph.
    tf2: the port's.
    pair: the regions.

  Returns:
    What differs, and the change of the port's graph that gives it TF1's number, if one can.
  """
  ones, others = _numbers(tf1, pair.tf1), _numbers(tf2, pair.tf2)
  for one in list(ones):
    same = next((two for two in others if _is_same(one, two)), None)
    if same is not None:
      ones.remove(one)
      others.remove(same)
  if len(ones) != 1 or len(others) != 1 or ones[0].kind != others[0].kind:
    return None
  one, two = ones[0], others[0]
  op, other = tf1.ops[one.position], tf2.ops[two.position]
  difference = GraphDifference(
    GraphAspect.CONSTANT,
    op.name,
    op.op_type,
    op.input_name(one.slot),
    value_text(one.value),
    value_text(two.value),
    one.value,
    two.value,
  )
  if not two.is_written:
    return difference, None
  constant = tf2.ops[other.inputs[two.slot][0]].constant
  assert constant is not None  # it is written
  value = np.full_like(constant, one.value)
  return difference, NodeChange(other.name, inputs=((two.slot, value),))


def takes_elements(differences: Sequence[GraphDifference]) -> bool:
  """Returns whether operations without a partner compute nothing but which elements there are."""
  types = [kind for d in differences for side in (d.tf1_value, d.tf2_value) for kind in side or ()]
  return set(types) <= _TAKES


def _numbers(graph: OpGraph, region: Region) -> list[_Number]:
  found = []
  for position in (*region.inner, region.end):
    op = graph.ops[position]
    kind = _AS_KIND.get(family(op.op_type), family(op.op_type))
    if kind not in _OF_NUMBERS | _OF_WHOLE_NUMBERS:
      continue
    of_kinds = 'fiu' if kind in _OF_WHOLE_NUMBERS else 'f'
    for slot, (producer, _) in enumerate(op.inputs):
      is_written = graph.ops[producer].op_type == CONSTANT
      value = graph.ops[producer].constant if is_written else computed_number(graph, producer)
      if value is not None and holds_one_number(value) and value.dtype.kind in of_kinds:
        found.append(_Number(position, slot, kind, float(value.ravel()[0]), is_written))
  return found


def _is_same(one: _Number, other: _Number) -> bool:
  return one.kind == other.kind and math.isclose(one.value, other.value, rel_tol=_SAME)
