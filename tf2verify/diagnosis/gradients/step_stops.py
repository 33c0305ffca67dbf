"""Gradients that one side alone stops in the forward pass of a training step."""

import dataclasses
from collections.abc import Collection

from tf2verify.diagnosis.evidence.failed_stage import FailedStage
from tf2verify.diagnosis.places.looking import Looking
from tf2verify.diagnosis.places.source_records import bare_source, stopped_sources
from tf2verify.diagnosis.rules.gradients.stopped import is_stopped_on_one_side, stop_gradient
from tf2verify.records.diagnosis import Cause, Source
from tf2verify.records.op_graph import VARIABLE, OpGraph
from tf2verify.relation.proof.differences.stopped_gradients import (
  Stopped,
  stopped_before,
  stopped_on_one_side,
)
from tf2verify.relation.proof.proving import prove

RULE = 'stop_gradient_in_step'
_GRADIENT = 'gradient'
_LOSS = 'loss'
# What is differentiated, or else what is known of it.
_LOSSES = ('loss (minimized)', 'loss (total)')
_Found = tuple[Cause, tuple[Source, ...]]


def step_stops(looking: Looking, evidence: FailedStage, run: str) -> _Found | None:
  """Returns the stop that all gradients that differ in a step have before them, and its place.

  Args:
    looking: the search in the step.
    evidence: of the stage.
    run: which step.

  Returns:
    None where no gradient differs, or no stop of one side, or several, are on the way from all of
    these variables to the loss.
  """
  found = [d for d in evidence.differences if d.run == run and not d.may_be_rounding]
  names = {d.tf1_subject for d in found if d.quantity == _GRADIENT}
  if any(d.quantity == _LOSS for d in found):
    return None  # the forward passes differ, and the gradients follow
  graph = looking.tf1.op_graph
  leaves = {op.name: n for n, op in enumerate(graph.ops) if op.op_type == VARIABLE}
  behind = {leaves[name] for name in names if name in leaves}
  if not names or len(behind) < len(names):
    return None
  return _at_a_pair(looking, evidence, behind) or _where_values_are_proven(looking, behind)


def _at_a_pair(looking: Looking, evidence: FailedStage, behind: Collection[int]) -> _Found | None:
  """Returns a stop before one of two operations that are a pair."""
  graph = looking.tf1.op_graph
  positions = {op.shown_name: n for n, op in enumerate(graph.ops)}
  kept = [
    known
    for known in looking.comparison.of_gradients()
    if is_stopped_on_one_side(known)
    and known.op in positions
    and graph.ancestors([positions[known.op]]).issuperset(behind)
  ]
  if len({known.op for known in kept}) != 1:
    return None
  cause = stop_gradient(dataclasses.replace(evidence, gradient_differences=tuple(kept)))
  if cause is None:
    return None
  places = stopped_sources(kept, looking.divergence.pairing)
  return dataclasses.replace(cause, rule=RULE), places


def _where_values_are_proven(looking: Looking, behind: Collection[int]) -> _Found | None:
  """Returns a stop of a value that both sides are proven to compute, in whatever way they do."""
  graphs = looking.tf1.op_graph, looking.tf2.op_graph
  loss = next((name for name in _LOSSES if all(name in g.targets() for g in graphs)), '')
  if not loss:
    return None
  proof = prove(*graphs, _shared_variables(*graphs), [loss])
  for known in (stopped_on_one_side(proof), stopped_before(proof)):
    stops = [one for one in known if _is_on_the_way(graphs, one, behind)]
    if stops:
      break
  if len(stops) != 1:
    return None
  (found,) = stops
  is_port = found.side == graphs[1].side
  one, other = (graphs[1], graphs[0]) if is_port else graphs
  lines = [
    '' if line is None else f' ({line.short})'
    for line in (one.ops[found.reader].source, other.ops[found.flowing].source)
  ]
  stops_there, flows, fix = ('the port', 'TF1', 'remove') if is_port else ('TF1', 'the port', 'put')
  cause = Cause(
    f'{stops_there} stops the gradient of what {one.ops[found.reader].name} reads{lines[0]}, '
    f'{flows} computes the same value{lines[1]} and lets it pass: {fix} tf.stop_gradient there in '
    'the port',
    'that both sides compute this value is proven for all inputs',
    RULE,
  )
  places = (other, found.flowing), (one, found.reader)
  return cause, (bare_source(*(places if is_port else places[::-1])),)


def _is_on_the_way(
  graphs: tuple[OpGraph, OpGraph], found: Stopped, behind: Collection[int]
) -> bool:
  """Returns whether a stop lies behind all variables, by their positions in the graph of tf1."""
  is_port = found.side == graphs[1].side
  position = found.flowing if is_port else found.reader
  return graphs[0].ancestors([position]).issuperset(behind)


def _shared_variables(tf1: OpGraph, tf2: OpGraph) -> dict[str, tuple[str, tuple[int, ...]]]:
  """Returns dtype and shape of the variables that both graphs read in the same shape."""
  one, other = (
    {op.name: op.outputs[0] for op in graph.ops if op.op_type == VARIABLE} for graph in (tf1, tf2)
  )
  return {
    name: (dtype, tuple(size for size in shape if size is not None))
    for name, (dtype, shape) in one.items()
    if shape is not None and other.get(name) == (dtype, shape)
  }
