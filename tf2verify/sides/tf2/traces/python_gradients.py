"""Gradients of a copied graph some of whose operations have gradients written in Python.

`tf.custom_gradient` keeps a function that reads tensors of the graph which was traced. In a copy
of that graph these are other tensors, of the same names.
"""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from tf2verify.sides.graphs.edits.repairs import GRADIENT_ATTRIBUTE
from tf2verify.sides.graphs.edits.wiring import OF_TF1
from tf2verify.sides.graphs.reading import Target
from tf2verify.tensorflow_internals import graphs


@dataclasses.dataclass(frozen=True, eq=False)
class Captured:
  """What a traced graph reads from outside.

  Attributes:
    graph: the graph that was traced.
    names: names of the variables, by the identity of their handles.
    handles: names of the variables, by the names of the operations that are their handles.
    constants: values by the names of placeholders; further ones are added.
  """

  graph: Any
  names: Mapping[int, str]
  handles: Mapping[str, str]
  constants: dict[str, np.ndarray]


def has_some(graph_def: Any) -> bool:
  """Returns whether an operation of a GraphDef has another gradient than that of its type."""
  return any(GRADIENT_ATTRIBUTE in node.attr for node in graph_def.node)


def formed(
  graph_def: Any, captured: Captured, form: Callable[[Any], tuple[Target, ...]]
) -> tuple[Any, tuple[Target, ...]]:
  """Returns a GraphDef with gradients, and what they are called.

  Args:
    graph_def: the graph, maybe edited.
    captured: what the traced one reads.
    form: adds the gradients to a graph.

  Raises:
    LookupError: they read what is not in the graph.
  """
  function = graphs.FuncGraph('gradients_of_port')
  with function.as_default():
    tf.import_graph_def(graph_def, name='')
  targets = form(function)
  found = function.as_graph_def()
  nodes = {node.name: node for node in found.node}
  for outer, inner in function.captures:
    _connect(nodes, nodes[inner.op.name], outer, captured)
  return found, targets


def _connect(nodes: Mapping[str, Any], node: Any, outer: Any, captured: Captured) -> None:
  """Makes the placeholder of a tensor of another graph pass its counterpart on."""
  if isinstance(getattr(outer, 'graph', None), tf.Graph) and outer.graph is not None:
    is_own = outer.graph is captured.graph
    read = outer.name if is_own else OF_TF1 + outer.name
  elif id(outer) in captured.names:
    wanted = captured.names[id(outer)]
    read = next(f'{op}:0' for op, name in captured.handles.items() if name == wanted)
  elif outer.dtype in (tf.resource, tf.variant):
    raise LookupError(f'a gradient reads {outer}, which is not a variable of the port')
  else:
    captured.constants[node.name] = np.asarray(outer)
    return
  if read.rpartition(':')[0] not in nodes:
    raise LookupError(f'a gradient reads {read}, which is not in the graph')
  dtype = outer.dtype.as_datatype_enum
  node.op = 'Identity'
  node.attr.clear()
  node.attr['T'].type = dtype
  node.input[:] = [read]
