"""Steps whose graphs are the same but for names, so that one graph can be run for all of them.

A step of a port is traced again for each number, since Python may count in it. Mostly nothing
does, and the graphs of all steps are one graph, with other names: an optimizer makes its slots in
the first step.
"""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tf2verify.reference.graph_ops import op_name_of
from tf2verify.sides.graphs.step_run import StepGraph

# They name things, and change nothing of what is computed.
_NAMES = ('shared_name', 'container')
# Their branches take what they read in an order that means nothing.
_CONDITIONS = ('If', 'StatelessIf')
_BRANCHES, _TYPES = ('then', 'else'), 'Tin'


def on_graph_of(step: StepGraph, other: StepGraph) -> StepGraph | None:
  """Returns a step as a run of another one's graph, from its own values.

  Args:
    step: the step.
    other: the one whose graph it is to be run on.

  Returns:
    None where the graphs are not known to compute the same.
  """
  graphs = step.graph_def, other.graph_def
  if len(graphs[0].node) != len(graphs[1].node) or step.start or other.start:
    return None
  if _Canonical(graphs[0].library).nodes(graphs[0].node) != _Canonical(graphs[1].library).nodes(
    graphs[1].node
  ):
    return None
  own = {
    theirs.name: mine.name for mine, theirs in zip(graphs[0].node, graphs[1].node, strict=True)
  }
  if not _are_named_alike(step, other, own):
    return None
  return dataclasses.replace(
    other,
    variables={
      name: dataclasses.replace(known, value=step.variables[own[name]].value)
      for name, known in other.variables.items()
    },
    feeds={name: step.feeds[_renamed(name, own)] for name in other.feeds},
    constants={name: step.constants[own[name]] for name in other.constants},
  )


def _are_named_alike(step: StepGraph, other: StepGraph, own: Mapping[str, str]) -> bool:
  """Returns whether both steps call what they read and yield the same, at the same places."""
  variables = {own[name]: _kind(known) for name, known in other.variables.items()}
  targets = [
    (known.name, tuple(_renamed(name, own) for name in known.tensors)) for known in other.targets
  ]
  return (
    variables == {name: _kind(known) for name, known in step.variables.items()}
    and targets == [(known.name, known.tensors) for known in step.targets]
    and {own[name]: path for name, path in other.inputs.items()} == step.inputs
    and {own[name] for name in other.constants} == step.constants.keys()
    and {_renamed(name, own) for name in other.feeds} == step.feeds.keys()
  )


def _kind(variable: Any) -> tuple[object, ...]:
  return variable.name, variable.shape, np.dtype(variable.value.dtype), variable.is_own


def _renamed(tensor: str, own: Mapping[str, str]) -> str:
  name, mark, number = tensor.partition(':')
  return own[name] + mark + number


class _Canonical:
  """Operations without their names: each reads others by their places."""

  def __init__(self, library: Any) -> None:
    self._functions = {function.signature.name: function for function in library.function}
    self._known: dict[object, object] = {}

  def nodes(self, nodes: Any, first: Mapping[str, int] | None = None) -> tuple[object, ...]:
    """Returns what operations compute, given the places of what they read besides."""
    places = dict(first or {})
    for node in nodes:
      places[node.name] = len(places)
    return tuple(self._node(node, _placed(places)) for node in nodes)

  def _node(self, node: Any, placed: Callable[[str], str]) -> tuple[object, ...]:
    order = self._order_of_use(node) if node.op in _CONDITIONS else None
    inputs = list(node.input)
    if order is not None:
      condition, *taken = inputs
      controls = [name for name in taken if name.startswith('^')]
      inputs = [condition, *(taken[number] for number in order), *controls]
    attributes = [
      (name, self._attribute(value, order))
      for name, value in sorted(node.attr.items())
      if name not in _NAMES and not name.startswith('_') and (order is None or name != _TYPES)
    ]
    return node.op, node.device, tuple(map(placed, inputs)), tuple(attributes)

  def _order_of_use(self, node: Any) -> tuple[int, ...] | None:
    """Returns the numbers of what branches read, in the order in which they first read it."""
    branches = [self._functions.get(node.attr[f'{name}_branch'].func.name) for name in _BRANCHES]
    order: dict[int, None] = {}
    for branch in branches:
      if branch is None:
        return None
      numbers = {known.name: n for n, known in enumerate(branch.signature.input_arg)}
      read = [name for one in branch.node_def for name in one.input]
      for name in (*read, *(branch.ret[known.name] for known in branch.signature.output_arg)):
        number = numbers.get(op_name_of(name))
        if number is not None:
          order[number] = None
    return tuple(order)

  def _attribute(self, value: Any, order: tuple[int, ...] | None = None) -> object:
    kind = value.WhichOneof('value')
    if kind == 'func':
      return self._function(value.func, order)
    if kind == 'list' and value.list.func:
      return tuple(map(self._function, value.list.func))
    return value.SerializeToString(deterministic=True)

  def _function(self, called: Any, order: tuple[int, ...] | None = None) -> object:
    if called.name not in self._functions:
      return called.name
    key = called.name, order
    if key not in self._known:
      self._known[key] = called.name  # one that calls itself is known by its name
      self._known[key] = self._body(self._functions[called.name], order)
    given = [(name, self._attribute(value)) for name, value in sorted(called.attr.items())]
    return self._known[key], tuple(given)

  def _body(self, function: Any, order: tuple[int, ...] | None) -> object:
    given = function.signature.input_arg
    numbers = range(len(given)) if order is None else order
    read = [given[number] for number in numbers]
    taken = {known.name: n for n, known in enumerate(read)}
    arguments = [known.type for known in read]
    nodes = self.nodes(function.node_def, taken)
    places = dict(taken)
    for node in function.node_def:
      places[node.name] = len(places)
    placed = _placed(places)
    results = [placed(function.ret[known.name]) for known in function.signature.output_arg]
    controls = sorted(placed(name) for name in function.control_ret.values())
    return tuple(arguments), nodes, tuple(results), tuple(controls)


def _placed(places: Mapping[str, int]) -> Callable[[str], str]:
  """Returns what names a tensor by the place of the operation that yields it."""

  def placed(tensor: str) -> str:
    name = op_name_of(tensor)
    mark = '^' if tensor.startswith('^') else ''
    return f'{mark}{places.get(name, name)}{tensor.lstrip("^")[len(name) :]}'

  return placed
