"""Masks of a softmax: logits that are pushed down where nothing is to be looked at."""

import dataclasses
from collections.abc import Sequence

import numpy as np

from tf2verify.diagnosis.evidence.failed_stage import FailedStage
from tf2verify.diagnosis.patterns.known_values import known_value, same_everywhere
from tf2verify.records.diagnosis import Cause
from tf2verify.records.op_graph import INPUT, OpGraph

_SOFTMAX = ('Softmax', 'LogSoftmax')
# By which logits are put together with a mask.
_COMBINES = frozenset(
  (
    *('Add', 'AddV2', 'Sub', 'Mul', 'RealDiv', 'Select', 'SelectV2', 'Minimum', 'Maximum'),
    *('Reshape', 'ExpandDims', 'Squeeze', 'Transpose', 'Cast', 'BroadcastTo', 'Fill', 'Tile'),
  )
)
_CHOICES = ('Select', 'SelectV2')
# No logit of a model is as low.
_LOWEST = -1e3
_DEEPEST = 5
_SHOWN = 2


@dataclasses.dataclass(frozen=True)
class _Softmax:
  position: int
  lowest: float | None  # the number that masks its logits; None where nothing does
  of: tuple[str, ...] = ()  # the inputs that the mask is computed from


def forgotten_softmax_mask(evidence: FailedStage) -> Cause | None:
  """TF1 masks logits of a softmax, the port does not."""
  found = _unlike(evidence)
  if found is None or not found[2]:
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
  if found is None or found[2]:
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
  return (*unlike[0], unlike[0][0].lowest is not None) if unlike else None


def _behind(graph: OpGraph, names: Sequence[str]) -> list[_Softmax]:
  ends = [n for n, op in enumerate(graph.ops) if op.name in names]
  behind = sorted(graph.ancestors(ends))
  return [_softmax(graph, n) for n in behind if graph.ops[n].op_type in _SOFTMAX]


def _softmax(graph: OpGraph, position: int) -> _Softmax:
  """Returns a softmax with what masks its logits: a low number that is added or chosen."""
  pending = [(graph.ops[position].inputs[0][0], 0)]
  lowest, masks = None, list[int]()
  while pending:
    n, depth = pending.pop()
    op = graph.ops[n]
    for slot, (producer, _) in enumerate(op.inputs):
      number = _number(graph, producer)
      if number is not None and number <= _LOWEST:
        lowest = number
        others = op.inputs[:1] if op.op_type in _CHOICES else op.inputs
        masks += [p for k, (p, _) in enumerate(others) if k != slot or op.op_type in _CHOICES]
      elif depth < _DEEPEST and graph.ops[producer].op_type in _COMBINES:
        pending.append((producer, depth + 1))
  behind = graph.ancestors(masks)
  return _Softmax(
    position,
    lowest,
    tuple(graph.ops[n].name for n in sorted(behind) if graph.ops[n].op_type == INPUT),
  )


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
