"""Arrays that a line of the port reads and that follow from constants, as they are in tf1.

A position encoding, a table of anchors or a vector of class weights is computed by Python, or by
operations of constants, and then read by operations that may be written differently in tf1: these
have no partners, and what they read cannot be compared there.
"""

import math
from collections.abc import Iterator, Mapping

import numpy as np

from tf2verify.diagnosis.divergence.tensors.sources import InspectableRun
from tf2verify.diagnosis.patterns.operations.op_text import value_text
from tf2verify.diagnosis.patterns.operations.reads import text_with_line
from tf2verify.diagnosis.proposals.code_lines import Line, Proposal, name_at
from tf2verify.records.op_graph import CONSTANT, TARGET, NodeChange, OpGraph, TensorKey
from tf2verify.relation.operations.op_pairs import is_backward

_MOST_ELEMENTS = 1 << 20
_SEVERAL = 2
# What another order of computing makes of one array.
_SAME = 1e-6
# What reads integers that are not the axes or the shape of something.
_READ_INTEGERS = frozenset(
  ('GatherV2', 'GatherNd', 'ResourceGather', 'ScatterNd', 'OneHot', 'Cast', 'SegmentSum')
).union(('UnsortedSegmentSum', 'TensorScatterUpdate', 'TensorScatterAdd'))
_ANY_READS = ('float32', 'bool')
# Operations and the numbers of the inputs by which they read an array.
_Readers = list[tuple[int, int]]


class ArrayProposals:
  """Arrays of tf1 that the port does not have, for those of the port that tf1 does not have."""

  def __init__(self, tf1: InspectableRun, tf2: InspectableRun) -> None:
    """Prepares.

    Args:
      tf1: the reference's run.
      tf2: the port's.
    """
    self._graph = tf2.op_graph
    self._readers = _arrays_read(tf2.op_graph)
    wanted = _arrays_read(tf1.op_graph)
    if not self._readers or not wanted:
      self._own, self._wanted = dict[TensorKey, np.ndarray](), dict[TensorKey, np.ndarray]()
      return
    own, other = _values(tf2, self._readers), _values(tf1, wanted)
    self._own = {key: v for key, v in own.items() if not _is_among(v, other)}
    self._wanted = {key: v for key, v in other.items() if not _is_among(v, own)}

  def of(self, line: Line, computed: bool) -> Iterator[Proposal]:
    """Yields what a line reads with the values of an array of tf1, wherever the port reads it.

    Args:
      line: of the port.
      computed: whether of arrays that operations compute, where an edit of these may say more, or
        of those that Python does.
    """
    for key, value in self._own.items():
      if computed != (self._graph.ops[key[0]].op_type != CONSTANT):
        continue
      readers = self._readers[key]
      first = next((n for n, _ in readers if n in line.positions), None)
      if first is None:
        continue
      for like, wanted in self._wanted.items():
        held = _as_held(wanted, value)
        if held is None:
          continue
        changes = tuple(
          NodeChange(self._graph.ops[n].name, inputs=((slot, held),)) for n, slot in readers
        )
        what = text_with_line(self._graph, key) if computed else 'an array'
        text = (
          f'{name_at(line, first)} reads {what} of shape {list(value.shape)} that has other '
          f'values in tf1: {_difference(held, value)}'
        )
        yield Proposal(changes, 'an array', 'another array', text, like[0], 'values')


def _arrays_read(graph: OpGraph) -> dict[TensorKey, _Readers]:
  """Returns the arrays that follow from constants, with what else reads them."""
  fixed: set[int] = set()
  found: dict[TensorKey, _Readers] = {}
  for n, op in enumerate(graph.ops):
    known = [key for key, _ in op.inputs if key in fixed]
    if op.op_type == CONSTANT or (op.pure and op.inputs and len(known) == len(op.inputs)):
      fixed.add(n)
    elif known and op.op_type != TARGET and not is_backward(op):  # gradients are formed anew
      for slot, key in enumerate(op.inputs):
        dtype, shape = graph.ops[key[0]].outputs[key[1]]
        is_value = dtype in _ANY_READS or op.op_type in _READ_INTEGERS
        sizes = [size for size in shape or () if size is not None]
        is_array = len(sizes) == len(shape or ()) and _SEVERAL <= math.prod(sizes) <= _MOST_ELEMENTS
        if key[0] in fixed and is_value and is_array:
          found.setdefault(key, []).append((n, slot))
  return found


def _values(run: InspectableRun, keys: Mapping[TensorKey, _Readers]) -> dict[TensorKey, np.ndarray]:
  return dict(zip(keys, run.fetch([run.op_graph.tensor(key) for key in keys]), strict=True))


def _is_among(value: np.ndarray, others: Mapping[TensorKey, np.ndarray]) -> bool:
  held = (_as_held(other, value) for other in others.values())
  return any(one is not None and not _differs(one, value).any() for one in held)


def _as_held(wanted: np.ndarray, value: np.ndarray) -> np.ndarray | None:
  """Returns an array of tf1 in the shape in which the port has one; None where it has no such."""
  if wanted.dtype != value.dtype:
    return None
  if wanted.shape == value.shape:
    return wanted
  if np.squeeze(wanted).shape == np.squeeze(value).shape:
    return wanted.reshape(value.shape)
  return wanted.T if wanted.T.shape == value.shape else None


def _differs(one: np.ndarray, other: np.ndarray) -> np.ndarray:
  """Returns which elements of two arrays of one shape differ by more than rounding."""
  return ~np.isclose(np.asarray(one, np.float64), np.asarray(other, np.float64), _SAME, _SAME)


def _difference(wanted: np.ndarray, value: np.ndarray) -> str:
  """Returns in which elements two arrays differ, and the first one of them, as text."""
  places = np.argwhere(_differs(wanted, value))
  first = tuple(places[0])
  both = (value_text(float(one[first])) for one in (value, wanted))
  ranges = []
  for axis, size in enumerate(value.shape):
    least, most = int(places[:, axis].min()), int(places[:, axis].max())
    whole = most - least == size - 1
    ranges.append(':' if whole else str(least) if least == most else f'{least}:{most + 1}')
  count = f'{len(places):,} of {value.size:,} elements' if len(places) > 1 else '1 element'
  index = ', '.join(str(int(n)) for n in first)
  said = '{} for {}'.format(*both)
  return f'{count} in [{", ".join(ranges)}], {said} at [{index}]'
