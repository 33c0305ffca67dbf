"""What the train op of TF1 does in other steps than those that were taken.

An average that is updated every 100 steps, a copy of the weights in every 1,000th: in the steps
taken, the condition is the same each time, and neither side shows what its other branch writes.
"""

from tf2verify.errors import NotApplicable
from tf2verify.reference.graph_ops import op_name_of
from tf2verify.sides.graphs.graph_defs.extraction import is_of_constants
from tf2verify.sides.graphs.step_run import StepGraph, writing_branches
from tf2verify.stages.training.graphs.step_proof import RelatedStep

_MOST = 3


def untaken_branches(step: RelatedStep, count: int) -> list[str]:
  """Returns a sentence for each condition that took one branch in all steps.

  Args:
    step: one of them, which agrees.
    count: how many were taken.
  """
  taken: dict[str, set[bool]] = {}
  lines = {}
  if step.graphs.are_left_out:
    return []
  try:
    if not writing_branches(step.tf1):
      return []
    for number in range(1, count + 1):
      graph = step.graphs.step_of_tf1(number)
      for name, truth in writing_branches(graph).items():
        if _is_settled(graph, name):
          continue
        taken.setdefault(name, set()).add(truth)
        lines[name] = graph.source_of(name)
  except NotApplicable:  # a recorded graph is not run here
    return []
  except Exception as error:  # noqa: BLE001 - a fault in here must not cost the stage, and is said
    return [f'the branches that tf1 takes are not known: {type(error).__name__}: {error}']
  same = [(name, truths.pop()) for name, truths in taken.items() if len(truths) == 1]
  return [
    f'the condition {name} of tf1{"" if lines[name] is None else f" at {lines[name]}"} is '
    f'{"true" if truth else "false"} in all {count} steps: what it writes otherwise was not '
    'compared: take more steps (training_steps_to_take), until both branches are taken'
    for name, truth in same[:_MOST]
  ]


def _is_settled(step: StepGraph, condition: str) -> bool:
  """Returns whether a constant decides: the training mode, say; the other one is another graph."""
  (node,) = (node for node in step.graph_def.node if node.name == condition)
  return is_of_constants(step.graph_def, op_name_of(node.input[0]))
