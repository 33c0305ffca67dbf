"""Races of one session.run, also inside of what it calls: branches, loops, `tf.function`."""

import functools
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from tf2verify.records.observation import SourceLine
from tf2verify.records.races import Order, Race
from tf2verify.sides.graphs.variables.accesses import output_starts
from tf2verify.sides.graphs.variables.races import RaceSearch


class Edge(NamedTuple):
  """An operation is to wait for another."""

  function: str  # in which both are; '' for the graph itself
  before: str  # the operation that runs first
  after: str  # the one that waits for it


class RunSearch:
  """The races of one session.run, and of every function in it that writes a variable.

  TensorFlow 1 orders the operations of a branch of `tf.cond` no more than those of a graph; and
  where they are a function's, the graph that calls it sees one operation.
  """

  def __init__(
    self,
    graph_def: Any,
    fetches: Iterable[str],
    looked_at: Iterable[str] = (),
    functions: tuple[str, ...] = ('',),
  ) -> None:
    """Searches.

    Args:
      graph_def: a GraphDef with its library.
      fetches: names of tensors and operations.
      looked_at: names of what is fetched in addition, see `RaceSearch`.
      functions: whose body the graph is, the outermost first.
    """
    self._function = functions[-1]
    self._search = RaceSearch(graph_def, fetches, looked_at)
    self._called: list[tuple[str, RunSearch]] = []
    library = {function.signature.name: function for function in graph_def.library.function}
    for call, function, variables in self._search.run.calls():
      is_new = function in library and function not in functions
      if is_new and self._search.is_needed(call):
        body, results = _body(library[function], variables)
        body.library.CopyFrom(graph_def.library)
        self._called.append((call, RunSearch(body, results, (), (*functions, function))))

  def races(self, source_of: Callable[[str], SourceLine | None]) -> tuple[Race, ...]:
    """Returns the races; of those in a function the line is that of its call.

    Args:
      source_of: gives the user's line of an operation of the graph.
    """
    found = [self._search.races(source_of)]
    for call, inner in self._called:
      found.append(inner.races(functools.partial(_line_of, source_of(call))))
    return tuple(dict.fromkeys(itertools.chain.from_iterable(found)))

  def edges(self, order: Order, races: Sequence[Race]) -> tuple[Edge, ...]:
    """Returns what has to wait for what in an order, see `RaceSearch.edges`."""
    own = (Edge(self._function, *pair) for pair in self._search.edges(order, races))
    inner = (edge for _, search in self._called for edge in search.edges(order, races))
    return tuple(dict.fromkeys((*own, *inner)))

  def affected(self) -> frozenset[str]:
    """Returns the variables whose values may depend on the order, in this run or a later one."""
    inner = frozenset[str]().union(*(search.affected() for _, search in self._called))
    return self._search.affected(inner)


def _line_of(line: SourceLine | None, op: str) -> SourceLine | None:
  del op  # of a function, whose operations have no lines
  return line


def _body(function: Any, variables: Mapping[int, str]) -> tuple[Any, list[str]]:
  """Returns a function's body as a GraphDef, and what is to be fetched of it.

  Args:
    function: a FunctionDef.
    variables: names of the variables that it is given, by the number of the argument.
  """
  graph_def = tf.compat.v1.GraphDef()
  for number, argument in enumerate(function.signature.input_arg):
    node = graph_def.node.add(name=argument.name, op='Placeholder')
    if number in variables:
      node.op = 'VarHandleOp'
      node.attr['shared_name'].s = variables[number].encode()
  nodes = {node.name: node for node in function.node_def}

  def flat(tensor: str) -> str:
    """Returns `node:number` for `node:output:number` of a FunctionDef."""
    name, _, rest = tensor.partition(':')
    if name not in nodes:
      return f'{name}:0'
    output, _, number = rest.partition(':')
    return f'{name}:{output_starts(nodes[name]).get(output, 0) + int(number or 0)}'

  for node in function.node_def:
    copy = graph_def.node.add()
    copy.CopyFrom(node)
    del copy.input[:]
    copy.input.extend(given if given.startswith('^') else flat(given) for given in node.input)
  results = [flat(tensor) for tensor in function.ret.values()]
  return graph_def, [*results, *function.control_ret.values()]
