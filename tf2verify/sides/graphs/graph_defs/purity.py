"""Which operations are functions of their inputs and of what their records say."""

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from tf2verify.reference.random_ops import is_random_op
from tf2verify.tensorflow_internals import graphs

# Of control flow v1: what they yield depends on more than their inputs, or is read in a circle.
_CONTROL_FLOW = (
  *('Switch', 'RefSwitch', 'Merge', 'RefMerge', 'Enter', 'RefEnter', 'Exit', 'RefExit'),
  *('NextIteration', 'RefNextIteration', 'LoopCond'),
)
# Of these, the functions are part of the record.
_CALLS = ('While', 'StatelessWhile', 'If', 'StatelessIf')
_CALLED = ('body', 'cond', 'then_branch', 'else_branch')
# Stateful in TensorFlow's books, but in a function that is called they change nothing.
_READS = ('ReadVariableOp', 'ResourceGather', 'Assert', 'VarHandleOp')


def is_pure(op: tf.Operation, node: Any, library: Mapping[str, Any]) -> bool:
  """Returns whether equal inputs, attributes and functions make equal outputs, and nothing else.

  Args:
    op: an operation.
    node: its NodeDef.
    library: the FunctionDefs of its graph, by name.
  """
  if op.type in _CALLS:
    return calls_pure_functions(node, library)
  if op.type in _CONTROL_FLOW or op.op_def is None or op.op_def.is_stateful:
    return False
  return not any(map(_is_not_recorded, node.attr.values()))


def _is_not_recorded(value: Any) -> bool:
  """Returns whether a record does not hold the value of an attribute."""
  kind = value.WhichOneof('value')
  held = value.list
  return kind == 'func' or (kind == 'list' and bool(held.func or held.shape or held.tensor))


def calls_pure_functions(
  node: Any, library: Mapping[str, Any], above: frozenset[str] = frozenset()
) -> bool:
  """Returns whether the functions that a loop or a condition calls do nothing but compute.

  Args:
    node: of the loop or the condition.
    library: the FunctionDefs, by name.
    above: names of the functions that the node is in.
  """
  for attribute in _CALLED:
    if attribute not in node.attr:
      continue
    name = node.attr[attribute].func.name
    if name not in library or name in above:
      return False
    for inner in library[name].node_def:
      if inner.op in _CALLS:
        if not calls_pure_functions(inner, library, above | {name}):
          return False
      elif not _is_harmless(inner):
        return False
  return True


def _is_harmless(node: Any) -> bool:
  if node.op in _READS or is_random_op(node.op):
    return True
  definition = graphs.op_definition(node.op)
  if definition is None or definition.is_stateful or node.op in _CONTROL_FLOW:
    return False
  return not any(map(_is_not_recorded, node.attr.values()))
