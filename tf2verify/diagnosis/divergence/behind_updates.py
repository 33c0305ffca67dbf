"""What is behind updates that differ, where the gradients agree."""

from collections.abc import Iterable, Sequence

from tf2verify.records.op_graph import OpGraph
from tf2verify.reference.graph_ops import reached

_GRADIENT = 'gradient '


def behind_updates(
  graph: OpGraph, behind: set[int], targets: Sequence[str], ends: Iterable[int]
) -> set[int]:
  """Returns the operations behind targets that do not lead there by a gradient that agrees.

  An update that differs is no fault of the model where the gradients are the same, whatever differs
  in the model without an effect on them, as the outputs beyond the end of a sequence.

  Args:
    graph: of the tf1 side.
    behind: positions of the operations behind the targets.
    targets: names of the targets that differ.
    ends: positions of these targets.
  """
  agreeing = [n for name, n in graph.targets().items() if name not in targets]
  gradients = [n for n in agreeing if graph.ops[n].name.startswith(_GRADIENT)]
  settled = {producer for n in gradients for producer, _ in graph.ops[n].inputs}
  if not targets or not settled:
    return behind

  def further(position: int) -> list[int]:
    return [] if position in settled else [n for n, _ in graph.ops[position].inputs]

  return set(reached(ends, further)) & behind
