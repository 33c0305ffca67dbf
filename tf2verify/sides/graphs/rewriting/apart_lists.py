"""A graph in which what lists of tensors hold is read without them.

Loops write their results into a list, and read the steps of a sequence from one. Of a list nothing
can be compared: neither its elements, nor what is read of it with what code without loops reads.
Once the rounds stand in the graph, each element is known.
"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tf2verify.sides.graphs.graph_defs import inlining
from tf2verify.sides.graphs.graph_defs.new_nodes import constant_node

_FROM_TENSOR, _RESERVE, _SET = 'TensorListFromTensor', 'TensorListReserve', 'TensorListSetItem'
_GET, _STACK = 'TensorListGetItem', 'TensorListStack'
_PASSING = ('Identity', 'IdentityN')


@dataclasses.dataclass(frozen=True)
class _List:
  """What a list was made of.

  Attributes:
    rows: the tensor whose rows it held at first; None for a list without elements.
    size: the tensor that says how many elements it was reserved for; None for rows.
    writes: the tensors that say where an element was written, and the elements, in order.
  """

  rows: str | None
  size: str | None
  writes: tuple[tuple[str, str], ...] = ()


def with_lists_apart(
  graph_def: Any, evaluate: Callable[[Sequence[str]], Sequence[np.ndarray]]
) -> None:
  """Replaces readers of lists of tensors by operations that read the elements.

  `TensorListStack` becomes `Pack`, `TensorListGetItem` the element, or `GatherV2` of the rows. What
  reads a list of which not all is known stays as it is.

  Args:
    graph_def: the graph, which is changed; its loops are unrolled.
    evaluate: returns the values of some of its tensors, by name.
  """
  nodes = {node.name: node for node in graph_def.node}
  readers = [
    (node, known)
    for node in graph_def.node
    if node.op in (_GET, _STACK) and (known := _list(inlining.data_inputs(node)[0], nodes))
  ]
  wanted = {inlining.data_inputs(node)[1] for node, _ in readers if node.op == _GET}
  for _, known in readers:
    wanted |= {place for place, _ in known.writes}
    wanted |= {known.size} if known.size is not None else set()
  if not readers:
    return
  names = [inlining.with_output(name) for name in sorted(wanted)]
  values = dict(zip(sorted(wanted), evaluate(names), strict=True)) if names else {}
  for node, known in readers:
    if node.op == _GET:
      _read_element(graph_def, node, known, values)
    else:
      _stack(node, known, values)


def _list(name: str, nodes: Mapping[str, Any]) -> _List | None:
  """Returns what a list was made of; None where that is not known."""
  writes: list[tuple[str, str]] = []
  while True:
    op, _, number = name.partition(':')
    node = nodes.get(op)
    if node is None:
      return None
    read = inlining.data_inputs(node)
    if node.op in _PASSING:
      name = read[int(number or 0)]
    elif node.op == _SET:
      writes.append((read[1], read[2]))
      name = read[0]
    elif node.op == _FROM_TENSOR:
      return _List(read[0], None, tuple(writes[::-1]))
    elif node.op == _RESERVE:
      return _List(None, read[1], tuple(writes[::-1]))
    else:
      return None


def _elements(known: _List, values: Mapping[str, np.ndarray]) -> dict[int, str]:
  """Returns the elements that were written, by their places."""
  return {int(values[place]): element for place, element in known.writes}


def _read_element(
  graph_def: Any, node: Any, known: _List, values: Mapping[str, np.ndarray]
) -> None:
  place = inlining.data_inputs(node)[1]
  element = _elements(known, values).get(int(values[place]))
  dtype = node.attr['element_dtype'].type
  if element is not None:
    inlining.become(node, 'Identity', [element], T=dtype)
  elif known.rows is not None:
    axis = constant_node(f'{node.name}/axis', 0)
    graph_def.node.append(axis)
    index = tf.int32.as_datatype_enum
    inlining.become(
      node, 'GatherV2', [known.rows, place, axis.name], Tparams=dtype, Tindices=index, Taxis=index
    )


def _stack(node: Any, known: _List, values: Mapping[str, np.ndarray]) -> None:
  if known.rows is not None and not known.writes:
    inlining.become(node, 'Identity', [known.rows], T=node.attr['element_dtype'].type)
  if known.size is None:
    return
  elements = _elements(known, values)
  places = range(int(values[known.size]))
  if elements and all(place in elements for place in places) and len(elements) == len(places):
    inlining.become(node, 'Pack', [elements[n] for n in places], T=node.attr['element_dtype'].type)
    node.attr['N'].i = len(places)
