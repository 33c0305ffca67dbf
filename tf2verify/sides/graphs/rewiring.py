"""Operations of a graph that read other tensors than before."""

import dataclasses
from typing import Any


@dataclasses.dataclass(frozen=True, eq=False)
class OtherInput:
  """An input of an operation of the port that is passed to it as in tf1."""

  op: str  # the operation's name
  slot: int  # number of the input
  tensor: str  # what it reads
  inner: tuple[Any, ...]  # NodeDefs of what passes that on, from tensors of the port


def exchange(graph_def: Any, tensors: tuple[str, str]) -> None:
  """Has all operations that read one of two tensors read the other one.

  Args:
    graph_def: edited in place.
    tensors: names of the first outputs of two operations: `a:0`.
  """
  one, other = (tensor.removesuffix(':0') for tensor in tensors)
  instead = {one: other, other: one}
  for node in graph_def.node:
    for number, name in enumerate(node.input):
      node.input[number] = instead.get(name.removesuffix(':0'), name)
