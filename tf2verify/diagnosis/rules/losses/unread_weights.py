"""Weights or masks that one of two losses does not read."""

import itertools
from collections.abc import Iterator, Sequence

import numpy as np

from tf2verify.diagnosis.evidence.losses import LossEvidence
from tf2verify.diagnosis.formulas.losses import Evaluated
from tf2verify.numerics.extreme_outputs import weight_paths
from tf2verify.records.diagnosis import Cause
from tf2verify.records.loss_values import Leaves


def unread_weights(evidence: LossEvidence) -> Cause | None:
  """A loss is the same whatever the weights are, while the other side's is not."""
  tf1, tf2 = evidence.tf1, evidence.tf2
  for weighted in weight_paths(tf1[0].example, evidence.paths):
    moved = [
      [(sides[a].value, sides[b].value) for a, b in _apart_in(weighted, tf1)]
      for sides in (tf1, tf2)
    ]
    fixed = [all(np.array_equal(a, b) for a, b in pairs) for pairs in moved]
    if fixed[0] == fixed[1]:
      continue
    side, other = ('tf1', 'tf2') if fixed[0] else ('tf2', 'tf1')
    values = moved[1] if fixed[0] else moved[0]
    one, two = next((a, b) for a, b in values if not np.array_equal(a, b))
    return Cause(
      f'the loss of {side} does not depend on labels{weighted}: it stays the same if only these '
      f'change, while that of {other} goes from {np.sum(one):.6g} to {np.sum(two):.6g}'
    )
  return None


def _apart_in(weighted: str, evaluated: Sequence[Evaluated]) -> Iterator[tuple[int, int]]:
  """Yields which examples differ in nothing but these labels."""
  examples = [one.example for one in evaluated]
  for (a, one), (b, other) in itertools.combinations(enumerate(examples), 2):
    rest = [
      {path: label for path, label in example.labels.items() if path != weighted}
      for example in (one, other)
    ]
    if (
      _same_leaves(one.outputs, other.outputs)
      and _same_leaves(*rest)
      and not np.array_equal(one.labels[weighted], other.labels[weighted])
    ):
      yield a, b


def _same_leaves(one: Leaves, other: Leaves) -> bool:
  return one.keys() == other.keys() and all(np.array_equal(one[p], other[p]) for p in one)
