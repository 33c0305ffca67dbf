"""From which operations with a partner an operation is computed."""

from collections.abc import Sequence

from tf2verify.records.op_graph import OpGraph
from tf2verify.reference.graph_ops import reached

_Partners = Sequence[int | None]


class NearestPairs:
  """Operations of both sides, by the nearest operations before them that are partners.

  As these are when it is asked first.
  """

  def __init__(
    self, graphs: tuple[OpGraph, OpGraph], partners: tuple[_Partners, _Partners]
  ) -> None:
    """Prepares.

    Args:
      graphs: those of tf1 and of the port.
      partners: positions of partners, of the operations of each of them.
    """
    self._graphs = graphs
    self._partners = partners
    self._known: tuple[dict[int, set[int]], dict[int, set[int]]] = {}, {}

  def most_alike(self, tf1: int, candidates: list[int]) -> list[int]:
    """Returns those of some tf2 operations that are computed from most partners, and little else.

    Args:
      tf1: position of an operation of tf1.
      candidates: positions of operations of the port.
    """
    if len(candidates) == 1:
      return candidates
    own = {self._partners[0][one] for one in self._nearest(0, tf1)}
    shares = []
    for candidate in candidates:
      its = self._nearest(1, candidate)
      shares.append(len(own & its) / max(len(own | its), 1))
    return [one for one, share in zip(candidates, shares, strict=True) if share == max(shares)]

  def _nearest(self, side: int, position: int) -> set[int]:
    known = self._known[side]
    if position not in known:
      known[position] = nearest(self._graphs[side], position, self._partners[side])
    return known[position]


def nearest(graph: OpGraph, end: int, partners: _Partners) -> set[int]:
  """Returns the nearest operations before one that have a partner."""

  def before(position: int) -> list[int]:
    return [producer for producer, _ in graph.ops[position].inputs]

  found = reached(before(end), lambda one: before(one) if partners[one] is None else ())
  return {position for position in found if partners[position] is not None}
