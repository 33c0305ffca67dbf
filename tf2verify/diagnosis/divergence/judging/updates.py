"""What two updates make of a variable, where one side assigns what the other adds to it."""

from collections.abc import Sequence

import numpy as np

from tf2verify.diagnosis.divergence.tensors.outputs import is_opaque, written, written_variable
from tf2verify.diagnosis.divergence.tensors.sources import InspectableRun
from tf2verify.records.op_graph import VARIABLE


class Updates:
  """The updates of two runs that write in different ways."""

  def __init__(self, tf1: InspectableRun, tf2: InspectableRun) -> None:
    """Takes the runs of both sides."""
    self._tf1 = tf1
    self._tf2 = tf2
    # By side: of a native port a variable may have another shape.
    self._before: tuple[dict[str, np.ndarray], dict[str, np.ndarray]] = {}, {}

  def differ(self, tf1: int, tf2: int) -> bool:
    """Returns whether one side assigns what the other one adds or subtracts."""
    op, other = self._tf1.op_graph.ops[tf1], self._tf2.op_graph.ops[tf2]
    return bool(op.attribute('op') != other.attribute('op'))

  def fetch(self, pairs: Sequence[tuple[int, int]]) -> None:
    """Fetches the values that variables have before they are written, all at once."""
    ops = self._tf1.op_graph.ops
    wanted = {written_variable(ops[tf1]) for tf1, tf2 in pairs if self.differ(tf1, tf2)}
    for run, known in zip((self._tf1, self._tf2), self._before, strict=True):
      leaves = {
        leaf.name: leaf.tensors[0]
        for leaf in run.op_graph.ops
        if leaf.op_type == VARIABLE
        and leaf.name in wanted - known.keys()
        and not is_opaque(leaf.outputs[0][0])
      }
      known.update(zip(leaves, run.fetch(list(leaves.values())), strict=True))

  def states(
    self, tf1: int, tf2: int, one: np.ndarray, other: np.ndarray
  ) -> tuple[np.ndarray, np.ndarray] | None:
    """Returns what two updates make of a variable; None where nobody reads its value before.

    Args:
      tf1: position of the update.
      tf2: that of the port's.
      one: what it writes, adds or subtracts; of the variable's shape.
      other: the same of the port's.
    """
    op, other_op = self._tf1.op_graph.ops[tf1], self._tf2.op_graph.ops[tf2]
    name = written_variable(op)
    before = [known[name] for known in self._before if name in known]
    if not before:
      return None
    return written(op, before[0], one), written(other_op, before[-1], other)
