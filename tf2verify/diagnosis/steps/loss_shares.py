"""Parts of a loss that count otherwise in the updates of a step, and in the loss that it returns.

A step that takes the mean of two towers halves what stands once in it: a regularization, say. The
gradients of the towers are in no record. So the updates are looked at, which need not be linear in
the part (a clipping cuts some elements): the factor is that of most elements, and is then tried.
"""

import dataclasses
import time
from collections.abc import Iterator, Sequence

import numpy as np

from tf2verify.diagnosis.patterns.operations.op_text import value_text
from tf2verify.diagnosis.places.like_in_tf1 import like_in_tf1
from tf2verify.diagnosis.places.looking import Looking
from tf2verify.diagnosis.proposals.code_lines import Line, Proposal
from tf2verify.diagnosis.proposals.insertions import insertions
from tf2verify.diagnosis.steps.ends import StepEnds, shared_targets, written_tensors
from tf2verify.diagnosis.steps.loss_weights import is_factor
from tf2verify.records.op_graph import NodeChange, OpGraph
from tf2verify.relation.operations.gradient_names import differentiated

_LOSS = 'loss'
_MOST = 48
_SECONDS = 2.0


def share_edits(looking: Looking) -> Iterator[tuple[Line, Proposal]]:
  """Yields factors of a part of the loss with which all that differs in a step agrees.

  Args:
    looking: the search in the port as it is.
  """
  graph, run = looking.tf2.op_graph, looking.tf2
  names = shared_targets(looking.tf1.op_graph, graph, looking.targets)
  wanted = written_tensors(graph, names)
  updates = [n for n, name in enumerate(names) if not name.startswith(_LOSS)]
  if not wanted or not updates:
    return
  ends = StepEnds(looking.tf1, run, names)
  if not ends.are_known:
    return
  until = time.perf_counter() + _SECONDS
  for position, part in _parts(graph, [names[n] for n in updates]):
    if time.perf_counter() > until:
      return
    edited = [position] if len(updates) == len(names) else [*dict.fromkeys((position, part))]
    tensors = [graph.ops[n].tensors[0] for n in edited]
    values = run.fetch(tensors)
    again = run.refetched(wanted, {tensors[0]: 2 * values[0]})
    factor = None if again is None else ends.factor([(n, again[n]) for n in updates])
    if factor is None:
      continue
    given = {name: np.float32(factor) * one for name, one in zip(tensors, values, strict=True)}
    new = run.refetched(wanted, given)
    if new is not None and ends.are_near(1, new):
      proposal = _proposal(graph, edited, factor)
      like = like_in_tf1(looking, run.fetch([graph.ops[part].tensors[0]])[0])
      if proposal is not None:
        yield Line(graph, (part,)), dataclasses.replace(proposal, like=like)


def _parts(graph: OpGraph, updates: Sequence[str]) -> Iterator[tuple[int, int]]:
  """Yields numbers on the way back to a part of the loss, each with that part, also a number."""
  targets = graph.targets()
  forward = graph.ancestors(n for name, n in targets.items() if name.startswith(_LOSS))
  behind = graph.ancestors(targets[name] for name in updates) - forward
  parts = {graph.ops[n].name: n for n in forward if is_factor(graph, n)}
  known = [n for n in sorted(behind) if is_factor(graph, n)]
  parted = ((n, differentiated(graph.ops[n].name)) for n in known)
  # What is in no loss that the step returns has no operation in its graph.
  yield from [(n, parts.get(name, n)) for n, name in parted if name][:_MOST]


def _proposal(graph: OpGraph, edited: Sequence[int], factor: float) -> Proposal | None:
  """Returns a part that counts more, in the loss and in its gradients."""
  consumers, changes = graph.consumers(), list[NodeChange]()
  for n in edited:
    put = next(insertions(graph, consumers, [n], 'Mul', factor), None)
    if put is None or not put.place.startswith('after'):
      return None
    changes += put.changes
  op, share = graph.ops[edited[-1]], value_text(factor)
  text = (
    f'the part {op.name} ({op.op_type}) of the loss counts {share} times as much in tf1 as in the '
    'port, in what is differentiated'
  )
  return Proposal(tuple(changes), share, '1', text, what='weight')
