"""Gradients that the port is to stop where TF1 does, or is to let pass.

The values agree, whatever stops a gradient: what one side stops is found on the other by its value.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence

import numpy as np

from tf2verify.diagnosis.code_lines import Line, Proposal
from tf2verify.diagnosis.divergence.sources import InspectableRun
from tf2verify.diagnosis.insertions import insertions
from tf2verify.diagnosis.looking import Looking
from tf2verify.diagnosis.patterns.reads import tensor_text
from tf2verify.numerics.agreement import agreement
from tf2verify.records.op_graph import NodeChange, OpGraph, TensorKey
from tf2verify.relation.op_pairs import is_backward

_MOST = 8
# Of what has the value of one thing that TF1 stops.
_MOST_PLACES = 4


def stop_edits(looking: Looking) -> Iterator[tuple[Line, Proposal]]:
  """Yields stops of one side alone, each with the port's line; a few at most.

  Each one alone, then all together: those that the port lacks, then those that it has.

  Args:
    looking: the search in the port as it is.
  """
  tf1, graph = looking.tf1.op_graph, looking.tf2.op_graph
  stopped = _values(looking.tf1, _stopped(tf1))
  own = _values(looking.tf2, _stopped(graph))
  lacking = {k: value for k, value in stopped.items() if not _is_among(value, own.values())}
  found = list(_missing(looking, lacking))[:_MOST]
  # The last place of each.
  each = list({one.like: (line, one) for line, one in reversed(found)}.values())[::-1]
  yield from _alone_and_together(found, each)
  further = [key for key, value in own.items() if not _is_among(value, stopped.values())]
  removed = [_removed(graph, key) for key in further[:_MOST]]
  yield from _alone_and_together(removed, removed)


_Edit = tuple[Line, Proposal]


def _alone_and_together(found: Sequence[_Edit], each: Sequence[_Edit]) -> Iterator[_Edit]:
  """Yields edits, then some of them as one."""
  yield from found
  if len(each) > 1:
    changes = tuple(change for _, one in each for change in one.changes)
    line, first = each[0]
    text = '; '.join(one.text for _, one in each)
    yield line, Proposal(changes, first.tf1, first.tf2, text, first.like)


def _removed(graph: OpGraph, key: TensorKey) -> _Edit:
  """Returns that all that reads a tensor of the port through a stop reads the tensor itself."""
  readers = [
    (n, slot)
    for n, op in enumerate(graph.ops)
    for slot, read in enumerate(() if is_backward(op) else op.inputs)
    if read == key and op.is_stopped(slot)
  ]
  tensor = graph.ops[key[0]].tensors[key[1]]
  changes = tuple(NodeChange(graph.ops[n].name, other=((slot, tensor),)) for n, slot in readers)
  first = readers[0][0]
  own = graph.ops[first]
  place = '' if own.source is None else f' ({own.source.short})'
  text = (
    f'the port stops the gradient of {tensor_text(graph, key)}, which {own.name}{place} reads, tf1 '
    'lets it pass: remove tf.stop_gradient there'
  )
  return Line(graph, (first,)), Proposal(changes, '', 'StopGradient', text, None, 'gradient')


def _stopped(graph: OpGraph) -> list[TensorKey]:
  """Returns the tensors that operations of the forward pass read through a stop, each once."""
  found: dict[TensorKey, None] = {}
  for op in graph.ops:
    for slot, key in enumerate(() if is_backward(op) else op.inputs):
      if op.is_stopped(slot) and graph.ops[key[0]].outputs[key[1]][0] == 'float32':
        found[key] = None
  return list(found)


def _values(run: InspectableRun, keys: Collection[TensorKey]) -> dict[TensorKey, np.ndarray]:
  """Returns what tensors hold, without what tells nothing: a single number, or equal ones."""
  tensors = [run.op_graph.ops[n].tensors[k] for n, k in keys]
  values = dict(zip(keys, run.fetch(tensors) if tensors else (), strict=True))
  return {key: value for key, value in values.items() if value.size and np.ptp(value) > 0}


def _is_among(value: np.ndarray, others: Collection[np.ndarray]) -> bool:
  return any(one.shape == value.shape and agreement(value, one).is_rounding for one in others)


def _missing(
  looking: Looking, lacking: Mapping[TensorKey, np.ndarray]
) -> Iterator[tuple[Line, Proposal]]:
  """Yields a stop after what yields in the port what TF1 stops."""
  graph, tf1 = looking.tf2.op_graph, looking.tf1.op_graph
  shapes = {value.shape for value in lacking.values()}
  candidates = [
    (n, 0)
    for n, op in enumerate(graph.ops)
    if not op.is_leaf and op.source is not None and not is_backward(op) and op.tensors
    if op.outputs[0][0] == 'float32' and op.outputs[0][1] in shapes
  ]
  values = _values(looking.tf2, candidates)
  consumers = graph.consumers() if lacking else ()
  for (position, _), value in lacking.items():
    places = [n for (n, _), one in values.items() if _is_among(value, [one])]
    # What only passes it on comes after what computes it; different things may be equal in a run.
    for place in reversed(places[-_MOST_PLACES:]):
      put = next(insertions(graph, consumers, [place], 'StopGradient', None), None)
      if put is None or not put.place.startswith('after'):
        continue
      own, known = graph.ops[place], tf1.ops[position]
      text = (
        f'tf1 stops the gradient of {known.name} ({known.op_type}); the port computes the same at '
        f'{own.name} ({own.op_type}) and lets its gradient through: put tf.stop_gradient there'
      )
      yield Line(graph, (place,)), Proposal(put.changes, 'StopGradient', '', text, position)
