"""Both sides' losses as graphs, to look for the first divergence in."""

import dataclasses

from tf2verify.records.loss_values import LossExample
from tf2verify.sides.graphs.rewriting.unrolled_loops import is_apart
from tf2verify.sides.graphs.run import GraphRun
from tf2verify.sides.side import RunSpec
from tf2verify.sides.tf1.reference import ReferenceLoss
from tf2verify.sides.tf2.graphs.port_tracing import traced_losses
from tf2verify.sides.tf2.loss_function import Tf2LossFunction
from tf2verify.sides.tf2.traces.tracing import TracedPort
from tf2verify.stages.stage import CaseUnderTest, EditedRuns, Inspection


def of_loss_alone(
  run: str,
  example: LossExample,
  functions: tuple[ReferenceLoss, Tf2LossFunction],
  edited: EditedRuns,
) -> Inspection:
  """Returns the losses of an example on which they differ.

  Args:
    run: as differences name it.
    example: outputs and labels.
    functions: the reference's loss, and the port's.
    edited: how causes are tried out.
  """
  tf1, tf2 = functions

  def sides() -> tuple[GraphRun, GraphRun]:
    port = tf2.inspectable(example)
    # A loop of each side is compared with the other one.
    return tf1.inspectable(example, unrolls=is_apart(port.graph)), port

  return Inspection(run, 'tf2_loss', sides, edited)


def of_model(
  case: CaseUnderTest, tf1: RunSpec, tf2: RunSpec, edited: EditedRuns | None = None
) -> Inspection:
  """Returns both models with their losses, in the run in which the losses differ.

  Args:
    case: the case.
    tf1: that run of the reference.
    tf2: that of the port.
    edited: how causes are tried out; None for no experiments.
  """

  def sides() -> tuple[GraphRun, GraphRun]:
    reference = case.tf1_training.inspectable_losses(dataclasses.replace(tf1, perturber=None))
    return reference, traced_model(case, tf2).run()

  return Inspection(tf1.description, 'the loss of the port', sides, edited)


def traced_model(case: CaseUnderTest, run: RunSpec) -> TracedPort:
  """Returns the port with its losses, traced.

  Raises:
    NotTraceable: layer or loss do not run on symbolic tensors.
  """
  return traced_losses(case.declaration, case.tf2.filled_port(run), run, case.labels)
