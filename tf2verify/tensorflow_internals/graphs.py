"""Graphs of functions, definitions of operations, and the stack that maps what AutoGraph wrote.

The public `tf.Graph` tells neither a function's graph from a loop's body nor an operation's
definition; `tf.function` gives no graph without its own handling of variables. Run with
TensorFlow 2.16 to 2.21.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from tensorflow.core.framework import attr_value_pb2, graph_pb2
from tensorflow.python.framework import (
  auto_control_deps,
  func_graph,
  function_def_to_graph,
  importer,
  kernels,
  op_def_registry,
  ops,
)
from tensorflow.python.ops import control_flow_v2_func_graphs
from tensorflow.python.util import tf_stack

# The graph of a function; `outer_graph` is the one around it.
FuncGraph: Any = func_graph.FuncGraph
# The graph of a loop's body.
WhileBodyFuncGraph: Any = control_flow_v2_func_graphs.WhileBodyFuncGraph
# Lets operations that read and write variables wait for each other, as eagerly.
AutomaticControlDependencies: Any = auto_control_deps.AutomaticControlDependencies
# Where `disable_eager_execution` and `reset_default_graph` are at home: `tf.compat.v1` has copies.
HOME_OF_SWITCHES: Any = ops


def graph_of(function_def: Any, library: Mapping[str, Any]) -> Any:
  """Returns the graph of a function of a GraphDef's library.

  Args:
    function_def: the function.
    library: all functions, by name.
  """
  called = _called_as_operations(function_def, library)
  if not called:
    return function_def_to_graph.function_def_to_graph(function_def)
  # TensorFlow looks for these in the graph around it, as `Defun` puts them there.
  around = graph_pb2.GraphDef()
  around.library.function.extend(library[name] for name in called)
  with ops.Graph().as_default():
    importer.import_graph_def(around, name='')
    return function_def_to_graph.function_def_to_graph(function_def)


def _called_as_operations(function_def: Any, library: Mapping[str, Any]) -> list[str]:
  """Returns the functions whose names stand in place of an operation's type, at any depth."""
  found: dict[str, None] = {}
  pending = [function_def]
  while pending:
    for node in pending.pop().node_def:
      if node.op in library and node.op not in found:
        found[node.op] = None
        pending.append(library[node.op])
  return list(found)


def branch_of(condition: Any, is_true: bool) -> Any:
  """Returns the graph of a branch as `tf.cond` has built it; None where that is not known."""
  return getattr(condition, '_true_graph' if is_true else '_false_graph', None)


def loop_body_of(loop: Any) -> Any:
  """Returns the graph of a loop's body as `tf.while_loop` has built it; None if it is not known."""
  return getattr(loop, '_body_graph', None)


def is_in_loop(graph: Any) -> bool:
  """Returns whether what is added to a graph now stands in the body of a loop."""
  while graph is not None:
    if isinstance(graph, WhileBodyFuncGraph):
      return True
    context = graph._get_control_flow_context()
    while context is not None:  # control flow of TensorFlow 1
      if context.IsWhileContext():
        return True
      context = context.outer_context
    graph = getattr(graph, 'outer_graph', None)
  return False


def op_definition(op_type: str) -> Any:
  """Returns the OpDef of a type of operation; None where this TensorFlow has none."""
  return op_def_registry.get(op_type)


def set_attribute(op: Any, name: str, value: float) -> None:
  """Gives an operation of a graph that no session has run yet another number as attribute."""
  op._set_attr(name, attr_value_pb2.AttrValue(f=value))


def set_input(op: Any, index: int, tensor: Any) -> None:
  """Gives an operation of a graph that no session has run yet another input."""
  op._update_input(index, tensor)


def kernel_devices(op_type: str) -> frozenset[str]:
  """Returns the types of devices that have a kernel for an operation: `CPU`, `XLA_CPU_JIT`."""
  registered = kernels.get_registered_kernels_for_op(op_type).kernel
  return frozenset(kernel.device_type for kernel in registered)


def stack() -> list[Any]:
  """Returns the frames of Python's stack, outermost first, by the lines of the user's code."""
  return list(tf_stack.extract_stack())


def stack_of(op: Any) -> Sequence[Any]:
  """Returns the frames that made an operation, outermost first; none where they cannot be had.

  TensorFlow refuses the stack whole if the name of one file is not UTF-8, as with LC_ALL=C and
  PYTHONUTF8=0.
  """
  try:
    return op.traceback or ()
  except RuntimeError:
    return ()
