"""Bounds and activations that differ at one place, counted back from what both sides yield.

Where what comes before is not proven, no two operations are known to read the same. But if the same
operations follow on both sides, up to the results, and these agree in a run, it is the bound that
makes the functions differ.
"""

import dataclasses
from collections import Counter
from collections.abc import Iterator, Mapping

import numpy as np

from tf2verify.records.op_graph import OpGraph, OpRecord, TensorKey
from tf2verify.relation.operations.op_pairs import family
from tf2verify.relation.proof.differences.pairs import Unlike, text_of
from tf2verify.relation.proof.proving import Proof

_BOUNDS = ('Maximum', 'Minimum')
_STRICT = (('Greater', 'GreaterEqual'), ('Less', 'LessEqual'))
_CONDITIONS = ('Greater', 'GreaterEqual', 'Less', 'LessEqual')
_ACTIVATIONS = ('Relu', 'Relu6', 'LeakyRelu', 'Elu', 'Selu')
_SLOPE = 'alpha'
# They change neither numbers nor, but for axes of length 1 and the grouping of axes, their order.
_SHAPING = ('Reshape', 'Squeeze', 'ExpandDims')
_ROUNDING = 1e-6
_Pair = tuple[TensorKey, TensorKey]


@dataclasses.dataclass(frozen=True)
class _Found:
  """Two operations at one place, with what is not the same."""

  places: tuple[int, int]
  what: str
  values: tuple[str, str]


def unlike_bounds(proof: Proof) -> list[Unlike]:
  """Returns what bounds results that are not proven, and bounds them differently in the port."""
  ends = [side.graph.targets() for side in (proof.tf1, proof.tf2)]
  starts = [
    (one, other)
    for name in proof.tested
    if name in ends[0] and name in ends[1]
    for one, other in _in_order(proof.tf1.graph, ends[0][name], proof.tf2.graph, ends[1][name])
  ]
  walk = _Walk(proof.tf1.graph, proof.tf2.graph, proof)
  found = list(walk.back_from(starts))
  # Operands that change places: each side has what the other has.
  counts = Counter(one.values for one in found)
  return [
    Unlike(*one.places, one.what, one.values)
    for one in found
    if not counts[one.values[1], one.values[0]]
  ]


class _Walk:
  """Goes back through two graphs while their operations are alike."""

  def __init__(self, tf1: OpGraph, tf2: OpGraph, proof: Proof | None = None) -> None:
    """Takes two graphs, and what is proven of them; None within functions."""
    self._graphs = tf1, tf2
    self._proof = proof

  def back_from(self, starts: list[_Pair]) -> Iterator[_Found]:
    """Yields what differs on the ways back from pairs of tensors."""
    pending, seen = list(starts), set(starts)
    while pending:
      pair = pending.pop()
      if self._is_proven(pair):
        continue
      ops = self._op(0, pair[0]), self._op(1, pair[1])
      if ops[0].op_type != ops[1].op_type and any(op.op_type in _SHAPING for op in ops):
        further = [(self._unshaped(0, pair[0]), self._unshaped(1, pair[1]))]
      else:
        found = self._difference(pair, ops)
        yield from [found] if found is not None else []
        further = self._further(ops) if found is not None or self._alike(ops) else []
        yield from self._inside(pair, ops)
      new = [(one, other) for one, other in further if (one, other) not in seen]
      seen.update(new)
      pending += new

  def _op(self, side: int, key: TensorKey) -> OpRecord:
    return self._graphs[side].ops[key[0]]

  def _is_proven(self, pair: _Pair) -> bool:
    proof = self._proof
    return proof is not None and proof.tf1.values[pair[0]] == proof.tf2.values[pair[1]]

  def _constant(self, side: int, key: TensorKey) -> np.ndarray | None:
    if self._proof is not None:
      values = (self._proof.tf1, self._proof.tf2)[side].values
      return self._proof.terms.value(values[key])
    return self._op(side, key).constant

  def _constants(self, side: int, op: OpRecord) -> list[np.ndarray]:
    found = [self._constant(side, key) for key in op.inputs]
    return [value for value in found if value is not None]

  def _unshaped(self, side: int, key: TensorKey) -> TensorKey:
    op = self._op(side, key)
    return op.inputs[0] if op.op_type in _SHAPING else key

  def _alike(self, ops: tuple[OpRecord, OpRecord]) -> bool:
    """Returns whether two operations compute the same of what they read that is no constant."""
    one, other = ops
    if one.is_leaf or other.is_leaf or family(one.op_type) != family(other.op_type):
      return False
    constants = self._constants(0, one), self._constants(1, other)
    return len(constants[0]) == len(constants[1]) and all(
      a.shape == b.shape and _same(a, b) for a, b in zip(*constants, strict=True)
    )

  def _difference(self, pair: _Pair, ops: tuple[OpRecord, OpRecord]) -> _Found | None:
    one, other = ops
    places, types = (pair[0][0], pair[1][0]), (one.op_type, other.op_type)
    if {*types} <= {*_ACTIVATIONS}:
      if types[0] != types[1]:
        before = [self._kind_before(side, op) for side, op in enumerate(ops)]
        is_spelling = before[0] != before[1] or before[0] in _BOUNDS  # relu of a minimum is relu6
        return None if is_spelling else _Found(places, 'operation', types)
      slopes = one.attribute(_SLOPE), other.attribute(_SLOPE)
      if None not in slopes and slopes[0] != slopes[1]:
        return _Found(places, _SLOPE, (text_of(slopes[0]), text_of(slopes[1])))
    limits = self._constants(0, one), self._constants(1, other)
    if not any(limits) and any({*types} == {*pair} for pair in _STRICT):
      texts = [f'{kind} ({kind.endswith("Equal")} for equal values)' for kind in types]
      return _Found(places, 'operation', (texts[0], texts[1]))
    if types[0] != types[1] or types[0] not in (*_BOUNDS, *_CONDITIONS):
      return None
    if [len(side) for side in limits] != [1, 1] or limits[0][0].dtype.kind != 'f':
      return None
    (first,), (second,) = limits
    if first.shape == second.shape and not _same(first, second):
      return _Found(places, 'constant', (text_of(first), text_of(second)))
    return None

  def _kind_before(self, side: int, op: OpRecord) -> str:
    return family(self._op(side, self._unshaped(side, op.inputs[0])).op_type)

  def _further(self, ops: tuple[OpRecord, OpRecord]) -> list[_Pair]:
    """Returns what two operations read, in pairs."""
    read = [
      [key for key in op.inputs if self._constant(side, key) is None] for side, op in enumerate(ops)
    ]
    if len(read[0]) != len(read[1]):
      return []
    if ops[0].functions or ops[1].functions:
      return []
    kinds = [
      [family(self._op(side, key).op_type) for key in keys] for side, keys in enumerate(read)
    ]
    if kinds[0] != kinds[1] and kinds[0] == kinds[1][::-1]:
      read[1].reverse()
    return list(zip(*read, strict=True))

  def _inside(self, pair: _Pair, ops: tuple[OpRecord, OpRecord]) -> Iterator[_Found]:
    """Yields what differs within the functions of two loops or conditions."""
    functions: tuple[Mapping[str, OpGraph], ...] = tuple(dict(op.functions) for op in ops)
    results = [f'result {key[1]}' for key in pair]
    for name in functions[0].keys() & functions[1].keys() - {'cond'}:
      graphs = functions[0][name], functions[1][name]
      ends = [graph.targets().get(end) for graph, end in zip(graphs, results, strict=True)]
      if ends[0] is None or ends[1] is None:
        continue
      starts = list(_in_order(graphs[0], ends[0], graphs[1], ends[1]))
      for found in _Walk(*graphs).back_from(starts):
        yield dataclasses.replace(found, places=(pair[0][0], pair[1][0]))


def _in_order(tf1: OpGraph, one: int, tf2: OpGraph, other: int) -> Iterator[_Pair]:
  """Yields the tensors of two targets."""
  inputs = tf1.ops[one].inputs, tf2.ops[other].inputs
  if len(inputs[0]) == len(inputs[1]):
    yield from zip(*inputs, strict=True)


def _same(one: np.ndarray, other: np.ndarray) -> bool:
  if one.dtype.kind != 'f' or other.dtype.kind != 'f':
    return bool(np.array_equal(one, other))
  return bool(np.allclose(one, other, rtol=_ROUNDING, atol=0, equal_nan=True))
