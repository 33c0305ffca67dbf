"""The reference's train op as a graph to look into."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tf2verify.records.observation import SourceLine
from tf2verify.sides import side
from tf2verify.sides.graphs.graph_defs.extraction import behind
from tf2verify.sides.graphs.reading import Target
from tf2verify.sides.graphs.step_run import (
  COUNT,
  LOSS_TARGET,
  MINIMIZED_TARGET,
  RATE_TARGET,
  StepGraph,
  StepVariable,
  applied_target,
  gradient_target,
)
from tf2verify.sides.tf1.graphs.build import GraphGradient, GraphVariable
from tf2verify.sides.tf1.graphs.loss_graph import LossGraph
from tf2verify.sides.tf1.graphs.train_graph import TrainGraph


def step_graph(
  losses: LossGraph,
  train: TrainGraph,
  before: Sequence[tuple[GraphVariable, np.ndarray]],
  feeds: Mapping[str, np.ndarray],
  labels: Mapping[str, str],
  names: Mapping[str, str],
  source_of: Callable[[str], SourceLine | None],
) -> StepGraph:
  """Returns the graph of a step.

  Args:
    losses: model and losses.
    train: the train op.
    before: every variable, and its value before the step.
    feeds: by tensor name.
    labels: what both sides call a label, by its placeholder.
    names: what both sides call a slot, by its own name.
    source_of: tells the user's line of an operation, by its name.
  """
  graph = losses.built.graph
  if train.global_step is not None:
    names = {**names, train.global_step.record.name: COUNT}
  targets = _targets(losses, train)
  variables = {
    graph.get_operation_by_name(variable.initializer).inputs[0].op.name: StepVariable(
      names.get(variable.record.name, variable.record.name), value
    )
    for variable, value in before
  }
  start = list(losses.built.table_initializers)
  wanted = [name.partition(':')[0] for target in targets for name in target.tensors]
  wanted += [train.train_op.partition(':')[0], *start, *variables]
  places = {name.partition(':')[0]: path for path, name in losses.built.placeholders}
  places.update({name.partition(':')[0]: label for name, label in labels.items()})
  part = behind(graph.as_graph_def(), wanted)
  return StepGraph(
    side.TF1, part, variables, places, _left(feeds, part), {}, targets, source_of, start
  )


def _left(feeds: Mapping[str, np.ndarray], graph_def: Any) -> dict[str, np.ndarray]:
  names = {node.name for node in graph_def.node}
  return {name: value for name, value in feeds.items() if name.partition(':')[0] in names}


def _targets(losses: LossGraph, train: TrainGraph) -> list[Target]:
  found = [Target(LOSS_TARGET, (losses.total_loss,))]
  if train.minimized is not None:
    found.append(Target(MINIMIZED_TARGET, (train.minimized,)))
  if isinstance(train.learning_rate, str):
    found.append(Target(RATE_TARGET, (train.learning_rate,)))
  for named, gradients in (
    (gradient_target, train.gradients),
    (applied_target, train.applied_gradients),
  ):
    found += [Target(named(g.variable), _tensors(g)) for g in gradients if g.values is not None]
  return found


def _tensors(gradient: GraphGradient) -> tuple[str, ...]:
  assert gradient.values is not None
  return (gradient.values, *((gradient.indices,) if gradient.indices else ()))
