"""Gradients that agree, whoever yields them.

Of a batch norm one operation of tf1 yields three gradients, and many of the port yield one each: no
two of them are partners. What an update makes of a gradient starts from the same quantity.
"""

from collections.abc import Sequence

from tf2verify.diagnosis.divergence.tensors.outputs import is_opaque
from tf2verify.diagnosis.divergence.tensors.sources import InspectableRun
from tf2verify.numerics.relayout import Relayout, agreement_as_held
from tf2verify.records.op_graph import CONSTANT, TensorKey
from tf2verify.relation.operations.op_pairs import Pairing

_DIFFERENTIATED = 'gradient '
_GRADIENTS = (_DIFFERENTIATED, 'applied gradient ')
_UPDATE = 'update of '
# Of the greatest element: rounding of a long sum is no more.
_SAME = 1e-4


def pair_settled_gradients(
  tf1: InspectableRun,
  tf2: InspectableRun,
  pairing: Pairing,
  views: dict[TensorKey, Relayout],
  targets: Sequence[str],
) -> None:
  """Pairs the gradients of a training step that agree and whose operations are no partners.

  Args:
    tf1: the tf1 side's run.
    tf2: the port's.
    pairing: their operations in pairs; tensors are added.
    views: how the port holds what belongs to a variable, by tf1 tensor; what was found is added.
    targets: what differs; nothing is done where updates are not among it.
  """
  if not any(name.startswith(_UPDATE) for name in targets):
    return
  ops, others = tf1.op_graph.ops, tf2.op_graph.ops
  theirs = tf2.op_graph.targets()
  found: dict[TensorKey, TensorKey] = {}
  for name, end in tf1.op_graph.targets().items():
    if not name.startswith(_GRADIENTS) or name not in theirs:
      continue
    keys = ops[end].inputs, others[theirs[name]].inputs
    if len(keys[0]) != 1 or len(keys[1]) != 1:
      continue  # rows and their indices
    ((n, k),), ((m, j),) = keys
    is_number = CONSTANT in (ops[n].op_type, others[m].op_type)
    is_pair = pairing.tf2_of[n] == m and k == j
    if not is_number and not is_pair and not is_opaque(ops[n].outputs[k][0]):
      found[n, k] = (m, j)
  both = (
    tf1.fetch([ops[n].tensors[k] for n, k in found]),
    tf2.fetch([others[m].tensors[j] for m, j in found.values()]),
  )
  for key, one, other in zip(list(found), *both, strict=True):
    view = views.get(key)
    held = one if view is None else view.to_tf2(one)
    known, layout = agreement_as_held(held, other)
    is_settled = known.is_rounding or known.relative <= _SAME
    if not is_settled or (view is not None and layout is not None):
      del found[key]
    elif layout is not None:
      views[key] = layout
  pairing.tensors.update(found)
  if not any(name.startswith(_DIFFERENTIATED) for name in targets):
    _settle_parts(pairing)


def _settle_parts(pairing: Pairing) -> None:
  """Has regions end at gradients of variables that the port holds in other parts than tf1.

  As those of a kernel and a recurrent kernel: together they were found to agree.
  """
  ends = pairing.tf1.targets(), pairing.tf2.targets()
  graphs = pairing.tf1, pairing.tf2
  for own, others, graph, settled in zip(ends, ends[::-1], graphs, pairing.settled, strict=True):
    names = [n for n in own if n.startswith(_DIFFERENTIATED) and n not in others]
    settled.update(key for name in names for key in graph.ops[own[name]].inputs)
