"""Operations of a graph that read other tensors than before."""

import dataclasses
from typing import Any

_READ = 'ReadVariableOp'


@dataclasses.dataclass(frozen=True, eq=False)
class OtherInput:
  """An input of an operation of the port that is passed to it as in tf1."""

  op: str  # the operation's name
  slot: int  # number of the input
  tensor: str  # what it reads
  inner: tuple[Any, ...]  # NodeDefs of what passes that on, from tensors of the port


def exchange(graph_def: Any, tensors: tuple[str, str]) -> None:
  """Has all operations that read one of two tensors read the other one.

  Of two variables, every operation that reads one of their values reads the other's.

  Args:
    graph_def: edited in place.
    tensors: names of the first outputs of two operations: `a:0`.
  """
  one, other = (tensor.removesuffix(':0') for tensor in tensors)
  nodes = {node.name: node for node in graph_def.node}
  reads = [nodes[name] for name in (one, other) if name in nodes]
  of_variables = [node.op for node in reads] == [_READ, _READ]
  if of_variables:
    one, other = (node.input[0].removesuffix(':0') for node in reads)
  instead = {one: other, other: one}
  for node in graph_def.node:
    if of_variables and node.op != _READ:
      continue
    for number, name in enumerate(node.input):
      node.input[number] = instead.get(name.removesuffix(':0'), name)
