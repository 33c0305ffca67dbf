"""What one line of the port could compute instead: the same with a setting that tf1 has."""

import collections
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tf2verify.diagnosis.patterns.numbers.known_values import constant_or_number
from tf2verify.diagnosis.patterns.operations.draws import drawn_otherwise
from tf2verify.diagnosis.patterns.operations.op_text import SHAPING, op_text, value_text
from tf2verify.diagnosis.patterns.operations.slices import Slice, moved_by_one, other_end, slice_of
from tf2verify.diagnosis.proposals.code_lines import Line, Proposal, gathers
from tf2verify.diagnosis.proposals.draws import other_draws
from tf2verify.diagnosis.proposals.insertions import (
  Move,
  groups_of_a_type,
  insertions,
  moves,
  to_other_terms,
)
from tf2verify.diagnosis.proposals.number_orders import number_orders
from tf2verify.diagnosis.proposals.numbers import (
  SQUARE,
  NumberProposals,
  operations_with_numbers,
  rounded,
  squares,
)
from tf2verify.diagnosis.proposals.reductions import axes_text, reductions
from tf2verify.diagnosis.proposals.softmax_axes import softmax_axes
from tf2verify.records.op_graph import CONSTANT, NodeChange, OpGraph, OpRecord
from tf2verify.relation.proof.differences.pairs import COMPARED, KINDS, UNARY

# What inputs are called that say along which axes an operation works.
_AXES = frozenset(('axis', 'reduction_indices', 'dimension', 'dim', 'split_dim', 'concat_dim'))
# Of one kind: they take the same inputs, and a port may have one in place of another.
_KINDS = (*KINDS, frozenset(('Mul', 'RealDiv')), frozenset(COMPARED))
# Of these, the two inputs in the other order are something else.
_ORDERED = frozenset(('Sub', 'RealDiv', 'Pow', 'FloorDiv', 'FloorMod', 'MatMul', 'BatchMatMulV2'))
_ORDER_OF_CHOICE = (0, 2, 1)
_FLAGS = (
  *('transpose_a', 'transpose_b', 'adj_x', 'adj_y', 'exclusive', 'reverse'),
  *('align_corners', 'half_pixel_centers', 'padding', 'alpha', 'epsilon', 'mode'),
)
_WITH_NUMBER = ('Mul', 'RealDiv', 'AddV2')
_MOVABLE = UNARY | frozenset((*_WITH_NUMBER, 'Pow'))
_DEEPEST_AXIS = 5
# How many of the first groups of proposals are numbers and attributes.
OF_SETTINGS = 4
_SEVERAL = 2


class Proposals:
  """What lines of the port could compute instead, by what tf1 has somewhere.

  Attributes:
    further: types of operations of which tf1 has more than the port.
  """

  def __init__(self, tf1: OpGraph, tf2: OpGraph) -> None:
    """Prepares.

    Args:
      tf1: the reference's operations.
      tf2: the port's.
    """
    self._tf1, self._tf2 = tf1, tf2
    self._types: dict[str, list[int]] = {}
    for position, op in enumerate(tf1.ops):
      self._types.setdefault(op.op_type, []).append(position)
    self._numbers = NumberProposals(tf1, tf2)
    own = collections.Counter(op.op_type for op in tf2.ops)
    # Operations of which tf1 has more, of one operand.
    self.further = {kind for kind, places in self._types.items() if len(places) > own[kind]}
    if squares(tf1) > squares(tf2):
      self.further.add(SQUARE)
    # Of which the port has more.
    self._extra = {kind for kind, count in own.items() if count > len(self._types.get(kind, ()))}
    # A temperature, say, by which tf1 divides twice and the port once.
    counts = operations_with_numbers(tf1, _WITH_NUMBER) - operations_with_numbers(tf2, _WITH_NUMBER)
    self._more_often = [pair for pair in counts if pair[1] not in self._numbers.further]
    self._consumers = tf2.consumers()
    self._slices = _all_slices(tf1, tf2)
    self._drawn_otherwise = drawn_otherwise(tf1, tf2)

  def of(self, line: Line) -> Iterator[Sequence[Proposal]]:
    """Yields groups of proposals for a line, the most likely ones first."""
    yield [*self._numbers.other_shares(line), *self._numbers.other_numbers(line)]
    yield [*self._numbers.exchanged_numbers(line), *number_orders(line)]
    yield [*self._flags(line), *softmax_axes(line, self._consumers)]
    yield list(other_draws(line, self._drawn_otherwise))
    for kind in sorted(UNARY & self.further):
      yield list(self._missing(line, [(kind, None)]))
    yield list(self._other_reductions(line))
    yield list(self._other_axes(line))
    yield list(self._left_out(line))
    yield list(self._without_functions(line))
    yield list(self._numbers.without_terms(line))
    yield list(self._numbers.shared_numbers(line))
    yield list(_other_orders(line))
    yield list(self._moved(line))
    yield list(self._to_other_terms(line))
    yield list(self._other_kinds(line))
    yield list(self._other_slices(line))
    both = itertools.product(_WITH_NUMBER, self._numbers.further)
    yield list(self._missing(line, both))
    yield list(self._missing(line, self._more_often))

  def like(self, op_type: str) -> int | None:
    """Returns an operation of tf1 of a type, where one line alone makes all such operations."""
    found = self._types.get(op_type, [])
    lines = {self._tf1.ops[n].source for n in found}
    return found[0] if len(lines) == 1 else None

  def _flags(self, line: Line) -> Iterator[Proposal]:
    """Yields attributes as tf1 has them at an operation of the same type."""
    seen: set[tuple[str, str, Any]] = set()
    for op in line.ops:
      for name in _FLAGS:
        own = op.attribute(name)
        if own is None or (op.op_type, name, own) in seen:
          continue
        seen.add((op.op_type, name, own))
        for other, like in self._attributes(op.op_type, name).items():
          if other == own:
            continue
          alike = [o for o in line.ops if o.op_type == op.op_type and o.attribute(name) == own]
          changes = tuple(NodeChange(o.name, ((name, other),)) for o in alike)
          one, two = value_text(other), value_text(own)
          text = f'{name} of {op.name} ({op.op_type}) is {two} in the port, {one} in tf1'
          yield Proposal(changes, one, two, text, like, name)

  def _attributes(self, op_type: str, name: str) -> Mapping[Any, int]:
    found: dict[Any, int] = {}
    for position, op in enumerate(self._tf1.ops):
      if op.op_type == op_type and (value := op.attribute(name)) is not None:
        found.setdefault(value, position)
    return found

  def _other_reductions(self, line: Line) -> Iterator[Proposal]:
    """Yields reductions of other axes, as many as tf1 reduces somewhere."""
    for found in reductions(self._tf1, line.graph, self._consumers, line.positions):
      own, other = (axes_text(axes) for axes in (found.own, found.other))
      lines = {self._tf1.ops[n].source for n in found.like}
      first, *more = [line.graph.ops[n].name for n in found.places]
      names, goes = ' and '.join([first, *more]), 'go' if more else 'goes'
      of_type = line.graph.ops[found.places[0]].op_type
      text = f'{names} ({of_type}) {goes} over {own} in the port, over {other} in tf1'
      like = found.like[0] if len(lines) == 1 else None
      both = str([*found.other]), str([*found.own])
      yield Proposal(found.changes, *both, text, like, what='axes')

  def _other_axes(self, line: Line) -> Iterator[Proposal]:
    """Yields other axes, for all operations of the line that work along the same one."""
    places: dict[int, list[tuple[int, int]]] = {}
    for n, op in zip(line.positions, line.ops, strict=True):
      for slot, name in enumerate(op.input_names):
        axis = _axis(line.graph, op, slot) if name in _AXES else None
        if axis is not None:
          places.setdefault(axis, []).append((n, slot))
    for axis, known in places.items():
      first = line.graph.ops[known[0][0]]
      for other in range(min(_rank(line.graph, first, known[0][1]), _DEEPEST_AXIS)):
        if other == axis:
          continue
        changes = tuple(
          NodeChange(line.graph.ops[n].name, inputs=((slot, _as(line.graph, n, slot, other)),))
          for n, slot in known
        )
        text = (
          f'{first.name} ({first.op_type}) goes over axis {axis} in the port; over axis {other} '
          'it yields what tf1 does'
        )
        yield Proposal(changes, str(other), str(axis), text, what='axis')

  def _other_kinds(self, line: Line) -> Iterator[Proposal]:
    """Yields operations of the same kind that tf1 has, in place of those of one type."""
    for op_type in dict.fromkeys(op.op_type for op in line.ops):
      alike = [n for n in line.positions if line.graph.ops[n].op_type == op_type]
      found = (self._as(line, alike, other) for other in sorted(self.further))
      yield from (known for known in found if known is not None)

  def _as(self, line: Line, alike: Sequence[int], other: str) -> Proposal | None:
    """Returns operations of one type as those of another of the same kind; None for no such one."""
    ops = [line.graph.ops[n] for n in alike]
    own = ops[0].op_type
    if own == other or not any({own, other} <= set(kind) for kind in _KINDS):
      return None
    changes = tuple(NodeChange(op.name, op_type=other) for op in ops)
    text = f'{ops[0].name} is {own} in the port, {other} in tf1'
    return Proposal(changes, other, own, text, self.like(other))

  def _other_slices(self, line: Line) -> Iterator[Proposal]:
    """Yields slices as either side takes them elsewhere, of the same number of axes."""
    yield from _other_ends(line)
    taken: dict[str, list[tuple[int, Slice]]] = {}
    for n in line.positions:
      own = slice_of(line.graph, n)
      if own is not None:
        taken.setdefault(own.text, []).append((n, own))
    groups = [*taken.values()]
    groups += [[one] for alike in taken.values() if len(alike) > 1 for one in alike]
    for alike in groups:
      first, own = alike[0]
      name = line.graph.ops[first].name
      for found, like in self._slices:
        if found.text == own.text or found.axes != own.axes:
          continue
        bounds = tuple(enumerate(found.bounds, 1))
        ops = (line.graph.ops[n] for n, _ in alike)
        changes = tuple(NodeChange(op.name, found.masks, bounds) for op in ops)
        said = f'{name} takes [{own.text}] in the port; with [{found.text}] it yields what tf1 does'
        yield Proposal(changes, f'[{found.text}]', f'[{own.text}]', said, like, 'slice')

  def _missing(self, line: Line, put_in: Iterable[tuple[str, float | None]]) -> Iterator[Proposal]:
    """Yields operations that tf1 has more of put in, or numbers that the port does not have."""
    for kind, operand in put_in:
      said = kind if operand is None else f'{kind}({value_text(operand)})'
      like = self.like(kind) if operand is None else self._numbers.all_of_tf1.get(operand)
      for alike in groups_of_a_type(line.graph, line.positions):
        for put in insertions(line.graph, self._consumers, alike, kind, operand):
          text = f'the port lacks {said} {put.place}'
          # `elu(softplus(x))` is `softplus(x)`.
          other = self._as(line, alike, kind) if operand is None else None
          yield Proposal(put.changes, said, '', text, like, instead=other)

  def _moved(self, line: Line) -> Iterator[Proposal]:
    """Yields operations of one operand, or of a number, before or after their neighbors."""
    types = dict.fromkeys(op.op_type for op in line.ops if op.op_type in _MOVABLE)
    for op_type in types:
      alike = [n for n in line.positions if line.graph.ops[n].op_type == op_type]
      yield from map(self._as_moved, moves(line.graph, self._consumers, alike))

  def _as_moved(self, moved: Move) -> Proposal:
    text = f'the port computes {moved.said} {moved.before}, tf1 {moved.after}'
    number = None if moved.number is None else rounded(moved.number)
    # An operation of tf1 without a number may be any.
    like = None if number is None else self._numbers.all_of_tf1.get(number)
    return Proposal(moved.changes, moved.after, moved.before, text, like)

  def _to_other_terms(self, line: Line) -> Iterator[Proposal]:
    """Yields factors and numbers of the line in another term: a weight of the other class."""
    for n, op in zip(line.positions, line.ops, strict=True):
      if op.op_type in _WITH_NUMBER:
        yield from map(
          self._as_moved, to_other_terms(self._tf2, self._consumers, line.positions, n)
        )

  def _left_out(self, line: Line) -> Iterator[Proposal]:
    """Yields the line without its operations of one type, where they keep shape and dtype."""
    for op_type in dict.fromkeys(op.op_type for op in line.ops):
      if op_type in SHAPING or op_type not in self._extra:
        continue
      alike = [n for n in line.positions if line.graph.ops[n].op_type == op_type]
      if gathers(line.graph, line.graph.ops[alike[0]]):
        continue
      for slot in range(2):
        if not all(_passes(line.graph, n, slot) for n in alike):
          continue
        names = [line.graph.ops[n].name for n in alike]
        changes = tuple(NodeChange(name, op_type='Identity', reads=(slot,)) for name in names)
        said = op_text(line.graph, alike[0])
        text = f'the port has {said} ({names[0]}), which tf1 does not have'
        yield Proposal(changes, '', said, text)
    yield from _without_scales(line)

  def _without_functions(self, line: Line) -> Iterator[Proposal]:
    """Yields the line without a function of one operand, of which tf1 has as many elsewhere."""
    for n in line.positions:
      op = line.graph.ops[n]
      if op.op_type in UNARY - self._extra and _passes(line.graph, n, 0):
        alike = [o.name for o in line.ops if o.op_type == op.op_type]
        if op.name == alike[0]:
          changes = tuple(NodeChange(name, op_type='Identity', reads=(0,)) for name in alike)
          said = op_text(line.graph, n)
          text = f'the port has {said} ({op.name}), which tf1 does not have there'
          yield Proposal(changes, '', said, text)


def _without_scales(line: Line) -> Iterator[Proposal]:
  """Yields the line without all of its products and quotients by a number: `* n / (n - 1)`."""
  found: list[tuple[int, int]] = []
  for n, op in zip(line.positions, line.ops, strict=True):
    numbers = [slot for slot, (of, _) in enumerate(op.inputs) if _is_number(line.graph, of)]
    is_scale = op.op_type == 'Mul' or (op.op_type == 'RealDiv' and numbers == [1])
    if is_scale and len(numbers) == 1 and _passes(line.graph, n, 1 - numbers[0]):
      found.append((n, 1 - numbers[0]))
  if len(found) < _SEVERAL:
    return
  ops = line.graph.ops
  changes = tuple(NodeChange(ops[n].name, op_type='Identity', reads=(slot,)) for n, slot in found)
  said = ' → '.join(op_text(line.graph, n) for n, _ in found)
  text = f'the port has {said} ({ops[found[0][0]].name}), which tf1 does not have'
  yield Proposal(changes, '', said, text)


def _is_number(graph: OpGraph, position: int) -> bool:
  value = constant_or_number(graph, position)
  return value is not None and value.size == 1 and value.dtype.kind == 'f'


def _other_ends(line: Line) -> Iterator[Proposal]:
  """Yields all slices of the line with as much left out at the other end, and each one moved."""
  known = [(n, slice_of(line.graph, n)) for n in line.positions]
  taken = [(n, one) for n, one in known if one is not None]
  found = [(n, one, other) for n, one in taken if (other := other_end(one)) is not None]
  ops = line.graph.ops
  if found:
    changes = tuple(_sliced(ops[n], other) for n, _, other in found)
    n, one, other = found[0]
    more = f' (and {len(found) - 1} more of the line)' if len(found) > 1 else ''
    said = (
      f'{ops[n].name}{more} leaves elements out at one end in the port ([{one.text}]), and at the '
      f'other end it yields what tf1 does ({other.text})'
    )
    yield Proposal(changes, other.text, f'[{one.text}]', said, None, 'slice')
  for n, one in taken:
    for other in moved_by_one(one):
      said = f'{ops[n].name} takes [{one.text}] in the port; with {other.text} instead it yields '
      changes = (_sliced(ops[n], other),)
      yield Proposal(changes, other.text, f'[{one.text}]', f'{said}what tf1 does', None, 'slice')


def _sliced(op: OpRecord, other: Slice) -> NodeChange:
  return NodeChange(op.name, other.masks, tuple(enumerate(other.bounds, 1)))


def _all_slices(tf1: OpGraph, tf2: OpGraph) -> list[tuple[Slice, int | None]]:
  """Returns each slice that a side takes, with its position in tf1 if one line alone takes it."""
  known: dict[str, Slice] = {}
  places: dict[str, list[int]] = {}
  for graph in (tf1, tf2):
    for position in range(len(graph.ops)):
      found = slice_of(graph, position)
      if found is not None:
        known.setdefault(found.text, found)
        places.setdefault(found.text, []).extend([position] if graph is tf1 else [])
  return [
    (found, places[text][0] if len({tf1.ops[n].source for n in places[text]}) == 1 else None)
    for text, found in known.items()
  ]


def _other_orders(line: Line) -> Iterator[Proposal]:
  """Yields the inputs of operations in the other order."""
  for op_type in dict.fromkeys(op.op_type for op in line.ops):
    alike = [op for op in line.ops if op.op_type == op_type]
    if op_type in _ORDERED:
      order: tuple[int, ...] = (1, 0)
    elif op_type in ('SelectV2', 'Select'):
      order = _ORDER_OF_CHOICE
    elif op_type == 'ConcatV2' and all(len(op.inputs) == len(_ORDER_OF_CHOICE) for op in alike):
      order = (1, 0, 2)
    else:
      continue
    changes = tuple(NodeChange(op.name, reads=order) for op in alike)
    name = alike[0].name
    text = f'{name} ({op_type}) takes its operands in the other order than tf1'
    yield Proposal(changes, 'the other order', 'this order', text, what='operands')


def _axis(graph: OpGraph, op: OpRecord, slot: int) -> int | None:
  """Returns the one axis that an input names, counted from the front; None for several."""
  constant = graph.ops[op.inputs[slot][0]].constant
  if constant is None or constant.size != 1 or constant.dtype.kind != 'i':
    return None
  axis, rank = int(constant.ravel()[0]), _rank(graph, op, slot)
  return axis if axis >= 0 else axis + rank


def _rank(graph: OpGraph, op: OpRecord, slot: int) -> int:
  """Returns how many axes there are; 0 where that is not known."""
  read = next((key for n, key in enumerate(op.inputs) if n != slot), None)
  shape = None if read is None else graph.ops[read[0]].outputs[read[1]][1]
  return 0 if shape is None else len(shape)


def _as(graph: OpGraph, position: int, slot: int, axis: int) -> np.ndarray:
  """Returns an axis as an operation reads one."""
  constant = graph.ops[graph.ops[position].inputs[slot][0]].constant
  assert constant is not None, 'it has been read'
  return np.full(constant.shape, axis, constant.dtype)


def _passes(graph: OpGraph, position: int, slot: int) -> bool:
  """Returns whether an operation could be left out, and an input passed on."""
  op = graph.ops[position]
  if slot >= len(op.inputs) or len(op.outputs) != 1:
    return False
  producer, number = op.inputs[slot]
  read = graph.ops[producer]
  return read.op_type != CONSTANT and read.outputs[number] == op.outputs[0]
