"""Weights of parts of losses that the gradients of a training step show.

A step may differentiate another sum of losses than the one that it returns. Gradients are linear in
what each part of the sum is weighted by: with one factor on the way back doubled, they say by how
much it would have to be larger for those of tf1.
"""

import dataclasses
import math
from collections.abc import Iterator, Sequence

import numpy as np

from tf2verify.diagnosis.divergence.tensors.outputs import is_opaque
from tf2verify.diagnosis.divergence.tensors.variable_views import variable_views
from tf2verify.diagnosis.patterns.numbers.known_values import constant_or_number
from tf2verify.diagnosis.patterns.operations.op_text import value_text
from tf2verify.diagnosis.places.looking import Looking
from tf2verify.diagnosis.proposals.code_lines import Line, Proposal
from tf2verify.diagnosis.proposals.insertions import insertions
from tf2verify.records.op_graph import NodeChange, OpGraph

_GRADIENT = 'gradient '
_LOSS = 'loss'
_MOST = 64
# Of the greatest element: gradients of a long sum are rounded more than once.
_ROUNDING = 1e-4
_DIGITS = 4


@dataclasses.dataclass(frozen=True, eq=False)
class _Gradients:
  """The gradients of both sides, in the port's shapes and in units of tf1's greatest element."""

  tensors: Sequence[str]  # of the port
  sizes: Sequence[float]
  wanted: np.ndarray
  own: np.ndarray

  def flat(self, values: Sequence[np.ndarray]) -> np.ndarray:
    """Returns values of the port in these units."""
    return _flat(values, self.sizes)


def weight_edits(looking: Looking) -> Iterator[tuple[Line, Proposal]]:
  """Yields factors of gradients with which all gradients of a step are those of tf1.

  Args:
    looking: the search in the port as it is.
  """
  graph, run = looking.tf2.op_graph, looking.tf2
  known = _gradients(looking)
  if known is None:
    return
  targets = graph.targets()
  behind, forward = (
    graph.ancestors([end for name, end in targets.items() if name.startswith(word)])
    for word in (_GRADIENT, _LOSS)
  )
  single = [n for n in sorted(behind - forward) if is_factor(graph, n)][:_MOST]
  values = run.fetch([graph.ops[n].tensors[0] for n in single])
  for position, value in zip(single, values, strict=True):
    again = run.refetched(known.tensors, {graph.ops[position].tensors[0]: 2 * value})
    scale = None if again is None else _scale(known, known.flat(again))
    proposal = None if scale is None else _proposal(graph, position, scale)
    if proposal is not None:
      yield Line(graph, (position,)), proposal


def is_factor(graph: OpGraph, position: int) -> bool:
  """Returns whether an operation yields one number."""
  op = graph.ops[position]
  if op.is_leaf or len(op.tensors) != 1 or op.source is None:
    return False
  dtype, shape = op.outputs[0]
  return dtype == 'float32' and shape is not None and math.prod(n or 0 for n in shape) == 1


def _gradients(looking: Looking) -> _Gradients | None:
  """Returns all gradients that both sides have; None where they cannot be set side by side."""
  tf1, tf2 = looking.tf1.op_graph, looking.tf2.op_graph
  ones, others = tf1.targets(), tf2.targets()
  names = [name for name in ones if name.startswith(_GRADIENT) and name in others]
  both = [(tf1.ops[ones[name]], tf2.ops[others[name]]) for name in names]
  if not both or any(len(one.tensors) != 1 or len(two.tensors) != 1 for one, two in both):
    return None  # rows and their indices
  if any(is_opaque(op.outputs[0][0]) for pair in both for op in pair):
    return None
  views = variable_views(tf1, looking.tf2.layouts)
  wanted = looking.tf1.fetch([one.tensors[0] for one, _ in both])
  held = [(views.get((ones[name], 0)), value) for name, value in zip(names, wanted, strict=True)]
  wanted = [value if view is None else view.to_tf2(value) for view, value in held]
  tensors = [two.tensors[0] for _, two in both]
  own = looking.tf2.fetch(tensors)
  if any(one.shape != two.shape for one, two in zip(wanted, own, strict=True)):
    return None
  # One that is rounding on both sides says nothing.
  greatest = [float(np.max(np.abs(value), initial=0.0)) for value in wanted]
  least = _ROUNDING * max(greatest)
  sizes = [max(size, least) for size in greatest]
  if not least or not all(map(math.isfinite, sizes)):
    return None
  return _Gradients(tensors, sizes, _flat(wanted, sizes), _flat(own, sizes))


def _flat(values: Sequence[np.ndarray], sizes: Sequence[float]) -> np.ndarray:
  both = zip(values, sizes, strict=True)
  return np.concatenate([np.ravel(value).astype(np.float64) / size for value, size in both])


def _scale(known: _Gradients, doubled: np.ndarray) -> float | None:
  """Returns by what a factor is to be multiplied for the gradients of tf1; None if by nothing.

  Args:
    known: the gradients.
    doubled: those of the port with the factor doubled.
  """
  part, missing = doubled - known.own, known.wanted - known.own
  weight = float(part @ part)
  if not weight or not math.isfinite(weight):
    return None
  more = float(part @ missing) / weight
  left = float(np.max(np.abs(missing - more * part)))
  before = float(np.max(np.abs(missing)))
  return 1.0 + more if left <= _ROUNDING and left < _ROUNDING**0.5 * before else None


def _proposal(graph: OpGraph, position: int, scale: float) -> Proposal | None:
  """Returns a factor of tf1 in place of the port's."""
  op = graph.ops[position]
  of = op.source.gradient_of if op.source is not None else None
  line = '' if of is None else f' of {of.short}'
  numbers = [(slot, _number(graph, n)) for slot, (n, _) in enumerate(op.inputs)]
  weights = [(slot, one) for slot, one in numbers if one is not None and one != 1]
  if op.op_type == 'Mul' and len(weights) == 1:
    ((slot, weight),) = weights
    other = rounded(weight * scale)
    change = NodeChange(op.name, inputs=((slot, np.asarray(other, np.float32)),))
    one, two = value_text(other), value_text(weight)
    text = (
      f'the gradient{line} is multiplied by {two} in the port, by {one} in tf1: the part of the '
      'loss there has another weight in what is differentiated'
    )
    return Proposal((change,), one, two, text, what='weight')
  factor = rounded(scale)
  put = next(insertions(graph, graph.consumers(), [position], 'Mul', factor), None)
  if put is None:
    return None
  one = value_text(factor)
  larger = 'has the opposite sign' if factor == -1 else f'is {one} times as large'
  text = (
    f'the gradient{line} {larger} in tf1: the part of the loss there has another weight in what '
    'is differentiated'
  )
  return Proposal(put.changes, one, '1', text, what='weight', only_scales=True)


def _number(graph: OpGraph, position: int) -> float | None:
  value = constant_or_number(graph, position)
  return float(value.item()) if value is not None and value.size == 1 else None


def rounded(number: float) -> float:
  """Returns a number as it may stand in code, where it is that one up to rounding."""
  near = float(f'{number:.{_DIGITS}g}')
  if abs(number) <= _ROUNDING:
    return 0.0
  return near if abs(near - number) <= _ROUNDING * abs(number) else number
