"""Bounds that one side alone has, and that no value of a run reaches.

Where what comes before, or after, is not proven, no two operations are known to read the same, and
a bound of one side has no counterpart to be held against. What it does in a run can be seen.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from tf2verify.diagnosis.rules.wording import number_text
from tf2verify.records.op_graph import OpGraph, OpRecord
from tf2verify.relation.op_pairs import family
from tf2verify.relation.proof.proving import Proof
from tf2verify.sides.graphs.run import GraphRun

_MINIMUM, _MAXIMUM = 'Minimum', 'Maximum'
# Activations that bound what they read, and by what.
_AS_BOUNDS = {'Relu': (_MAXIMUM, 0.0), 'Relu6': (_MINIMUM, 6.0)}
_MOST = 3
_RELATIVE = 1e-6
_SIDES = ('tf1', 'the port')

_Bound = tuple[str, float]


def idle_bounds(proof: Proof, runs: tuple[GraphRun, GraphRun]) -> list[str]:
  """Returns a sentence for each bound that does nothing in a run, and that one side alone has.

  Args:
    proof: of the graphs of the run.
    runs: of both sides, at inputs at which they agree.
  """
  sides = proof.tf1, proof.tf2
  known = [_bounds(side.graph) for side in sides]
  found: list[str] = []
  for number, (side, run) in enumerate(zip(sides, runs, strict=True)):
    told: dict[str, list[str]] = {}
    for position in sorted(side.tested):
      op = side.graph.ops[position]
      bound = _bound(side.graph, op)
      if bound is None or _is_among(bound, known[1 - number]) or not _is_idle(side.graph, op, run):
        continue
      where = 'an unknown line' if op.source is None else str(op.source)
      told.setdefault(where, []).append(f'{bound[0]} with {number_text(bound[1])}')
    found += [
      f'{_SIDES[number]} has {" and ".join(bounds)} at {where}, which changes nothing at the '
      f"case's own inputs; {_SIDES[1 - number]} has no such bound, and not all operations are "
      'proven: make the port the same as tf1, or give inputs that reach the bound'
      for where, bounds in told.items()
    ]
  return found[:_MOST]


def _bounds(graph: OpGraph) -> list[_Bound]:
  return [one for op in graph.ops if (one := _bound(graph, op)) is not None]


def _bound(graph: OpGraph, op: OpRecord) -> _Bound | None:
  """Returns from which side an operation bounds, and by what number; None for others."""
  kind = family(op.op_type)
  if kind in _AS_BOUNDS:
    return _AS_BOUNDS[kind]
  if kind not in (_MINIMUM, _MAXIMUM):
    return None
  constants = [graph.ops[n].constant for n, _ in op.inputs]
  numbers = [one for one in constants if one is not None and one.size == 1]
  if len(numbers) != 1 or numbers[0].dtype.kind not in 'fi':
    return None
  return kind, float(numbers[0].reshape(()))


def _is_among(bound: _Bound, others: Sequence[_Bound]) -> bool:
  return any(
    kind == bound[0] and bool(np.isclose(number, bound[1], _RELATIVE, _RELATIVE))
    for kind, number in others
  )


def _is_idle(graph: OpGraph, op: OpRecord, run: GraphRun) -> bool:
  """Returns whether an operation yields what it reads, all of it."""
  found = run.refetched([op.tensors[0], *_read(graph, op)], {})
  if found is None:
    return False
  after, *read = found
  return any(
    np.shape(one) == np.shape(after) and np.size(one) > 0 and bool(np.array_equal(one, after))
    for one in read
  )


def _read(graph: OpGraph, op: OpRecord) -> Iterator[str]:
  for producer, number in op.inputs:
    if graph.ops[producer].constant is None:
      yield graph.ops[producer].tensors[number]
