"""Checkpoints written and restored by a `Saver` of the reference's graph, as TF1 programs do."""

from typing import Any

import numpy as np
import tensorflow as tf

from tf2verify.sides import side
from tf2verify.sides.graphs.graph_defs.sessions import open_session
from tf2verify.sides.hooks.user_code import user_code
from tf2verify.sides.tf1.graphs.build import BuiltGraph
from tf2verify.sides.tf1.sessions import session_values

v1 = tf.compat.v1


class GraphSaver:
  """A `Saver` of all variables of a graph; it adds its operations to the graph."""

  def __init__(self, built: BuiltGraph) -> None:
    self._built = built
    with built.graph.as_default():
      self._saver: Any = v1.train.Saver(max_to_keep=None)

  def save(self, run: side.RunSpec, prefix: str) -> str:
    """Gives every variable its value and saves all of them; returns the prefix."""
    with open_session(self._built.graph) as session:
      session_values.assign(session, self._built.variables, run)
      with user_code(side.TF1, 'Saver.save'), session.graph.as_default():
        return str(self._saver.save(session, prefix, write_meta_graph=False, write_state=False))

  def restored(self, prefix: str) -> dict[str, np.ndarray]:
    """Restores a checkpoint in a fresh session, and returns the variables' values by name."""
    with open_session(self._built.graph) as session:
      with user_code(side.TF1, 'Saver.restore'), session.graph.as_default():
        self._saver.restore(session, prefix)
      records = session_values.read_variables(session, self._built.variables)
    return {record.name: np.array(record.value) for record in records}
