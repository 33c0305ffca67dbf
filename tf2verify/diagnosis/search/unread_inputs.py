"""Inputs that tf1 computes what fails from, and the port does not."""

from collections.abc import Iterator

import numpy as np

from tf2verify.diagnosis.divergence.tensors.outputs import is_opaque
from tf2verify.diagnosis.patterns.operations.reads import tensor_text
from tf2verify.diagnosis.places.looking import Looking
from tf2verify.numerics.agreement import agreement
from tf2verify.records.op_graph import INPUT, OpGraph
from tf2verify.records.wording import listed

_MOST = 3
# By how much a number is moved, of the greatest one.
_MOVED = 0.1


def unread_inputs(looking: Looking) -> str:
  """Returns that what fails is computed without some inputs in the port, as text; '' without any.

  Only of inputs with which what fails changes in tf1.

  Args:
    looking: the search in the port as it is.
  """
  graphs = looking.tf1.op_graph, looking.tf2.op_graph
  ends = looking.divergence.ends
  behind = [graph.ancestors([pair[side] for pair in ends]) for side, graph in enumerate(graphs)]
  read = {graphs[1].ops[n].name for n in behind[1] if graphs[1].ops[n].op_type == INPUT}
  if not read:
    return ''  # what the port's graph reads is not known
  missing = [
    n
    for n in sorted(behind[0])
    if graphs[0].ops[n].op_type == INPUT and graphs[0].ops[n].name not in read
  ]
  found = [n for n in missing[:_MOST] if _matters(looking, n)]
  if not found:
    return ''
  names = listed([tensor_text(graphs[0], (n, 0)) for n in found], _MOST)
  lines = dict.fromkeys(line for n in found for line in _readers(graphs[0], n))
  at = f' ({next(iter(lines))})' if lines else ''
  return f'the port computes what differs without {names}, which tf1 reads for it{at}'


def _readers(graph: OpGraph, position: int) -> Iterator[str]:
  for n, _ in graph.consumers()[position]:
    source = graph.ops[n].source
    if source is not None:
      yield source.short


def _matters(looking: Looking, position: int) -> bool:
  """Returns whether what fails changes in tf1 with an input."""
  op = looking.tf1.op_graph.ops[position]
  if is_opaque(op.outputs[0][0]):
    return False
  ends = [looking.tf1.op_graph.ops[one].tensors[0] for one, _ in looking.divergence.ends]
  value, *before = looking.tf1.fetch([op.tensors[0], *ends])
  after = looking.tf1.refetched(ends, {op.tensors[0]: _moved(value)})
  return after is not None and any(
    not agreement(one, two).is_rounding for one, two in zip(before, after, strict=True)
  )


def _moved(value: np.ndarray) -> np.ndarray:
  """Returns other values that are as legal, if possible: in another order, or a little moved."""
  turned = value.ravel()[::-1].reshape(value.shape)
  if not np.array_equal(turned, value):
    return turned
  if value.dtype.kind == 'b':
    return ~value
  if value.dtype.kind == 'f':
    size = max(float(np.max(np.abs(value), initial=0.0)), 1.0)
    return np.asarray(value + _MOVED * size, value.dtype)
  return np.where(value > 0, value - 1, value + 1).astype(value.dtype)
