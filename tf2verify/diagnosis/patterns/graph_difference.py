"""What differs between the graphs of two sides at one place."""

import dataclasses
import math
import operator
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tf2verify.diagnosis.divergence.tensors.regions import RegionPair, region_pair
from tf2verify.diagnosis.patterns.numbers.constant_factors import other_constant
from tf2verify.diagnosis.patterns.numbers.known_values import (
  constant_or_number,
  is_number,
  is_of_constants,
  same_numbers,
  without_numbers,
)
from tf2verify.diagnosis.patterns.numbers.normalizations import (
  epsilon_before_root,
  epsilon_change,
  epsilons,
  momentum_of,
)
from tf2verify.diagnosis.patterns.numbers.plain_values import plain, same
from tf2verify.diagnosis.patterns.operations.axes import are_same_axes, only_transposes, other_axis
from tf2verify.diagnosis.patterns.operations.choices import chosen_from_elsewhere
from tf2verify.diagnosis.patterns.operations.function_labels import relabelled
from tf2verify.diagnosis.patterns.operations.gradient_paths import gradient_differences
from tf2verify.diagnosis.patterns.operations.matching import (
  both_start,
  matched_by_type,
  passed_by,
  starts_elsewhere,
)
from tf2verify.diagnosis.patterns.operations.moved_operations import PlacesElsewhere
from tf2verify.diagnosis.patterns.operations.number_operands import (
  number_in_place_of_shapes,
  number_operand,
)
from tf2verify.diagnosis.patterns.operations.op_text import (
  SHAPING,
  SILENT_ATTRIBUTES,
  only_shapes,
  op_text,
  value_text,
  value_texts,
)
from tf2verify.diagnosis.patterns.operations.reads import brought_in, tensor_text, with_reads
from tf2verify.diagnosis.patterns.operations.region_numbers import (
  number_that_differs,
  takes_elements,
)
from tf2verify.diagnosis.patterns.operations.slices import told_as_slices
from tf2verify.diagnosis.patterns.operations.spellings import is_no_matter
from tf2verify.records import rounds
from tf2verify.records.diagnosis import GraphAspect, GraphDifference
from tf2verify.records.op_graph import (
  CONSTANT,
  TARGET,
  NodeChange,
  OpGraph,
  OpRecord,
  TensorKey,
)
from tf2verify.relation.operations.op_pairs import Pairing, kind

# Of a number that is computed: 1 - 0.999 in float32 is this far from 0.001.
_OF_COMPUTED = 1e-4
# Of two inputs, in either order.
_COMMUTATIVE = ('Add', 'AddV2', 'AddN', 'Mul', 'Maximum', 'Minimum', 'SquaredDifference')


def _is_of_shapes(known: GraphDifference) -> bool:
  """Returns whether what differs are operations that only bring elements into shapes."""
  return only_shapes((*(known.tf1_value or ()), *(known.tf2_value or ())))


class GraphComparison:
  """Compares the graphs of two sides region by region."""

  def __init__(self, pairing: Pairing) -> None:
    self._pairing = pairing
    self._tf1 = pairing.tf1
    self._tf2 = pairing.tf2
    self._elsewhere = PlacesElsewhere(pairing)
    self._changes: list[tuple[GraphDifference, NodeChange]] = []

  def changes(
    self, differences: Sequence[GraphDifference]
  ) -> list[tuple[GraphDifference, NodeChange]]:
    """Returns those of some differences that a change of the port's operations mends."""
    return [known for known in self._changes if any(known[0] is d for d in differences)]

  def at(self, pair: RegionPair) -> tuple[GraphDifference, ...]:
    """Returns what differs between two regions: the operations, and how they are wired."""
    found: list[GraphDifference] = []
    momentum = self._momentum(pair)
    if momentum is not None:
      return (momentum,)
    chosen = chosen_from_elsewhere(self._pairing, pair)
    if chosen:
      return tuple(chosen)
    found += self._epsilon(pair)
    epsilon_of = {difference.op for difference in found}
    matched = matched_by_type(self._tf1, self._tf2, pair)
    unmatched = self._unmatched(pair, matched)
    along = other_axis(self._tf1, self._tf2, pair)
    if along is not None and all(only_transposes(one) for one in unmatched):
      return (*found, along)
    longest = max(
      sum(graph.ops[n].op_type not in SHAPING for n in region.inner)
      for graph, region in ((self._tf1, pair.tf1), (self._tf2, pair.tf2))
    )
    for tf1, tf2 in matched:
      # Few operations of one type in two long regions have nothing to do with each other.
      is_near = tf1 == pair.tf1.end or 2 * (len(matched) - 1) > longest
      if is_near or both_start(self._tf1, self._tf2, pair, tf1, tf2):
        found += self.of_operations(tf1, tf2)
        found += self._of_functions(tf1, tf2)
    wired, unmatched = self._wired(pair, matched, unmatched)
    for tf1, tf2 in self._loops_before(pair):
      found += self._of_functions(tf1, tf2)
    if any(known.aspect is GraphAspect.ATTRIBUTE for known in found):
      # A convolution of one axis is one of two, of another shape.
      unmatched = [one for one in unmatched if not _is_of_shapes(one)]
    is_other_order = any(known.aspect is GraphAspect.WIRING for known in wired)
    has_constant = any(known.aspect is GraphAspect.CONSTANT for known in found)
    if (unmatched or is_other_order) and not has_constant:
      number = number_that_differs(self._tf1, self._tf2, pair)
      if number is not None:
        found.append(number[0])
        self._changes += [] if number[1] is None else [(number[0], number[1])]
        unmatched = [] if takes_elements(unmatched) else unmatched
    of_update = self._elsewhere.is_of_update(pair.tf1.end)
    found += [*wired, *with_reads(self._tf1, self._tf2, pair, matched, unmatched, of_update)]
    return tuple(
      known
      for known in found
      if known.aspect is not GraphAspect.CONSTANT or known.op not in epsilon_of
    )

  def _momentum(self, pair: RegionPair) -> GraphDifference | None:
    """Returns how the momentum of a moving average differs, however it is kept."""
    op = self._tf1.ops[pair.tf1.end]
    if op.op_type != TARGET or not op.name.startswith('update of '):
      return None
    tf1, tf2 = momentum_of(self._tf1, pair.tf1), momentum_of(self._tf2, pair.tf2)
    if tf1 is None or tf2 is None or math.isclose(tf1, tf2, rel_tol=1e-5):
      return None
    return self._difference(GraphAspect.ATTRIBUTE, op.name, op, 'momentum', tf1, tf2)

  def _epsilon(self, pair: RegionPair) -> list[GraphDifference]:
    """Returns how the epsilon of a normalization differs that is written in two ways."""
    tf1 = epsilons(self._tf1, (*pair.tf1.inner, pair.tf1.end))
    tf2 = epsilons(self._tf2, (*pair.tf2.inner, pair.tf2.end))
    if not tf1 and not tf2:  # where the sums differ, the roots behind them are in no region
      tf1 = epsilon_before_root(self._tf1, pair.tf1.end)
      tf2 = epsilon_before_root(self._tf2, pair.tf2.end)
    if len(tf1) != 1 or len(tf2) != 1 or math.isclose(tf1[0][1], tf2[0][1], rel_tol=1e-5):
      return []
    position, epsilon = tf1[0]
    op = self._tf1.ops[position]
    if self._tf2.ops[tf2[0][0]].op_type == op.op_type and op.attribute('epsilon') is not None:
      return []  # seen as an attribute
    found = self._difference(GraphAspect.ATTRIBUTE, op.name, op, 'epsilon', epsilon, tf2[0][1])
    change = epsilon_change(self._tf2, tf2[0][0], epsilon)
    # Of a fused norm against one that is written out, the partners here need be no counterparts.
    if change is not None and self._tf2.ops[tf2[0][0]].op_type == op.op_type:
      self._changes.append((found, change))
    return [found]

  def of_operations(self, tf1: int, tf2: int) -> list[GraphDifference]:
    """Returns what differs between two operations and their constant inputs."""
    op, other = self._tf1.ops[tf1], self._tf2.ops[tf2]
    name, found = op.name, []
    if kind(op) != kind(other):
      texts = op_text(self._tf1, tf1), op_text(self._tf2, tf2)
      kinds = op.op_type, other.op_type
      found.append(GraphDifference(GraphAspect.TYPE, name, op.op_type, '', *texts, *kinds))
    others = dict(other.attributes)
    for attribute, value in op.attributes:
      if attribute in SILENT_ATTRIBUTES or attribute not in others:
        continue
      both = value, others[attribute]
      if is_no_matter((self._tf1, self._tf2), (op, other), attribute, *both):
        continue
      if not same(*both):
        known = self._difference(GraphAspect.ATTRIBUTE, name, op, attribute, *both)
        found.append(told_as_slices(known, (self._tf1, tf1), (self._tf2, tf2)))
        change = NodeChange(other.name, attributes=((attribute, value),))
        self._changes.append((found[-1], change))
    # What a product is multiplied by and what a quotient is divided by are no two values of one.
    if kind(op) == kind(other) and len(op.inputs) == len(other.inputs):
      found += self._constants(name, op, other)
    return found

  def _of_functions(self, tf1: int, tf2: int) -> list[GraphDifference]:
    """Returns what differs in the bodies of two loops, or the branches of two conditions."""
    op, other = self._tf1.ops[tf1], self._tf2.ops[tf2]
    others = dict(other.functions)
    tf1_labels = [self._label(self._tf1, key, self._pairing.tf2_of[key[0]]) for key in op.inputs]
    tf2_labels = [self._label(self._tf2, key, key[0]) for key in other.inputs]
    found: list[GraphDifference] = []
    for attribute, function in op.functions:
      if attribute in others:
        pairing = Pairing(
          relabelled(function, tf1_labels), relabelled(others[attribute], tf2_labels)
        )
        found += [_inside(d, op.name) for d in GraphComparison(pairing).of_everything()]
    return found

  def _loops_before(self, pair: RegionPair) -> list[tuple[int, int]]:
    """Returns loops that hand a list of tensors on, which no values tell apart."""
    found: dict[tuple[int, int], None] = {}
    for one, other in pair.entering:
      if one is None or other is None:
        continue
      ops = self._tf1.ops[one[0]], self._tf2.ops[other[0]]
      if all(op.functions for op in ops) and ops[0].outputs[one[1]][0] == 'variant':
        found[one[0], other[0]] = None
    return list(found)

  def _label(self, graph: OpGraph, key: TensorKey, tf2_position: int | None) -> str:
    """Returns a name for what enters a loop, the same on both sides."""
    op = graph.ops[key[0]]
    if op.op_type == CONSTANT:
      return f'constant {value_text(op.constant) if op.constant is not None else op.name}'
    if tf2_position is None or tf2_position < 0:
      return f'{graph.side} {op.name}, {key[1]}'
    return f'{tf2_position}, {key[1]}'

  def of_everything(self) -> list[GraphDifference]:
    """Returns all differences between the graphs, without regard to values."""
    found: dict[GraphDifference, None] = {}
    for tf1, tf2 in self._pairing.pairs():
      if not self._tf1.ops[tf1].is_leaf:
        pair = region_pair(self._pairing, tf1, tf2)
        found.update(dict.fromkeys(self.at(pair)))
    return list(found)

  def _difference(
    self, aspect: GraphAspect, name: str, op: OpRecord, what: str, tf1: Any, tf2: Any
  ) -> GraphDifference:
    said = value_texts(tf1, tf2)
    return GraphDifference(aspect, name, op.op_type, what, *said, plain(tf1), plain(tf2))

  def _constants(self, name: str, op: OpRecord, other: OpRecord) -> list[GraphDifference]:
    found: list[GraphDifference] = []
    if rounds.whole(name) != name:
      return found  # which part of a tensor it is: another order, of which nobody has written this
    for slot, ((one, _), (two, _)) in enumerate(zip(op.inputs, other.inputs, strict=True)):
      tf1, tf2 = constant_or_number(self._tf1, one), constant_or_number(self._tf2, two)
      if tf1 is None or tf2 is None or same(tf1, tf2):
        continue
      written = self._tf1.ops[one].op_type == self._tf2.ops[two].op_type == CONSTANT
      if not written and np.allclose(tf1, tf2, _OF_COMPUTED, 0.0):
        continue
      what = op.input_name(slot)
      if are_same_axes((self._tf1, self._tf2), (op, other), what, slot, (tf1, tf2)):
        continue
      found.append(self._difference(GraphAspect.CONSTANT, name, op, what, tf1, tf2))
      if written:
        self._changes.append((found[-1], NodeChange(other.name, inputs=((slot, tf1),))))
    return found

  def _unmatched(
    self, pair: RegionPair, matched: Sequence[tuple[int, int]]
  ) -> list[GraphDifference]:
    """Returns operations that one side lacks, or has others for."""
    ones = [n for n in pair.tf1.inner if n not in {tf1 for tf1, _ in matched}]
    others = [n for n in pair.tf2.inner if n not in {tf2 for _, tf2 in matched}]
    # What only makes a number is said with the operation that reads it.
    without = without_numbers(self._tf1, ones), without_numbers(self._tf2, others)
    if any(without) or any(self.of_operations(n, m) for n, m in matched):
      ones, others = without
    are_same = all(same_numbers(self._tf1, one, self._tf2, two) for one, two in matched)
    if (not ones and not others) or (not any(without) and are_same):
      return []  # maybe numbers that are made in two ways
    if self._makes_constants(ones, others):
      chains = self._chain(self._tf1, ones), self._chain(self._tf2, others)
      return [other_constant(self._tf1.ops[pair.tf1.end], *chains)]
    same = self._chain(self._tf1, ones) == self._chain(self._tf2, others)
    if same or (ones and others and starts_elsewhere(self._tf1, self._tf2, pair, matched)):
      # The same operations at another place among the others: all of them tell the order.
      ones, others = list(pair.tf1.inner), list(pair.tf2.inner)
    for one, other in passed_by(self._tf1, self._tf2, matched, (ones, others)):
      ones, others = sorted({*ones, one}), sorted({*others, other})
    aspect = GraphAspect.REPLACED if ones else GraphAspect.EXTRA
    aspect = aspect if others else GraphAspect.MISSING
    name = self._tf1.ops[ones[0]].name if ones else self._tf2.ops[others[0]].name
    op_type = self._tf1.ops[ones[0]].op_type if ones else self._tf2.ops[others[0]].op_type
    is_one = aspect is GraphAspect.MISSING and len(ones) == 1
    return [
      GraphDifference(
        aspect,
        name,
        op_type,
        brought_in(self._tf1, self._tf2, pair, self._tf1.ops[ones[0]]) if is_one else '',
        self._chain(self._tf1, ones),
        self._chain(self._tf2, others),
        tuple(self._tf1.ops[n].op_type for n in ones),
        tuple(self._tf2.ops[n].op_type for n in others),
        *self._elsewhere.said(ones, others, pair.tf2.end),
      )
    ]

  def _makes_constants(self, ones: Sequence[int], others: Sequence[int]) -> bool:
    """Returns whether all that is not paired here is computed from constants."""
    made = [is_of_constants(self._tf1, n) for n in ones]
    return all(made) and all(is_of_constants(self._tf2, n) for n in others)

  def _chain(self, graph: OpGraph, positions: Sequence[int]) -> str:
    shown = [op_text(graph, n) for n in positions[:8]]
    if len(positions) > 8:
      shown.append(f'… {len(positions) - 8} more')
    return ' → '.join(shown)

  def _wired(
    self,
    pair: RegionPair,
    matched: Sequence[tuple[int, int]],
    unmatched: list[GraphDifference],
  ) -> tuple[list[GraphDifference], list[GraphDifference]]:
    """Returns how operations are wired differently, and what is left of those of one side."""
    known, graphs = dict(matched), (self._tf1, self._tf2)
    if not unmatched:
      entering = dict(pair.entering)
      return [d for one, two in matched for d in self._wiring(one, two, known, entering)], []
    if all(map(_is_of_shapes, unmatched)):
      wired = number_in_place_of_shapes(graphs, pair, lambda key: self._partner(key, known))
      return wired, [] if wired else unmatched
    return [], unmatched

  def _wiring(
    self,
    tf1: int,
    tf2: int,
    matched: Mapping[int, int],
    entering: Mapping[TensorKey | None, TensorKey | None],
  ) -> list[GraphDifference]:
    """Returns inputs that come from elsewhere, or in another order."""
    op, other = self._tf1.ops[tf1], self._tf2.ops[tf2]
    if len(op.inputs) != len(other.inputs):
      if kind(op) != kind(other):
        return []  # what else they are says it
      return [
        self._difference(
          GraphAspect.WIRING,
          op.name,
          op,
          'number of inputs',
          len(op.inputs),
          len(other.inputs),
        )
      ]
    expected = [entering.get(key) or self._partner(key, matched) for key in op.inputs]
    have = [None if is_number(self._tf2, key) else key for key in other.inputs]
    if [e is None for e in expected] != [h is None for h in have]:
      return number_operand((self._tf1, self._tf2), (tf1, tf2), expected, op.name)
    if op.op_type in _COMMUTATIVE and not any(map(operator.eq, expected, have)):
      turned = have[::-1]
      have = turned if any(map(operator.eq, expected, turned)) else have
    if expected == have:
      return []
    swapped = sorted(map(str, expected)) == sorted(map(str, have))
    found = []
    for slot, (wanted, key) in enumerate(zip(expected, have, strict=True)):
      if wanted == key or wanted is None or key is None:
        continue
      what = op.input_name(slot)
      texts = tensor_text(self._tf1, op.inputs[slot]), tensor_text(self._tf2, key)
      kinds = self._tf1.ops[op.inputs[slot][0]].op_type, self._tf2.ops[key[0]].op_type
      aspect = GraphAspect.ORDER if swapped else GraphAspect.WIRING
      alike = tensor_text(self._tf2, wanted) if op.op_type == TARGET else ''
      given = (aspect, op.name, op.op_type, what, *texts, *kinds)
      found.append(GraphDifference(*given, alike=alike))
    return found

  def _partner(self, key: TensorKey, matched: Mapping[int, int]) -> TensorKey | None:
    if is_number(self._tf1, key):
      return None
    partner = matched.get(key[0], self._pairing.tf2_of[key[0]])
    return None if partner is None else (partner, key[1])

  def of_gradients(self) -> list[GraphDifference]:
    """Returns where the two forward passes let gradients pass differently."""
    return gradient_differences(self._pairing)


def _inside(difference: GraphDifference, loop: str) -> GraphDifference:
  return dataclasses.replace(difference, op=f'{loop}, in its body: {difference.op}')
