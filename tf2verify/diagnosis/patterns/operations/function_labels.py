"""Names for what enters the functions of loops and conditions, the same on both sides."""

import dataclasses
from collections.abc import Sequence

from tf2verify.records.op_graph import INPUT, TARGET, OpGraph, OpRecord


def relabelled(graph: OpGraph, labels: Sequence[str]) -> OpGraph:
  """Names the arguments and results of a function by what its caller gives it."""
  counts: dict[str, int] = {}
  names = []
  for label in labels:
    counts[label] = counts.get(label, 0) + 1
    names.append(f'{label} #{counts[label]}')

  def renamed(op: OpRecord) -> OpRecord:
    if op.op_type not in (INPUT, TARGET):
      return op
    kind, _, number = op.name.rpartition(' ')
    known = int(number) < len(names)
    return dataclasses.replace(op, name=f'{kind} {names[int(number)] if known else number}')

  return OpGraph(graph.side, tuple(renamed(op) for op in graph.ops))
