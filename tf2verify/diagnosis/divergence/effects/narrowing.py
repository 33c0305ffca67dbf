"""Pairs by value inside the regions of a source, which narrow down where it is."""

import dataclasses

import numpy as np

from tf2verify.diagnosis.divergence.first_divergence import Divergence
from tf2verify.diagnosis.divergence.tensors.outputs import can_fetch
from tf2verify.diagnosis.divergence.tensors.regions import (
  Region,
  RegionPair,
  region_pair,
  without_inputs,
)
from tf2verify.diagnosis.divergence.tensors.sources import FoundSource, InspectableRun
from tf2verify.numerics.relayout import alike, alike_as_held, is_constant, relayout
from tf2verify.records.op_graph import CONSTANT, OpGraph, OpRecord, TensorKey

# What these yield is paired part by part.
_PARTS = ('Split', 'SplitV', 'Unpack')


class Narrowing:
  """Narrows sources down by what the operations in their regions yield."""

  def __init__(self, tf1: InspectableRun, tf2: InspectableRun, divergence: Divergence) -> None:
    """Looks into two runs.

    Args:
      tf1: the tf1 side's run.
      tf2: the tf2 side's.
      divergence: the search in them; operations found to be alike become pairs in it.
    """
    self._tf1 = tf1
    self._tf2 = tf2
    self._pairing = divergence.pairing
    self._divergence = divergence

  def narrowed(self, source: FoundSource) -> FoundSource:
    """Pairs operations inside a source's regions by what they yield, to narrow it down.

    Two spellings of a computation have few operations in common; values show up to
    where they go together. Where one side alone has further operations, they may compute what
    the other one has of a pair: then the difference is not in them.
    """
    pair = source.regions
    if not pair.tf1.inner and not pair.tf2.inner:
      return source
    if pair.tf1.inner and pair.tf2.inner:
      pair = self._with_inner_pairs(pair)
    pair = self._without_agreeing_inputs(pair)
    return dataclasses.replace(source, regions=pair)

  def _with_inner_pairs(self, pair: RegionPair) -> RegionPair:
    """Pairs the unpaired operations that yield the same, and returns what is left of a region."""
    ones, others = self._inner_values(pair)
    if ones is None or others is None:
      return pair
    taken: set[int] = set()
    for tf1, value in ones.items():
      free = (tf2 for tf2 in others if tf2 not in taken)
      partner = next((tf2 for tf2 in free if _alike_as_held(value, others[tf2])), None)
      if partner is not None:
        taken.add(partner)
        self._divergence.pair(tf1, partner, relayout(value, others[partner]))
    return region_pair(self._pairing, pair.tf1.end, pair.tf2.end) if taken else pair

  def _without_agreeing_inputs(self, pair: RegionPair) -> RegionPair:
    """Leaves out of a region what only leads to inputs of its end that agree by their values.

    An output of a loop may be paired with that of another kind of operation here, which
    no pair of operations says, and one part of a split with another part.
    """
    ones = _further_tensors(self._tf1.op_graph, pair.tf1)
    others = _further_tensors(self._tf2.op_graph, pair.tf2)
    entering = self._entering(pair)
    ops, other_ops = self._tf1.op_graph.ops, self._tf2.op_graph.ops
    fetched = self._tf1.fetch([ops[n].tensors[k] for n, k in (*ones, *entering)])
    given = self._divergence.given(pair, dict(zip(entering, fetched[len(ones) :], strict=True)))
    (answer,) = self._tf2.recompute([([other_ops[n].tensors[k] for n, k in others], given)])
    if answer is None:
      return pair
    left = dict(zip(others, answer, strict=True))
    agreeing: dict[TensorKey, TensorKey] = {}
    for one, value in zip(ones, fetched, strict=False):
      alike = (other for other, array in left.items() if _alike(value, array))
      partner = next(alike, None)
      if partner is not None:
        agreeing[one] = partner
        del left[partner]
    return without_inputs(self._pairing, pair.tf1.end, pair.tf2.end, agreeing)

  def _inner_values(
    self, pair: RegionPair
  ) -> tuple[dict[int, np.ndarray] | None, dict[int, np.ndarray] | None]:
    """Returns the first outputs of the unpaired operations, all from the tf1 side's inputs."""
    tf1_ops, tf2_ops = self._tf1.op_graph.ops, self._tf2.op_graph.ops
    free, other_free = self._pairing.tf2_of, self._pairing.tf1_of
    inner = [n for n in pair.tf1.inner if free[n] is None and _is_telling(tf1_ops[n])]
    other_inner = [n for n in pair.tf2.inner if other_free[n] is None and _is_telling(tf2_ops[n])]
    keys = self._entering(pair)
    fetched = self._tf1.fetch(
      [tf1_ops[n].tensors[0] for n in inner] + [tf1_ops[n].tensors[k] for n, k in keys]
    )
    values = dict(zip(keys, fetched[len(inner) :], strict=True))
    given = self._divergence.given(pair, values)
    (answer,) = self._tf2.recompute([([tf2_ops[n].tensors[0] for n in other_inner], given)])
    if answer is None:
      return None, None
    ones = dict(zip(inner, fetched[: len(inner)], strict=True))
    return ones, dict(zip(other_inner, answer, strict=True))

  def _entering(self, pair: RegionPair) -> list[TensorKey]:
    """Returns the tensors that tf1 enters a region by, of those that are numbers."""
    graph = self._tf1.op_graph
    return [one for one, _ in pair.entering if one is not None and can_fetch(graph, one)]


def _further_tensors(graph: OpGraph, region: Region) -> list[TensorKey]:
  """Returns what the end of a region reads, and the parts that operations in it yield."""
  several = [n for n in region.inner if len(graph.ops[n].tensors) > 1]
  parts = [(n, k) for n in several for k in range(len(graph.ops[n].tensors))]
  return [
    key
    for key in dict.fromkeys([*graph.ops[region.end].inputs, *parts])
    if graph.ops[key[0]].op_type != CONSTANT and can_fetch(graph, key)
  ]


def _is_telling(op: OpRecord) -> bool:
  """Returns whether an operation's first output can be taken for a value of the model."""
  if not op.tensors or op.op_type in _PARTS:
    return False
  return op.outputs[0][0].startswith(('float', 'bfloat', 'complex'))


def _alike_as_held(tf1: np.ndarray, tf2: np.ndarray) -> bool:
  """Returns the same of two that may hold their elements in other shapes."""
  return not is_constant(tf1) and alike_as_held(tf1, tf2)


def _alike(tf1: np.ndarray, tf2: np.ndarray) -> bool:
  """Returns whether two tensors are the same, and not only since they are constant."""
  return tf1.shape == tf2.shape and not is_constant(tf1) and alike(tf1, tf2)
