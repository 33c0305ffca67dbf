"""Tensors of both sides to be compared, in portions that fit into memory."""

from collections.abc import Iterable, Iterator, Set

from tf2verify.diagnosis.divergence.outputs import comparable_outputs, output_bytes, read_outputs
from tf2verify.records.op_graph import TARGET, OpGraph, TensorKey

# Tensors are fetched in portions of about this size.
_PORTION_BYTES = 96 * 2**20


def portions(
  graphs: tuple[OpGraph, OpGraph],
  pairs: Iterable[tuple[int, int]],
  behind: tuple[Set[int], Set[int]],
) -> Iterator[tuple[list[TensorKey], list[TensorKey]]]:
  """Yields the outputs of pairs that somebody reads, those of tf1 and those of the port.

  Args:
    graphs: that of tf1 and that of the port.
    pairs: positions of operations in them.
    behind: positions of the operations that count as readers.
  """
  tf1_keys: list[TensorKey] = []
  tf2_keys: list[TensorKey] = []
  size = 0
  tf1_read, tf2_read = map(read_outputs, graphs, behind)
  for tf1, tf2 in pairs:
    op, other = graphs[0].ops[tf1], graphs[1].ops[tf2]
    for number in comparable_outputs(op, other):
      # What nobody reads may hold anything: a reserve space of batch norm.
      read = (tf1, number) in tf1_read and (tf2, number) in tf2_read
      if op.op_type != TARGET and not read:
        continue
      tf1_keys.append((tf1, number))
      tf2_keys.append((tf2, number))
      size += output_bytes(op.outputs[number])
      if size > _PORTION_BYTES:
        yield tf1_keys, tf2_keys
        tf1_keys, tf2_keys, size = [], [], 0
  if tf1_keys:
    yield tf1_keys, tf2_keys
