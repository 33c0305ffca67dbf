"""What the variables of a model do: which operations read them, and what lies between these."""

import dataclasses
import functools
import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

from tf2verify.records.op_graph import INPUT, TARGET, VARIABLE, OpGraph, OpRecord
from tf2verify.relation.operations.op_pairs import family
from tf2verify.relation.operations.way_labels import Label, Step

LINEAR, LOOKUP, LOOP = 'linear', 'lookup', 'loop'
ADDED, SCALE, MEAN, VARIANCE = 'added', 'scale', 'mean', 'variance'
# What a model mainly consists of; the rest lies between them.
MAIN = frozenset({LINEAR, LOOKUP, LOOP})

_LINEAR = ('Conv2D', 'Conv3D', 'DepthwiseConv2dNative', 'MatMul', 'Einsum', 'Conv2DBackpropInput')
_ROLES = {
  **dict.fromkeys(_LINEAR, LINEAR),
  'GatherV2': LOOKUP,
  'AddV2': ADDED,
  'AddN': ADDED,
  'Sub': ADDED,
  'Mul': SCALE,
  'RealDiv': SCALE,
  'While': LOOP,
}
# The operations that are main ones, or repeat some.
MAIN_OPS = frozenset({*_LINEAR, 'GatherV2', 'While'})
_OF_BATCH_NORM = {1: SCALE, 2: ADDED, 3: MEAN, 4: VARIANCE}
_ROOTS = ('Rsqrt', 'Sqrt', 'Pow')
_MATRIX = 2


@dataclasses.dataclass(frozen=True)
class Unit:
  """Operations that read variables, and belong together: those of a batch norm, say."""

  ops: tuple[int, ...]  # positions in the graph
  members: tuple[tuple[str, str], ...]  # role and variable, sorted

  @property
  def is_main(self) -> bool:
    """Whether the model mainly consists of such."""
    return any(role in MAIN for role, _ in self.members)


class VariableUses:
  """The units of a graph, and their order.

  Attributes:
    graph: the graph.
    units: in the order of the graph; the last ones have no members: inputs, then outputs.
    names: of units without members, what they are; '' for the others.
    sizes: number of elements of every variable.
    matrices: shapes of the variables that matrix products read, sorted, if they have two axes.
    flipped: of variables that products read, whether they do so the other way round.
    tables: variables in which rows are looked up.
    readers: of variables, the position of the first operation in which they meet data.
    paths: of variables, the types of the operations that they pass before they meet data.
    slots: of variables, as which input of the operation they meet data there.
    repeated: variables that a loop reads, or more than one operation: in each round of a loop.
    recurrent: those of them that a loop reads, or that meet what was computed with them before.
  """

  def __init__(
    self,
    graph: OpGraph,
    shapes: Mapping[str, Sequence[int | None]],
    together: Sequence[Collection[int]] = (),
  ) -> None:
    """Reads a graph.

    Args:
      graph: of inference, where there is such a mode.
      shapes: of its variables.
      together: operations that make one unit although they share no variable.
    """
    self.graph = graph
    self.sizes = {
      op.name: math.prod(size or 0 for size in shapes.get(op.name, (0,)))
      for op in graph.ops
      if op.op_type == VARIABLE
    }
    self.matrices: dict[str, tuple[int, ...]] = {}
    self._shapes = shapes
    self.flipped: dict[str, bool] = {}
    self.readers: dict[str, int] = {}
    self.paths: dict[str, tuple[str, ...]] = {}
    self.slots: dict[str, int] = {}
    self._together = [frozenset(ops) for ops in together]
    self._depends = _depends_on_inputs(graph)
    uses = self._uses()
    self.repeated = _repeated(uses)
    self.recurrent = _recurrent(graph, uses, self.repeated)
    read = [member for members in uses.values() for member in members]
    self.tables = frozenset(name for role, name in read if role == LOOKUP)
    self._together += self._normalizations(uses)
    self.units, self.names = self._made_units(uses)
    self._unit_of = {op: n for n, unit in enumerate(self.units) for op in unit.ops}
    self._before = self._reached()

  def _uses(self) -> dict[int, set[tuple[str, str]]]:
    """Returns role and variable of all that an operation on data reads of variables."""
    paths: list[dict[str, tuple[str, ...]]] = []
    found: dict[int, set[tuple[str, str]]] = {}
    for position, op in enumerate(self.graph.ops):
      if op.op_type == VARIABLE:
        paths.append({op.name: ()})
        continue
      read: dict[str, tuple[str, ...]] = {}
      if not self._depends[position]:
        for slot, (producer, _) in enumerate(op.inputs):
          for name, path in paths[producer].items():
            read.setdefault(name, (*path, f'{family(op.op_type)}:{slot}'))
      else:
        for slot, (producer, _) in enumerate(op.inputs):
          for name, path in paths[producer].items():
            role = _role(op, slot, path)
            self.paths.setdefault(name, tuple(step.partition(':')[0] for step in path))
            found.setdefault(position, set()).add((role, name))
            self.readers.setdefault(name, position)
            self.slots.setdefault(name, slot)
            if role == LINEAR:
              self.flipped.setdefault(name, _is_flipped(op, slot, path))
              shape = self.shape(name)
              if family(op.op_type) == 'MatMul' and len(shape) == _MATRIX:
                self.matrices[name] = tuple(sorted(shape))
      paths.append(read)
    return found

  def shape(self, name: str) -> tuple[int, ...]:
    """Returns the shape of a variable; () where it is not known."""
    return tuple(size or 0 for size in self._shapes.get(name, ()))

  def _normalizations(self, uses: dict[int, set[tuple[str, str]]]) -> list[frozenset[int]]:
    """Returns the operations of each normalization by variables that is written out.

    `(x - mean) * rsqrt(variance) * gamma + beta`, in whatever order: what scales next to the
    operation that reads the variance, what is subtracted before, and the first shift after. What
    is subtracted is told as the mean, in `uses`.
    """
    before = [self.data_of(op) for op in self.graph.ops]
    behind: dict[int, list[int]] = {}
    for position, producers in enumerate(before):
      for producer in producers:
        behind.setdefault(producer, []).append(position)
    found = []
    # The norm of a kernel is no variance.
    kernels = {name for read in uses.values() for role, name in read if role in MAIN}
    for position, read in list(uses.items()):
      variances = {name for role, name in read if role == VARIANCE} - kernels
      if not variances or VARIANCE not in self._factors(uses, position):
        continue
      chain, at = [position], position
      while len(before[at]) == 1 and len(behind[before[at][0]]) == 1:
        (at,) = before[at]
        if self._factors(uses, at) == {SCALE}:
          chain.append(at)
          continue
        if self._subtracts(uses, at):
          chain.append(at)
          uses[at] = {(MEAN, name) for _, name in uses[at]}
        break
      at = position
      while len(behind.get(at, ())) == 1 and before[behind[at][0]] == [at]:
        (at,) = behind[at]
        shifts = at in uses and family(self.graph.ops[at].op_type) in ('AddV2', 'Sub')
        if not shifts and self._factors(uses, at) != {SCALE}:
          break
        chain.append(at)
        if any(role == ADDED for role, _ in uses[at]):
          break
      found.append(frozenset(chain))
    return found

  def data_of(self, op: OpRecord) -> list[int]:
    """Returns what an operation reads of data."""
    producers = dict.fromkeys(producer for producer, _ in op.inputs)
    return [producer for producer in producers if self._depends[producer]]

  def _factors(self, uses: Mapping[int, set[tuple[str, str]]], position: int) -> set[str]:
    """Returns the roles of the variables that data are multiplied by, or divided by."""
    is_product = family(self.graph.ops[position].op_type) in ('Mul', 'RealDiv')
    return {role for role, _ in uses.get(position, ())} if is_product else set()

  def _subtracts(self, uses: Mapping[int, set[tuple[str, str]]], position: int) -> bool:
    """Returns whether an operation subtracts a variable from data; the bias of a layer is added."""
    op = self.graph.ops[position]
    is_difference = op.op_type == 'Sub' and self._depends[op.inputs[0][0]]
    roles = {role for role, _ in uses.get(position, ())}
    return roles == {MEAN} or (is_difference and roles == {ADDED})

  def _made_units(
    self, uses: Mapping[int, set[tuple[str, str]]]
  ) -> tuple[tuple[Unit, ...], tuple[str, ...]]:
    """Puts operations together that share what a normalization reads."""
    unit_of: dict[int, int] = {}
    last: dict[str, int] = {}
    for position, read in uses.items():
      shared = [last[name] for role, name in read if name in last and role not in MAIN]
      beside = [
        other for ops in self._together if position in ops for other in ops if other in unit_of
      ]
      unit_of[position] = (
        unit_of[shared[0]] if shared else unit_of[beside[0]] if beside else position
      )
      for role, name in read:
        if role not in MAIN:
          last[name] = position
    ops: dict[int, list[int]] = {}
    for position, first in unit_of.items():
      ops.setdefault(first, []).append(position)
    units = []
    for members in ops.values():
      roles: dict[str, set[str]] = {}
      for position in members:
        for role, name in uses[position]:
          roles.setdefault(name, set()).add(role)
      named = tuple(sorted((_main_role(found), name) for name, found in roles.items()))
      units.append(Unit(tuple(members), named))
    names = [''] * len(units)
    for position, op in enumerate(self.graph.ops):
      if op.op_type in (INPUT, TARGET):
        units.append(Unit((position,), ()))
        names.append(f'{op.op_type} {op.name}')
    return tuple(units), tuple(names)

  def _reached(self) -> list[int]:
    """Returns, for every unit, the units before it, as bits."""
    known = [0] * len(self.graph.ops)  # units behind what an operation yields
    before = [0] * len(self.units)
    for position, op in enumerate(self.graph.ops):
      behind = 0
      for producer, _ in op.inputs:
        behind |= known[producer]
      unit = self._unit_of.get(position)
      if unit is not None:
        before[unit] |= behind & ~(1 << unit)
        behind |= 1 << unit
      known[position] = behind
    return before

  def order(self, chosen: Collection[int]) -> dict[int, list[tuple[int, Label]]]:
    """Returns the nearest chosen units before each chosen one, and what lies between them.

    Nearest are those without another chosen one between them on any way: what a skip
    connection adds is no neighbour, however the sum is written.

    Args:
      chosen: positions in `units`.
    """
    mask = functools.reduce(lambda bits, n: bits | 1 << n, chosen, 0)
    labels = self._labels(mask)
    found: dict[int, list[tuple[int, Label]]] = {}
    for unit in chosen:
      before = self._before[unit] & mask
      nearest = before
      for other in _bits(before):
        nearest &= ~self._before[other]
      found[unit] = [(other, labels.get((other, unit), frozenset())) for other in _bits(nearest)]
    return found

  def around(self, known: Collection[int], unit: int) -> tuple[list[int], list[int]]:
    """Returns the nearest of some units before a unit, and those behind it.

    Args:
      known: positions in `units`.
      unit: position of one that is none of them.
    """
    mask = functools.reduce(lambda bits, n: bits | 1 << n, known, 0)
    before = nearest = self._before[unit] & mask
    for other in _bits(before):
      nearest &= ~self._before[other]
    behind = [n for n in known if self._before[n] >> unit & 1]
    later = functools.reduce(lambda bits, n: bits | 1 << n, behind, 0)
    return list(_bits(nearest)), [n for n in behind if not self._before[n] & later]

  def _labels(self, mask: int) -> dict[tuple[int, int], Label]:
    """Returns what lies on the ways from each of some units to the next one."""
    arriving: list[dict[int, Label]] = []
    found: dict[tuple[int, int], Label] = {}
    for position, op in enumerate(self.graph.ops):
      unit = self._unit_of.get(position)
      chosen = unit is not None and bool(mask >> unit & 1)
      here: dict[int, Label] = {}
      for slot, (producer, number) in enumerate(op.inputs):
        step = Step(op, slot, self.graph.ops, (producer, number), is_free=unit is None)
        for other, label in arriving[producer].items():
          here[other] = here.get(other, frozenset()) | step.label_after(label)
      if chosen:
        assert unit is not None
        for other, label in here.items():
          key = (other, unit)
          found[key] = found.get(key, frozenset()) | label
        here = {unit: frozenset()}
      arriving.append(here)
    return found


def _repeated(uses: Mapping[int, set[tuple[str, str]]]) -> frozenset[str]:
  read = [member for members in uses.values() for member in members]
  often = Counter(name for _, name in read)
  return frozenset(name for role, name in read if role == LOOP or often[name] > 1)


def _recurrent(
  graph: OpGraph, uses: Mapping[int, set[tuple[str, str]]], repeated: Collection[str]
) -> frozenset[str]:
  """Returns which variables are no layer that is applied to each of several inputs alone."""
  bits = {name: 1 << number for number, name in enumerate(sorted(repeated))}
  behind: list[int] = []  # of every operation, the variables that it is computed with
  found = {name for read in uses.values() for role, name in read if role == LOOP}
  for position, op in enumerate(graph.ops):
    known = functools.reduce(lambda all_bits, one: all_bits | behind[one[0]], op.inputs, 0)
    own = {name: bits.get(name, 0) for _, name in uses.get(position, ())}
    found.update(name for name, bit in own.items() if known & bit)
    behind.append(functools.reduce(lambda all_bits, bit: all_bits | bit, own.values(), known))
  return frozenset(found)


def _depends_on_inputs(graph: OpGraph) -> list[bool]:
  found: list[bool] = []
  for op in graph.ops:
    found.append(op.op_type == INPUT or any(found[producer] for producer, _ in op.inputs))
  return found


def _role(op: OpRecord, slot: int, path: Iterable[str]) -> str:
  kind = family(op.op_type)
  steps = [step.partition(':')[0] for step in path]
  if kind == 'FusedBatchNormV3':
    return _OF_BATCH_NORM.get(slot, kind)
  role = _ROLES.get(kind, kind)
  if role in (ADDED, SCALE):
    if any(step in _ROOTS for step in steps):
      return VARIANCE
    if role == ADDED and ('Mul' in steps or 'Sub:1' in path or 'Neg' in steps):
      return MEAN
  return role


def loose(role: str) -> str:
  """Returns a role, where a product counts as a scale: `x @ v` is the sum of `x * v`."""
  return SCALE if role == LINEAR else role


def _is_flipped(op: OpRecord, slot: int, path: Iterable[str]) -> bool:
  """Returns whether a product reads a matrix the other way round than it is kept."""
  flips = sum(step.startswith('Transpose:') for step in path)
  for name in ('transpose_b', 'adj_y') if slot == 1 else ('transpose_a', 'adj_x'):
    flips += bool(op.attribute(name))
  return flips % 2 == 1


def _main_role(roles: Collection[str]) -> str:
  """Returns the role of a variable in a unit: the scale of a batch norm also moves its mean."""
  order = (*sorted(MAIN), VARIANCE, SCALE, ADDED, MEAN)
  return next((role for role in order if role in roles), min(roles))


def _bits(number: int) -> Iterable[int]:
  while number:
    lowest = number & -number
    yield lowest.bit_length() - 1
    number ^= lowest
