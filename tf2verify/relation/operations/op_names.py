"""Which operation of the port is called as one of tf1 is."""

import re
from collections import Counter

from tf2verify.records.op_graph import TARGET, OpGraph, OpRecord


class Names:
  """Names of tf2 operations after the layer's own prefix."""

  def __init__(self, tf1: OpGraph, tf2: OpGraph) -> None:
    """Prepares.

    Args:
      tf1: the tf1 side's graph.
      tf2: the port's.
    """
    tf1_names = {op.name for op in tf1.ops if not op.is_leaf}
    prefixes = Counter(
      '/'.join(op.name.split('/')[:depth])
      for op in tf2.ops
      if not op.is_leaf and op.op_type != TARGET
      for depth in range(4)
      if '/'.join(op.name.split('/')[depth:]) in tf1_names
    )
    self._prefix = max(prefixes, key=lambda prefix: prefixes[prefix], default='')
    self._tf2: dict[tuple[str, str], int] = {}
    for position, op in enumerate(tf2.ops):
      if not op.is_leaf and op.op_type != TARGET:
        self._tf2.setdefault((self.bare(op.name), op.op_type), position)
    self._tf1_counts = Counter(_stem(op.name, op.op_type) for op in tf1.ops)
    self._tf2_counts = Counter(_stem(self.bare(op.name), op.op_type) for op in tf2.ops)

  def bare(self, name: str) -> str:
    """Returns a tf2 name without the layer's prefix."""
    if self._prefix:
      name = name.replace(self._prefix + '/', '', 1)
    return name

  def tf2_of(self, op: OpRecord) -> int | None:
    """Returns the tf2 operation of a tf1 operation's name and type."""
    return self._tf2.get((op.name, op.op_type))

  def count_alike(self, op: OpRecord) -> bool:
    """Returns whether both sides have as many operations of this name, its number aside.

    Otherwise `Relu_1` of one side may be `Relu` of the other.
    """
    stem = _stem(op.name, op.op_type)
    return self._tf1_counts[stem] == self._tf2_counts[stem]


def _stem(name: str, op_type: str) -> tuple[str, str]:
  return re.sub(r'(_\d+)+$', '', name), op_type
