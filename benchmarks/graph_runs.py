"""Graphs of records, computed by TensorFlow's own operations: to compare graphs by numbers."""

import inspect
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tf2verify.records.op_graph import CONSTANT, INPUT, TARGET, VARIABLE, OpGraph, OpRecord
from tf2verify.reference.random_ops import is_random_op

_LISTS = {'ConcatV2': 'values', 'Concat': 'values', 'Pack': 'values', 'AddN': 'inputs'}
_ATTRIBUTES = {'squeeze_dims': 'axis'}  # what Python calls them
_LONGEST_LOOP = 1000


class NotComputed(Exception):
  """A graph cannot be computed from its records, or the record is not that of a valid graph."""


def applied(op: OpRecord, read: Sequence[tf.Tensor]) -> Sequence[tf.Tensor]:
  """Applies an operation to tensors, eagerly or in the default graph.

  Raises:
    ValueError: and others of TensorFlow, where it has no such operation.
  """
  function = getattr(tf.raw_ops, op.op_type)
  names = inspect.signature(function).parameters
  attributes = [(_ATTRIBUTES.get(name, name), value) for name, value in op.attributes]
  given: dict[str, Any] = {k: v for k, v in attributes if k in names and v is not None}
  inputs = op.input_names
  if len(inputs) != len(read):
    raise NotComputed(f'{op.op_type}: the names of its inputs are not known')
  renamed = _renamed(names, inputs, given)
  for name, tensor in zip(inputs, read, strict=True):
    name = renamed.get(name, name)
    base = re.sub(r'\[\d+\]$', '', name)
    if base != name or _LISTS.get(op.op_type) == name:
      given.setdefault(base, []).append(tensor)
    else:
      given[name] = tensor
  made = function(**given)
  if isinstance(made, (list, tuple)):
    return [one for part in made for one in (part if isinstance(part, (list, tuple)) else [part])]
  return [] if made is None or isinstance(made, tf.Operation) else [made]


def _renamed(
  names: Mapping[str, inspect.Parameter], inputs: Sequence[str], given: Collection[str]
) -> dict[str, str]:
  """Returns what Python calls the inputs that it calls otherwise: `reduction_indices`, `axis`."""
  bases = list(dict.fromkeys(re.sub(r'\[\d+\]$', '', name) for name in inputs))
  unknown = [name for name in bases if name not in names]
  left = [
    name
    for name, parameter in names.items()
    if parameter.default is parameter.empty and name not in given and name not in bases
  ]
  pairs = dict(zip(unknown, left, strict=False))
  return {
    name: name.replace(base, pairs[base], 1)
    for name in inputs
    for base in [re.sub(r'\[\d+\]$', '', name)]
    if base in pairs
  }


class GraphRun:
  """One run of a graph of records.

  Random operations yield fixed numbers, by their place in the graph.
  """

  def __init__(self, graph: OpGraph, leaves: Mapping[tuple[str, str], np.ndarray]) -> None:
    """Prepares a run.

    Args:
      graph: the graph.
      leaves: values of inputs and variables by kind and name.
    """
    self._graph = graph
    self._leaves = leaves
    self._known: dict[int, Sequence[tf.Tensor]] = {}

  def target(self, name: str) -> list[np.ndarray]:
    """Returns the tensors of a target.

    Raises:
      NotComputed: where an operation cannot be computed, or yields another shape than its record.
    """
    op = self._graph.ops[self._graph.targets()[name]]
    for position in sorted(_behind(self._graph, [n for n, _ in op.inputs])):
      if position not in self._known:
        self._known[position] = self._computed(position)
    return [np.asarray(self._known[n][k]) for n, k in op.inputs]

  def start_from(self, other: 'GraphRun', changed: Collection[int]) -> None:
    """Takes over what another run of the same leaves has computed, but for some operations."""
    self._known = {n: value for n, value in other._known.items() if n not in changed}

  def _computed(self, position: int) -> Sequence[tf.Tensor]:
    op = self._graph.ops[position]
    if op.op_type == CONSTANT:
      if op.constant is None:
        raise NotComputed(f'the value of {op.name} was not kept')
      return [tf.constant(op.constant, op.outputs[0][0])]
    if op.op_type in (INPUT, VARIABLE):
      return [self._leaf(op)]
    read = [self._known[n][k] for n, k in op.inputs]
    if is_random_op(op.op_type) and not op.pure:
      return _drawn(op, position)
    try:
      made = self._made(op, read)
    except (tf.errors.OpError, ValueError, TypeError, AttributeError, KeyError) as error:
      raise NotComputed(f'{op.op_type} {op.name}: {error}') from error
    for one, (dtype, shape) in zip(made, op.outputs, strict=False):
      if dtype not in ('resource', 'variant') and not one.shape.is_compatible_with(shape):
        raise NotComputed(f'{op.op_type} {op.name}: shape {one.shape} for {shape}')
    return made

  def _leaf(self, op: OpRecord) -> tf.Tensor:
    name = op.name.partition(' after its update')
    if name[1]:
      target = f'update of {name[0]}'
      written = self._graph.ops[self._graph.targets()[target]]
      return tf.constant(updated(self, self._leaves, written))
    value = self._leaves.get((op.op_type, op.name))
    if value is None:
      raise NotComputed(f'no value of {op.op_type} {op.name}')
    return tf.convert_to_tensor(value)

  def _made(self, op: OpRecord, read: Sequence[tf.Tensor]) -> Sequence[tf.Tensor]:
    functions = dict(op.functions)
    if op.op_type in ('While', 'StatelessWhile'):
      return _looped(functions['cond'], functions['body'], read)
    if op.op_type in ('If', 'StatelessIf'):
      branch = 'then_branch' if bool(read[0]) else 'else_branch'
      return _called(functions[branch], read[1:])
    if op.op_type == 'ResourceGather':
      return [tf.gather(read[0], read[1], batch_dims=op.attribute('batch_dims') or 0)]
    return applied(op, read)


def updated(
  run: GraphRun, leaves: Mapping[tuple[str, str], np.ndarray], op: OpRecord
) -> np.ndarray:
  """Returns what a variable holds after an update that is a target."""
  (found,) = run.target(op.name)
  kind = str(op.attribute('op') or '')
  before = leaves[VARIABLE, op.name.removeprefix('update of ')]
  if kind.startswith('AssignAdd'):
    return np.asarray(before + found)
  return np.asarray(before - found if kind.startswith('AssignSub') else found)


def _called(function: OpGraph, arguments: Sequence[tf.Tensor]) -> list[tf.Tensor]:
  leaves = {(INPUT, f'argument {n}'): value for n, value in enumerate(arguments)}
  run = GraphRun(function, leaves)  # type: ignore[arg-type]
  found = []
  for op in function.ops:
    if op.op_type == TARGET:
      for position in sorted(_behind(function, [n for n, _ in op.inputs])):
        if position not in run._known:
          run._known[position] = run._computed(position)
      ((number, output),) = op.inputs
      found.append(run._known[number][output])
  return found


def _looped(cond: OpGraph, body: OpGraph, read: Sequence[tf.Tensor]) -> list[tf.Tensor]:
  values = list(read)
  for _ in range(_LONGEST_LOOP):
    if not bool(_called(cond, values)[0]):
      return values
    values = _called(body, values)
  raise NotComputed('a loop does not end')


def _drawn(op: OpRecord, position: int) -> Sequence[tf.Tensor]:
  source = np.random.RandomState(position)
  found = []
  for dtype, shape in op.outputs:
    if shape is None or None in shape or not dtype.startswith('float'):
      raise NotComputed(f'{op.op_type} of unknown shape')
    draw = source.uniform if 'Uniform' in op.op_type else source.normal
    found.append(tf.constant(np.asarray(draw(size=[size or 0 for size in shape])), dtype))
  return found


def _behind(graph: OpGraph, ends: Collection[int]) -> set[int]:
  seen: set[int] = set()
  pending = list(ends)
  while pending:
    position = pending.pop()
    if position not in seen:
      seen.add(position)
      pending += [producer for producer, _ in graph.ops[position].inputs]
  return seen
