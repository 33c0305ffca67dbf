"""How much of what the reference computes the port computes as well, whatever comes out."""

from collections.abc import Iterable, Sequence

import numpy as np

from tf2verify.numerics.relayout import is_constant
from tf2verify.numerics.signatures import may_be_alike, signature
from tf2verify.records.op_graph import TARGET, OpGraph
from tf2verify.sides.graphs.run import GraphRun

# Elements that are looked at, of the smaller tensors first.
_MOST_ELEMENTS = 4_000_000


class ValueOverlap:
  """Counts tensors of the reference that the port has as well.

  A mistake of the port changes what comes after it, and leaves what comes before.

  Attributes:
    wanted: the tensors of the port to compare.
  """

  def __init__(self, reference: GraphRun, port: GraphRun) -> None:
    """Runs the reference.

    Args:
      reference: its run, at the values of a trial.
      port: the port's graph.
    """
    self.wanted = _tensors(port.op_graph)
    values = reference.refetched(_tensors(reference.op_graph), {}) or []
    self._marks = np.array(sorted(_marks(values))).reshape(-1, 3)

  def count(self, values: Iterable[np.ndarray]) -> int:
    """Returns how many of the reference's tensors are among some values of the port's."""
    marks = np.array(sorted(_marks(values))).reshape(-1, 3)
    if not len(marks):
      return 0
    return sum(bool(may_be_alike(mark, marks).any()) for mark in self._marks)


def _marks(values: Iterable[np.ndarray]) -> set[tuple[float, ...]]:
  return {tuple(signature(v).tolist()) for v in values if v.size > 1 and not is_constant(v)}


def _tensors(graph: OpGraph) -> Sequence[str]:
  """Returns the tensors of floating numbers whose sizes are known, the smaller ones first."""
  sizes: list[tuple[int, str]] = []
  for op in graph.ops:
    if op.is_leaf or op.op_type == TARGET:
      continue
    for tensor, (dtype, shape) in zip(op.tensors, op.outputs, strict=False):
      if dtype in ('float32', 'float64') and shape is not None and None not in shape:
        sizes.append((int(np.prod([size or 0 for size in shape])), tensor))
  found, left = [], _MOST_ELEMENTS
  for size, tensor in sorted(sizes):
    left -= size
    if left < 0:
      break
    found.append(tensor)
  return found
