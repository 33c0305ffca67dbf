"""Variables that a graph reads in a loop, and none of its outputs depends on.

The loop of one side has a gradient of zeros for such a variable, a loop in Python has none. Zeros
alone do not show it: a `relu` may be dead for the inputs of the case. What each output of the loop
is computed from does.
"""

import contextlib
import functools
import operator
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from tf2verify.errors import Tf2VerifyError
from tf2verify.records.difference import Aspect, Difference
from tf2verify.records.observation import TensorRecord
from tf2verify.relation.operations.variables_read import variables_read
from tf2verify.sides.graphs.run import GraphRun
from tf2verify.stages.comparison.comparing import Comparison

_GRADIENT = 'gradient'


def leave_out(
  comparison: Comparison,
  gradients: tuple[Sequence[TensorRecord], Sequence[TensorRecord]],
  inspect: tuple[Callable[[], GraphRun], Callable[[], GraphRun]],
) -> None:
  """Takes back that one side has no gradient, where that of the other one is zero for all values.

  Args:
    comparison: what has been found.
    gradients: of tf1 by its names, and of the port by its own.
    inspect: run the forward pass of either side such that every tensor can be asked for.
  """
  found: list[tuple[Difference, int]] = []
  for difference in comparison.differences:
    if difference.quantity != _GRADIENT or difference.aspect is not Aspect.PRESENCE:
      continue
    names = difference.tf1_subject, (difference.names or (difference.subject,) * 2)[1]
    for side, (records, name) in enumerate(zip(gradients, names, strict=True)):
      value = next((record.value for record in records if record.name == name), None)
      if value is not None and not np.any(value):
        found.append((difference, side))
  for side in {side for _, side in found}:
    subjects = [d.tf1_subject for d, of in found if of == side]
    none_reads = unread(inspect[side], subjects)
    for difference, of in found:
      if of == side and difference.tf1_subject in none_reads:
        comparison.withdraw(functools.partial(operator.is_, difference))
        one, other = ('tf1', 'the port')[:: 1 - 2 * side]
        comparison.note(
          f'no output depends on {difference.subject}, which a loop reads: its gradient is zero in '
          f'{one}, and {other} has none'
        )


def unread(inspect: Callable[[], GraphRun], names: Iterable[str]) -> set[str]:
  """Returns the variables, by tf1 name, from which no result of a graph is computed."""
  try:
    run = inspect()
  except Tf2VerifyError:
    return set()
  with contextlib.closing(run):
    return set(names) - variables_read(run.op_graph)
