"""Mistakes directly one behind the other, which two graphs show as one.

No tensor between them is one quantity of both sides, so that all operations from the first one to
the last belong to one region, and one edit would be of both. But a mistake in a setting shows by
itself: an operation that is given what TF1's one reads, and TF1's settings, yields what that does.
There the region is parted, and each mistake is looked into alone.
"""

from collections.abc import Iterator

import numpy as np

from tf2verify.diagnosis.divergence.effects.trials import Trials
from tf2verify.diagnosis.divergence.first_divergence import Divergence
from tf2verify.diagnosis.divergence.tensors.outputs import can_fetch
from tf2verify.diagnosis.divergence.tensors.regions import RegionPair
from tf2verify.diagnosis.divergence.tensors.sources import FoundSource, InspectableRun
from tf2verify.diagnosis.patterns.graph_difference import GraphComparison
from tf2verify.diagnosis.patterns.numbers.known_values import constant_or_number, is_number
from tf2verify.diagnosis.patterns.numbers.plain_values import same
from tf2verify.records.op_graph import TARGET, NodeChange, OpRecord, TensorKey
from tf2verify.relation.operations.op_pairs import family

Output = tuple[str, tuple[int | None, ...] | None]
# Each takes a search.
_MOST = 8
# Regions with more operations on both sides are two spellings; cuts are looked for there.
_MOST_OPERATIONS = 24


def part_adjacent(
  divergence: Divergence, tf1: InspectableRun, tf2: InspectableRun, at_ends_alone: bool = False
) -> bool:
  """Pairs operations between mistakes that are directly one behind the other; returns if there are.

  Args:
    divergence: the search; what is found becomes a pair, and it looks again.
    tf1: the tf1 side's run.
    tf2: the port's.
    at_ends_alone: whether not to look at the first operations of regions: of these, pairs that are
      none were parted.
  """
  is_parted = False
  looked_into: set[RegionPair] = set()
  for _ in range(_MOST):
    found = None
    for source in divergence.all_sources():
      regions = source.regions
      sizes = len(regions.tf1.inner), len(regions.tf2.inner)
      is_looked_into = regions in looked_into or source.agreement.is_rounding
      if is_looked_into or not min(sizes) or min(sizes) > _MOST_OPERATIONS:
        continue
      looked_into.add(regions)
      found = _Adjacent(divergence, (tf1, tf2), source).between(at_ends_alone)
      if found is not None:
        break
    if found is None:
      break
    before, layouts = divergence.pairing.partners(), dict(divergence.layouts)
    divergence.pairing.add(*found)
    divergence.part((), layouts)
    if all(source.regions.tf1.end != found[0] for source in divergence.all_sources()):
      divergence.pairing.restore(before)
      divergence.part((), layouts)
    else:
      divergence.between.add(found[0])
      is_parted = True
  return is_parted


class _Adjacent:
  """Looks for an operation of both sides between two mistakes of a region."""

  def __init__(
    self,
    divergence: Divergence,
    runs: tuple[InspectableRun, InspectableRun],
    source: FoundSource,
  ) -> None:
    self._tf1, self._tf2 = (run.op_graph for run in runs)
    self._source, self._pair = source, source.regions
    self._free = divergence.pairing.tf2_of, divergence.pairing.tf1_of
    self._comparison = GraphComparison(divergence.pairing)
    self._trials = Trials(*runs, divergence.ends, divergence.as_tf2)

  def between(self, at_ends_alone: bool) -> tuple[int, int] | None:
    """Returns the positions of such an operation on both sides; None without one."""
    found = self._before_the_end()
    return found if found or at_ends_alone else next(self._at_the_start(), None)

  def _before_the_end(self) -> tuple[int, int] | None:
    """Returns what leads to the last operation, where that is wrong by itself in a setting."""
    pair = self._pair
    op, other = self._tf1.ops[pair.tf1.end], self._tf2.ops[pair.tf2.end]
    if op.op_type == TARGET or len(op.inputs) != len(other.inputs):
      return None
    exits = {
      (one, two)
      for one, two in zip(op.inputs, other.inputs, strict=True)
      if one[0] in pair.tf1.inner or two[0] in pair.tf2.inner
    }
    numbers = {e for e in exits if is_number(self._tf1, e[0])}
    if len(exits - numbers) != 1:
      return None
    ((one, two),) = exits - numbers
    if not self._may_be_one(one, two):
      return None
    mends = self._mends(pair.tf1.end, pair.tf2.end)
    is_wrong = mends and self._trials.is_wrong_behind(self._source, mends)
    return (one[0], two[0]) if is_wrong else None

  def _at_the_start(self) -> Iterator[tuple[int, int]]:
    """Yields first operations that are wrong by themselves in a setting."""
    partners = dict(self._pair.entering)
    for one in self._pair.tf1.inner:
      op = self._tf1.ops[one]
      for two in self._pair.tf2.inner:
        other = self._tf2.ops[two]
        is_like = family(op.op_type) == family(other.op_type) and len(op.inputs) == len(
          other.inputs
        )
        if not is_like or not self._may_be_one((one, 0), (two, 0)):
          continue
        both = [*zip(op.inputs, other.inputs, strict=True)]
        read = [b for b in both if not all(map(is_number, (self._tf1, self._tf2), b))]
        if not read or any(partners.get(key) != its for key, its in read):
          continue
        mends = self._mends(one, two)
        is_wrong = mends and self._trials.is_wrong_alone(self._source, (one, two), mends)
        if is_wrong and not self._trials.worsens(self._source, mends):
          yield one, two

  def _may_be_one(self, one: TensorKey, two: TensorKey) -> bool:
    """Returns whether a tensor of each side, made inside of the region, may be one quantity."""
    is_inside = one[0] in self._pair.tf1.inner and two[0] in self._pair.tf2.inner
    is_free = self._free[0][one[0]] is None and self._free[1][two[0]] is None
    if not (is_inside and is_free and one[1] == two[1] == 0):
      return False
    outputs = self._tf1.ops[one[0]].outputs[0], self._tf2.ops[two[0]].outputs[0]
    return outputs[0][0] == outputs[1][0] and can_fetch(self._tf1, one) and _fit(*outputs)

  def _mends(self, one: int, two: int) -> list[NodeChange]:
    """Returns what gives an operation of the port the settings of tf1's one."""
    differences = self._comparison.of_operations(one, two)
    changes = [change for _, change in self._comparison.changes(differences)]
    known = {slot for change in changes for slot, _ in change.inputs}
    numbers = self._numbers(self._tf1.ops[one], self._tf2.ops[two])
    computed = tuple((slot, value) for slot, value in numbers if slot not in known)
    name = self._tf2.ops[two].name
    return [*changes, NodeChange(name, inputs=computed)] if computed else changes

  def _numbers(self, op: OpRecord, other: OpRecord) -> Iterator[tuple[int, np.ndarray]]:
    for slot, (one, two) in enumerate(zip(op.inputs, other.inputs, strict=True)):
      wanted = constant_or_number(self._tf1, one[0])
      own = constant_or_number(self._tf2, two[0])
      if wanted is not None and own is not None and not same(wanted, own):
        yield slot, wanted


def _fit(one: Output, other: Output) -> bool:
  """Returns whether outputs have the same shape, as far as it is known."""
  shape, its = one[1], other[1]
  if shape is None or its is None:
    return shape is its
  return len(shape) == len(its) and all(
    a == b or None in (a, b) for a, b in zip(shape, its, strict=True)
  )
