"""Numbers of a graph that are made constants, since the other side has constants for them."""

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from tf2verify.reference.graph_ops import op_name_of
from tf2verify.sides.graphs.graph_defs.inlining import become, data_inputs
from tf2verify.tensorflow_internals import graphs

# What a step chooses is a number as well.
_NUMBERS = (tf.float16, tf.bfloat16, tf.float32, tf.float64, tf.bool)
_SAME = 1e-5  # relative


def settle(node: Any, value: np.ndarray) -> None:
  """Makes a constant of an operation, which waits for what it has waited for."""
  become(node, 'Const', dtype=tf.as_dtype(value.dtype).as_datatype_enum)
  node.attr['value'].tensor.CopyFrom(tf.make_tensor_proto(value))


def settle_reads(graph_def: Any, values: Mapping[str, np.ndarray]) -> None:
  """Makes constants of the reads of variables.

  Args:
    graph_def: the graph, which is changed.
    values: of the variables, by the names of the handles' operations.
  """
  for node in graph_def.node:
    if node.op == 'ReadVariableOp' and node.input[0] in values:
      settle(node, values[node.input[0]])


def numbers_of_counts(graph_def: Any, counts: Collection[str], kept: Collection[str]) -> list[str]:
  """Returns the operations that follow from counts alone and of which something else is made.

  Args:
    graph_def: the graph, which writes nothing.
    counts: names of the operations that are handles of counts.
    kept: names of operations that are not asked for, as what counts are after the step.
  """
  following = _following(graph_def, counts)
  readers: dict[str, set[str]] = {}
  for node in graph_def.node:
    for name in node.input:
      readers.setdefault(op_name_of(name), set()).add(node.name)
  return [n for n in following if n not in kept and not readers.get(n, set()) <= following.keys()]


def settle_all(graph_def: Any, numbers: Mapping[str, np.ndarray]) -> None:
  """Makes constants of operations, given what each yields; the graph is changed."""
  for node in graph_def.node:
    if node.name in numbers:
      settle(node, numbers[node.name])


def is_number(value: np.ndarray) -> bool:
  """Returns whether an array is one number, or one truth, other than a count."""
  return not value.ndim and tf.as_dtype(value.dtype) in _NUMBERS


def without_partner(
  tf1: Mapping[str, np.ndarray], tf2: Mapping[str, np.ndarray]
) -> dict[str, np.ndarray]:
  """Returns numbers of tf1 for which the port has a constant, as Python has read its count.

  Args:
    tf1: what follows from counts of steps, by the names of operations.
    tf2: the same of the port.

  Returns:
    Those that nothing of the port yields; none where the port has such ones as well, since then
    both may be one, with a mistake.
  """
  left = list(tf2.values())
  found = {}
  for name, value in tf1.items():
    partner = next((n for n, own in enumerate(left) if np.isclose(own, value, rtol=_SAME)), None)
    if partner is None:
      found[name] = value
    else:
      del left[partner]
  return {} if left else found


def _following(graph_def: Any, counts: Collection[str]) -> dict[str, Any]:
  """Returns the operations that follow from counts alone, by their names."""
  from_counts: dict[str, bool] = {}  # False: from constants alone
  size = -1
  while size < len(from_counts):  # not all graphs have an operation after those that it reads
    size = len(from_counts)
    for node in graph_def.node:
      read = list(map(op_name_of, data_inputs(node)))
      if node.op == 'ReadVariableOp' and read[0] in counts:
        from_counts[node.name] = True
      elif node.op == 'Const':
        from_counts[node.name] = False
      elif read and all(name in from_counts for name in read) and _is_function(node):
        from_counts[node.name] = any(from_counts[name] for name in read)
  return {node.name: node for node in graph_def.node if from_counts.get(node.name)}


def _is_function(node: Any) -> bool:
  """Returns whether an operation yields the same of the same inputs."""
  definition = graphs.op_definition(node.op)
  return definition is not None and not definition.is_stateful
