"""Graphs with one operation changed, so that they compute something else."""

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np

from tf2verify.records.op_graph import CONSTANT, TARGET, VARIABLE, OpGraph, OpRecord

# Of one operand each: none is another one.
_UNARY = ('Relu', 'Tanh', 'Sigmoid', 'Exp', 'Square', 'Softplus', 'Elu', 'Abs', 'Sqrt', 'Rsqrt')
_BINARY = ('AddV2', 'Mul', 'Sub', 'RealDiv', 'Maximum', 'Minimum', 'SquaredDifference')
_ORDERED = ('Sub', 'RealDiv', 'MatMul', 'Greater', 'GreaterEqual', 'ConcatV2')
_NUMBERS = ('epsilon', 'alpha', 'exponential_avg_factor', 'keep_dims', 'exclusive', 'reverse')


def mutants(graph: OpGraph) -> Iterator[tuple[str, OpGraph]]:
  """Yields what was changed, and the graph with it."""
  for position, op in enumerate(graph.ops):
    for what, changed in _changed(graph, op):
      ops = (*graph.ops[:position], changed, *graph.ops[position + 1 :])
      yield f'{op.name}: {what}', OpGraph(graph.side, ops)


def _changed(graph: OpGraph, op: OpRecord) -> Iterator[tuple[str, OpRecord]]:
  held = op.constant if op.op_type == CONSTANT else None
  if held is not None and held.size and held.dtype.kind == 'f':
    value = np.asarray(held * 1.01 + 0.01, held.dtype)
    yield 'another constant', dataclasses.replace(op, constant=value)
  if op.is_leaf or op.op_type == TARGET:
    return
  for kinds in (_UNARY, _BINARY):
    if op.op_type in kinds and op.outputs[0][0].startswith('float'):
      for other in kinds:
        if other != op.op_type:
          yield f'{other} for {op.op_type}', dataclasses.replace(op, op_type=other)
  if op.op_type in _ORDERED and op.inputs[0] != op.inputs[1]:
    swapped = (op.inputs[1], op.inputs[0], *op.inputs[2:])
    shapes = {graph.ops[n].outputs[k] for n, k in op.inputs[:2]}
    if len(shapes) == 1:
      yield 'operands exchanged', dataclasses.replace(op, inputs=swapped)
  for name in _NUMBERS:
    value = op.attribute(name)
    if isinstance(value, float) and value:
      yield f'another {name}', _with(op, name, value * 1.5)
  for slot, key in enumerate(op.inputs):
    yield from _other_inputs(graph, op, slot, key)


def _other_inputs(
  graph: OpGraph, op: OpRecord, slot: int, key: tuple[int, int]
) -> Iterator[tuple[str, OpRecord]]:
  """Reads another variable of the same shape, or what its operand is computed from."""
  producer = graph.ops[key[0]]
  if producer.op_type == VARIABLE:
    for position, other in enumerate(graph.ops[: graph.ops.index(op)]):
      if other.op_type == VARIABLE and other is not producer and other.outputs == producer.outputs:
        yield f'{other.name} for {producer.name}', _reading(op, slot, (position, 0))
        break
  elif not producer.is_leaf and producer.outputs[key[1]][0].startswith('float'):
    for inner in producer.inputs:
      if graph.ops[inner[0]].outputs[inner[1]] == producer.outputs[key[1]]:
        yield f'without {producer.name}', _reading(op, slot, inner)
        break


def _reading(op: OpRecord, slot: int, key: tuple[int, int]) -> OpRecord:
  return dataclasses.replace(op, inputs=(*op.inputs[:slot], key, *op.inputs[slot + 1 :]))


def _with(op: OpRecord, name: str, value: Any) -> OpRecord:
  attributes = {**dict(op.attributes), name: value}
  return dataclasses.replace(op, attributes=tuple(sorted(attributes.items())))
