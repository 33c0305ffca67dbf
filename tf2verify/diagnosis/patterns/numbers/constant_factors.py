"""Constants that one side computes from others, and the other side may hold as they are."""

from tf2verify.records.diagnosis import GraphAspect, GraphDifference
from tf2verify.records.op_graph import OpRecord


def other_constant(op: OpRecord, tf1: str, tf2: str) -> GraphDifference:
  """Returns that an operation reads another constant.

  Args:
    op: the operation of tf1 that reads it.
    tf1: what tf1 makes it with; '' where it holds it as it is.
    tf2: the same of the port.
  """
  one, other = (f'{path} of a constant' if path else 'another constant' for path in (tf1, tf2))
  return GraphDifference(GraphAspect.CONSTANT, op.name, op.op_type, 'an input', one, other)
