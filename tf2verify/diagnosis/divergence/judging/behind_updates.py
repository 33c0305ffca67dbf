"""What is behind updates that differ, where the gradients, or other updates, agree."""

import re
from collections.abc import Collection, Iterable, Sequence

from tf2verify.records.op_graph import OpGraph
from tf2verify.reference.graph_ops import reached

_GRADIENTS = ('gradient ', 'applied gradient ')
_UPDATE = 'update of '
# `update of v (2)` is the second write to `v`.
_NUMBER = re.compile(r' \(\d+\)$')


def behind_updates(
  graph: OpGraph,
  behind: set[int],
  targets: Sequence[str],
  ends: Iterable[int],
  shared: Collection[int] = (),
) -> set[int]:
  """Returns the operations behind targets that do not lead there by what agrees.

  An update that differs is no fault of the model where the gradients are the same, whatever differs
  in the model without an effect on them, as the outputs beyond the end of a sequence. A moving
  average that differs is none of the optimizer where the weights and its slots are the same.

  Args:
    graph: of the tf1 side.
    behind: positions of the operations behind the targets.
    targets: names of the targets that differ.
    ends: positions of these targets.
    shared: positions of targets that both sides have: of updates, those were compared.
  """
  agreeing = [n for name, n in graph.targets().items() if _NUMBER.sub('', name) not in targets]
  gradients = [n for n in agreeing if graph.ops[n].name.startswith(_GRADIENTS)]
  updates = [n for n in agreeing if n in shared and graph.ops[n].name.startswith(_UPDATE)]
  settled = {producer for n in (*gradients, *updates) for producer, _ in graph.ops[n].inputs}
  if not targets or not settled:
    return behind

  def further(position: int) -> list[int]:
    return [] if position in settled else [n for n, _ in graph.ops[position].inputs]

  # What makes a gradient that agrees may be off by rounding, which is no source either.
  return (set(reached(ends, further)) & behind) - settled
