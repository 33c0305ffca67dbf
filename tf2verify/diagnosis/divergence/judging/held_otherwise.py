"""Tensors that the port holds in another shape or sign, and whether that is what goes wrong.

A mean that keeps its axes, heads in front of positions, or a log-likelihood in place of its
negative, is a way to write a model. It is a fault where what reads it yields something else because
of it, and then it begins where the shape or the sign does.
"""

import dataclasses
from collections.abc import Hashable, Mapping, Sequence

import numpy as np

from tf2verify.diagnosis.divergence.tensors.outputs import is_opaque
from tf2verify.diagnosis.divergence.tensors.regions import RegionPair, region, region_pair
from tf2verify.diagnosis.divergence.tensors.sources import FoundSource, InspectableRun
from tf2verify.numerics.agreement import agreement
from tf2verify.numerics.relayout import (
  Relayout,
  agreement_but_for_sign,
  alike,
  are_reordered,
)
from tf2verify.records.op_graph import TARGET, VARIABLE, TensorKey
from tf2verify.relation.operations.op_pairs import Pairing


@dataclasses.dataclass(frozen=True, eq=False)
class HeldOtherwise:
  """The pairs of tensors that hold the same elements in two shapes."""

  tf1: InspectableRun  # the tf1 side's run
  tf2: InspectableRun  # the tf2 side's
  pairing: Pairing  # their operations in pairs
  # How the port holds what belongs to a variable, as the map of the variables says: no fault begins
  # there.
  views: Mapping[TensorKey, Relayout]
  # How the port holds tensors of tf1.
  layouts: dict[TensorKey, Relayout] = dataclasses.field(default_factory=dict)
  # What `_is_of_shapes` has found: each takes a run, and searches repeat.
  _of_shapes: dict[Hashable, bool] = dataclasses.field(default_factory=dict)

  def as_tf2(self, key: TensorKey, value: np.ndarray) -> np.ndarray:
    """Returns the value of a tf1 tensor as its partner holds it."""
    layout = self.layouts.get(key) or self.views.get(key)
    return value if layout is None else layout.to_tf2(value)

  def is_in_own_order(
    self, tf2: int, ones: Sequence[np.ndarray], others: Sequence[np.ndarray]
  ) -> bool:
    """Returns whether the port has the elements in the order of a variable that it alone has.

    The gates of its LSTM, say. What it computes from all of them together is then no quantity of
    tf1; what it computes from each is.

    Args:
      tf2: position of the port's operation.
      ones: what its partner yields.
      others: what it yields from the same inputs.
    """
    if not all(one.shape == other.shape for one, other in zip(ones, others, strict=True)):
      return False
    whole = [np.concatenate([np.ravel(one) for one in side]) for side in (ones, others)]
    if not are_reordered(whole[0], whole[1]):
      return False
    graph, partners = self.tf2.op_graph, self.pairing.tf1_of
    entering = region(graph, partners, tf2).frontier
    return any(graph.ops[n].op_type == VARIABLE and partners[n] is None for n, _ in entering)

  def origins(self, source: FoundSource) -> list[FoundSource]:
    """Returns where shapes begin to differ, if a source is one for its inputs' shapes alone."""
    entering = self._entering(source.regions)
    if not entering or not self._is_of_shapes(source):
      return []
    origins: dict[int, RegionPair] = {}
    seen: set[int] = set()
    pending = list(entering)
    while pending:
      position = pending.pop()[0]
      partner = self.pairing.tf2_of[position]
      if partner is None or position in seen:
        continue
      seen.add(position)
      pair = region_pair(self.pairing, position, partner)
      before = self._entering(pair)
      if before:
        pending += before
      elif not self.tf1.op_graph.ops[position].is_leaf:
        origins[position] = pair
    return [self._source(pair) for _, pair in sorted(origins.items())]

  def signed(self, source: FoundSource) -> FoundSource:
    """Returns a source as one that the port holds with the other sign, where its inputs say so.

    What it computes is then odd in the inputs that the port holds with the other sign.
    """
    pair = source.regions
    turned = [one for one in self._entering(pair) if self.layouts[one].negated]
    if not turned or source.output is None or source.layout is not None or not source.tf2.any():
      return source
    ops, others = self.tf1.op_graph.ops, self.tf2.op_graph.ops
    is_end = ops[pair.tf1.end].op_type == TARGET
    if is_end or source.tf1.shape != source.tf2.shape or source.tf1.dtype.kind != 'f':
      return source
    both = self._of_both(pair)
    values = self.tf1.fetch([ops[n].tensors[k] for (n, k), _ in both])
    held = {
      others[n].tensors[k]: self.as_tf2(one, value)
      for (one, (n, k)), value in zip(both, values, strict=True)
    }
    other_sign = {
      others[n].tensors[k]: -held[others[n].tensors[k]] for one, (n, k) in both if one in turned
    }
    wanted = [others[pair.tf2.end].tensors[source.output]]
    answers = self.tf2.recompute([(wanted, held), (wanted, {**held, **other_sign})])
    if None in answers:
      return source
    (one,), (other,) = (answer for answer in answers if answer is not None)
    if not alike(-one, other):
      return source
    layout = Relayout(source.tf1.shape, None, source.tf2.shape, negated=True)
    self.layouts[pair.tf1.end, source.output] = layout
    found = agreement(layout.to_tf2(source.tf1), source.tf2)
    return dataclasses.replace(source, layout=layout, agreement=found)

  def _of_both(self, pair: RegionPair) -> list[tuple[TensorKey, TensorKey]]:
    """Returns the pairs of tensors by which both sides enter regions, of those that have values."""
    ops = self.tf1.op_graph.ops
    return [
      (one, two)
      for one, two in pair.entering
      if one is not None and two is not None and not is_opaque(ops[one[0]].outputs[one[1]][0])
    ]

  def _entering(self, pair: RegionPair) -> list[TensorKey]:
    known = self.layouts.keys() - self.views.keys()
    return [one for one, _ in pair.entering if one in known and one is not None]

  def _is_of_shapes(self, source: FoundSource) -> bool:
    """Returns whether a source yields what tf1 yields from inputs of tf1's shapes."""
    pair = source.regions
    op, other = self.tf1.op_graph.ops[pair.tf1.end], self.tf2.op_graph.ops[pair.tf2.end]
    if op.op_type == TARGET:
      return agreement_but_for_sign(source.tf1, source.tf2)[0].is_rounding
    if source.output is None:
      return False
    ops, others = self.tf1.op_graph.ops, self.tf2.op_graph.ops
    both = self._of_both(pair)
    asked = pair.tf1.end, pair.tf2.end, source.output, tuple(both)
    if asked not in self._of_shapes:
      values = self.tf1.fetch([ops[n].tensors[k] for (n, k), _ in both])
      given = {others[n].tensors[k]: value for (_, (n, k)), value in zip(both, values, strict=True)}
      (answer,) = self.tf2.recompute([([other.tensors[source.output]], given)])
      same = answer is not None and agreement(source.tf1, answer[0]).is_rounding
      self._of_shapes[asked] = same
    return self._of_shapes[asked]

  def _source(self, pair: RegionPair) -> FoundSource:
    """Returns where a shape begins to differ, as a source."""
    number = next(number for n, number in self.layouts if n == pair.tf1.end)
    (one,) = self.tf1.fetch([self.tf1.op_graph.ops[pair.tf1.end].tensors[number]])
    (other,) = self.tf2.fetch([self.tf2.op_graph.ops[pair.tf2.end].tensors[number]])
    return FoundSource(pair, agreement(one, other), False, one, other, number)
