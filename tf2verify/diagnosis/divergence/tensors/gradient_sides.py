"""Which operations of a training step come before its gradients, and which ones after.

A clipping that does nothing in a step yields the gradient as it is: no value tells the two apart,
and they are not one quantity. What is computed of gradients has no partner among what they are
computed from.
"""

from tf2verify.records.op_graph import OpGraph
from tf2verify.relation.operations.op_pairs import Pairing

_GRADIENT = 'gradient '


class GradientSides:
  """Tells pairs of which one side is before the gradients, and the other one after."""

  def __init__(self, pairing: Pairing) -> None:
    self._tf1 = _sides(pairing.tf1)
    self._tf2 = _sides(pairing.tf2)

  def is_after(self, tf1: int) -> bool:
    """Returns whether an operation of tf1 is one of what is made of gradients."""
    return tf1 in self._tf1[1]

  def are_apart(self, tf1: int, tf2: int) -> bool:
    """Returns whether operations of both sides cannot be one quantity."""
    (before, after), (other_before, other_after) = self._tf1, self._tf2
    return (tf1 in after and tf2 in other_before) or (tf1 in before and tf2 in other_after)


def _sides(graph: OpGraph) -> tuple[set[int], set[int]]:
  """Returns what gradients are computed from, themselves among it, and what is made of them."""
  targets = [n for name, n in graph.targets().items() if name.startswith(_GRADIENT)]
  made = {n for end in targets for n, _ in graph.ops[end].inputs}
  after: set[int] = set()
  for n, op in enumerate(graph.ops):
    if any(producer in made or producer in after for producer, _ in op.inputs):
      after.add(n)
  # The gradients of a second optimizer may follow from updates of the first one.
  return graph.ancestors(made) - after, after
