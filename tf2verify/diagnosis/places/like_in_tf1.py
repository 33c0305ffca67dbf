"""The operation of tf1 that yields what one of the port yields once it is corrected."""

import numpy as np

from tf2verify.diagnosis.divergence.tensors.outputs import is_opaque
from tf2verify.diagnosis.divergence.tensors.variable_views import variable_views
from tf2verify.diagnosis.places.looking import Looking
from tf2verify.numerics.agreement import agreement
from tf2verify.records.op_graph import TARGET

_MOST_LIKE = 400


def like_in_tf1(looking: Looking, value: np.ndarray) -> int | None:
  """Returns the operation of tf1, on the way to what differs, that yields an array; None for none.

  Args:
    looking: the search in the port as it is.
    value: as the port holds it.
  """
  graph = looking.tf1.op_graph
  if value.size == 1 and float(value.item()).is_integer():
    return None  # many operations yield 1
  targets = graph.targets()
  views = variable_views(graph, looking.tf2.layouts)
  known = [targets[name] for name in looking.targets if name in targets]
  behind = [n for n in sorted(graph.ancestors(known), reverse=True) if not graph.ops[n].is_leaf]
  alike = []
  for n in behind:
    op, view = graph.ops[n], views.get((n, 0))
    shape = value.shape if view is None else view.tf1_shape
    is_there = op.op_type != TARGET and op.source is not None and bool(op.tensors)
    if is_there and not is_opaque(op.outputs[0][0]) and op.outputs[0][1] == shape:
      alike.append(n)
  alike = alike[:_MOST_LIKE]
  found = looking.tf1.fetch([graph.ops[n].tensors[0] for n in alike])
  for n, one in zip(alike, found, strict=True):
    view = views.get((n, 0))
    if agreement(one if view is None else view.to_tf2(one), value).is_rounding:
      return n
  return None
