"""The functions of a graph that some of its operations call."""

from collections.abc import Iterable
from typing import Any

import tensorflow as tf

v1 = tf.compat.v1


def called(nodes: Iterable[Any], library: Any) -> Any:
  """Returns the part of a library that operations call, directly or through others.

  Args:
    nodes: NodeDefs.
    library: a FunctionDefLibrary.
  """
  found = v1.GraphDef().library
  if not library.function:
    return found
  functions = {function.signature.name: function for function in library.function}
  gradients = {known.function_name: known for known in library.gradient}
  pending = [name for node in nodes for name in _names(node)]
  seen: set[str] = set()
  while pending:
    name = pending.pop()
    if name in seen or name not in functions:
      continue
    seen.add(name)
    found.function.add().CopyFrom(functions[name])
    pending += [inner for node in functions[name].node_def for inner in _names(node)]
    if name in gradients:
      found.gradient.add().CopyFrom(gradients[name])
      pending.append(gradients[name].gradient_func)
  return found


def _names(node: Any) -> Iterable[str]:
  """Returns the names of the functions that an operation calls."""
  for value in node.attr.values():
    kind = value.WhichOneof('value')
    if kind == 'func':
      yield value.func.name
      yield from _names(value.func)
    elif kind == 'list':
      for function in value.list.func:
        yield function.name
        yield from _names(function)
