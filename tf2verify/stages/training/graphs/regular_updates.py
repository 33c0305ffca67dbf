"""What of a step follows from gradients and variables alone, whatever the models compute."""

import contextlib
import math
from collections.abc import Collection

import numpy as np

from tf2verify.errors import NotApplicable
from tf2verify.records.diagnosis import About, Cause
from tf2verify.records.observation import SourceLine
from tf2verify.records.op_graph import INPUT, TARGET, VARIABLE, OpGraph
from tf2verify.reference.graph_ops import reached
from tf2verify.reference.random_ops import is_random_op
from tf2verify.sides.graphs.rewriting.without_state import WrittenOtherwise
from tf2verify.sides.graphs.run import GraphRun
from tf2verify.sides.graphs.step_run import (
  LOSS_TARGET,
  MINIMIZED_TARGET,
  step_run,
  update_target,
)
from tf2verify.stages.training.graphs.step_graphs import StepGraphs
from tf2verify.stages.training.steps.prepared_runs import PreparedRuns
from tf2verify.stages.training.steps.quantities import Steps

_SUMS = ('AddV2', 'AddN', 'Add', 'Identity', TARGET)
_CLOSE = 1e-4


def penalized_alike(sides: tuple[GraphRun, GraphRun]) -> tuple[GraphRun, GraphRun]:
  """Returns both sides of a step, where both or none minimize a penalty of variables.

  What one side minimizes, the other one may add to its gradients.

  Raises:
    NotApplicable: one alone does; the runs are closed.
  """
  penalized = [_is_penalized(side.op_graph) for side in sides]
  if penalized[0] == penalized[1]:
    return sides
  for side in sides:
    side.close()
  raise NotApplicable('one side alone minimizes a penalty, which may be a part of its gradients')


def penalty_cause(sides: tuple[GraphRun, GraphRun]) -> Cause | None:
  """Returns that a step minimizes another multiple of the penalty of variables than tf1.

  It is computed of variables alone, which have the same values: no mistake of the model or of the
  loss beside it makes it another one.

  Args:
    sides: of a step; closed then.
  """
  try:
    of_tf1, of_tf2 = (_penalty(side) for side in sides)
  finally:
    for side in sides:
      side.close()
  if of_tf1 is None or of_tf2 is None or math.isclose(of_tf1[0], of_tf2[0], rel_tol=_CLOSE):
    return None
  times = f'{of_tf2[0] / of_tf1[0]:.4g}'
  at = '' if of_tf2[1] is None else f' at {of_tf2[1].short}'
  text = (
    f'what the step of the port minimizes has {times} times the penalty of variables that tf1 '
    f'minimizes{at}: {of_tf1[0]:.6g} in tf1, {of_tf2[0]:.6g} in the port, from the same variables'
  )
  about = (About.LOSS, About.GRADIENTS, About.UPDATE, About.SHADOWS)
  return Cause(text, explains=about, by_itself=True)


def _penalty(run: GraphRun) -> tuple[float, SourceLine | None] | None:
  """Returns what of variables alone is added to what is minimized, with its line; None for 0."""
  graph = run.op_graph
  ends = graph.targets()
  end = ends.get(MINIMIZED_TARGET, ends.get(LOSS_TARGET))
  if end is None:
    return None
  of_variables, of_inputs = _by_origin(graph, graph.ancestors([end]))
  added, pending = list[int](), [end]
  while pending:
    position = pending.pop()
    if position in of_variables and not graph.ops[position].is_leaf:
      added.append(position)
    elif position in of_inputs and graph.ops[position].op_type in _SUMS:
      pending += [producer for producer, _ in graph.ops[position].inputs]
  value = float(sum(np.sum(one) for one in run.fetch([graph.ops[n].tensors[0] for n in added])))
  return (value, graph.ops[max(added)].source) if value and math.isfinite(value) else None


def _is_penalized(graph: OpGraph) -> bool:
  """Returns whether a loss has a number that is computed of variables alone."""
  ends = graph.targets()
  behind = graph.ancestors([ends[t] for t in (LOSS_TARGET, MINIMIZED_TARGET) if t in ends])
  of_variables, _ = _by_origin(graph, behind)
  return any(
    not op.is_leaf and op.outputs and op.outputs[0][1] == ()
    for op in (graph.ops[position] for position in of_variables)
  )


def _by_origin(graph: OpGraph, among: Collection[int]) -> tuple[set[int], set[int]]:
  """Returns what is computed of variables alone, and what of inputs."""
  of_variables, of_inputs = set[int](), set[int]()
  for position in sorted(among):
    op = graph.ops[position]
    read = {producer for producer, _ in op.inputs}
    if op.op_type == INPUT or not read.isdisjoint(of_inputs):
      of_inputs.add(position)
    elif op.op_type == VARIABLE or not read.isdisjoint(of_variables):
      of_variables.add(position)
  return of_variables, of_inputs


def moved_by_updates(runs: PreparedRuns, steps: Steps) -> frozenset[str]:
  """Returns the variables that are moved without a gradient, and not by what the model computes.

  Those of a target network, say, towards others that are trained; no moving averages of a batch.
  """
  given = {r.name for r in steps.tf1.steps[0].gradients if r.value is not None}
  others = {tf1 for tf1, _ in runs.case.alignment().pairs} - given
  if not others:
    return frozenset()
  made = StepGraphs(runs.case, (runs.tf1_run, runs.tf2_run), steps, 1)
  if made.are_left_out:
    return frozenset()
  try:
    run = step_run(made.of_tf1())
  except (NotApplicable, WrittenOtherwise):
    return frozenset()
  with contextlib.closing(run):
    return frozenset(name for name in others if _is_moved_alone(run.op_graph, name))


def _is_moved_alone(graph: OpGraph, name: str) -> bool:
  """Returns whether an update follows from variables and gradients alone."""
  ends = graph.targets()
  gradients = [n for target, n in ends.items() if target.startswith('gradient ')]
  settled = {producer for n in gradients for producer, _ in graph.ops[n].inputs}
  end = ends.get(update_target(name))
  if end is None:
    return False

  def further(position: int) -> list[int]:
    return [] if position in settled else [n for n, _ in graph.ops[position].inputs]

  behind = (graph.ops[n] for n in reached([end], further))
  return not any(op.op_type == INPUT or is_random_op(op.op_type) for op in behind)
