"""Writes to a variable of a graph that nothing orders."""

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tf2verify.records.observation import SourceLine
from tf2verify.sides.graphs.reading import user_source
from tf2verify.sides.tf1.build import BuiltGraph

_WRITES = ('Assign', 'Scatter', 'ResourceScatter')
_PASSING = ('Identity', 'RefIdentity', 'Enter', 'RefEnter')


def unordered_writes(built: BuiltGraph, variable: str) -> tuple[tuple[str, SourceLine | None], ...]:
  """Returns the operations that write a variable in one run, if any two may change places.

  Args:
    built: a graph; operations of its UPDATE_OPS, and behind them, are looked at.
    variable: by name.

  Returns:
    Type and user's line of every write; empty where their order is fixed.
  """
  known = next((v for v in built.variables if v.record.name == variable), None)
  if known is None:
    return ()
  graph = built.graph
  initializer = graph.get_operation_by_name(known.initializer)
  run = _behind([graph.get_operation_by_name(name) for name in built.update_ops])
  writes = [op for op in _writes(initializer.inputs[0]) if op is not initializer and op.name in run]
  before = [_behind([op]) for op in writes]
  for number, one in enumerate(writes):
    for other in range(number):
      if one.name not in before[other] and writes[other].name not in before[number]:
        return tuple((op.type, user_source(op)) for op in writes)
  return ()


def _writes(handle: tf.Tensor) -> list[tf.Operation]:
  found, pending, seen = [], [handle], set[str]()
  while pending:
    for op in pending.pop().consumers():
      if op.name in seen:
        continue
      seen.add(op.name)
      if op.type.startswith(_WRITES):
        found.append(op)
      elif op.type in _PASSING:
        pending.append(op.outputs[0])
  return found


def _behind(ops: Sequence[Any]) -> set[str]:
  """Returns the names of operations and of all that they wait for."""
  pending, seen = list(ops), set[str]()
  while pending:
    op = pending.pop()
    if op.name not in seen:
      seen.add(op.name)
      pending += [tensor.op for tensor in op.inputs] + list(op.control_inputs)
  return seen
