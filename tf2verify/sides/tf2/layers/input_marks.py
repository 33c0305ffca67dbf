"""Which inputs the outputs of a port are computed from."""

from typing import Any

import tensorflow as tf

from tf2verify.reference import nests
from tf2verify.sides.graphs.lines.op_recorder import inputs_behind, mark_input


class InputMarks:
  """Follows inputs through the eager operations of a port's calls."""

  def __init__(self) -> None:
    self._behind: dict[bool, frozenset[str]] = {}

  def fed(self, inputs: Any) -> Any:
    """Returns the nest of arrays as tensors, each marked with its path."""

    def feed(path: str, leaf: Any) -> tf.Tensor:
      tensor = tf.constant(leaf)
      mark_input(tensor, path)
      return tensor

    return nests.map_leaves(feed, inputs)

  def look(self, outputs: Any, training: bool) -> None:
    """Adds what outputs were computed from."""
    try:
      leaves = nests.flatten(outputs).leaves
    except nests.NotATensor:  # found where they are compared
      return
    tensors = [leaf for _, leaf in leaves if leaf is not None]
    self._behind[training] = self.behind(training).union(*map(inputs_behind, tensors))

  def behind(self, training: bool) -> frozenset[str]:
    """Returns the paths of what outputs were seen to be computed from, in a training mode."""
    return self._behind.get(training, frozenset())
