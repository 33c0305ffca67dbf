"""Both sides' losses as graphs, to look for the first divergence in."""

import dataclasses

from tf2verify.records.difference import Aspect, Difference
from tf2verify.records.loss_values import LossExample
from tf2verify.sides.graphs.run import GraphRun
from tf2verify.sides.side import FilledRun
from tf2verify.sides.tf1.reference import ReferenceLoss
from tf2verify.sides.tf2.loss_function import Tf2LossFunction
from tf2verify.sides.tf2.port_tracing import traced_losses
from tf2verify.stages.stage import CaseUnderTest, Inspection


def of_loss_alone(
  differences: tuple[Difference, ...],
  examples: dict[str, LossExample],
  tf1: ReferenceLoss,
  tf2: Tf2LossFunction,
) -> Inspection | None:
  """Returns the losses of the first example on which they differ; None if they do on none.

  Args:
    differences: what was found.
    examples: outputs and labels by the name of the run; the model's own come first.
    tf1: the reference's loss.
    tf2: the port's.
  """
  failed = {d.run for d in differences if d.aspect is not Aspect.PRESENCE}
  for run, example in examples.items():
    if run in failed:

      def sides(example: LossExample = example) -> tuple[GraphRun, GraphRun]:
        return tf1.inspectable(example), tf2.inspectable(example)

      return Inspection(run, 'tf2_loss', sides)
  return None


def of_model(case: CaseUnderTest, tf1: FilledRun, tf2: FilledRun) -> Inspection:
  """Returns both models with their losses, in the run in which the losses differ.

  Args:
    case: the case.
    tf1: that run of the reference.
    tf2: that of the port.
  """

  def sides() -> tuple[GraphRun, GraphRun]:
    reference = case.tf1_training.inspectable_losses(dataclasses.replace(tf1, mover=None))
    port = case.tf2.filled_port(tf2)
    return reference, traced_losses(case.declaration, port, tf2, case.labels).run()

  return Inspection(tf1.description, 'the loss of the port', sides)
