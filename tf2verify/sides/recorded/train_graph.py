"""The train op of a recording, by the names of what it has added to the graph."""

from collections.abc import Sequence

from tf2verify.recordings.graph_entries import GradientEntry
from tf2verify.recordings.training_entries import StepsEntry
from tf2verify.reference.graph_ops import ops_run_by
from tf2verify.reference.random_draws import draws_in_functions
from tf2verify.reference.random_ops import is_random_op
from tf2verify.reference.train_op import GATE
from tf2verify.sides.tf1.graphs.build import BuiltGraph, GraphGradient, GraphVariable
from tf2verify.sides.tf1.graphs.racing import Fetches
from tf2verify.sides.tf1.graphs.train_graph import GraphSlot, TrainGraph


def train_graph(
  entry: StepsEntry, built: BuiltGraph, added: tuple[GraphVariable, ...]
) -> TrainGraph:
  """Returns what a recorded train op has added to a graph, which is imported."""
  states = {variable.record.name: variable for variable in added}
  run = ops_run_by([built.graph.get_operation_by_name(entry.train_op)])
  draws = [op for op in run.values() if is_random_op(op.type)]
  in_loop = any(draw.in_loop for draw in entry.random_draws)

  def gradients(entries: Sequence[GradientEntry]) -> tuple[GraphGradient, ...]:
    return tuple(GraphGradient(g.variable, g.values, g.indices, g.shape) for g in entries)

  return TrainGraph(
    train_op=entry.train_op,
    gradients=gradients(entry.gradients),
    applied_gradients=gradients(entry.applied_gradients),
    learning_rate=entry.learning_rate,
    global_step=next((v for v in (*built.variables, *added) if v.global_step), None),
    added=added,
    slots=tuple(
      GraphSlot(slot.role, slot.variable, states[slot.name])
      for slot in entry.slots_before
      if slot.name in states
    ),
    optimizers=(),
    updates_left_out=entry.updates_left_out,
    random_draws=(),
    drawn=tuple(tensor.name for op in draws for tensor in op.outputs),
    draws_inside=in_loop or draws_in_functions(built.graph, run.values()),
    gate=GATE,
  )


def step_fetches(entry: StepsEntry, total_loss: str) -> Fetches:
  """Returns what a recorded step is asked for, given the name of the loss that it minimizes."""
  names = [total_loss]
  if isinstance(entry.learning_rate, str):
    names.append(entry.learning_rate)
  for gradient in (*entry.gradients, *entry.applied_gradients):
    names += gradient.tensors
  return Fetches(frozenset([entry.train_op]), frozenset(names), GATE)
