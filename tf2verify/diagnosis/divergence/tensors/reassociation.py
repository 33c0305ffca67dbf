"""Products and sums that the two sides take in another order.

`0.99 * value * left` and `0.99 * (left * value)` have one product of two factors each on the way,
and these are no counterparts, though they are operations of one type that read one tensor in
common. What differs in such a product is seen by its factors as a whole.
"""

import collections
from collections.abc import Iterator

from tf2verify.records.op_graph import CONSTANT, OpGraph, TensorKey
from tf2verify.relation.operations.op_pairs import Pairing, family

# It does not matter in which order their operands are taken.
_ASSOCIATIVE = frozenset({'Mul', 'AddV2', 'Maximum', 'Minimum', 'LogicalAnd', 'LogicalOr'})
_LIST, _SUM = 'Pack', 'Sum'
# The constants of a product are one number, however many they are written as.
_CONSTANT = (-1, 0)
_UNKNOWN = (-2, 0)

_Factors = collections.Counter[TensorKey]


def reassociated(pairing: Pairing) -> list[int]:
  """Returns tf1's operations on the way to a product whose partners have other factors.

  Only of products that have the same factors on both sides, as far as these have counterparts; and
  of sums of a list of which one side has more, as the squares of a kernel in two parts.
  """
  tf1, tf2 = _Chains(pairing.tf1), _Chains(pairing.tf2)
  found = [one for one, other in pairing.pairs() if tf1.is_of_another_sum(one, tf2, other)]
  for position, partner in list(pairing.pairs()):
    if not tf1.is_top(position) or not tf2.is_top(partner):
      continue
    if family(pairing.tf1.ops[position].op_type) != family(pairing.tf2.ops[partner].op_type):
      continue
    inner = list(tf1.inner(position))
    if not inner or not _are_same(_as_tf2(pairing, tf1.factors(position)), tf2.factors(partner)):
      continue
    for one in inner:
      other = pairing.tf2_of[one]
      if other is not None and not _is_same_part(pairing, tf1, tf2, one, other):
        found.append(one)
  return found


class _Chains:
  """The products of a graph, and what they multiply."""

  def __init__(self, graph: OpGraph) -> None:
    self._graph = graph
    self._consumers = graph.consumers()

  def is_of_another_sum(self, position: int, others: '_Chains', other: int) -> bool:
    """Returns whether an operation lists for a sum what the other side lists in other parts."""
    readers = [self._graph.ops[n].op_type for n, _ in self._consumers[position]]
    op, partner = self._graph.ops[position], others._graph.ops[other]
    is_list = op.op_type == partner.op_type == _LIST and set(readers) == {_SUM}
    return is_list and len(op.inputs) != len(partner.inputs)

  def is_top(self, position: int) -> bool:
    """Returns whether an operation is a whole product, no part of another one."""
    kind = family(self._graph.ops[position].op_type)
    return kind in _ASSOCIATIVE and not self._is_part(position, kind)

  def inner(self, position: int) -> Iterator[int]:
    """Yields the parts of a product that are products themselves."""
    kind = family(self._graph.ops[position].op_type)
    for producer, _ in self._graph.ops[position].inputs:
      if family(self._graph.ops[producer].op_type) == kind and self._is_part(producer, kind):
        yield producer
        yield from self.inner(producer)

  def factors(self, position: int) -> _Factors:
    """Returns what is multiplied in all, the constants as one."""
    found: _Factors = collections.Counter()
    kind = family(self._graph.ops[position].op_type)
    for key in self._graph.ops[position].inputs:
      producer = self._graph.ops[key[0]]
      if producer.op_type == CONSTANT:
        found[_CONSTANT] = 1
      elif family(producer.op_type) == kind and self._is_part(key[0], kind):
        found += self.factors(key[0])
        found[_CONSTANT] = min(found[_CONSTANT], 1)
      else:
        found[key] += 1
    return found

  def _is_part(self, position: int, kind: str) -> bool:
    readers = self._consumers[position]
    return len(readers) == 1 and family(self._graph.ops[readers[0][0]].op_type) == kind


def _as_tf2(pairing: Pairing, factors: _Factors) -> _Factors:
  found: _Factors = collections.Counter()
  for key, count in factors.items():
    if key == _CONSTANT:
      found[key] += count
      continue
    partner = pairing.tf2_of[key[0]]
    found[_UNKNOWN if partner is None else (partner, key[1])] += count
  return found


def _are_same(one: _Factors, other: _Factors) -> bool:
  """Returns whether factors are the same; one of tf1 without a partner may be any of the port."""
  unknown = one[_UNKNOWN]
  rest = one - collections.Counter({_UNKNOWN: unknown})
  left = other - rest
  return not rest - other and sum(left.values()) == unknown and not left[_CONSTANT]


def _is_same_part(
  pairing: Pairing, tf1: _Chains, tf2: _Chains, position: int, partner: int
) -> bool:
  return _are_same(_as_tf2(pairing, tf1.factors(position)), tf2.factors(partner))
