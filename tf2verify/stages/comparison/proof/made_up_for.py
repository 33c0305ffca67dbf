"""Differences of two graphs that have an effect, which something else makes up for.

A note says that two graphs differ with no effect in a run. Whether it is so can be tried: the
port is given what tf1's operation yields in place of its own. Where its results change, the two
operations do matter, and since the results agree as they are, the port has the rest of the formula
in another place as well: a sign within a sum and not in front of it, say. It is a spelling.
"""

from collections.abc import Sequence

import numpy as np

from tf2verify.records.op_graph import OpGraph
from tf2verify.relation.proof.differences.pairs import Unlike
from tf2verify.relation.proof.proving import Proof
from tf2verify.sides.graphs.run import GraphRun

# Of the greatest element: what is more than rounding.
_CHANGED = 1e-4


def is_made_up_for(proof: Proof, pair: Unlike, runs: tuple[GraphRun, GraphRun]) -> bool:
  """Returns whether results change if the port yields what tf1 does at a pair of operations.

  Args:
    proof: of the graphs of the runs, whose results agree.
    pair: the operations; False where they are terms, or yield arrays of different shapes.
    runs: of both sides.
  """
  one, other = proof.tf1.graph.ops[pair.tf1], proof.tf2.graph.ops[pair.tf2]
  if pair.terms is not None or len(other.outputs) != 1 or one.outputs != other.outputs:
    return False
  wanted = result_tensors(proof.tf2.graph, proof.targets)
  own = runs[0].refetched([one.tensors[0], *result_tensors(proof.tf1.graph, proof.targets)], {})
  before = runs[1].refetched([other.tensors[0], *wanted], {})
  if own is None or before is None or not _differ(own[0], before[0]):
    return False
  after = runs[1].refetched(wanted, {other.tensors[0]: own[0]})
  if after is None:
    # A loss refuses the labels that it gets then, and not its own: they do matter.
    return runs[1].refetched(wanted, {other.tensors[0]: before[0]}) is not None
  if len(own) != len(before):
    return False
  # Some may agree within a tolerance alone, which hides the difference.
  results = zip(own[1:], before[1:], after, strict=True)
  return any(not _differ(tf1, tf2) and _differ(tf2, new) for tf1, tf2, new in results)


def result_tensors(graph: OpGraph, targets: Sequence[str]) -> list[str]:
  """Returns the tensors of targets that a graph has, by TensorFlow's names."""
  ends = graph.targets()
  read = [graph.ops[ends[name]].inputs[0] for name in targets if name in ends]
  return [graph.ops[producer].tensors[number] for producer, number in read]


def _differ(one: np.ndarray, other: np.ndarray) -> bool:
  if one.shape != other.shape or one.dtype.kind not in 'fiub' or one.size == 0:
    return False
  first, second = (np.asarray(value, np.float64) for value in (one, other))
  if not np.array_equal(np.isfinite(first), np.isfinite(second)):
    return True
  size = np.max(np.abs(np.where(np.isfinite(first), first, 0.0)), initial=0.0)
  apart = np.abs(np.where(np.isfinite(first), first - second, 0.0))
  return bool(apart.max(initial=0.0) > _CHANGED * size)
