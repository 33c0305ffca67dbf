"""A graph in which the branches that a run takes stand in the place of its conditions.

What a branch writes is within a function, where nobody sees it. Which one is taken is known
once the values are: a step of gradient accumulation applies, or does not.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tf2verify.reference.graph_ops import op_name_of
from tf2verify.sides.graphs.graph_defs import inlining
from tf2verify.tensorflow_internals import graphs

CONDITIONS = ('If', 'StatelessIf')
# Conditions within branches are conditions once those are taken; more than that is a loop of ours.
_MOST_ROUNDS = 20


def with_taken_branches(
  graph_def: Any,
  evaluate: Callable[[Sequence[str]], Sequence[np.ndarray]],
  passes_on: bool = False,
  marks_choices: bool = False,
  is_replaced: Callable[[Any], bool] = bool,
) -> None:
  """Replaces each condition of a graph by the branch that is taken.

  What decides it is passed on by an operation of a `taken_name`.

  Args:
    graph_def: the graph, which is changed.
    evaluate: returns the values of some of its tensors, by name.
    passes_on: whether what a condition yields can still be asked for by its name.
    marks_choices: whether a number that a condition has chosen passes an operation of type
      `inlining.KEPT_CHOICE`, as another step may choose another one; and whether the name of
      that operation is a `decision_name`.
    is_replaced: whether a condition is, given its NodeDef; others stay as they are.
  """
  for number in range(_MOST_ROUNDS):
    conditions = [n for n in graph_def.node if n.op in CONDITIONS and is_replaced(n)]
    if not conditions:
      break
    values = evaluate([inlining.with_output(node.input[0]) for node in conditions])
    library = {function.signature.name: function for function in graph_def.library.function}
    outputs: dict[str, list[str]] = {}
    for node in conditions:
      name = inlining.decision_name if marks_choices else inlining.taken_name
      _pass_decision(graph_def, node, name(node.name))
    for node, value in zip(conditions, values, strict=True):
      is_true = bool(np.asarray(value).any())
      branch = node.attr['then_branch' if is_true else 'else_branch'].func.name
      body = graphs.graph_of(library[branch], library)
      prefix = f'{node.name}/{inlining.BRANCHES[is_true]}/'
      waits = [*inlining.control_inputs(node), f'^{_ready(graph_def, node)}']
      arguments = inlining.data_inputs(node)[1:]
      added, outputs[node.name] = inlining.inlined(node.name, arguments, waits, body, prefix)
      graph_def.node.extend(added)
      if marks_choices and number == 0:
        outputs[node.name] = _marked(graph_def, node.name, outputs[node.name], body.outputs)
      if passes_on and body.outputs:
        inlining.pass_on(node, outputs[node.name], [tensor.dtype for tensor in body.outputs])
      else:
        _empty(node, [one.name for one in added])
    inlining.redirect(graph_def, outputs)


def _ready(graph_def: Any, condition: Any) -> str:
  """Adds what is done once all that a condition reads is there, and returns its name.

  A branch begins after that, not only after what the condition waits for: TensorFlow lets an
  operation wait for nothing that its inputs have waited for.
  """
  read = dict.fromkeys(op_name_of(name) for name in inlining.data_inputs(condition))
  node = graph_def.node.add(name=f'{condition.name}/tf2verify_ready', op='NoOp')
  node.input.extend(f'^{name}' for name in read)
  return str(node.name)


def _pass_decision(graph_def: Any, condition: Any, name: str) -> None:
  node = graph_def.node.add(name=name, op='Identity')
  node.input.append(condition.input[0])
  node.attr['T'].type = condition.attr['Tcond'].type


def _marked(
  graph_def: Any, condition: str, outputs: Sequence[str], tensors: Sequence[Any]
) -> list[str]:
  """Adds an operation of a name that no branch has after each number that a condition yields."""
  found = []
  for number, (output, tensor) in enumerate(zip(outputs, tensors, strict=True)):
    if not tensor.dtype.is_floating or tensor.shape.rank != 0:
      found.append(output)
      continue
    node = graph_def.node.add(name=inlining.choice_name(condition, number), op=inlining.KEPT_CHOICE)
    node.input.append(output)
    node.attr['T'].type = tensor.dtype.as_datatype_enum
    found.append(f'{node.name}:0')
  return found


def _empty(node: Any, waits_for: Sequence[str]) -> None:
  """Leaves of a condition the name, to wait for."""
  inlining.become(node, 'NoOp')
  node.input.extend(f'^{name}' for name in waits_for)
