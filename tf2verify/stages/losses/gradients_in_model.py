"""Gradients of both sides' losses by the variables of the models."""

import contextlib
from collections.abc import Callable

import numpy as np

from tf2verify.errors import Tf2VerifyError
from tf2verify.records.observation import TensorRecord
from tf2verify.records.op_graph import TARGET
from tf2verify.reference.variables import variable_name
from tf2verify.sides.graphs.run import GraphRun
from tf2verify.sides.losses import loss_function
from tf2verify.sides.side import RunSpec
from tf2verify.sides.tf2.graphs.port_tracing import name_in_graph, traced_losses
from tf2verify.sides.tf2.traces.tracing import NotTraceable
from tf2verify.stages.stage import CaseUnderTest

Gradients = dict[str, np.ndarray]
# Forms gradients of a run by its variables, by name; None where there are none to be formed.
Former = Callable[[GraphRun], Gradients | None]


def of_both(
  case: CaseUnderTest, runs: tuple[RunSpec, RunSpec], form: Former
) -> tuple[Gradients, Gradients] | None:
  """Returns gradients of both sides, each by its own variables; None if one cannot be formed.

  Args:
    case: the case.
    runs: what both sides are given.
    form: forms them, given a model with its losses.
  """
  try:
    tf1 = _of_tf1(case, runs[0], form)
    tf2 = None if tf1 is None else _of_port(case, runs[1], form)
  except (NotTraceable, Tf2VerifyError):
    return None
  return None if tf1 is None or tf2 is None else (tf1, tf2)


def losses_and_outputs(run: GraphRun) -> tuple[tuple[str, str] | None, list[str]]:
  """Returns the tensors of the loss and of the total loss, and those of the outputs."""
  targets = {op.name: op.tensors[0] for op in run.op_graph.ops if op.op_type == TARGET}
  outputs = [tensor for name, tensor in targets.items() if name.startswith('output ')]
  loss, total = (
    targets.get(loss_function.target_in_model(what)) for what in ('loss', loss_function.TOTAL)
  )
  return (None if loss is None or total is None else (loss, total)), outputs


def _of_tf1(case: CaseUnderTest, spec: RunSpec, form: Former) -> Gradients | None:
  with contextlib.closing(case.tf1_training.inspectable_losses(spec)) as run:
    return form(run)


def _of_port(case: CaseUnderTest, spec: RunSpec, form: Former) -> Gradients | None:
  """Returns gradients by the variables of the port, by the names and in the shapes shown."""
  port = case.tf2.filled_port(spec)
  run = traced_losses(case.declaration, port, spec, case.labels, outputs_too=True).run()
  with contextlib.closing(run):
    formed = form(run)
  if formed is None:
    return None
  records = []
  for own in map(variable_name, port.variables()):
    gradient = formed.get(name_in_graph(port, own, spec))
    moved = None if gradient is None else port.layouts.to_tf1(own, gradient, constants=False)
    records.append(TensorRecord(own, moved))
  shown = port.layouts.grouped(records, constants=False)
  return {record.name: record.value for record in shown if record.value is not None}
