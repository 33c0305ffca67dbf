"""Copies of tf1's operations, wired to the port's tensors."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tf2verify.numerics.relayout import Relayout
from tf2verify.records.op_graph import (
  CHOICE,
  CONSTANT,
  INPUT,
  STOPS,
  VARIABLE,
  OpGraph,
  OpRecord,
  TensorKey,
)
from tf2verify.sides.graphs.graph_defs.inlining import data_inputs
from tf2verify.sides.graphs.graph_defs.new_nodes import constant_node, new_node

v1 = tf.compat.v1

OF_TF1 = 'tf2verify_tf1/'
# What both sides call a variable or an input need not be a name of TensorFlow's.
_NO_NAME = re.compile(r'[^\w./>-]')
STALE = ('_class', '_output_shapes')
# Operations of tf1 that are made in the port because others read them.
_MOST_TAKEN = 24


class CannotRepair(Exception):
  """The edit makes no graph that can run; the message says why."""


class Wiring:
  """Wires copies of tf1's operations to the port's tensors.

  Attributes:
    added: NodeDefs that they need: constants, and what brings a tensor into tf1's shape.
    fed: variables of tf1 that the port holds as parts of others, or in another order, and what
      tf1's conditions have chosen, which may be something else in another step: the tensor of
      tf1, and that of the placeholder which takes its value.
  """

  def __init__(
    self,
    nodes: Mapping[str, Any],
    tf1: OpGraph,
    tf2: OpGraph,
    inner: frozenset[int],
    given: Mapping[TensorKey, TensorKey],
    layouts: Mapping[TensorKey, Relayout],
    partners: Sequence[int | None],
  ) -> None:
    self.added: list[Any] = []
    self.fed: list[tuple[str, str]] = []
    self._partners = partners
    self._taken: set[int] = set()
    self._layouts = layouts
    self._nodes = nodes
    self._tf1 = tf1
    self._tf2 = tf2
    self._inner = inner
    self._given = given

  def copied(self, position: int, name: str) -> Any:
    """Returns the NodeDef of an operation of tf1, by another name, that reads the port's tensors.

    Raises:
      CannotRepair: it has a function, or reads what cannot be made of the port's.
    """
    op = self._tf1.ops[position]
    node = self._node(op.name)
    data = data_inputs(node)
    if op.op_type == CHOICE:
      raise CannotRepair(f'{op.name} is what a condition has chosen')
    if op.functions or len(data) != len(op.inputs):
      raise CannotRepair(f'{op.name} is a loop, a condition, or a part of one')
    copied = bare_copy(node, name)
    for slot, key in enumerate(op.inputs):
      read = self.name_of(key)
      stops = STOPS & set(op.through[slot]) if op.through else ()
      copied.input.append(self._stopped(read, key, f'{name}/stopped_{slot}') if stops else read)
    return copied

  def _stopped(self, tensor: str, key: TensorKey, name: str) -> str:
    """Returns a tensor that passes no gradient on, as tf1 reads it there."""
    dtype, _ = self._tf1.ops[key[0]].outputs[key[1]]
    self._add([new_node(name, 'StopGradient', [tensor], T=dtype)])
    return f'{name}:0'

  def name_of(self, key: TensorKey) -> str:
    """Returns the name in the port's graph for a tensor of tf1; what it is made of is added.

    Raises:
      CannotRepair: it cannot be made of the port's tensors.
    """
    position, number = key
    op = self._tf1.ops[position]
    if position in self._inner:
      return self._fed(op, number) if op.op_type == CHOICE else f'{OF_TF1}{op.name}:{number}'
    if key in self._given:
      other, output = self._given[key]
      tensors = self._tf2.ops[other].tensors
      if output < len(tensors):
        return self._as_tf1(key, (other, output))
      return self._taken_along(key)
    if op.op_type != CONSTANT:
      partner = self._partners[position] if self._partners else None
      if partner is None or number >= len(self._tf2.ops[partner].tensors):
        return self._taken_along(key)
      return self._as_tf1(key, (partner, number))
    node = self._node(op.tensors[0].rpartition(':')[0])
    if node.op != 'Const':
      raise CannotRepair(f'{op.name} is not a constant of the graph')
    name = OF_TF1 + node.name
    self._add([bare_copy(node, name)])
    return f'{name}:0'

  def _taken_along(self, key: TensorKey) -> str:
    """Returns a tensor of tf1 that is made in the port as well, since the port has none."""
    position, number = key
    op = self._tf1.ops[position]
    if op.op_type == INPUT:
      unread = next((one for one in self._tf2.unread if one.name == op.name), None)
      if unread is not None and unread.outputs == op.outputs:
        return unread.tensors[0]
    if op.op_type in (VARIABLE, CHOICE) and self._partners:
      return self._fed(op, number)
    if op.is_leaf or not self._partners or len(self._taken) >= _MOST_TAKEN:
      raise CannotRepair(f'{op.name} has no counterpart in the port')
    name = OF_TF1 + op.name
    if position not in self._taken:
      self._taken.add(position)
      self._add([self.copied(position, name)])
    return f'{name}:{number}'

  def _fed(self, op: OpRecord, number: int) -> str:
    """Returns a placeholder for a variable of tf1 that the port has not as a whole."""
    dtype, shape = op.outputs[number]
    if shape is None or None in shape:
      raise CannotRepair(f'{op.name} has no counterpart in the port')
    label = f'{OF_TF1}{_NO_NAME.sub("_", op.name)}/value'
    node = new_node(label, 'Placeholder', dtype=dtype)
    node.attr['shape'].shape.CopyFrom(tf.TensorShape(shape).as_proto())
    known = op.tensors[number], f'{node.name}:0'
    if known not in self.fed:
      self.fed.append(known)
      self._add([node])
    return f'{node.name}:0'

  def _as_tf1(self, key: TensorKey, read: TensorKey) -> str:
    """Returns the port's tensor in the shape that tf1 has for it; a count in its integers."""
    partner = self._tf2.ops[read[0]]
    tensor = partner.tensors[read[1]]
    layout = self._layouts.get(key)
    op = self._tf1.ops[key[0]]
    dtypes = op.outputs[key[1]][0], partner.outputs[read[1]][0]
    name = f'{OF_TF1}{_NO_NAME.sub("_", op.name)}/as_tf1_{key[1]}'
    if dtypes[0] != dtypes[1] and all(dtype.startswith('int') for dtype in dtypes):
      cast = new_node(f'{name}/cast', 'Cast', [tensor], SrcT=dtypes[1], DstT=dtypes[0])
      self._add([cast])
      tensor = f'{cast.name}:0'
    if layout is None:
      return tensor
    self._add(layout_steps(layout.inverse(), tensor, op.outputs[key[1]][0], name))
    return f'{name}:0'

  def _add(self, nodes: Sequence[Any]) -> None:
    known = {node.name for node in self.added}
    self.added += [node for node in nodes if node.name not in known]

  def _node(self, name: str) -> Any:
    if name not in self._nodes:
      raise CannotRepair(f'{name} is not in the graph of tf1')
    return self._nodes[name]


# The types of what the steps of a layout are given besides the tensor.
_OF_INTEGERS = {
  'Transpose': ('Tperm',),
  'Reshape': ('Tshape',),
  'GatherV2': ('Tindices', 'Taxis'),
}


def layout_steps(layout: Relayout, read: str, dtype: str, name: str) -> list[Any]:
  """Returns the nodes that bring a tensor into another layout, the last one with a name."""
  made: list[Any] = []
  steps = layout.steps_to_tf2()
  for number, (kind, given) in enumerate(steps):
    label = name if number == len(steps) - 1 else f'{OF_TF1}{name}/step_{number}'
    node = new_node(label, kind, [read], T=dtype)
    made.append(node)
    read = f'{label}:0'
    if kind == 'Neg':
      continue
    constants = [given, 0] if kind == 'GatherV2' else [given]
    for place, value in enumerate(constants):
      given_name = f'{OF_TF1}{name}/given_{number}_{place}'
      constant = constant_node(given_name, np.asarray(value, np.int32))
      made.insert(-1, constant)
      node.input.append(f'{constant.name}:0')
    for attribute in _OF_INTEGERS[kind]:
      node.attr[attribute].type = tf.int32.as_datatype_enum
    if kind == 'GatherV2':
      del node.attr['T']
      node.attr['Tparams'].type = tf.as_dtype(dtype).as_datatype_enum
  return made


def bare_copy(node: Any, name: str) -> Any:
  """Returns a node without what it reads, and without where it has to run."""
  copied = v1.NodeDef()
  copied.CopyFrom(node)
  copied.name = name
  copied.device = ''
  del copied.input[:]
  for attribute in STALE:
    copied.attr.pop(attribute, None)
  return copied
