"""Operations of two graphs that read the same, and that are not the same."""

import dataclasses
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

import numpy as np

from tf2verify.records.op_graph import INPUT, OpRecord, TensorKey
from tf2verify.relation.operations.op_pairs import family
from tf2verify.relation.proof.proving import Proof, Side

# Operations in a row that one side alone has: a clipping is two.
_LONGEST_CHAIN = 3
# Attributes that a port gets wrong, and whose value says what is computed.
_ATTRIBUTES = (
  *('epsilon', 'alpha', 'beta', 'bias', 'depth_radius', 'padding', 'explicit_paddings'),
  *('strides', 'dilations', 'ksize', 'align_corners', 'half_pixel_centers', 'exclusive'),
  *('reverse', 'mode', 'is_training', 'exponential_avg_factor', 'axis', 'batch_dims'),
)
# Of one operand, and no two of them the same function.
UNARY = frozenset(
  (
    *('Relu', 'Relu6', 'Elu', 'Selu', 'LeakyRelu', 'Tanh', 'Sigmoid', 'Softplus', 'Softsign'),
    *('Exp', 'Expm1', 'Erf', 'Sin', 'Cos', 'Abs', 'Square', 'Log', 'Log1p', 'Sqrt', 'Rsqrt'),
    *('Floor', 'Ceil', 'Round', 'Softmax', 'LogSoftmax', 'Neg', 'Sign', 'Reciprocal'),
  )
)
# Of the same operands, and no two of a row the same function.
KINDS = (
  UNARY,
  *map(
    frozenset,
    (
      ('FloorDiv', 'TruncateDiv'),
      ('RealDiv', 'DivNoNan'),
      ('FloorMod', 'TruncateMod'),
      ('AddV2', 'Sub', 'Mul', 'Maximum', 'Minimum', 'Pow', 'SquaredDifference'),
      ('LogicalAnd', 'LogicalOr'),
      ('Sum', 'Mean', 'Max', 'Min', 'Prod'),
      ('MaxPool', 'AvgPool'),
      ('ArgMax', 'ArgMin'),
      ('Cumsum', 'Cumprod'),
      ('ResizeBilinear', 'ResizeNearestNeighbor', 'ResizeBicubic', 'ResizeArea'),
    ),
  ),
)
_ROUNDING = 1e-6


# What compares numbers with a constant.
COMPARED: Mapping[str, Callable[[Any, Any], Any]] = {
  'Equal': np.equal,
  'NotEqual': np.not_equal,
  'Less': np.less,
  'LessEqual': np.less_equal,
  'Greater': np.greater,
  'GreaterEqual': np.greater_equal,
}
_CHOICES = ('Select', 'SelectV2')
_CONDITIONS = ('If', 'StatelessIf')
_ARGUMENT = 'argument '
_NON_FINITE = ('IsNan', 'IsInf', 'IsFinite')
MISSING, EXTRA, FUNCTIONS = 'missing', 'extra', 'functions'


@dataclasses.dataclass(frozen=True)
class Unlike:
  """Two operations that read the same values, and do something else with them.

  Attributes:
    tf1: position of the reference's operation.
    tf2: of the port's.
    what: what is not the same: `constant`, `operation`, or the name of an attribute. `MISSING`:
      the port lacks the operation, and its own is what tf1's reads; `EXTRA`: the other way round;
      `FUNCTIONS`: of loops or conditions, whose functions tell what it is.
    values: of both.
    chain: positions of all that one side alone has, of which the last one is named; empty where
      it is not of the shape and dtype of what it reads.
    terms: of both, where they differ in a term and not in an operation of one kind.
    named: position of the operation that a reader is told of, on the side that alone has it; None
      for that of the pair.
  """

  tf1: int
  tf2: int
  what: str
  values: tuple[str, str]
  chain: tuple[int, ...] = ()
  terms: tuple[int, int] | None = None
  named: int | None = None


def candidates(proof: Proof) -> Iterator[Unlike]:
  """Yields what may be a difference: what reads the same on both sides, and is not the same."""
  yield from pairs(proof)
  yield from _alone(proof)
  yield from _converted(proof)


def _alone(proof: Proof) -> Iterator[Unlike]:
  """Yields operations of one side that may be missing on the other, whose own go on without."""
  for side, other, what in ((proof.tf1, proof.tf2, MISSING), (proof.tf2, proof.tf1, EXTRA)):
    producers: dict[int, int] = {}
    for (position, _), number in other.values.items():
      producers.setdefault(number, position)
    readers = side.graph.consumers()
    for position in sorted(side.tested):
      read = passed(proof, side, position)
      chain: tuple[int, ...] = ()
      if read is None:
        read, chain = _guarded(proof, side, position)
      partner = None if read is None else producers.get(side.values[read])
      last: int | None = position
      while last is not None and partner is not None and len(chain) < _LONGEST_CHAIN:
        chain += (last,)
        text = ' → '.join(spelled(proof, side, n) for n in chain)
        ends = (chain[-1], partner) if what == MISSING else (partner, chain[-1])
        yield Unlike(*ends, what, (text, '') if what == MISSING else ('', text), chain)
        after = {reader for reader, _ in readers[last]}
        last = after.pop() if len(after) == 1 else None
        if last is not None and passed(proof, side, last) != (chain[-1], 0):
          last = None


def _guarded(proof: Proof, side: Side, position: int) -> tuple[TensorKey | None, tuple[int, ...]]:
  """Returns the one tensor that a choice hands on, as a guard does, and what decides for it.

  `where(is_nan(x), 0, x)`: all that it reads is computed of that tensor. Or a condition, of which
  one branch hands it on.
  """
  ops = side.graph.ops
  if ops[position].op_type in _CONDITIONS:
    return _of_a_branch(side, position), ()
  if ops[position].op_type not in _CHOICES:
    return None, ()
  within, read = set[int](), set[TensorKey]()
  pending = [*ops[position].inputs]
  while pending and len(within) < _LONGEST_CHAIN:
    key = pending.pop()
    op = ops[key[0]]
    if proof.terms.value(side.values[key]) is not None:
      continue
    if key[0] in side.tested and not op.is_leaf and not op.functions:
      within.add(key[0])
      pending += op.inputs
    else:
      read.add(key)
  if pending or len(read) != 1 or len(ops[position].outputs) != 1:
    return None, ()
  (key,) = read
  is_alike = ops[key[0]].outputs[key[1]] == ops[position].outputs[0]
  # Other guards are told by numbers, see `witnesses`.
  is_of_non_finite = any(ops[n].op_type in _NON_FINITE for n in within)
  return (key, tuple(sorted(within))) if is_alike and is_of_non_finite else (None, ())


def _of_a_branch(side: Side, position: int) -> TensorKey | None:
  """Returns the tensor that one branch of a condition yields as it is; None for none."""
  op = side.graph.ops[position]
  for _, branch in op.functions:
    ends = branch.targets().values()
    read = [branch.ops[n].inputs[0] for n in ends] if len(op.outputs) == 1 else []
    for n, _ in read[:1]:
      name = branch.ops[n].name
      if branch.ops[n].op_type == INPUT and name.startswith(_ARGUMENT):
        # The first input is what decides.
        return op.inputs[1 + int(name.removeprefix(_ARGUMENT))]
  return None


def _converted(proof: Proof) -> Iterator[Unlike]:
  """Yields pairs of one kind, of which one reads what the other does by way of an operation.

  That changes dtype or shape, as a cast does: the two have what they yield in common.
  """
  for side, other, what in ((proof.tf1, proof.tf2, MISSING), (proof.tf2, proof.tf1, EXTRA)):
    for position in sorted(side.tested):
      op = side.graph.ops[position]
      for slot, (between, _) in enumerate(op.inputs):
        read = _only_read(proof, side, between) if between in side.tested else None
        if read is None or op.functions:
          continue
        wanted = [side.values[key] for key in op.inputs]
        wanted[slot] = side.values[read]
        for partner in sorted(other.tested):
          one = other.graph.ops[partner]
          if family(one.op_type) != family(op.op_type) or one.outputs != op.outputs:
            continue
          if [other.values[key] for key in one.inputs] == wanted:
            text = spelled(proof, side, between)
            if what == MISSING:
              yield Unlike(position, partner, what, (text, ''))
            else:
              yield Unlike(partner, position, what, ('', text))


def _only_read(proof: Proof, side: Side, position: int) -> TensorKey | None:
  """Returns the only tensor that an operation reads which is no constant."""
  op = side.graph.ops[position]
  computed = [key for key in op.inputs if proof.terms.value(side.values[key]) is None]
  return computed[0] if len(computed) == 1 and not op.functions and not op.is_leaf else None


def passed(proof: Proof, side: Side, position: int) -> TensorKey | None:
  """Returns what an operation may hand on unchanged: its one tensor, of its own shape."""
  op = side.graph.ops[position]
  read = _only_read(proof, side, position)
  if read is None or len(op.outputs) != 1:
    return None
  return read if side.graph.ops[read[0]].outputs[read[1]] == op.outputs[0] else None


def spelled(proof: Proof, side: Side, position: int) -> str:
  op = side.graph.ops[position]
  if op.op_type == 'Cast':
    return f'Cast to {op.outputs[0][0]}'
  given = [text_of(value) for value in _constants(proof, side, op)]
  return f'{op.op_type} with {", ".join(given)}' if given else op.op_type


def pairs(proof: Proof) -> Iterator[Unlike]:
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
      found = unlike_settings(proof, position, other)
      if found is not None:
        yield Unlike(position, other, *found)


def _read(
  proof: Proof, side: Side, values: Collection[int], position: int
) -> tuple[int, ...] | None:
  """Returns the terms that an operation reads, constants aside; None if one side lacks one."""
  read = [side.values[key] for key in side.graph.ops[position].inputs]
  computed = [number for number in read if proof.terms.value(number) is None]
  return tuple(sorted(computed)) if all(number in values for number in computed) else None


def unlike_settings(proof: Proof, tf1: int, tf2: int) -> tuple[str, tuple[str, str]] | None:
  """Returns what tells two operations apart that read the same; None if nothing is known to."""
  one, other = proof.tf1.graph.ops[tf1], proof.tf2.graph.ops[tf2]
  if one.outputs != other.outputs:
    return None
  kinds = {one.op_type, other.op_type}
  constants = _constants(proof, proof.tf1, one), _constants(proof, proof.tf2, other)
  if kinds <= COMPARED.keys():
    return _comparison(proof, one, other)
  if (one.op_type, other.op_type) == ('RealDiv', 'DivNoNan'):
    return None  # where they differ, tf1 yields what is not finite
  if len(kinds) == 2 and any(kinds <= alike for alike in KINDS):
    same = all(_same(*pair) for pair in zip(*constants, strict=False))
    return ('operation', (one.op_type, other.op_type)) if same else None
  if one.functions and other.functions:
    return FUNCTIONS, ('', '')
  if family(one.op_type) != family(other.op_type):
    return None
  for first, second in zip(*constants, strict=False):
    if first.shape == second.shape and not _same(first, second):
      return 'constant', (text_of(first), text_of(second))
  for name in _ATTRIBUTES:
    values = one.attribute(name), other.attribute(name)
    if None not in values and values[0] != values[1]:
      return name, (text_of(values[0]), text_of(values[1]))
  return None


def _comparison(proof: Proof, one: OpRecord, other: OpRecord) -> tuple[str, tuple[str, str]] | None:
  """Returns what tells two comparisons of the same tensors apart, where a number does."""
  sides = ((proof.tf1, one), (proof.tf2, other))
  operands = [[proof.terms.value(side.values[key]) for key in op.inputs] for side, op in sides]
  limits = [value for values in operands for value in values if value is not None]
  if not limits:
    return _comparison_of_two(proof, one, other)
  if len(limits) != 2 or any(limit.size != 1 or limit.dtype.kind not in 'iuf' for limit in limits):
    return None
  if any(proof.terms[side.values[key]].kind == 'draw' for side, op in sides for key in op.inputs):
    return None  # a random number is never exactly at the limit
  first, second = (limit.reshape(-1)[0].item() for limit in limits)
  points = np.array([limit + step for limit in (first, second) for step in (-1, 0, 1)])
  told = []
  for (_, op), values in zip(sides, operands, strict=True):
    given = [points if value is None else value.reshape(-1)[0] for value in values]
    told.append(COMPARED[op.op_type](*given))
  if np.array_equal(*told):
    return None
  return 'operation', (
    f'{one.op_type} with {text_of(first)}',
    f'{other.op_type} with {text_of(second)}',
  )


def _comparison_of_two(
  proof: Proof, one: OpRecord, other: OpRecord
) -> tuple[str, tuple[str, str]] | None:
  """Returns what tells comparisons of two computed tensors apart: mostly, what of equal ones."""
  told = _of_two(proof, one, other)
  if told is None or np.array_equal(*told):
    return None
  texts = [
    f'{op.op_type} ({bool(by[-1])} for equal values)'
    for op, by in zip((one, other), told, strict=True)
  ]
  return 'operation', (texts[0], texts[1])


def _of_two(proof: Proof, one: OpRecord, other: OpRecord) -> tuple[np.ndarray, np.ndarray] | None:
  """Returns what two comparisons yield for a smaller, a greater and an equal first tensor.

  None where a random number is compared, which never is equal to another.
  """
  first = [proof.tf1.values[key] for key in one.inputs]
  second = [proof.tf2.values[key] for key in other.inputs]
  if any(proof.terms[number].kind == 'draw' for number in first) or first[0] == first[1]:
    return None
  points = {first[0]: np.array([0, 1, 0]), first[1]: np.array([1, 0, 0])}
  tf1, tf2 = (
    COMPARED[op.op_type](*(points[number] for number in read))
    for op, read in ((one, first), (other, second))
  )
  return tf1, tf2


def ties(proof: Proof) -> Iterator[Unlike]:
  """Yields comparisons of the same two tensors that differ where these are equal.

  Whatever is made of them: neither side has the other's comparison as well.
  """
  values = [frozenset(side.values.values()) for side in (proof.tf1, proof.tf2)]
  for pair in pairs(proof):
    ops = proof.tf1.graph.ops[pair.tf1], proof.tf2.graph.ops[pair.tf2]
    made = proof.tf1.values[pair.tf1, 0], proof.tf2.values[pair.tf2, 0]
    if not {op.op_type for op in ops} <= COMPARED.keys() or _constants(proof, proof.tf1, ops[0]):
      continue
    if made[0] in values[1] or made[1] in values[0]:
      continue
    told = _of_two(proof, *ops)
    if told is not None and np.array_equal(told[0][:2], told[1][:2]):
      yield pair


def _constants(proof: Proof, side: Side, op: OpRecord) -> list[np.ndarray]:
  values = [proof.terms.value(side.values[key]) for key in op.inputs]
  return [value for value in values if value is not None]


def _same(one: np.ndarray, other: np.ndarray) -> bool:
  if one.dtype.kind not in 'fc' or other.dtype.kind not in 'fc':
    return bool(np.array_equal(one, other))
  return bool(np.allclose(one, other, rtol=_ROUNDING, atol=0, equal_nan=True))


def text_of(value: object) -> str:
  """Returns a constant or an attribute as a reader sees it."""
  if isinstance(value, np.ndarray):
    if value.size and (value == value.flat[0]).all():
      return text_of(value.reshape(-1)[0].item())
    return ' '.join(str(value.reshape(-1)[:8].tolist()).split()) + ('…' if value.size > 8 else '')
  return f'{value:.6g}' if isinstance(value, float) else str(value)
