"""Pairs of operations that read the same and are not the same, though the numbers agree."""

import dataclasses
from collections.abc import Collection, Iterator

import numpy as np

from tf2verify.records.op_graph import OpGraph, OpRecord, TensorKey
from tf2verify.relation.op_pairs import family
from tf2verify.relation.proof.numbering import Variables
from tf2verify.relation.proof.proving import Proof, Side, prove

_MOST = 6
# Each relates the graphs once more.
_MOST_TRIALS = 16
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


@dataclasses.dataclass(frozen=True)
class Unlike:
  """Two operations that read the same values, and do something else with them.

  Attributes:
    tf1: position of the reference's operation.
    tf2: of the port's.
    what: what is not the same: `constant`, `operation`, or the name of an attribute.
    values: of both.
  """

  tf1: int
  tf2: int
  what: str
  values: tuple[str, str]


def unlike(
  proof: Proof, variables: Variables, targets: Collection[str] | None = None
) -> list[Unlike]:
  """Returns the operations at which two graphs begin to differ.

  Only those are returned after which the graphs go on alike: were they the same, what reads them
  would be proven. So a spelling that no rule knows is not taken for a difference.

  Args:
    proof: what is proven of the graphs.
    variables: as for `prove`.
    targets: likewise.
  """
  found: list[Unlike] = []
  granted: dict[TensorKey, TensorKey] = {}
  refused: set[tuple[int, int]] = set()
  while len(found) < _MOST and len(found) + len(refused) < _MOST_TRIALS and proof.tested:
    pair = next((one for one in _pairs(proof) if (one.tf1, one.tf2) not in refused), None)
    if pair is None:
      break
    count = len(proof.tf1.graph.ops[pair.tf1].outputs)
    more = {(pair.tf2, n): (pair.tf1, n) for n in range(count)}
    further = prove(proof.tf1.graph, proof.tf2.graph, variables, targets, {**granted, **more})
    if _goes_on(proof, further, pair):
      granted |= more
      found.append(pair)
      proof = further
    else:
      refused.add((pair.tf1, pair.tf2))
  return found


def _goes_on(before: Proof, after: Proof, pair: Unlike) -> bool:
  """Returns whether what reads two operations is proven, if they are taken for the same."""
  if len(after.tested) < len(before.tested):
    return True
  gone = before.tf1.tested - after.tf1.tested - {pair.tf1}
  lost = before.tf2.tested - after.tf2.tested - {pair.tf2}
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
