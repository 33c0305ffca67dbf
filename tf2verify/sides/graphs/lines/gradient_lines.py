"""The lines of gradients: whose gradient an operation computes, beside who asked for it."""

import dataclasses
from collections.abc import Callable

import tensorflow as tf

from tf2verify.records.observation import SourceLine
from tf2verify.relation.operations.gradient_names import differentiated

SourceOf = Callable[[tf.Operation], SourceLine | None]


def with_forward_lines(graph: tf.Graph, source_of: SourceOf) -> SourceOf:
  """Returns what tells the user's line of an operation, of a gradient also the one it is of.

  Args:
    graph: in which the operations of the forward pass are.
    source_of: tells the line that made an operation: that of a gradient asks for gradients.
  """

  def source(op: tf.Operation) -> SourceLine | None:
    line, forward = source_of(op), differentiated(op.name)
    if line is None or not forward:
      return line
    try:
      of = source_of(graph.get_operation_by_name(forward))
    except KeyError:  # it is in a function, or was left out
      return line
    if of is None or of.at == line.at:
      return line
    return dataclasses.replace(line, gradient_of=of.place)

  return source
