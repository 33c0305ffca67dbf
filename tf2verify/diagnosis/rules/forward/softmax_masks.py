"""Masks of a softmax: logits that are pushed down where nothing is to be looked at."""

import dataclasses
from collections.abc import Sequence

import numpy as np

from tf2verify.diagnosis.evidence.failed_stage import FailedStage
from tf2verify.diagnosis.patterns.numbers.known_values import known_value, same_everywhere
from tf2verify.records.diagnosis import Cause
from tf2verify.records.op_graph import INPUT, VARIABLE, OpGraph

_SOFTMAX = ('Softmax', 'LogSoftmax')
# By which logits are put together with a mask.
_COMBINES = frozenset(
  (
    *('Add', 'AddV2', 'Sub', 'Mul', 'RealDiv', 'Select', 'SelectV2', 'Minimum', 'Maximum'),
    *('Reshape', 'ExpandDims', 'Squeeze', 'Transpose', 'Cast', 'BroadcastTo', 'Fill', 'Tile'),
    'StridedSlice',  # `mask[:, None]`
  )
)
_CHOICES = ('Select', 'SelectV2')
_SIZES = frozenset(('Shape', 'ShapeN', 'Size', 'Rank'))
# No logit of a model is as low.
_LOWEST = -1e3
_DEEPEST = 5
# A low number within so many operations of any kind may be a mask, written as no rule knows.
_FARTHEST = 10
_SHOWN = 2


@dataclasses.dataclass(frozen=True)
class _Softmax:
  position: int
  lowest: float | None  # the number that masks its logits; None where nothing does
  of: tuple[str, ...] = ()  # the inputs that the mask is computed from


def softmax_mask_value(evidence: FailedStage) -> Cause | None:
  """Both sides mask logits of a softmax by the same inputs, and one of them with another number."""
  found = _unlike(evidence)
  if found is None or (value := _other_number(evidence, found)) is None:
    return None
  one, other, _ = found
  tf1, tf2 = (value if known.lowest is None else known.lowest for known in (one, other))
  by = _by(one if other.lowest is None else other)
  return Cause(
    f'tf1 masks the logits of {_named(evidence.tf1_graph, one)} with {tf1:.3g}{by}, and the port '
    f'those of {_named(evidence.tf2_graph, other)} with {tf2:.3g}: both have the mask, and the '
    f'number differs that it puts in: give the port {tf1:.3g}',
  )


def forgotten_softmax_mask(evidence: FailedStage) -> Cause | None:
  """TF1 masks logits of a softmax, the port does not."""
  found = _unlike(evidence)
  if found is None or not found[2] or _other_number(evidence, found) is not None:
    return None
  one, other, _ = found
  return Cause(
    f'tf1 masks the logits of {_named(evidence.tf1_graph, one)} with {one.lowest:.3g}{_by(one)}, '
    f'and those of {_named(evidence.tf2_graph, other)} in the port are not masked: give the port '
    'the mask (mask= or attention_mask= of a Keras layer, or tf.where(mask, logits, -1e9))',
  )


def needless_softmax_mask(evidence: FailedStage) -> Cause | None:
  """The port masks logits of a softmax, TF1 does not."""
  found = _unlike(evidence)
  if found is None or found[2] or _other_number(evidence, found) is not None:
    return None
  one, other, _ = found
  return Cause(
    f'the port masks the logits of {_named(evidence.tf2_graph, other)} with {other.lowest:.3g}'
    f'{_by(other)}, and those of {_named(evidence.tf1_graph, one)} in tf1 are not masked: call the '
    'layer without a mask (Masking and Embedding(mask_zero=True) pass theirs on)',
  )


def _unlike(evidence: FailedStage) -> tuple[_Softmax, _Softmax, bool] | None:
  """Returns a softmax of each side of which one alone is masked, and whether that is tf1's.

  Those are compared, in their order, that lead to a place where the sides differ.
  """
  tf1, tf2 = evidence.tf1_graph, evidence.tf2_graph
  if tf1 is None or tf2 is None:
    return None
  ones = _behind(tf1, [one.source.tf1_op for one in evidence.sources])
  others = _behind(tf2, [one.source.tf2_op for one in evidence.sources])
  if len(ones) != len(others):
    return None
  pairs = zip(ones, others, strict=True)
  unlike = [(a, b) for a, b in pairs if (a.lowest is None) != (b.lowest is None)]
  if any(_may_be_masked(*((tf1, a) if a.lowest is None else (tf2, b))) for a, b in unlike):
    return None
  return (*unlike[0], unlike[0][0].lowest is not None) if unlike else None


def _may_be_masked(graph: OpGraph, bare: _Softmax) -> bool:
  """Returns whether a low number comes into logits anywhere near, but in an earlier softmax."""
  seen, level = set[int](), {graph.ops[bare.position].inputs[0][0]}
  for _ in range(_FARTHEST):
    level = {n for n in level - seen if graph.ops[n].op_type not in _SOFTMAX}
    read = {producer for n in level for producer, _ in graph.ops[n].inputs}
    numbers = (_number(graph, producer) for producer in read)
    if any(number is not None and abs(number) >= -_LOWEST for number in numbers):
      return True
    seen, level = seen | level, read
  return False


def _behind(graph: OpGraph, names: Sequence[str]) -> list[_Softmax]:
  """Returns each softmax that leads to some operations, or whose logits they are a part of."""
  ends = [n for n, op in enumerate(graph.ops) if op.name in names]
  behind = graph.ancestors(ends)
  return [
    _softmax(graph, n)
    for n, op in enumerate(graph.ops)
    if op.op_type in _SOFTMAX and (n in behind or _combined(graph, n) & set(ends))
  ]


def _combined(graph: OpGraph, position: int) -> set[int]:
  """Returns the operations that put the logits of a softmax together, the nearest ones."""
  found, pending = set[int](), [(graph.ops[position].inputs[0][0], 0)]
  while pending:
    n, depth = pending.pop()
    if depth <= _DEEPEST and graph.ops[n].op_type in _COMBINES and n not in found:
      found.add(n)
      pending += [(producer, depth + 1) for producer, _ in graph.ops[n].inputs]
  return found


def _softmax(graph: OpGraph, position: int) -> _Softmax:
  """Returns a softmax with what masks its logits: a low number that is added or chosen."""
  pending = [(graph.ops[position].inputs[0][0], 0)]
  lowest, masks = None, list[int]()
  while pending:
    n, depth = pending.pop()
    op = graph.ops[n]
    for slot, (producer, _) in enumerate(op.inputs):
      number = _number(graph, producer)
      # `- 1e10 * (1 - mask)` as well.
      if number is not None and abs(number) >= -_LOWEST:
        lowest = -abs(number)
        others = op.inputs[:1] if op.op_type in _CHOICES else op.inputs
        masks += [p for k, (p, _) in enumerate(others) if k != slot or op.op_type in _CHOICES]
      elif depth < _DEEPEST and graph.ops[producer].op_type in _COMBINES:
        pending.append((producer, depth + 1))
  behind = graph.ancestors(masks, _SIZES)
  return _Softmax(
    position,
    lowest,
    tuple(graph.ops[n].name for n in sorted(behind) if graph.ops[n].op_type == INPUT),
  )


def _other_number(evidence: FailedStage, unlike: tuple[_Softmax, _Softmax, bool]) -> float | None:
  """Returns the number that the side without a low one puts in by the same mask; None without."""
  one, other, is_tf1 = unlike
  graph = evidence.tf2_graph if is_tf1 else evidence.tf1_graph
  assert graph is not None, 'one softmax is of it'
  masked, bare = (one, other) if is_tf1 else (other, one)
  pending = [(graph.ops[bare.position].inputs[0][0], 0)]
  while pending:  # what is nearest to the softmax comes first
    n, depth = pending.pop(0)
    op = graph.ops[n]
    numbers = [_number(graph, producer) for producer, _ in op.inputs]
    if op.op_type in (*_CHOICES, 'Mul'):
      first = int(op.op_type in _CHOICES)
      for slot, number in enumerate(numbers[first:], first):
        condition = op.inputs[0 if first else 1 - slot][0]
        if number is not None and _is_mask(graph, condition, masked.of, bool(first)):
          return number
    if depth < _DEEPEST:
      inner = [p for p, _ in op.inputs if graph.ops[p].op_type in _COMBINES]
      pending += [(producer, depth + 1) for producer in inner]
  return None


def _is_mask(graph: OpGraph, position: int, of: Sequence[str], is_choice: bool) -> bool:
  """Returns whether something is computed from certain inputs alone, without a variable."""
  behind = [graph.ops[n] for n in graph.ancestors([position], _SIZES)]
  inputs = {op.name for op in behind if op.op_type == INPUT}
  of_others = any(op.op_type == VARIABLE for op in behind)
  return inputs == set(of) and not of_others and (is_choice or bool(inputs))


def _number(graph: OpGraph, position: int) -> float | None:
  value = known_value(graph, position)
  if value is not None and value.dtype.kind == 'f' and value.size:
    return float(np.min(value))
  return same_everywhere(graph, position)


def _named(graph: OpGraph | None, one: _Softmax) -> str:
  assert graph is not None, 'it is of this graph'
  op = graph.ops[one.position]
  return op.name if op.source is None else f'{op.name} ({op.source.short})'


def _by(one: _Softmax) -> str:
  """Returns by which inputs a mask is computed."""
  named = [f'the input {name}' if name else 'the input' for name in one.of[:_SHOWN]]
  return f', by {" and ".join(named)}' if named else ''
