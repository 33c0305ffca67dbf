"""Pairs of operations that read the same and are not the same, though the numbers agree."""

import dataclasses
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

import numpy as np

from tf2verify.records.op_graph import OpGraph, OpRecord, TensorKey
from tf2verify.relation.op_pairs import family
from tf2verify.relation.proof.numbering import Variables
from tf2verify.relation.proof.proving import Proof, Side, prove

_MOST = 6
# Each relates the graphs once more.
_MOST_TRIALS = 16
# Operations in a row that one side alone has: a clipping is two.
_LONGEST_CHAIN = 2
# Attributes that a port gets wrong, and whose value says what is computed.
_ATTRIBUTES = (
  *('epsilon', 'alpha', 'beta', 'bias', 'depth_radius', 'padding', 'explicit_paddings'),
  *('strides', 'dilations', 'ksize', 'align_corners', 'half_pixel_centers', 'exclusive'),
  *('reverse', 'mode', 'is_training', 'exponential_avg_factor', 'axis', 'batch_dims'),
)
# Of one operand each, and no two of them the same function.
_ACTIVATIONS = frozenset(
  (
    *('Relu', 'Relu6', 'Elu', 'Selu', 'LeakyRelu', 'Tanh', 'Sigmoid', 'Softplus', 'Softsign'),
    *('Exp', 'Expm1', 'Erf', 'Sin', 'Cos', 'Abs', 'Square', 'Log', 'Log1p', 'Sqrt', 'Rsqrt'),
    *('Floor', 'Ceil', 'Round', 'Softmax', 'LogSoftmax'),
  )
)
_ROUNDING = 1e-6


# What compares integers with a constant, by the operand that is the constant.
_COMPARED: Mapping[str, Callable[[Any, Any], Any]] = {
  'Equal': np.equal,
  'NotEqual': np.not_equal,
  'Less': np.less,
  'LessEqual': np.less_equal,
  'Greater': np.greater,
  'GreaterEqual': np.greater_equal,
}
MISSING, EXTRA = 'missing', 'extra'


@dataclasses.dataclass(frozen=True)
class Unlike:
  """Two operations that read the same values, and do something else with them.

  Attributes:
    tf1: position of the reference's operation.
    tf2: of the port's.
    what: what is not the same: `constant`, `operation`, or the name of an attribute. `MISSING`:
      the port lacks the operation, and its own is what tf1's reads; `EXTRA`: the other way round.
    values: of both.
    chain: positions of all that one side alone has, of which the last one is named.
  """

  tf1: int
  tf2: int
  what: str
  values: tuple[str, str]
  chain: tuple[int, ...] = ()


def unlike(
  proof: Proof,
  variables: Variables,
  targets: Collection[str] | None = None,
  alone: bool = True,
) -> list[Unlike]:
  """Returns the operations at which two graphs begin to differ.

  Only those are returned after which the graphs go on alike: were they the same, what reads them
  would be proven. So a spelling that no rule knows is not taken for a difference.

  Args:
    proof: what is proven of the graphs.
    variables: as for `prove`.
    targets: likewise.
    alone: whether to look for operations that one side alone has. Differentiation makes many that
      only change signs and shapes, which the other side has elsewhere.
  """
  found: list[Unlike] = []
  granted: dict[TensorKey, TensorKey] = {}
  passed: tuple[set[int], set[int]] = (set(), set())
  refused: set[tuple[int, int, int]] = set()
  while len(found) < _MOST and len(found) + len(refused) < _MOST_TRIALS and proof.tested:
    candidates = _candidates(proof) if alone else _pairs(proof)
    pair = next((one for one in candidates if _key(one) not in refused), None)
    if pair is None:
      break
    more, now = dict(granted), (set(passed[0]), set(passed[1]))
    if pair.what == MISSING:
      now[0].update(pair.chain)
    elif pair.what == EXTRA:
      now[1].update(pair.chain)
    else:
      count = len(proof.tf1.graph.ops[pair.tf1].outputs)
      more |= {(pair.tf2, n): (pair.tf1, n) for n in range(count)}
    graphs = proof.tf1.graph, proof.tf2.graph
    further = prove(*graphs, variables, targets, more, now, proof.states)
    if _goes_on(proof, further, pair):
      granted, passed = more, now
      found.append(pair)
      proof = further
    else:
      refused.add(_key(pair))
  return found


def _key(pair: Unlike) -> tuple[int, int, int]:
  return pair.tf1, pair.tf2, len(pair.chain)


def _candidates(proof: Proof) -> Iterator[Unlike]:
  yield from _pairs(proof)
  yield from _alone(proof)


def _alone(proof: Proof) -> Iterator[Unlike]:
  """Yields operations of one side that may be missing on the other, whose own go on without."""
  for side, other, what in ((proof.tf1, proof.tf2, MISSING), (proof.tf2, proof.tf1, EXTRA)):
    producers: dict[int, int] = {}
    for (position, _), number in other.values.items():
      producers.setdefault(number, position)
    readers = side.graph.consumers()
    for position in sorted(side.tested):
      read = _passed(proof, side, position)
      partner = None if read is None else producers.get(side.values[read])
      chain: tuple[int, ...] = ()
      last: int | None = position
      while last is not None and partner is not None and len(chain) < _LONGEST_CHAIN:
        chain += (last,)
        text = ' → '.join(_spelled(proof, side, n) for n in chain)
        ends = (chain[-1], partner) if what == MISSING else (partner, chain[-1])
        yield Unlike(*ends, what, (text, '') if what == MISSING else ('', text), chain)
        after = {reader for reader, _ in readers[last]}
        last = after.pop() if len(after) == 1 else None
        if last is not None and _passed(proof, side, last) != (chain[-1], 0):
          last = None


def _passed(proof: Proof, side: Side, position: int) -> TensorKey | None:
  """Returns what an operation may hand on unchanged: its one tensor, of its own shape."""
  op = side.graph.ops[position]
  computed = [key for key in op.inputs if proof.terms.value(side.values[key]) is None]
  if len(computed) != 1 or len(op.outputs) != 1 or op.functions or op.is_leaf:
    return None
  (read,) = computed
  return read if side.graph.ops[read[0]].outputs[read[1]] == op.outputs[0] else None


def _spelled(proof: Proof, side: Side, position: int) -> str:
  op = side.graph.ops[position]
  given = [_text(value) for value in _constants(proof, side, op)]
  return f'{op.op_type} with {", ".join(given)}' if given else op.op_type


def _goes_on(before: Proof, after: Proof, pair: Unlike) -> bool:
  """Returns whether what reads two operations is proven, if they are taken for the same."""
  if len(after.tested) < len(before.tested):
    return True
  of_tf1 = {pair.tf1, *(pair.chain if pair.what == MISSING else ())}
  of_tf2 = {pair.tf2, *(pair.chain if pair.what == EXTRA else ())}
  gone = before.tf1.tested - after.tf1.tested - of_tf1
  lost = before.tf2.tested - after.tf2.tested - of_tf2
  if pair.what == MISSING:
    return bool(lost) and _reads(before.tf1.graph, gone, pair.tf1)
  if pair.what == EXTRA:
    return bool(gone) and _reads(before.tf2.graph, lost, pair.tf2)
  return _reads(before.tf1.graph, gone, pair.tf1) and _reads(before.tf2.graph, lost, pair.tf2)


def _reads(graph: OpGraph, readers: Collection[int], position: int) -> bool:
  return any(producer == position for n in readers for producer, _ in graph.ops[n].inputs)


def _pairs(proof: Proof) -> Iterator[Unlike]:
  """Yields pairs whose inputs are the same, the first of the reference first."""
  others: dict[tuple[int, ...], list[int]] = {}
  values = frozenset(proof.tf1.values.values()) & frozenset(proof.tf2.values.values())
  for position in sorted(proof.tf2.tested):
    read = _read(proof, proof.tf2, values, position)
    if read:
      others.setdefault(read, []).append(position)
  for position in sorted(proof.tf1.tested):
    read = _read(proof, proof.tf1, values, position)
    for other in others.get(read or (), ()):
      found = _difference(proof, position, other)
      if found is not None:
        yield Unlike(position, other, *found)


def _read(
  proof: Proof, side: Side, values: Collection[int], position: int
) -> tuple[int, ...] | None:
  """Returns the terms that an operation reads, constants aside; None if one side lacks one."""
  read = [side.values[key] for key in side.graph.ops[position].inputs]
  computed = [number for number in read if proof.terms.value(number) is None]
  return tuple(sorted(computed)) if all(number in values for number in computed) else None


def _difference(proof: Proof, tf1: int, tf2: int) -> tuple[str, tuple[str, str]] | None:
  """Returns what tells two operations apart that read the same; None if nothing is known to."""
  one, other = proof.tf1.graph.ops[tf1], proof.tf2.graph.ops[tf2]
  if one.outputs != other.outputs:
    return None
  if one.op_type != other.op_type and {one.op_type, other.op_type} <= _ACTIVATIONS:
    return 'operation', (one.op_type, other.op_type)
  if {one.op_type, other.op_type} <= _COMPARED.keys():
    return _comparison(proof, one, other)
  if family(one.op_type) != family(other.op_type) or one.functions or other.functions:
    return None
  constants = _constants(proof, proof.tf1, one), _constants(proof, proof.tf2, other)
  for first, second in zip(*constants, strict=False):
    if first.shape == second.shape and not _same(first, second):
      return 'constant', (_text(first), _text(second))
  for name in _ATTRIBUTES:
    values = one.attribute(name), other.attribute(name)
    if None not in values and values[0] != values[1]:
      return name, (_text(values[0]), _text(values[1]))
  return None


def _comparison(proof: Proof, one: OpRecord, other: OpRecord) -> tuple[str, tuple[str, str]] | None:
  """Returns what tells two comparisons with a constant apart, where a number does."""
  sides = ((proof.tf1, one), (proof.tf2, other))
  operands = [[proof.terms.value(side.values[key]) for key in op.inputs] for side, op in sides]
  limits = [value for values in operands for value in values if value is not None]
  if len(limits) != 2 or any(limit.size != 1 or limit.dtype.kind not in 'iu' for limit in limits):
    return None
  first, second = (int(limit.reshape(-1)[0]) for limit in limits)
  points = np.array([limit + step for limit in (first, second) for step in (-1, 0, 1)])
  told = []
  for (_, op), values in zip(sides, operands, strict=True):
    given = [points if value is None else value.reshape(-1)[0] for value in values]
    told.append(_COMPARED[op.op_type](*given))
  if np.array_equal(*told):
    return None
  return 'operation', (f'{one.op_type} with {first}', f'{other.op_type} with {second}')


def _constants(proof: Proof, side: Side, op: OpRecord) -> list[np.ndarray]:
  values = [proof.terms.value(side.values[key]) for key in op.inputs]
  return [value for value in values if value is not None]


def _same(one: np.ndarray, other: np.ndarray) -> bool:
  if one.dtype.kind not in 'fc' or other.dtype.kind not in 'fc':
    return bool(np.array_equal(one, other))
  return bool(np.allclose(one, other, rtol=_ROUNDING, atol=0, equal_nan=True))


def _text(value: object) -> str:
  if isinstance(value, np.ndarray):
    if value.size == 1:
      return _text(value.reshape(-1)[0].item())
    return ' '.join(str(value.reshape(-1)[:8].tolist()).split()) + ('…' if value.size > 8 else '')
  return f'{value:.6g}' if isinstance(value, float) else str(value)
