"""Runs of a traced port with edits of its graph."""

from collections.abc import Mapping, Sequence

import numpy as np
import tensorflow as tf

from tf2verify.records.op_graph import TARGET
from tf2verify.sides.graphs import repairs as editing
from tf2verify.sides.graphs.repairs import CannotRepair, Repair
from tf2verify.sides.graphs.run import GraphRun
from tf2verify.sides.tf2.tracing import TracedPort

_REFUSALS = (tf.errors.OpError, ValueError, TypeError, KeyError)


def repaired_run(
  port: TracedPort,
  repairs: Sequence[Repair],
  given: Mapping[str, np.ndarray],
  is_other_run: bool = False,
) -> GraphRun:
  """Returns a run of the port with edits.

  Args:
    port: the port, traced; it stays as it is.
    repairs: the edits, in their order.
    given: by the port's tensors, values that it gets in place of what it computes.
    is_other_run: whether the edits were made for another run of the port, see `repairs.apply`.

  Raises:
    CannotRepair: TensorFlow refuses the graph.
  """
  try:
    run = port.run(lambda graph_def, _: editing.apply(repairs, graph_def, is_other_run))
  except _REFUSALS as error:
    raise CannotRepair(f'{type(error).__name__}: {error}') from error
  known = run.nodes()
  run.give({one: value for one, value in given.items() if one.rpartition(':')[0] in known})
  return run


def target_values(run: GraphRun, seconds: int = 0) -> dict[str, np.ndarray]:
  """Returns what a run yields, by target.

  Args:
    run: the run.
    seconds: after which it is given up, since an edit may let a loop run for ever; 0 for never.

  Raises:
    CannotRepair: it does not run, or takes longer.
  """
  ops = [op for op in run.op_graph.ops if op.op_type == TARGET]
  try:
    values = run.fetch([op.tensors[0] for op in ops], seconds)
  except _REFUSALS as error:
    raise CannotRepair(f'{type(error).__name__}: {error}') from error
  return dict(zip([op.name for op in ops], values, strict=True))
