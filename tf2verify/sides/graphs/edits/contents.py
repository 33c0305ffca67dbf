"""What edits make of a graph, to tell that two of them are one."""

from collections.abc import Hashable
from typing import Any

import numpy as np
import tensorflow as tf

from tf2verify.numerics.relayout import Relayout
from tf2verify.records.op_graph import NodeChange
from tf2verify.sides.graphs.edits.repairs import GivenValue, Repair, Transplant
from tf2verify.sides.graphs.graph_defs.rewiring import OtherInput


def content(repair: Repair) -> Hashable:
  """Returns what an edit makes of a graph; edits that make the same of it have the same."""
  return (
    tuple(map(_change, repair.changes)),
    tuple(map(_transplant, repair.transplants)),
    tuple(map(_value, repair.values)),
    repair.passing,
    tuple(map(_input, repair.inputs)),
    repair.exchanged,
  )


def numbers_of(repair: Repair) -> frozenset[float]:
  """Returns the floating numbers that an edit brings in, as they are written; 0 and 1 aside."""
  arrays = [np.asarray(value) for change in repair.changes for _, value in change.inputs]
  nodes = (node for moved in repair.transplants for node in (*moved.inner, moved.end))
  arrays += [tf.make_ndarray(node.attr['value'].tensor) for node in nodes if node.op == 'Const']
  found = (float(f'{one.item():.6g}') for one in arrays if one.size == 1 and one.dtype.kind == 'f')
  return frozenset(found) - {0.0, 1.0}


def _change(change: NodeChange) -> Hashable:
  attributes = tuple((name, repr(value)) for name, value in change.attributes)
  inputs = tuple((slot, *_array(value)) for slot, value in change.inputs)
  kind = change.op_type, change.reads, change.inserted, change.other
  return change.op, attributes, inputs, *kind


def _array(value: Any) -> tuple[Hashable, ...]:
  array = np.asarray(value)
  return array.dtype.str, array.shape, array.tobytes()


def _transplant(moved: Transplant) -> Hashable:
  nodes = tuple(_node(node) for node in (*moved.inner, moved.end))
  ends = moved.is_target, moved.is_update, moved.number
  return nodes, *ends, moved.tf1, tuple(map(_value, moved.fed))


def _node(node: Any) -> Hashable:
  return node.SerializeToString(deterministic=True)  # type: ignore[no-any-return]


def _value(given: GivenValue) -> Hashable:
  layout = getattr(given.as_tf2, '__self__', None)
  if not isinstance(layout, Relayout):
    return given.tf1, given.tf2, given.as_tf2
  elements = None if layout.elements is None else layout.elements.tobytes()
  return given.tf1, given.tf2, layout, elements


def _input(one: OtherInput) -> Hashable:
  return one.op, one.slot, one.tensor, tuple(map(_node, one.inner))
