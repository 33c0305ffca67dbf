"""What the variables of a graph start with, by the operations of their initializers."""

from collections.abc import Callable
from typing import Any

import numpy as np

from tf2verify.reference.graph_ops import ops_behind
from tf2verify.reference.random_ops import is_random_op
from tf2verify.sides import side
from tf2verify.sides.graphs.graph_defs.sessions import open_session
from tf2verify.sides.graphs.initial_draws import InitialDraw, draw_behind
from tf2verify.sides.graphs.variables.dataflow import reads_variables
from tf2verify.sides.hooks.user_code import user_code
from tf2verify.sides.tf1.graphs.build import BuiltGraph, GraphVariable
from tf2verify.sides.tf1.sessions import session_values


def draw_of(built: BuiltGraph, name: str) -> InitialDraw:
  """Returns how the initial value of a variable is drawn."""
  variable = next(known for known in built.variables if known.record.name == name)
  with user_code(side.TF1, f'the initializer of {name}'):
    return draw_behind(built.graph, variable.value, {}, _preparation(built, variable))


def drawn_value(built: BuiltGraph, variable: GraphVariable) -> np.ndarray | None:
  """Returns a value that a variable starts with; None where no random op is behind it."""
  behind = ops_behind([built.graph.get_tensor_by_name(variable.value)])
  ops = (built.graph.get_operation_by_name(name) for name in behind)
  if not any(is_random_op(op.type) for op in ops):
    return None
  prepare = _preparation(built, variable)
  with (
    user_code(side.TF1, f'the initializer of {variable.record.name}'),
    open_session(built.graph) as session,
  ):
    prepare(session)
    return np.array(session.run(variable.value))


def _preparation(built: BuiltGraph, variable: GraphVariable) -> Callable[[Any], None]:
  """Returns what makes a session ready: it may start with what another variable starts with."""
  if not reads_variables(built.graph.get_tensor_by_name(variable.value)):
    return lambda _: None
  earlier = [known.initializer for known in built.variables if known is not variable]
  wanted = [*built.table_initializers, *earlier]

  def prepare(session: Any) -> None:
    session_values.fetch(session, wanted)

  return prepare
