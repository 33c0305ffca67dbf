"""Graphs of ports with one operation changed: valid graphs whose tensors keep their shapes.

The shape of what is changed is inferred by TensorFlow, and a change that makes another shape, or
no graph, is left out: a trace would not have the record.
"""

import dataclasses
import random
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from benchmarks.graph_runs import NotComputed, applied
from tf2verify.records.op_graph import CONSTANT, TARGET, OpGraph, OpRecord, TensorKey

# One of a row in place of another: the same operands, and something else is computed.
_KINDS = (
  (
    'Relu',
    'Relu6',
    'Tanh',
    'Sigmoid',
    'Exp',
    'Square',
    'Softplus',
    'Elu',
    'Selu',
    'Abs',
    'Softsign',
  ),
  ('Sqrt', 'Rsqrt', 'Log', 'Log1p', 'Neg', 'Reciprocal', 'Sign', 'Erf', 'Sin', 'Cos', 'Expm1'),
  ('Floor', 'Ceil', 'Round', 'Abs', 'Neg', 'Square'),
  ('AddV2', 'Mul', 'Sub', 'RealDiv', 'Maximum', 'Minimum', 'SquaredDifference', 'Pow', 'DivNoNan'),
  ('AddV2', 'Mul', 'Sub', 'Maximum', 'Minimum', 'FloorDiv', 'FloorMod', 'TruncateDiv'),
  ('Greater', 'GreaterEqual', 'Less', 'LessEqual', 'Equal', 'NotEqual'),
  ('LogicalAnd', 'LogicalOr'),
  ('Sum', 'Mean', 'Max', 'Min', 'Prod'),
  ('MaxPool', 'AvgPool'),
  ('ArgMax', 'ArgMin'),
  ('Cumsum', 'Cumprod'),
  ('Softmax', 'LogSoftmax'),
  ('ResizeBilinear', 'ResizeNearestNeighbor', 'ResizeBicubic'),
  ('BiasAdd', 'BiasAddV1'),
)
_SKIPPED_ATTRIBUTES = (
  *('seed', 'seed2', 'N', 'num', 'validate_indices', 'use_cudnn_on_gpu', 'grad_a', 'grad_b'),
  *('grad_x', 'grad_y', 'parallel_iterations', 'swap_memory'),
)
# No kernel has them for examples and channels.
_WINDOWS = ('strides', 'dilations', 'ksize')
_SIZES = ('Shape', 'Size', 'Rank')
_OTHER_INPUTS = 3


@dataclasses.dataclass(frozen=True)
class Mutant:
  """A graph with one operation changed.

  Attributes:
    what: what was changed.
    position: of which operation.
    graph: the graph.
  """

  what: str
  position: int
  graph: OpGraph


def mutants(
  graph: OpGraph, seed: int = 0, positions: Collection[int] | None = None
) -> Iterator[Mutant]:
  """Yields a graph with one operation changed, several ways for each operation.

  Args:
    graph: the graph.
    seed: of the choice among other tensors.
    positions: of the operations to change; None for all.
  """
  chance = random.Random(seed)
  fixed = _sizes(graph)
  readers = graph.consumers()
  for position, op in enumerate(graph.ops):
    if positions is not None and position not in positions:
      continue
    if op.op_type == TARGET or (position in fixed and op.op_type != CONSTANT):
      continue
    changes = _constants(op) if op.op_type == CONSTANT else _changed(graph, position, chance)
    for what, changed in changes:
      ops = (*graph.ops[:position], changed, *graph.ops[position + 1 :])
      mutant = OpGraph(graph.side, ops)
      read_by = [n for n, _ in readers[position]] if op.op_type == CONSTANT else [position]
      if op.op_type == CONSTANT and not set(fixed).isdisjoint(read_by):
        continue
      if all(_keeps_shape(mutant, n) for n in set(read_by) if ops[n].op_type != TARGET):
        yield Mutant(f'{op.name} ({op.op_type}): {what}', position, mutant)


def _sizes(graph: OpGraph) -> Collection[int]:
  """Returns what is computed from sizes and constants alone: shapes follow from it."""
  fixed: set[int] = set()
  for position, op in enumerate(graph.ops):
    integers = all(dtype.startswith('int') for dtype, _ in op.outputs)
    known = all(graph.ops[n].op_type == CONSTANT or n in fixed for n, _ in op.inputs)
    if op.op_type in _SIZES or (not op.is_leaf and op.op_type != TARGET and integers and known):
      fixed.add(position)
  return fixed


def _keeps_shape(graph: OpGraph, position: int) -> bool:
  """Returns whether TensorFlow makes an operation, with the outputs that its record has."""
  op = graph.ops[position]
  if op.functions:
    return True
  with tf.Graph().as_default():
    read = []
    for number, output in op.inputs:
      one = graph.ops[number]
      dtype, shape = one.outputs[output]
      if one.constant is not None:
        read.append(tf.constant(one.constant, dtype))
      elif dtype == 'resource':  # a variable, whose value a function reads
        read.append(tf.compat.v1.placeholder(tf.float32))
      else:
        read.append(tf.compat.v1.placeholder(dtype, shape))
    try:
      found = [(t.dtype.base_dtype.name, t.shape) for t in applied(op, read)]
    except (NotComputed, ValueError, TypeError, KeyError, AttributeError, NotImplementedError):
      return False
  return len(found) == len(op.outputs) and all(
    dtype == wanted and shape.is_compatible_with(known)
    for (dtype, shape), (wanted, known) in zip(found, op.outputs, strict=True)
  )


def _constants(op: OpRecord) -> Iterator[tuple[str, OpRecord]]:
  held = op.constant
  if held is None or not held.size or held.dtype.kind not in 'fiub':
    return
  if held.dtype.kind == 'b':
    yield 'negated', dataclasses.replace(op, constant=~held)
    return
  changes: list[tuple[str, Callable[[np.ndarray], np.ndarray]]] = [
    ('plus 1', lambda v: v + 1),
    ('minus 1', lambda v: v - 1),
    ('negated', lambda v: -v),
    ('reversed', lambda v: v.reshape(-1)[::-1].reshape(v.shape)),
  ]
  if held.dtype.kind == 'f':
    changes += [('times 1.01', lambda v: v * 1.01), ('times 0.5', lambda v: v * 0.5)]
    changes += [('0', np.zeros_like), ('0.01 more', lambda v: v + 0.01)]
  elif held.size > 1:
    changes += [
      ('one more at the end', lambda v: v + (np.arange(v.size) == v.size - 1).reshape(v.shape))
    ]
  for what, change in changes:
    value = np.asarray(change(held)).astype(held.dtype)
    if not np.array_equal(value, held):
      yield what, dataclasses.replace(op, constant=value)


def _changed(
  graph: OpGraph, position: int, chance: random.Random
) -> Iterator[tuple[str, OpRecord]]:
  op = graph.ops[position]
  if op.is_leaf:
    return
  for kinds in _KINDS:
    if op.op_type in kinds:
      for other in kinds:
        if other != op.op_type:
          yield f'{other} in its place', dataclasses.replace(op, op_type=other)
  for name, value in op.attributes:
    if name not in _SKIPPED_ATTRIBUTES and not name.startswith('_'):
      for other in _other_values(name, value):
        yield f'{name} {other} for {value}', _with(op, name, other)
  for number, (name, function) in enumerate(op.functions):
    for inner in mutants(function, chance.randint(0, 1 << 30)):
      functions = (*op.functions[:number], (name, inner.graph), *op.functions[number + 1 :])
      yield f'{name}: {inner.what}', dataclasses.replace(op, functions=functions)
  yield from _exchanged(graph, op)
  for slot, key in enumerate(op.inputs):
    for what, tensor in _other_inputs(graph, position, key, chance):
      inputs = (*op.inputs[:slot], tensor, *op.inputs[slot + 1 :])
      yield f'{what} as input {slot}', dataclasses.replace(op, inputs=inputs)


def _exchanged(graph: OpGraph, op: OpRecord) -> Iterator[tuple[str, OpRecord]]:
  for one in range(len(op.inputs)):
    for other in range(one + 1, len(op.inputs)):
      keys = list(op.inputs)
      kinds = {graph.ops[n].outputs[k] for n, k in (keys[one], keys[other])}
      if keys[one] != keys[other] and len(kinds) == 1:
        keys[one], keys[other] = keys[other], keys[one]
        yield f'inputs {one} and {other} exchanged', dataclasses.replace(op, inputs=tuple(keys))


def _other_values(name: str, value: Any) -> Sequence[Any]:
  if isinstance(value, bool):
    return [not value]
  if isinstance(value, float):
    return [value * 1.5 + (value == 0), value * 1.01]
  if isinstance(value, int):
    return [value + 1, value - 1]
  if value in ('SAME', 'VALID'):
    return ['VALID' if value == 'SAME' else 'SAME']
  if isinstance(value, tuple) and value and all(type(v) is int for v in value):
    return [
      (*value[:n], v + step, *value[n + 1 :])
      for n, v in enumerate(value)
      for step in (1, -1)
      if v + step >= int(name in _WINDOWS) and (name not in _WINDOWS or 0 < n < len(value) - 1)
    ]
  return []


def _other_inputs(
  graph: OpGraph, position: int, key: TensorKey, chance: random.Random
) -> Iterator[tuple[str, TensorKey]]:
  """Yields what an operation's operand is computed from, and other tensors of the same shape."""
  producer = graph.ops[key[0]]
  wanted = producer.outputs[key[1]]
  if not producer.is_leaf:
    for inner in producer.inputs:
      if graph.ops[inner[0]].outputs[inner[1]] == wanted:
        yield f'without {producer.op_type}', inner
  others = [
    (n, k)
    for n, other in enumerate(graph.ops[:position])
    for k, output in enumerate(other.outputs)
    if other.op_type != TARGET and output == wanted and (n, k) != key
  ]
  for other in chance.sample(others, min(_OTHER_INPUTS, len(others))):
    yield f'{graph.ops[other[0]].name}', other


def _with(op: OpRecord, name: str, value: Any) -> OpRecord:
  attributes = {**dict(op.attributes), name: value}
  return dataclasses.replace(op, attributes=tuple(sorted(attributes.items())))
