"""Whether an edit mends a port by more than the outcome of a decision.

Where all that an edit changes ends in a comparison (`iou < 0.5`), a change of almost any kind may
make it come out as in tf1 for the inputs of a run. That it does proves nothing; what is compared
has to be a quantity of tf1 as well.
"""

import math
from collections.abc import Callable, Collection, Sequence

import numpy as np

from tf2verify.diagnosis.divergence.tensors.sources import InspectableRun
from tf2verify.numerics.relayout import alike_as_held, is_constant
from tf2verify.numerics.signatures import may_be_alike, signature
from tf2verify.records.op_graph import NodeChange, OpGraph, TensorKey

_DECISIONS = frozenset(
  (
    *('Less', 'LessEqual', 'Greater', 'GreaterEqual', 'Equal', 'NotEqual', 'ApproximateEqual'),
    *('ArgMax', 'ArgMin', 'Sign', 'Floor', 'Ceil', 'Round', 'Rint'),
  )
)
# Tensors of tf1 that are looked through for one quantity.
_MOST_BYTES = 32 * 2**20
_FLOAT_BYTES = 4

_Compute = Callable[[Sequence[str], Sequence[NodeChange]], list[np.ndarray] | None]


def decides_alike(
  tf1: InspectableRun,
  tf2: OpGraph,
  ends: tuple[Collection[int], Collection[int]],
  changes: Sequence[NodeChange],
  computed: _Compute,
) -> bool:
  """Returns whether an edit is more than one that turns decisions.

  Args:
    tf1: the tf1 side's run.
    tf2: the port's graph.
    ends: positions of what fails, on both sides.
    changes: the edit.
    computed: returns tensors of the port with an edit; None where it does not run so.
  """
  keys = _decided(tf2, ends[1], {change.op for change in changes})
  if not keys:
    return True
  found = computed([tf2.ops[n].tensors[k] for n, k in keys], changes)
  return found is not None and all(_is_known(tf1, ends[0], value) for value in found)


def _decided(graph: OpGraph, ends: Collection[int], changed: Collection[str]) -> list[TensorKey]:
  """Returns what decisions read of what is changed, if all of it ends there; nothing elsewhere."""
  behind = sorted(graph.ancestors(ends))
  reached = {n for n in behind if graph.ops[n].name in changed}
  keys: dict[TensorKey, None] = {}
  for n in behind:
    op = graph.ops[n]
    read = [key for key in op.inputs if key[0] in reached]
    if not read or n in reached:
      continue
    floats = [(m, k) for m, k in read if graph.ops[m].outputs[k][0].startswith('float')]
    if op.op_type in _DECISIONS and floats:
      keys.update(dict.fromkeys(floats))
    else:
      reached.add(n)
  return [] if reached & set(ends) else list(keys)


def _is_known(tf1: InspectableRun, ends: Collection[int], value: np.ndarray) -> bool:
  """Returns whether tf1 computes a quantity, in whatever shape; that is not told of one number."""
  if is_constant(value):
    return False
  graph = tf1.op_graph
  known: list[str] = []
  for n in sorted(graph.ancestors(ends)):
    op = graph.ops[n]
    for (dtype, shape), tensor in zip(op.outputs, op.tensors, strict=False):
      is_number = dtype.startswith('float') and shape is not None and None not in shape
      if is_number and math.prod(size or 0 for size in shape or ()) == value.size:
        known.append(tensor)
  most = _MOST_BYTES // (_FLOAT_BYTES * max(value.size, 1))
  mark = signature(value)
  for other in tf1.fetch(known[:most]):
    if may_be_alike(mark, signature(other)[None]).all() and alike_as_held(other, value):
      return True
  return False
