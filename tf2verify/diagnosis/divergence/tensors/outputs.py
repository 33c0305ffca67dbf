"""What operations yield: which outputs can be compared, and how large they are."""

import math
from collections.abc import Iterator, Set

import numpy as np

from tf2verify.diagnosis.divergence.tensors.regions import means_otherwise
from tf2verify.records import rounds
from tf2verify.records.op_graph import CONSTANT, TARGET, OpGraph, OpRecord, TensorKey

_UNKNOWN_BYTES = 2**20
_SIZES = ('Shape', 'ShapeN', 'Size', 'Rank')
# What code does with sizes.
_ARITHMETIC = frozenset(
  (
    'StridedSlice',
    'Slice',
    'Pack',
    'Unpack',
    'Concat',
    'ConcatV2',
    'Range',
    'Add',
    'AddV2',
    'Sub',
    'Mul',
    'Neg',
    'Abs',
    'Maximum',
    'Minimum',
    'FloorDiv',
    'FloorMod',
    'Mod',
    'Div',
    'RealDiv',
    'TruncateDiv',
    'Cast',
    'Prod',
    'Sum',
    'Max',
    'Min',
    'All',
    'Any',
    'Gather',
    'GatherV2',
    'Squeeze',
    'ExpandDims',
    'Reshape',
    'Transpose',
    'ReverseV2',
    'Split',
    'Less',
    'LessEqual',
    'Greater',
    'GreaterEqual',
    'Equal',
    'NotEqual',
    'LogicalAnd',
    'LogicalOr',
    'LogicalNot',
    'Select',
    'SelectV2',
    'BroadcastArgs',
  )
)


def read_outputs(graph: OpGraph, readers: Set[int]) -> set[TensorKey]:
  """Returns the tensors that some operations read."""
  return {key for reader in readers for key in graph.ops[reader].inputs}


def can_fetch(graph: OpGraph, key: TensorKey) -> bool:
  """Returns whether a tensor of a graph is one of numbers."""
  return not is_opaque(graph.ops[key[0]].outputs[key[1]][0])


def is_opaque(dtype: str) -> bool:
  """Returns whether tensors of a dtype cannot be fetched as numpy."""
  return dtype in ('resource', 'variant')


def comparable_outputs(op: OpRecord, other: OpRecord) -> Iterator[int]:
  """Yields the outputs that mean the same on both sides and can be fetched."""
  if op.op_type == TARGET and len(op.tensors) != len(other.tensors):
    return  # a gradient that is dense on one side, rows at their indices on the other
  for number in range(min(len(op.tensors), len(other.tensors))):
    if any(is_opaque(one.outputs[number][0]) for one in (op, other)):
      continue
    if not means_otherwise(op, other, number):
      yield number


def size_arithmetic(graph: OpGraph) -> set[int]:
  """Returns the operations that compute integers from the sizes of tensors and constants alone.

  Each side reads the sizes that its own way of computing needs. Of two such operations
  in the same place that yield other numbers none is wrong; where one is, what is
  computed by it differs as well.
  """
  found: set[int] = set()
  for position, op in enumerate(graph.ops):
    if op.op_type in _SIZES:
      found.add(position)
    elif op.op_type in _ARITHMETIC and op.outputs and op.outputs[0][0].startswith(('int', 'bool')):
      known = [n in found or graph.ops[n].op_type == CONSTANT for n, _ in op.inputs]
      if known and all(known):
        found.add(position)
  return found


def written_variable(target: OpRecord) -> str:
  """Returns the variable that an update target writes."""
  return target.name.removeprefix('update of ').partition(' (')[0]


def written(op: OpRecord, before: np.ndarray, value: np.ndarray) -> np.ndarray:
  """Returns what a variable becomes by an update."""
  kind = str(op.attribute('op'))
  if kind.startswith('AssignSub'):
    return np.asarray(before - value)
  return np.asarray(before + value) if kind.startswith('AssignAdd') else value


def output_bytes(output: tuple[str, tuple[int | None, ...] | None]) -> int:
  """Returns about how large an output is, given its dtype and static shape."""
  dtype, shape = output
  if shape is None or any(size is None for size in shape):
    return _UNKNOWN_BYTES
  width = 8 if '64' in dtype else 4
  return width * math.prod(size or 1 for size in shape)


def read_in_parts(graph: OpGraph) -> list[int]:
  """Returns the operations of which nothing reads more than parts: the gates of a cell.

  These may lie in another order, and a bias may have been added to one; they tell of what they are
  parts of.
  """
  readers = graph.consumers()
  return [
    n
    for n in range(len(graph.ops))
    if readers[n] and all(_is_part(graph.ops[reader].name) for reader, _ in readers[n])
  ]


def _is_part(name: str) -> bool:
  return rounds.whole(name) != name
