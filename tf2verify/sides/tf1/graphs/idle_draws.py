"""Random numbers of a graph that change nothing, whatever they are: a dropout that keeps all."""

from typing import Any

import numpy as np

from tf2verify.sides.graphs.graph_defs.sessions import open_session
from tf2verify.sides.tf1.graphs.build import BuiltGraph

_UNIFORM = 'RandomUniform'
# Element by element, and none turns back within a range: where both ends of it yield one number,
# all of it does.
_MONOTONE = frozenset(
  (
    *('Add', 'AddV2', 'Sub', 'Mul', 'RealDiv', 'Div', 'Neg', 'Maximum', 'Minimum'),
    *('Floor', 'Ceil', 'Round', 'Rint', 'Cast', 'Identity'),
    *('Less', 'LessEqual', 'Greater', 'GreaterEqual'),
  )
)
_DIVISIONS = ('RealDiv', 'Div')


def idle_draws(built: BuiltGraph) -> frozenset[str]:
  """Returns the ops that draw uniform numbers of which nothing that is computed depends.

  The keep mask `floor(keep + uniform)` of a rate of 0 is 1 everywhere: `keep` is 1. Functions of
  TensorFlow 2 draw nothing there.
  """
  draws = [draw.op_name for draw in built.random_draws if draw.op_type == _UNIFORM]
  known = [built.graph.get_operation_by_name(name) for name in draws if name]
  return frozenset(op.name for op in known if _is_idle(built.graph, op))


def _is_idle(graph: Any, draw: Any) -> bool:
  """Returns whether each way from a draw leads through what is the same at both ends of it."""
  drawn = draw.outputs[0]
  if drawn.shape.rank is None or not drawn.dtype.is_floating:
    return False
  behind, open_ends = _computed_from(drawn)
  if not behind:
    return False
  dtype = drawn.dtype.as_numpy_dtype
  shape = [size or 1 for size in drawn.shape.as_list()]
  with open_session(graph) as session:
    ends = [
      session.run(behind, {drawn: np.full(shape, value, dtype)})
      for value in (dtype(0.0), dtype(1.0) - np.finfo(dtype).eps)  # the greatest that is drawn
    ]
  same = [tensor for tensor, *values in zip(behind, *ends, strict=True) if np.array_equal(*values)]
  return not _reaches(drawn, {tensor.name for tensor in same}, open_ends)


def _computed_from(drawn: Any) -> tuple[list[Any], set[str]]:
  """Returns what is computed from a draw and constants alone, and which of it is read by more."""
  behind: list[Any] = []
  open_ends: set[str] = set()
  pending = [drawn]
  while pending:
    tensor = pending.pop()
    readers = tensor.consumers()
    if not readers or not all(_is_of(op, tensor) for op in readers):
      open_ends.add(tensor.name)
    for op in readers:
      if _is_of(op, tensor) and op.outputs[0] not in behind:
        behind.append(op.outputs[0])
        pending.append(op.outputs[0])
  return behind, open_ends


def _is_of(op: Any, tensor: Any) -> bool:
  """Returns whether an operation reads a tensor once, and constants."""
  others = [one for one in op.inputs if one is not tensor]
  if op.type in _DIVISIONS and op.inputs[0] is not tensor:
    return False  # a divisor may pass zero
  return op.type in _MONOTONE and len(others) + 1 == len(op.inputs) and all(map(_is_fixed, others))


def _is_fixed(tensor: Any) -> bool:
  op = tensor.op
  return op.type == 'Const' or (op.type in _MONOTONE and all(map(_is_fixed, op.inputs)))


def _reaches(tensor: Any, same: set[str], open_ends: set[str]) -> bool:
  """Returns whether something is computed from a draw that is not the same for all numbers."""
  if tensor.name in same:
    return False
  if tensor.name in open_ends:
    return True
  return any(_reaches(op.outputs[0], same, open_ends) for op in tensor.consumers())
