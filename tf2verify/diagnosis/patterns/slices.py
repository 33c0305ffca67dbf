"""Slices of a graph, to be taken elsewhere."""

import dataclasses
from typing import Any

import numpy as np

from tf2verify.diagnosis.patterns.op_text import slice_text
from tf2verify.records.op_graph import OpGraph

# Begin, end and strides.
_BOUNDS = 3


@dataclasses.dataclass(frozen=True, eq=False)
class Slice:
  """What a slice takes: as text, of how many axes, and by which masks and bounds."""

  text: str
  axes: int
  masks: tuple[tuple[str, Any], ...]
  bounds: tuple[np.ndarray, ...]  # begin, end and strides


def slice_of(graph: OpGraph, position: int) -> Slice | None:
  """Returns what a slice takes; None for another operation, or where that is not known."""
  op = graph.ops[position]
  text = slice_text(graph, position) if op.op_type == 'StridedSlice' else ''
  bounds = [graph.ops[producer].constant for producer, _ in op.inputs[1:]] if text else []
  known = tuple(bound for bound in bounds if bound is not None)
  if len(known) != _BOUNDS:
    return None
  masks = tuple((name, value) for name, value in op.attributes if name.endswith('_mask'))
  return Slice(text, len(known[0]), masks, known)
