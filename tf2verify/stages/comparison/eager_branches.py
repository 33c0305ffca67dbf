"""Variables that only a branch reads which eager mode does not take.

A graph reads what any branch of a condition reads, and the gradient is zero for what the branch
that is taken does not read. Eager mode runs that branch alone: there is no gradient at all.
"""

import contextlib
import functools
import operator
from collections.abc import Callable, Iterable, Mapping

import numpy as np

from tf2verify.errors import Tf2VerifyError
from tf2verify.records.difference import Aspect
from tf2verify.sides.graphs.run import GraphRun
from tf2verify.stages.comparison.comparing import Comparison

_GRADIENT = 'gradient'


def leave_out(
  comparison: Comparison,
  reference: Mapping[str, np.ndarray | None],
  inspect_port: Callable[[], GraphRun],
) -> None:
  """Takes back that the port has no gradient, where it has one of zeros in a graph, as tf1.

  Args:
    comparison: what has been found.
    reference: the gradients of tf1 by its names.
    inspect_port: runs the port's gradients as a graph, by tf1 names.
  """
  found = {}
  for difference in comparison.differences:
    if difference.quantity == _GRADIENT and difference.aspect is Aspect.PRESENCE:
      value = reference.get(difference.tf1_subject)
      if value is not None and not np.any(value):
        found[difference.tf1_subject] = difference
  for name in zero_in_a_graph(inspect_port, found):
    comparison.withdraw(functools.partial(operator.is_, found[name]))
    comparison.note(
      f'only a branch that is not taken reads {name}: the port has no gradient of it in eager '
      'mode, and zeros in a graph (tf.function), as tf1 has; momentum and weight decay move a '
      'variable whose gradient is zero, and not one that has none'
    )


def zero_in_a_graph(inspect_port: Callable[[], GraphRun], names: Iterable[str]) -> set[str]:
  """Returns the variables, by tf1 name, whose gradient the port's graph has, and that is zero.

  Args:
    inspect_port: runs the port's gradients as a graph, by tf1 names.
    names: those in question; the graph is made only if there are any.
  """
  targets = {f'{_GRADIENT} {name}': name for name in names}
  if not targets:
    return set()
  try:
    run = inspect_port()
  except Tf2VerifyError:
    return set()
  with contextlib.closing(run):
    graph = run.op_graph
    known = {n: graph.ops[p].inputs for n, p in graph.targets().items() if n in targets}
    return {targets[name] for name, keys in known.items() if keys and _all_zero(run, keys)}


def _all_zero(run: GraphRun, keys: Iterable[tuple[int, int]]) -> bool:
  values = run.fetch([run.op_graph.tensor(key) for key in keys])
  return not any(np.any(value) for value in values)
