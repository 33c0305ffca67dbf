"""Where the forward passes of two sides let gradients pass differently."""

from collections.abc import Sequence

import numpy as np

from tf2verify.diagnosis.patterns.numbers.known_values import known_value
from tf2verify.records.diagnosis import GraphAspect, GraphDifference
from tf2verify.records.op_graph import INPUT, TARGET, VARIABLE, OpGraph, OpRecord
from tf2verify.relation.operations.op_pairs import Pairing, is_backward

# Passing a value on unchanged, they stop or change its gradient.
_MARKS = ('StopGradient', 'PreventGradient', 'custom gradient', 'gradient of')
# What the graph of a loss calls them.
_LABELS = 'labels'
# Their gradient is 0 everywhere.
_FLAT = ('Floor', 'Ceil', 'Round', 'Rint', 'Sign', 'ZerosLike', 'OnesLike')
_SUMS, _SHAPES = ('AddV2', 'Add'), ('Reshape', 'Squeeze', 'ExpandDims', 'BroadcastTo')
_SQUARES, _AVERAGES = 'SquaredDifference', ('Mean', 'Sum')


def own_gradients(graph: OpGraph) -> list[str]:
  """Returns the lines at which gradients are stopped or written by hand, each once."""
  found = []
  for op in graph.ops:
    marked = [n for (n, _), passed in zip(op.inputs, op.through, strict=False) if marks_of(passed)]
    sources = [graph.ops[n].source or op.source for n in marked]
    sources += [op.source] if op.attribute('_gradient_op_type') else []
    found += [op.name if source is None else source.short for source in sources]
  return list(dict.fromkeys(found))


def gradient_differences(pairing: Pairing) -> list[GraphDifference]:
  """Returns where two forward passes let gradients pass differently."""
  found = []
  differentiated = _differentiated(pairing.tf1), _differentiated(pairing.tf2)
  for tf1, tf2 in pairing.pairs():
    op, other = pairing.tf1.ops[tf1], pairing.tf2.ops[tf2]
    if is_backward(op):
      continue
    if len(op.inputs) == len(other.inputs):
      turned = _are_turned(pairing, op, other)
      inputs = list(zip(other.inputs, other.through, strict=True))[:: -1 if turned else 1]
      for slot, (one, (its, two)) in enumerate(zip(op.through, inputs, strict=True)):
        marks, others = marks_of(one), marks_of(two)
        read = op.inputs[slot][0] in differentiated[0] or its[0] in differentiated[1]
        if marks == others or not read or _is_of_variance(pairing.tf1, tf1, slot):
          continue
        own = pairing.tf1, tf1, slot
        if not _is_shift(*(own if marks else (pairing.tf2, tf2, 1 - slot if turned else slot))):
          name = op.name if op.op_type != TARGET else f'the {op.name}'
          what = op.input_name(slot)
          found.append(gradient_difference(name, op.op_type, what, marks, others))
    overrides = [one.attribute('_gradient_op_type') for one in (op, other)]
    if bool(overrides[0]) != bool(overrides[1]):
      one, two = ((f'gradient of {name}',) if name else () for name in overrides)
      found.append(gradient_difference(op.name, op.op_type, 'gradient', one, two))
  return found


def _are_turned(pairing: Pairing, op: OpRecord, other: OpRecord) -> bool:
  """Returns whether two operations read the same two tensors in turn: `x - y` and `y - x`."""
  partners = [(pairing.tf2_of[producer], number) for producer, number in op.inputs]
  return len(partners) == 2 and partners != list(other.inputs) == partners[::-1]


def _differentiated(graph: OpGraph) -> set[int]:
  """Returns the positions of what gradients are formed through: not of what follows from labels."""
  found: set[int] = set()
  for position, op in enumerate(graph.ops):
    is_start = op.op_type == VARIABLE or (
      op.op_type == INPUT and not op.name.startswith(_LABELS) and 'float' in op.outputs[0][0]
    )
    passes = op.op_type not in _FLAT and not all(_is_discrete(dtype) for dtype, _ in op.outputs)
    if is_start or (passes and any(producer in found for producer, _ in op.inputs)):
      found.add(position)
  return found


def _is_discrete(dtype: str) -> bool:
  return dtype.startswith(('bool', 'int', 'uint', 'string'))


def _is_of_variance(graph: OpGraph, position: int, slot: int) -> bool:
  """Returns whether an input is the mean of what it is subtracted from, and squares are averaged.

  A sum of squares around the mean does not change with the mean: that gradient is 0, stopped or
  not, as in `tf.nn.moments`.
  """
  op = graph.ops[position]
  if op.op_type != _SQUARES:
    return False
  mean, number = graph.ops[op.inputs[slot][0]], op.inputs[1 - slot]
  readers = {reader for reader, _ in graph.consumers()[position]}
  averages = [mean, *(graph.ops[reader] for reader in readers)]
  if not readers or any(a.op_type not in _AVERAGES or len(a.inputs) < 2 for a in averages):
    return False
  axes = [known_value(graph, one.inputs[1][0]) for one in averages]
  first = axes[0]
  return mean.inputs[0] == number and all(
    first is not None and one is not None and np.array_equal(one, first) for one in axes
  )


def _is_shift(graph: OpGraph, position: int, slot: int) -> bool:
  """Returns whether an input is stopped that is first subtracted and then added again.

  log(sum(exp(x - m))) + m does not change with m: that gradient is 0, stopped in both places or in
  none, as in `tf.reduce_logsumexp`.
  """
  shift = _unwrapped(graph, graph.ops[position].inputs[slot][0])
  ends = [position]
  if graph.ops[position].op_type == 'Sub':
    ends = [n for n, op in enumerate(graph.ops) if op.op_type in _SUMS]
  return any(_is_added_again(graph, end, own, shift) for end in ends for own in range(2))


def _is_added_again(graph: OpGraph, end: int, slot: int, shift: int) -> bool:
  op = graph.ops[end]
  if op.op_type not in _SUMS or len(op.inputs) != 2 or not op.is_stopped(slot):
    return False
  if _unwrapped(graph, op.inputs[slot][0]) != shift:
    return False
  at = op.inputs[1 - slot][0]
  for wanted in ('Log', 'Sum', 'Exp', 'Sub'):
    at = _unwrapped(graph, at)
    if graph.ops[at].op_type != wanted:
      return False
    if wanted != 'Sub':
      at = graph.ops[at].inputs[0][0]
  first = graph.ops[at]
  return first.is_stopped(1) and _unwrapped(graph, first.inputs[1][0]) == shift


def _unwrapped(graph: OpGraph, position: int) -> int:
  """Returns what an operation has its elements from, in whatever shape."""
  while graph.ops[position].op_type in _SHAPES:
    position = graph.ops[position].inputs[0][0]
  return position


def marks_of(through: Sequence[str]) -> tuple[str, ...]:
  """Returns what stops or replaces the gradient, of operations that pass a value on."""
  return tuple(mark for mark in through if mark.startswith(_MARKS))


def gradient_difference(
  name: str, op_type: str, what: str, tf1: tuple[str, ...], tf2: tuple[str, ...]
) -> GraphDifference:
  """Returns how gradients pass an operation differently.

  Args:
    name: the operation's.
    op_type: its type.
    what: the name of the input, or `gradient` for all.
    tf1: what stops or replaces the gradient in tf1.
    tf2: the same of the port.
  """
  return GraphDifference(
    GraphAspect.GRADIENT,
    name,
    op_type,
    what,
    ', '.join(tf1) or 'unchanged',
    ', '.join(tf2) or 'unchanged',
    tf1,
    tf2,
  )
