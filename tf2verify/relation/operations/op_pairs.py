"""Which operation of one side is which of the other."""

import math
from collections import Counter
from collections.abc import Callable, Iterator

from tf2verify.records.op_graph import CONSTANT, TARGET, OpGraph, OpRecord, TensorKey
from tf2verify.relation.operations.companions import is_negated, used_alike
from tf2verify.relation.operations.made_of_constants import (
  have_same_constants,
  kind_of,
  made_of_constants,
  partner_by_constants,
)
from tf2verify.relation.operations.nearest_pairs import NearestPairs, nearest
from tf2verify.relation.operations.op_names import Names

# Op types that compute the same from the same inputs.
_FAMILIES = {
  'Add': 'AddV2',
  'BiasAdd': 'AddV2',
  'BiasAddV1': 'AddV2',
  'BatchMatMul': 'MatMul',
  'BatchMatMulV2': 'MatMul',
  'BatchMatMulV3': 'MatMul',
  'FusedBatchNorm': 'FusedBatchNormV3',
  'FusedBatchNormV2': 'FusedBatchNormV3',
  'Div': 'RealDiv',
  'Gather': 'GatherV2',
  'ResourceGather': 'GatherV2',
  'Select': 'SelectV2',
  'StatelessWhile': 'While',
  'StatelessIf': 'If',
}

# In the names of what an operation that updates a variable computes.
_FORMULA = '/formula/'


def family(op_type: str) -> str:
  """Returns the name that interchangeable op types share."""
  return _FAMILIES.get(op_type, op_type)


def kind(op: OpRecord) -> str:
  """Returns the same of an operation; a sum of a list of two is a sum of two."""
  is_of_two = op.op_type == 'AddN' and len(op.inputs) == len(('x', 'y'))
  return 'AddV2' if is_of_two else family(op.op_type)


def is_backward(op: OpRecord) -> bool:
  """Returns whether an operation belongs to the computation of gradients."""
  return is_backward_name(op.name)


def is_backward_name(name: str) -> bool:
  """Returns whether the name of an operation is that of one which computes gradients."""
  return name.startswith('gradients')


class Pairing:
  """Operations of both sides in pairs.

  Each operation has at most one partner; constants have none, they belong to what
  reads them.

  Attributes:
    tf1: the tf1 side's graph.
    tf2: the tf2 side's graph.
    tf2_of: position in tf2 of every tf1 operation's partner; None without one.
    tf1_of: the other way round.
    tensors: tensors that are one quantity, tf1 to tf2, whoever yields them.
    settled: tensors of tf1, and of tf2, that agree in other parts than the other side's.
  """

  def __init__(self, tf1: OpGraph, tf2: OpGraph) -> None:
    self.tf1 = tf1
    self.tf2 = tf2
    self.tf2_of: list[int | None] = [None] * len(tf1.ops)
    self.tf1_of: list[int | None] = [None] * len(tf2.ops)
    self.tensors: dict[TensorKey, TensorKey] = {}
    self.settled: tuple[set[TensorKey], set[TensorKey]] = set(), set()
    self._alone: set[int] = set()
    self._tf1_consumers = tf1.consumers()
    self._tf2_consumers = tf2.consumers()
    self._names = Names(tf1, tf2)
    self._tf1_made = made_of_constants(tf1)
    self._tf2_made = made_of_constants(tf2)
    self._pair_ends()
    self.complete()

  def complete(self) -> None:
    """Pairs what is left: by structure, and by name where that leads no further."""
    while self._structural_round() or self._backward_in_any_place() or self._pair_by_name():
      pass
    sides, consumers = (self.tf1, self.tf2), (self._tf1_consumers, self._tf2_consumers)
    self.part(*(a for a, b in self.pairs() if is_negated(sides, consumers, a, b)), for_good=True)

  def add(self, tf1: int, tf2: int) -> None:
    """Pairs two operations that have no partner yet."""
    assert self.tf2_of[tf1] is None and self.tf1_of[tf2] is None
    self.tf2_of[tf1] = tf2
    self.tf1_of[tf2] = tf1

  def part(self, *positions: int, for_good: bool = False) -> None:
    """Takes their partners from tf1 operations; `for_good`, so that `complete` finds no others."""
    if for_good:
      self._alone.update(positions)
    for tf1 in positions:
      tf2 = self.tf2_of[tf1]
      if tf2 is not None:
        self.tf2_of[tf1] = self.tf1_of[tf2] = None

  def partners(self) -> tuple[list[int | None], list[int | None]]:
    """Returns all partners as they are, for `restore`."""
    return list(self.tf2_of), list(self.tf1_of)

  def restore(self, partners: tuple[list[int | None], list[int | None]]) -> None:
    """Gives every operation the partner back that it had."""
    self.tf2_of, self.tf1_of = (list(known) for known in partners)

  def pairs(self) -> Iterator[tuple[int, int]]:
    """Yields the positions of partners, in the order of tf1."""
    for tf1, tf2 in enumerate(self.tf2_of):
      if tf2 is not None:
        yield tf1, tf2

  def _pair_ends(self) -> None:
    """Pairs inputs, variables and targets by what they are."""
    known = {
      (op.op_type, op.name): position
      for position, op in enumerate(self.tf2.ops)
      if (op.is_leaf and op.op_type != CONSTANT) or op.op_type == TARGET
    }
    for position, op in enumerate(self.tf1.ops):
      partner = known.get((op.op_type, op.name))
      if partner is not None and self.tf1_of[partner] is None:
        self.add(position, partner)

  def _structural_round(self) -> bool:
    """Pairs what stands in the same place; tells whether anything was found."""
    found = self._forward(ordered=True)
    found |= self._forward(ordered=False)
    found |= self._by_variable()
    found |= self._backward()
    return found

  def _is_free(self, tf1: int) -> bool:
    op = self.tf1.ops[tf1]
    is_free = self.tf2_of[tf1] is None and tf1 not in self._alone
    return is_free and not op.is_leaf and op.op_type != TARGET

  def _forward(self, ordered: bool) -> bool:
    """Pairs operations of one type whose inputs are partners."""
    found = False
    for position, op in enumerate(self.tf1.ops):
      if not self._is_free(position):
        continue
      wanted = self._inputs_in_tf2(op)
      if wanted is None:
        continue
      candidates = [
        other
        for other in self._candidates(op, wanted)
        if self._same_inputs(self.tf2.ops[other], wanted, ordered)
      ]
      if candidates:
        self.add(position, self._best(position, candidates))
        found = True
    return found

  def _inputs_in_tf2(self, op: OpRecord) -> list[tuple[int, int] | None] | None:
    """Returns the partners of an operation's inputs, None for a constant; None if one lacks."""
    wanted: list[tuple[int, int] | None] = []
    for producer, number in op.inputs:
      if self.tf1.ops[producer].op_type == CONSTANT:
        wanted.append(None)
        continue
      partner = self.tf2_of[producer]
      if partner is None:
        return None
      wanted.append((partner, number))
    return wanted

  def _candidates(self, op: OpRecord, wanted: list[tuple[int, int] | None]) -> list[int]:
    """Returns the unpaired tf2 operations of a type that read one of the wanted inputs."""
    anchor = next((key for key in wanted if key is not None), None)
    if anchor is None:
      return self._made_alike(op)
    readers = dict.fromkeys(reader for reader, _ in self._tf2_consumers[anchor[0]])
    return [
      reader
      for reader in readers
      if self.tf1_of[reader] is None
      and kind(self.tf2.ops[reader]) == kind(op)
      and self.tf2.ops[reader].op_type != TARGET
    ]

  def _made_alike(self, op: OpRecord) -> list[int]:
    """Returns the partner of what is made of constants alone, such as a random op."""
    named, sides = self._names.tf2_of(op), (self.tf1, self.tf2)
    ones = self._tf1_made.get(kind_of(op), [])
    others = self._tf2_made.get(kind_of(op), [])
    if named is not None and kind_of(self.tf2.ops[named]) == kind_of(op):
      if not have_same_constants(sides, op, self.tf2.ops[named]):
        alike = partner_by_constants(sides, ones, others, op)
        named = named if alike is None else alike
      return [named] if self.tf1_of[named] is None else []
    if len(ones) != len(others):
      return []
    other = others[[self.tf1.ops[position] for position in ones].index(op)]
    return [other] if self.tf1_of[other] is None else []

  def _same_inputs(
    self, other: OpRecord, wanted: list[tuple[int, int] | None], ordered: bool
  ) -> bool:
    if len(other.inputs) != len(wanted):
      return False
    have = [None if self.tf2.ops[key[0]].op_type == CONSTANT else key for key in other.inputs]
    return have == wanted if ordered else Counter(have) == Counter(wanted)

  def _best(self, position: int, candidates: list[int]) -> int:
    """Returns the candidate most like an operation: by name, constants, attributes, order."""
    if len(candidates) == 1:
      return candidates[0]
    op, sides = self.tf1.ops[position], (self.tf1, self.tf2)
    alike = [one for one in candidates if have_same_constants(sides, op, self.tf2.ops[one])]
    if self._names.tf2_of(op) not in alike:
      # Names count the steps of a loop in Python, and constants may be what is wrong.
      consumers, partners = (self._tf1_consumers, self._tf2_consumers), (self.tf2_of, self.tf1_of)
      candidates = used_alike(sides, consumers, partners, position, candidates)

    def likeness(candidate: int) -> tuple[bool, bool, bool, int]:
      other = self.tf2.ops[candidate]
      return (
        self._names.tf2_of(op) == candidate,
        candidate in alike,
        op.attributes == other.attributes,
        -candidate,
      )

    return max(candidates, key=likeness)

  def _by_variable(self) -> bool:
    """Pairs operations of one type that read the same variable at the same place.

    Of several, the one that is computed from partners, then in order: a layer may be called in
    another order.
    """
    found = False
    for position, op in enumerate(self.tf1.ops):
      partner = self.tf2_of[position]
      if partner is None or not op.is_leaf:
        continue
      free = [
        (reader, slot)
        for reader, slot in self._tf2_consumers[partner]
        if self.tf1_of[reader] is None and self.tf2.ops[reader].op_type != TARGET
      ]
      near = NearestPairs((self.tf1, self.tf2), (self.tf2_of, self.tf1_of))
      for reader, slot in self._tf1_consumers[position]:
        if not self._is_free(reader):
          continue
        wanted = kind(self.tf1.ops[reader])
        same = [
          other
          for other, other_slot in free
          if other_slot == slot
          and self.tf1_of[other] is None
          and kind(self.tf2.ops[other]) == wanted
          and _may_be_one(self.tf1.ops[reader], self.tf2.ops[other])
        ]
        if same and (op.op_type != 'input' or len(same) == 1):
          self.add(reader, self._best(reader, near.most_alike(reader, same)))
          found = True
    return found

  def _backward(self) -> bool:
    """Pairs operations of one type that partners read at the same place."""
    found = False
    for position in range(len(self.tf1.ops) - 1, -1, -1):
      partner = self.tf2_of[position]
      if partner is None:
        continue
      inputs, others = self.tf1.ops[position].inputs, self.tf2.ops[partner].inputs
      if len(inputs) != len(others):
        continue
      for (tf1, number), (tf2, other_number) in zip(inputs, others, strict=True):
        op, other = self.tf1.ops[tf1], self.tf2.ops[tf2]
        free = self._is_free(tf1) and self.tf1_of[tf2] is None and not other.is_leaf
        alike = number == other_number and kind(op) == kind(other)
        if free and alike and _may_be_one(op, other):
          self.add(tf1, self._with_same_inputs(tf1, tf2))
          found = True
    return found

  def _backward_in_any_place(self) -> bool:
    """Pairs what partners read at another place, if each reads one operation of that type.

    A condition may be written the other way round, a sum in another order.
    """
    found = False
    for position in range(len(self.tf1.ops) - 1, -1, -1):
      partner = self.tf2_of[position]
      if partner is None:
        continue
      ones = _by_family(self.tf1, position, self._is_free)
      others = _by_family(self.tf2, partner, self._is_free_in_tf2)
      for kind in ones.keys() & others.keys():
        if len(ones[kind]) == len(others[kind]) == 1:
          ((tf1, number),), ((tf2, other_number),) = ones[kind], others[kind]
          if number == other_number and self._related(tf1, tf2):
            self.add(tf1, tf2)
            found = True
    return found

  def _is_free_in_tf2(self, tf2: int) -> bool:
    op = self.tf2.ops[tf2]
    return self.tf1_of[tf2] is None and not op.is_leaf and op.op_type != TARGET

  def _with_same_inputs(self, tf1: int, tf2: int) -> int:
    """Returns the operation that reads what an operation reads, if any does, else the one given.

    A norm of all gradients reads them in the order of either side's variables.
    """
    op = self.tf1.ops[tf1]
    wanted = self._inputs_in_tf2(op)
    if wanted is None or not any(wanted) or self._same_inputs(self.tf2.ops[tf2], wanted, True):
      return tf2
    same = self._candidates(op, wanted)
    same = [one for one in same if self._same_inputs(self.tf2.ops[one], wanted, ordered=True)]
    return self._best(tf1, same) if same else tf2

  def _pair_by_name(self) -> bool:
    """Pairs what is left by name, where the names on both sides count alike."""
    found = False
    for position, op in enumerate(self.tf1.ops):
      if self._is_free(position) and self._names.count_alike(op):
        other = self._names.tf2_of(op)
        if other is not None and self.tf1_of[other] is None and self._related(position, other):
          self.add(position, other)
          found = True
    return found

  def _related(self, tf1: int, tf2: int) -> bool:
    """Returns whether two operations are computed from anything that is a pair, or from nothing.

    Names alone are numbers in the order of creation: `Einsum` of one side may be any of
    the other. Draws of another shape are still one draw: the shape is the fault.
    """
    op, other = self.tf1.ops[tf1], self.tf2.ops[tf2]
    sizes = _size(op), _size(other)
    if 'Random' not in op.op_type and None not in sizes and sizes[0] != sizes[1]:
      return False
    ones = nearest(self.tf1, tf1, self.tf2_of)
    others = nearest(self.tf2, tf2, self.tf1_of)
    return any(self.tf2_of[one] in others for one in ones) or not (ones or others)


def _may_be_one(op: OpRecord, other: OpRecord) -> bool:
  """Returns whether two operations may yield one quantity, by its sizes.

  A mistake may change how much there is, a layout how many dimensions; hardly anything both: the
  sum with a bias in the model is not its update.
  """
  if (_FORMULA in op.name) != (_FORMULA in other.name):
    return False
  sizes = _size(op), _size(other)
  if None in sizes or sizes[0] == sizes[1]:
    return True
  one, two = op.outputs[0][1], other.outputs[0][1]
  return one is None or two is None or len(one) == len(two)


def _by_family(
  graph: OpGraph, reader: int, is_free: Callable[[int], bool]
) -> dict[str, set[TensorKey]]:
  """Returns what an operation reads of operations that are free, by their type."""
  found: dict[str, set[TensorKey]] = {}
  for key in graph.ops[reader].inputs:
    if is_free(key[0]):
      found.setdefault(kind(graph.ops[key[0]]), set()).add(key)
  return found


def _size(op: OpRecord) -> int | None:
  """Returns how many elements an operation's first output has; None where that is not known."""
  shape = op.outputs[0][1] if op.outputs else None
  if shape is None:
    return None
  sizes = [size for size in shape if size is not None]
  return math.prod(sizes) if len(sizes) == len(shape) else None
