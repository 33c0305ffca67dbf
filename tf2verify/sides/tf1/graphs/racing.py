"""The reference's graph, run in an order where it leaves reads and writes of variables open."""

import dataclasses
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from tf2verify.records.observation import SourceLine
from tf2verify.records.races import (
  MOST_ORDERS,
  PROGRAM,
  RECORDED,
  Order,
  OrderKind,
  Race,
  orders_of,
)
from tf2verify.sides.graphs.variables.nested_races import RunSearch
from tf2verify.sides.tf1.graphs.build import BuiltGraph

# Gives the user's line of an operation, by its name.
SourceOf = Callable[[str], SourceLine | None]


@dataclasses.dataclass(frozen=True)
class Fetches:
  """What one session.run is asked for."""

  needed: frozenset[str]  # names of tensors and operations
  # Names of what is fetched in addition, only to be looked at: the losses beside a train op.
  looked_at: frozenset[str] = frozenset()
  # An operation of tf2verify's, which lets others wait for what is looked at. In production
  # nothing waits, so that it is left out where that is asked; None without one.
  gate: str | None = None

  def without_gate(self, graph_def: Any) -> Any:
    """Returns the GraphDef, changed: no operation waits for the gate."""
    gate = f'^{self.gate}'
    for node in graph_def.node if self.gate is not None else ():
      if gate in node.input:
        kept = [given for given in node.input if given != gate]
        del node.input[:]
        node.input.extend(kept)
    return graph_def


@dataclasses.dataclass(frozen=True, eq=False)
class GraphRaces:
  """What one session.run of a graph leaves open."""

  search: RunSearch  # has found it
  races: tuple[Race, ...]  # may be empty


class Racing:
  """Runs the graphs of one reference in one order, and remembers what they left open.

  Attributes:
    order: of the runs to come.
  """

  def __init__(self, recorded: bool = False) -> None:
    """Takes whether the runs were recorded, in an order that nobody knows."""
    self._recorded = recorded
    self.order = RECORDED if recorded else PROGRAM
    self._met: list[GraphRaces] = []
    # By the graph: what was fetched, how large it was then, and the order.
    self._known: weakref.WeakKeyDictionary[tf.Graph, dict[tuple[Fetches, int], GraphRaces]] = (
      weakref.WeakKeyDictionary()
    )
    self._copies: weakref.WeakKeyDictionary[
      tf.Graph, dict[tuple[Fetches, int, Order], tf.Graph]
    ] = weakref.WeakKeyDictionary()

  def begin(self, order: Order | None = None) -> None:
    """Sets the order of the runs to come, by default the first; forgets what was met."""
    self.order = order or (RECORDED if self._recorded else PROGRAM)
    self._met = []

  @property
  def replays(self) -> bool:
    """Whether recorded numbers are to be given as they are."""
    return self.order.kind is OrderKind.RECORDED

  @property
  def met(self) -> tuple[Race, ...]:
    """The races of the runs since `begin`."""
    return tuple(dict.fromkeys(race for found in self._met for race in found.races))

  def affected(self) -> frozenset[str]:
    """Returns the variables whose values those may change."""
    return frozenset[str]().union(*(found.search.affected() for found in self._met))

  def orders(self) -> tuple[Order, ...]:
    """Returns the orders to try for what was met; of those that decide all alike, the first."""
    found: dict[object, Order] = {RECORDED: RECORDED} if self._recorded else {}
    for order in orders_of(self.met):
      edges = tuple(known.search.edges(order, known.races) for known in self._met)
      found.setdefault(tuple(frozenset(pairs) for pairs in edges), order)
    return tuple(found.values())[:MOST_ORDERS]

  def meet(self, found: GraphRaces) -> None:
    """Remembers the races of a run."""
    if found.races and all(found is not known for known in self._met):
      self._met.append(found)

  def in_order(self, built: BuiltGraph, fetches: Fetches, source_of: SourceOf) -> BuiltGraph:
    """Returns a graph that is run in the order; itself where it leaves nothing open.

    Args:
      built: a graph; not changed.
      fetches: what one session.run is asked for.
      source_of: gives the user's line of an operation.
    """
    graph = built.graph
    key = fetches, graph.version
    known = self._known.setdefault(graph, {})
    if key not in known:
      known[key] = searched(graph.as_graph_def(), fetches, source_of)
    found = known[key]
    if not found.races:
      return built
    self.meet(found)
    order = PROGRAM if self.replays else self.order
    copies = self._copies.setdefault(graph, {})
    copy = (*key, order)
    if copy not in copies:
      copies[copy] = _ordered(graph, fetches, found, order)
    return dataclasses.replace(built, graph=copies[copy], output_nest=None)


def searched(graph_def: Any, fetches: Fetches, source_of: SourceOf) -> GraphRaces:
  """Returns what one session.run of a GraphDef, which may be changed, leaves open."""
  search = RunSearch(fetches.without_gate(graph_def), fetches.needed, fetches.looked_at)
  return GraphRaces(search, search.races(source_of))


def _ordered(graph: tf.Graph, fetches: Fetches, found: GraphRaces, order: Order) -> tf.Graph:
  """Returns a copy of a graph in which operations wait for each other as an order says."""
  edges = found.search.edges(order, found.races)
  graph_def = fetches.without_gate(graph.as_graph_def())
  nodes = {('', node.name): node for node in graph_def.node}
  for function in graph_def.library.function:
    nodes |= {(function.signature.name, node.name): node for node in function.node_def}
  for function, before, after in edges:
    if f'^{before}' not in nodes[function, after].input:
      nodes[function, after].input.append(f'^{before}')
  copy = tf.Graph()
  with copy.as_default():
    tf.import_graph_def(graph_def, name='')
  return copy


def fetches_of(built: BuiltGraph, gradients: Sequence[str] = ()) -> Fetches:
  """Returns what a run of a model fetches: outputs, losses, update ops, and gradients."""
  names = [leaf for _, leaf in built.outputs if isinstance(leaf, str)]
  names += [tensor for _, tensor in built.regularization_losses]
  return Fetches(frozenset((*names, *gradients, *built.update_ops)))
