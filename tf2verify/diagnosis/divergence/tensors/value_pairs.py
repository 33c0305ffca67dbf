"""Operations paired by what they yield, where names and structure pair too little or wrongly.

Two spellings of a computation have few operations in common, and the third `Mul` of one
side is not the third of the other. But both sides run on the same inputs, so where an
operation of either side yields the same elements, in whatever shape, it is the same
quantity, and a pair of operations that yield something else is none before it is shown.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from tf2verify.diagnosis.divergence.tensors.gradient_sides import GradientSides
from tf2verify.diagnosis.divergence.tensors.other_rows import unlike_at_other_rows
from tf2verify.diagnosis.divergence.tensors.outputs import output_bytes, size_arithmetic
from tf2verify.diagnosis.divergence.tensors.sources import InspectableRun
from tf2verify.diagnosis.divergence.tensors.written_rounds import pair_in_written_rounds
from tf2verify.numerics.relayout import Relayout, alike_as_held, is_constant
from tf2verify.numerics.signatures import may_be_alike, signature
from tf2verify.records import rounds
from tf2verify.records.op_graph import CHOICE, CONSTANT, TARGET, OpGraph, OpRecord, TensorKey
from tf2verify.relation.operations.op_pairs import Pairing, family, is_backward

# Values of one side are held in memory up to this size, smaller tensors first.
_MOST_BYTES = 128 * 2**20
_TRANSPOSE = 'Transpose'
_TAKING = ('StridedSlice', 'Slice', 'GatherV2')
# What is parted may find another partner of the same kind.
_MOST_ROUNDS = 4
# Multiples of its inverse are numbers that a programmer may write, and counts.
_FINEST_ROUND = 1000.0 * 1024.0


def pair_by_value(
  tf1: InspectableRun,
  tf2: InspectableRun,
  pairing: Pairing,
  behind: set[int],
  tf2_behind: set[int],
  views: Mapping[TensorKey, Relayout] | None = None,
) -> None:
  """Pairs what yields the same, parts what does not, and pairs the rest anew from there.

  Nothing is run where every operation has a partner.

  Args:
    tf1: the tf1 side's run.
    tf2: the tf2 side's.
    pairing: their operations in pairs; changed.
    behind: positions of the tf1 operations to look at.
    tf2_behind: the same of tf2.
    views: how the port holds what belongs to a variable, by tf1 tensor.
  """
  ones, others = _telling(tf1.op_graph, behind), _telling(tf2.op_graph, tf2_behind)
  without = [n for n in ones if pairing.tf2_of[n] is None]
  if not without and all(pairing.tf1_of[n] is not None for n in others):
    return
  views = views or {}
  values, other_values = _as_held(_values(tf1, ones), views), _values(tf2, others)
  differing = [
    (n, m)
    for n, m in pairing.pairs()
    if n in values and m in other_values and not alike_as_held(values[n], other_values[m])
  ]
  for n, _ in differing:
    pairing.part(n)
  pairing.part(*_crossed(tf1, tf2, pairing, behind, views), for_good=True)
  are_apart = GradientSides(pairing).are_apart
  found = pair_alike(pairing, values, other_values, are_apart)
  numbers = [(n, m) for n, m in found if values[n].size == 1]
  unlike = unlike_at_other_rows(tf1, tf2, numbers)
  for n in unlike:
    pairing.part(n)
  _pair_in_all_rounds(pairing, [(n, m) for n, m in found if n not in unlike])
  alike = ((n, m) for n, m in pairing.pairs() if n in values and m in other_values)
  pair_in_written_rounds(pairing, list(alike))
  pairing.complete()
  _part_other_shapes(pairing, behind)
  pairs = [(n, m) for n, m in pairing.pairs() if n in behind and _is_backward_pair(pairing, n, m)]
  values |= _as_held(_values(tf1, [n for n, _ in pairs]), views)
  other_values |= _values(tf2, [m for _, m in pairs])
  pairing.part(*_made_up_for(pairing, behind, values, other_values), for_good=True)


def _part_other_shapes(pairing: Pairing, behind: set[int]) -> None:
  """Parts slices and the like of which each side takes what its own formula needs.

  They yield other numbers of elements, in other numbers of axes: `shift[:, 0:1]` for one of three
  terms, and `shift[:, None, :]` for all of them. Or they are some of more slices of one tensor, and
  some of fewer: `shift[:, 0:1]` for one of three, `shift[:, :2]` for one of two.
  """
  for _ in range(_MOST_ROUNDS):
    unlike = [n for n, m in pairing.pairs() if n in behind and _is_of_another_shape(pairing, n, m)]
    if not unlike:
      return
    pairing.part(*unlike, for_good=True)
    pairing.complete()


def _is_of_another_shape(pairing: Pairing, tf1: int, tf2: int) -> bool:
  one, other = pairing.tf1.ops[tf1], pairing.tf2.ops[tf2]
  if one.op_type not in _TAKING or not (_is_telling(one) and _is_telling(other)):
    return False
  shapes = [shape for shape in (one.outputs[0][1], other.outputs[0][1]) if shape is not None]
  known = [[size for size in shape if size is not None] for shape in shapes]
  are_known = len(shapes) > 1 and list(map(len, shapes)) == list(map(len, known))
  if not are_known or math.prod(known[0]) == math.prod(known[1]):
    return False
  return len(known[0]) != len(known[1]) or _taken(pairing.tf1, one) != _taken(pairing.tf2, other)


def _taken(graph: OpGraph, op: OpRecord) -> int:
  """Returns how many operations take parts of what one takes a part of."""
  readers = {n for n, slot in graph.consumers()[op.inputs[0][0]] if slot == 0}
  return sum(graph.ops[n].op_type in _TAKING for n in readers if not is_backward(graph.ops[n]))


def _crossed(
  tf1: InspectableRun,
  tf2: InspectableRun,
  pairing: Pairing,
  behind: set[int],
  views: Mapping[TensorKey, Relayout],
) -> list[int]:
  """Returns tf1 operations of a gradient whose partner is of the forward pass, and differs.

  Or the other way round. The gradient of a squared difference computes the difference again, which
  is no counterpart of one that the forward pass of the other side computes of something else.
  """
  pairs = [
    (n, m)
    for n, m in pairing.pairs()
    if n in behind and is_backward(tf1.op_graph.ops[n]) != is_backward(tf2.op_graph.ops[m])
  ]
  pairs = [
    (n, m) for n, m in pairs if all(map(_has_numbers, (pairing.tf1.ops[n], pairing.tf2.ops[m])))
  ]
  values = _as_held(_values(tf1, [n for n, _ in pairs]), views)
  others = _values(tf2, [m for _, m in pairs])
  known = [(n, m) for n, m in pairs if n in values and m in others]
  return [n for n, m in known if not alike_as_held(values[n], others[m])]


def _as_held(
  values: Mapping[int, np.ndarray], views: Mapping[TensorKey, Relayout]
) -> dict[int, np.ndarray]:
  """Returns values of tf1 as the port holds them, where its variables say how."""
  return {n: views[n, 0].to_tf2(v) if (n, 0) in views else v for n, v in values.items()}


def _is_backward_pair(pairing: Pairing, tf1: int, tf2: int) -> bool:
  """Returns whether operations of the backward pass yield numbers on both sides."""
  both = pairing.tf1.ops[tf1], pairing.tf2.ops[tf2]
  return all(_has_numbers(op) for op in both) and is_backward(both[0])


def _made_up_for(
  pairing: Pairing,
  behind: set[int],
  values: Mapping[int, np.ndarray],
  other_values: Mapping[int, np.ndarray],
) -> list[int]:
  """Returns tf1 operations that differ from their partners, while all that is made of them agrees.

  The steps of a formula that the port writes differently stand in the same places, and are no
  counterparts: `x * s + (b - m * s)` for `(x - m) * s + b`.
  """
  ops, readers = pairing.tf1.ops, pairing.tf1.consumers()
  differing: list[int] = []
  agrees: dict[int, bool] = {}
  for n, m in pairing.pairs():
    if n in values and m in other_values:
      is_alike = alike_as_held(values[n], other_values[m])
      agrees[n] = is_alike and _identifies(values[n])
      if not is_alike:
        differing.append(n)
  # Whether all pairs that an operation leads to first agree; None where it leads to none.
  leads: dict[int, bool | None] = {}
  for n in range(len(ops) - 1, -1, -1):
    after: list[bool | None] = []
    for reader in {reader for reader, _ in readers[n]} & behind:
      is_pair = pairing.tf2_of[reader] is not None
      after.append(agrees.get(reader, False) if is_pair else leads.get(reader))
    known = [one for one in after if one is not None]
    leads[n] = all(known) if known else None
  found = [n for n in differing if leads[n]]
  # Where nothing else differs, they are all that there is to look at.
  return found if len(found) < len(differing) else []


def _pair_in_all_rounds(pairing: Pairing, known: Iterable[tuple[int, int]]) -> None:
  """Pairs what has no partner as it is paired in another round of the loop.

  In the first round the sides may agree yet, where a state goes wrong from there on.
  """
  places = [{op.name: n for n, op in enumerate(g.ops)} for g in (pairing.tf1, pairing.tf2)]
  last: dict[str, int] = {}
  for op in pairing.tf1.ops:
    numbers = rounds.numbers_of(op.name)
    if len(numbers) == 1:
      last[rounds.without(op.name)] = max(numbers[0], last.get(rounds.without(op.name), 0))
  for n, m in known:
    one, other = pairing.tf1.ops[n].name, pairing.tf2.ops[m].name
    numbers = rounds.numbers_of(one)
    if len(numbers) != 1 or numbers != rounds.numbers_of(other):
      continue
    for number in range(last[rounds.without(one)] + 1):
      tf1 = places[0].get(rounds.elsewhere(one, one, [number]))
      tf2 = places[1].get(rounds.elsewhere(other, other, [number]))
      if tf1 is None or tf2 is None:
        continue
      if pairing.tf2_of[tf1] is None and pairing.tf1_of[tf2] is None:
        pairing.add(tf1, tf2)


def pair_alike(
  pairing: Pairing,
  values: Mapping[int, np.ndarray],
  other_values: Mapping[int, np.ndarray],
  are_apart: Callable[[int, int], bool] = lambda tf1, tf2: False,
) -> list[tuple[int, int]]:
  """Pairs what has no partner and yields the same; in order, and by type where several do.

  Args:
    pairing: changed.
    values: of tf1 operations, by position.
    other_values: of the port's.
    are_apart: returns whether two operations are no pair, whatever they yield.

  Returns:
    The new pairs.
  """
  found = _pair_choices(pairing, values, other_values)
  by_size: dict[tuple[int, str], list[tuple[int, np.ndarray]]] = defaultdict(list)
  for m, other in other_values.items():
    if pairing.tf1_of[m] is None and _identifies(other):
      by_size[other.size, other.dtype.name].append((m, signature(other)))
  signatures = {kind: np.stack([mark for _, mark in known]) for kind, known in by_size.items()}
  for n, value in values.items():
    if pairing.tf2_of[n] is not None or not _identifies(value):
      continue
    kind = value.size, value.dtype.name
    if kind not in signatures:
      continue
    close = np.flatnonzero(may_be_alike(signature(value), signatures[kind]))
    near = [m for m, _ in (by_size[kind][n] for n in close) if pairing.tf1_of[m] is None]
    near = [m for m in near if not are_apart(n, m)]
    op_type = family(pairing.tf1.ops[n].op_type)
    near.sort(key=lambda m: (family(pairing.tf2.ops[m].op_type) != op_type, m))
    if value.size == 1:
      near = [m for m in near if _is_made_alike(pairing, n, m)]
    if op_type == _TRANSPOSE:
      near = [m for m in near if _is_transposed_alike(pairing, m, value, other_values[m])]
    partner = next((m for m in near if alike_as_held(value, other_values[m])), None)
    if partner is not None:
      pairing.add(n, partner)
      found.append((n, partner))
  return found


def _pair_choices(
  pairing: Pairing, values: Mapping[int, np.ndarray], other_values: Mapping[int, np.ndarray]
) -> list[tuple[int, int]]:
  """Pairs a number that a condition has chosen with the same number that the other side computes.

  A rate of 0.1 is no number that tells; that it follows from the count of steps does. Of several
  operations in a row that yield it, the last one is read.
  """
  found: list[tuple[int, int]] = []
  ops, others = pairing.tf1.ops, pairing.tf2.ops
  numbers = [n for n, value in values.items() if value.size == 1 and pairing.tf2_of[n] is None]
  own = [m for m, value in other_values.items() if value.size == 1 and pairing.tf1_of[m] is None]
  chosen = [n for n in numbers if ops[n].op_type == CHOICE]
  if not chosen and not any(others[m].op_type == CHOICE for m in own):
    return found
  counted = [n for n in numbers if not _is_setting(pairing.tf1, n)]
  own = [m for m in own if not _is_setting(pairing.tf2, m)]
  for n in reversed(counted):
    alike = [m for m in own if alike_as_held(values[n], other_values[m])]
    near = [m for m in alike if CHOICE in (ops[n].op_type, others[m].op_type)]
    partner = _last_of_all(pairing.tf2, near)
    if partner is not None and pairing.tf1_of[partner] is None:
      pairing.add(n, partner)
      found.append((n, partner))
  return found


def _last_of_all(graph: OpGraph, positions: Sequence[int]) -> int | None:
  """Returns the last of some operations in a row, before it branches: each reader may go on."""
  behind = {m: graph.ancestors([m]) for m in positions}
  in_a_row = [
    m for m in positions if all(m in behind[one] or one in behind[m] for one in positions)
  ]
  return max(in_a_row, default=None)


def _is_made_alike(pairing: Pairing, tf1: int, tf2: int) -> bool:
  """Returns whether one number is made of constants alone on both sides, or on neither.

  What follows from the count of steps may have the value of a setting in one of them.
  """
  return _is_setting(pairing.tf1, tf1) == _is_setting(pairing.tf2, tf2)


def _is_setting(graph: OpGraph, position: int) -> bool:
  behind = [graph.ops[n] for n in graph.ancestors([position])]
  is_chosen = any(op.op_type == CHOICE for op in behind)
  return not is_chosen and all(op.op_type == CONSTANT for op in behind if not op.inputs)


def _is_transposed_alike(pairing: Pairing, tf2: int, value: np.ndarray, other: np.ndarray) -> bool:
  """Returns whether the port transposes as well, or has what tf1 transposes in that shape.

  What is not yet transposed is the quantity before.
  """
  return pairing.tf2.ops[tf2].op_type == _TRANSPOSE or value.shape == other.shape


def _telling(graph: OpGraph, positions: Iterable[int]) -> list[int]:
  """Returns the operations of the forward pass that yield floating numbers."""
  sizes = size_arithmetic(graph)
  return [n for n in sorted(positions) if n not in sizes and _is_telling(graph.ops[n])]


def _is_telling(op: OpRecord) -> bool:
  return _has_numbers(op) and not is_backward(op)


def _has_numbers(op: OpRecord) -> bool:
  if op.is_leaf or op.op_type == TARGET or not op.tensors:
    return False
  return op.outputs[0][0].startswith(('float', 'bfloat', 'complex'))


def _values(run: InspectableRun, positions: Iterable[int]) -> dict[int, np.ndarray]:
  """Returns the first outputs of operations, in their order, as far as memory allows."""
  ops = run.op_graph.ops
  chosen, size = [], 0
  for n in sorted(positions, key=lambda n: output_bytes(ops[n].outputs[0])):
    size += output_bytes(ops[n].outputs[0])
    if size > _MOST_BYTES:
      break
    chosen.append(n)
  chosen.sort()
  return dict(zip(chosen, run.fetch([ops[n].tensors[0] for n in chosen]), strict=True))


def _identifies(value: np.ndarray) -> bool:
  """Returns whether what yields this value is likely to be the only one that does.

  A loss, or a norm, is one number, but not one like 0.5 or 6.
  """
  if value.size != 1:
    return not is_constant(value)
  (number,) = np.abs(value.astype(np.complex128)).ravel().tolist()
  return math.isfinite(number) and not (number * _FINEST_ROUND).is_integer()
