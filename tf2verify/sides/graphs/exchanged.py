"""Two tensors of a graph, each read in place of the other one."""

from typing import Any


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
