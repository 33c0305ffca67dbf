"""Counts of steps of which the port of a training step reads one more, or one less, than tf1.

A schedule, a bias correction or the decay of an average follows from how many steps were taken, and
whether the one that is being taken is among them is written on either side as it comes:
`step + 1`, or a count that is read after it was raised.
"""

import itertools
from collections.abc import Iterator

import numpy as np

from tf2verify.diagnosis.patterns.numbers.known_values import constant_or_number
from tf2verify.diagnosis.places.looking import Looking
from tf2verify.diagnosis.proposals.code_lines import Line, Proposal, name_at
from tf2verify.diagnosis.proposals.insertions import insertions
from tf2verify.diagnosis.steps.ends import StepEnds, shared_targets, written_tensors
from tf2verify.records.op_graph import CONSTANT, TARGET, VARIABLE, NodeChange, OpGraph

_SUMS = ('AddV2', 'Sub')
_OF_COUNTS = frozenset((*_SUMS, 'Add', 'Cast', 'FloorDiv', 'Identity'))
_INTEGERS = ('int32', 'int64')
_MOST = 24


def count_edits(looking: Looking) -> Iterator[tuple[Line, Proposal]]:
  """Yields a step more or less in what is computed of a count, where all that differs agrees then.

  Args:
    looking: the search in the port as it is.
  """
  graph, run = looking.tf2.op_graph, looking.tf2
  names = shared_targets(looking.tf1.op_graph, graph, looking.targets)
  wanted = written_tensors(graph, names)
  if not wanted:
    return
  ends = StepEnds(looking.tf1, run, names)
  known = itertools.islice(_other_counts(graph), _MOST) if ends.are_known else ()
  for position, more, proposal in known:
    tensor = graph.ops[position].tensors[0]
    (value,) = run.fetch([tensor])
    new = run.refetched(wanted, {tensor: np.asarray(value + more, value.dtype)})
    if new is not None and ends.are_near(1, new):
      yield Line(graph, (position,)), proposal


def _other_counts(graph: OpGraph) -> Iterator[tuple[int, int, Proposal]]:
  """Yields operations, by how much more each is to yield, and the edit that makes it so."""
  counts = _counts(graph)
  consumers = graph.consumers()
  lines = [(n, Line(graph, (n,))) for n in sorted(counts) if graph.ops[n].source is not None]
  for n, line in lines:
    op = graph.ops[n]
    numbers = [(slot, _one(graph, of)) for slot, (of, _) in enumerate(op.inputs)]
    found = [(slot, one) for slot, one in numbers if one is not None]
    is_next_count = all(graph.ops[reader].op_type == TARGET for reader, _ in consumers[n])
    if op.op_type not in _SUMS or len(found) != 1 or is_next_count:
      continue
    ((slot, one),) = found
    if op.op_type == 'Sub' and slot == 0:
      continue
    more = -one if op.op_type == 'AddV2' else one
    nothing = np.asarray(0, op.outputs[0][0])
    change = NodeChange(op.name, inputs=((slot, nothing),))
    said, other = ('plus', 'later') if more < 0 else ('minus', 'earlier')
    text = (
      f'{name_at(line, n)} is a count of steps {said} 1 in the port, and the count itself in tf1: '
      f'what follows from it is that of one step {other}'
    )
    yield n, more, Proposal((change,), '0', '1', text, what='step')
  for n, line in lines:
    op = graph.ops[n]
    if op.op_type != 'Cast' or op.outputs[0][0] != 'float32':
      continue
    for more in (1, -1):
      put = next(insertions(graph, consumers, [n], 'AddV2', float(more)), None)
      if put is None:
        continue
      said, other = ('plus', 'earlier') if more > 0 else ('minus', 'later')
      text = (
        f'{name_at(line, n)} is a count of steps in the port, and the count {said} 1 in tf1: what '
        f'follows from it is that of one step {other}'
      )
      yield n, more, Proposal(put.changes, f'{said} 1', '', text, what='step')


def _counts(graph: OpGraph) -> set[int]:
  """Returns what is computed of one count by sums with numbers alone."""
  found: set[int] = set()
  for n, op in enumerate(graph.ops):
    if not op.outputs or op.outputs[0][1] != ():
      continue
    if op.op_type == VARIABLE:
      if op.outputs[0][0] in _INTEGERS:
        found.add(n)
      continue
    read = [of for of, _ in op.inputs if graph.ops[of].op_type != CONSTANT]
    if op.op_type in _OF_COUNTS and len(read) == 1 and read[0] in found:
      found.add(n)
  return {n for n in found if graph.ops[n].op_type != VARIABLE}


def _one(graph: OpGraph, position: int) -> int | None:
  """Returns 1 or -1 where an operation yields that number."""
  value = constant_or_number(graph, position)
  if value is None or value.size != 1 or abs(value.item()) != 1:
    return None
  return int(value.item())
