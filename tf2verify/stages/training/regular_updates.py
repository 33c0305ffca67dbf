"""What of a step follows from gradients and variables alone, whatever the models compute."""

from tf2verify.errors import NotApplicable
from tf2verify.records.op_graph import INPUT, VARIABLE, OpGraph
from tf2verify.reference.graph_ops import reached
from tf2verify.reference.random_ops import is_random_op
from tf2verify.sides.graphs.run import GraphRun
from tf2verify.sides.graphs.step_run import (
  LOSS_TARGET,
  MINIMIZED_TARGET,
  step_run,
  update_target,
)
from tf2verify.sides.graphs.without_state import WrittenOtherwise
from tf2verify.stages.training.prepared_runs import PreparedRuns
from tf2verify.stages.training.step_graphs import StepGraphs
from tf2verify.stages.training.step_quantities import Steps


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


def _is_penalized(graph: OpGraph) -> bool:
  """Returns whether a loss has a number that is computed of variables alone."""
  ends = graph.targets()
  behind = graph.ancestors([ends[t] for t in (LOSS_TARGET, MINIMIZED_TARGET) if t in ends])
  of_variables, of_inputs = set[int](), set[int]()
  for position in sorted(behind):
    op = graph.ops[position]
    read = {producer for producer, _ in op.inputs}
    if op.op_type == INPUT or not read.isdisjoint(of_inputs):
      of_inputs.add(position)
    elif op.op_type == VARIABLE or not read.isdisjoint(of_variables):
      of_variables.add(position)
  return any(
    not op.is_leaf and op.outputs and op.outputs[0][1] == ()
    for op in (graph.ops[position] for position in of_variables)
  )


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
  try:
    return frozenset(name for name in others if _is_moved_alone(run.op_graph, name))
  finally:
    run.close()


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
