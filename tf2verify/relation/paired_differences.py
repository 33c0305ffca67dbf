"""Where two graphs differ at the places of paired variables.

What is said here needs no number: strides, padding, the epsilon of a normalization, and what pools,
pads and activations lie on the way to a place.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from tf2verify.records.op_graph import OpGraph, OpRecord
from tf2verify.reference.graph_ops import reached
from tf2verify.relation.op_pairs import family
from tf2verify.relation.unit_pairs import UnitPairs
from tf2verify.relation.variable_uses import LINEAR, VariableUses

# Of products: what is told of them.
_OF_PRODUCTS = ('strides', 'dilations', 'padding')
_POOLS = ('MaxPool', 'AvgPool', 'MaxPool3D', 'AvgPool3D')
_PADS = ('Pad', 'PadV2', 'MirrorPad')
_BENDING = (
  *('Relu', 'Relu6', 'LeakyRelu', 'Elu', 'Selu', 'Softplus', 'Sigmoid', 'Tanh', 'Erf'),
  *('Softmax', 'ReverseV2', 'ReverseSequence'),
)
_ROOTS = ('Rsqrt', 'Sqrt')
# How far before a place the root of a normalization is looked for, in operations.
_NEAR = 8
_SHOWN = 3


def paired_differences(pairs: UnitPairs) -> tuple[str, ...]:
  """Returns what differs, one sentence for each kind, and where.

  Args:
    pairs: of the units of both sides.
  """
  found: dict[tuple[str, str, str], list[str]] = defaultdict(list)
  sides = _Ways(pairs.tf1), _Ways(pairs.tf2)
  for one in sorted(pairs.tf2_of):
    other = pairs.tf2_of[one]
    for what, tf1, tf2 in _differences(sides, one, other):
      found[what, tf1, tf2].append(sides[0].name(one))
  return tuple(
    f'{what} {tf1} in tf1, {tf2} in the port: {_listed(names)}'
    for (what, tf1, tf2), names in found.items()
  )


def _listed(names: Sequence[str]) -> str:
  more = f' and {len(names) - _SHOWN} more places' if len(names) > _SHOWN else ''
  return f'{", ".join(names[:_SHOWN])}{more}'


def _differences(
  sides: 'tuple[_Ways, _Ways]', one: int, other: int
) -> Iterator[tuple[str, str, str]]:
  tf1, tf2 = sides[0].before(one), sides[1].before(other)
  product, its = sides[0].product(one), sides[1].product(other)
  if product is not None and its is not None:
    is_padded = any(op.op_type in _PADS for op in (*tf1, *tf2))
    for name in _OF_PRODUCTS:
      values = product.attribute(name), its.attribute(name)
      # Padding says nothing of a window of one element; where there is a Pad, that is said.
      is_silent = name == 'padding' and (is_padded or sides[0].is_of_one(product))
      if None not in values and values[0] != values[1] and not is_silent:
        yield name, _text(values[0]), _text(values[1])
  epsilon, its_epsilon = sides[0].epsilon(one), sides[1].epsilon(other)
  if epsilon and its_epsilon and not math.isclose(epsilon, its_epsilon, rel_tol=1e-5):
    yield 'epsilon', f'{epsilon:.4g}', f'{its_epsilon:.4g}'
  counts = Counter(map(_told, tf1)), Counter(map(_told, tf2))
  if counts[0] != counts[1]:
    yield 'on the way there,', _alone(counts[0] - counts[1]), _alone(counts[1] - counts[0])


def _alone(found: Counter[str]) -> str:
  return ' and '.join(sorted(found.elements())) or 'nothing of the kind'


def _told(op: OpRecord) -> str:
  """Returns an operation on the way, with what decides which numbers it yields."""
  kind = family(op.op_type)
  if kind in _POOLS:
    told = ['ksize', 'strides', 'padding']
    if set(op.attribute('ksize') or ()) == {1}:  # that takes every second element, say
      told.remove('padding')
    said = (f'{name} {_text(op.attribute(name))}' for name in told)
    return f'{kind} ({", ".join(said)})'
  return kind


def _text(value: Any) -> str:
  if isinstance(value, bytes):
    return value.decode()
  return str(list(value)) if isinstance(value, (tuple, list)) else str(value)


class _Ways:
  """What lies before the units of a side."""

  def __init__(self, uses: VariableUses) -> None:
    self._uses = uses
    self._graph: OpGraph = uses.graph
    self._in_units = {op for unit in uses.units for op in unit.ops}

  def name(self, unit: int) -> str:
    """Returns what to call a unit: one of its variables, or what it yields."""
    members = self._uses.units[unit].members
    return members[0][1] if members else f'the {self._uses.names[unit]}'

  def product(self, unit: int) -> OpRecord | None:
    """Returns the one product of a unit; None without one."""
    members = self._uses.units[unit].members
    found = [self._graph.ops[n] for n in self._uses.units[unit].ops]
    return found[0] if len(found) == 1 and members and members[0][0] == LINEAR else None

  def is_of_one(self, product: OpRecord) -> bool:
    """Returns whether a convolution has a window of one element."""
    producer, number = product.inputs[1]
    outputs = self._graph.ops[producer].outputs
    shape = outputs[number][1] if number < len(outputs) else None
    return shape is not None and set(shape[:-2]) == {1}

  def before(self, unit: int) -> list[OpRecord]:
    """Returns the pools, pads and activations between a unit and the units before it."""
    inside = set(self._uses.units[unit].ops)
    return [
      self._graph.ops[n]
      for n in self._reached(inside, self._in_units - inside)
      if family(self._graph.ops[n].op_type) in (*_POOLS, *_PADS, *_BENDING)
    ]

  def _reached(self, ends: Collection[int], stops: Collection[int]) -> list[int]:
    def read(position: int) -> list[int]:
      producers = [producer for producer, _ in self._graph.ops[position].inputs]
      return [n for n in producers if n not in stops and n not in ends]

    return reached([n for end in ends for n in read(end)], read)

  def epsilon(self, unit: int) -> float | None:
    """Returns the epsilon of a normalization, fused or written out; None without one."""
    ops = self._uses.units[unit].ops
    fused = [self._graph.ops[n].attribute('epsilon') for n in ops]
    known = {float(value) for value in fused if value is not None}
    pending, seen = [(n, 0) for n in ops], set(ops)
    while pending:
      position, far = pending.pop()
      op = self._graph.ops[position]
      if op.op_type in _ROOTS:
        known.update(self._added(op.inputs[0][0]))
      for producer, _ in op.inputs:
        if producer not in seen and producer not in self._in_units and far < _NEAR:
          seen.add(producer)
          pending.append((producer, far + 1))
    return known.pop() if len(known) == 1 else None

  def _added(self, position: int) -> Iterator[float]:
    """Yields the small number that an operation adds."""
    op = self._graph.ops[position]
    if family(op.op_type) == 'AddV2':
      for producer, _ in op.inputs:
        value = self._graph.ops[producer].constant
        is_number = value is not None and value.size == 1 and value.dtype.kind == 'f'
        if value is not None and is_number and 0 < float(value.flat[0]) < 0.1:
          yield float(value.flat[0])
