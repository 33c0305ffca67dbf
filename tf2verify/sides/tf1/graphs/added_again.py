"""Whether a train op adds regularization losses to a loss that contains them."""

from collections.abc import Iterator, Sequence
from typing import Any

import tensorflow as tf

from tf2verify.reference.graph_ops import op_name_of, ops_run_by

_SUMS = ('Add', 'AddV2', 'AddN')
_PASSED_ON = ('Identity', 'Reshape', 'Cast')


class RegularizationAddedAgain:
  """Compares the graph before a train op with that after it.

  The loss that `make_tf1_train_op` gets contains the regularization losses, unless the case says
  otherwise, and a function of the model that is given the loss of the data alone adds them.
  """

  def __init__(self, graph: tf.Graph, total: tf.Tensor, regularization: Sequence[str]) -> None:
    """Looks at the graph as it is before.

    Args:
      graph: of model and losses.
      total: what the train op is to minimize.
      regularization: names of the regularization losses.
    """
    self._graph = graph
    self._total = total
    self._before = len(graph.get_operations())
    behind = ops_run_by([total.op]) if regularization else {}
    self._losses = {name for name in regularization if op_name_of(name) in behind}

  def op(self) -> tf.Operation | None:
    """Returns the first operation of the train op that adds them to the loss; None without one."""
    if not self._losses:
      return None
    made = self._graph.get_operations()[self._before :]
    names = {op.name for op in made}
    for op in made:
      if op.type not in _SUMS:
        continue
      terms = list(_terms(op, names))
      if any(term is self._total for term in terms) and self._losses & {t.name for t in terms}:
        return op
    return None


def _terms(op: tf.Operation, made: set[str]) -> Iterator[Any]:
  """Yields what a sum adds up, through sums that were made with it."""
  pending = list(op.inputs)
  while pending:
    tensor = pending.pop()
    yield tensor
    if tensor.op.name in made and tensor.op.type in (*_SUMS, *_PASSED_ON):
      pending += list(tensor.op.inputs)
