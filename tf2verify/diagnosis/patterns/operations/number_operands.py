"""Operations that read a number on one side, and what is computed or given on the other."""

from collections.abc import Callable, Sequence

from tf2verify.diagnosis.divergence.tensors.regions import RegionPair
from tf2verify.diagnosis.patterns.numbers.known_values import known_value
from tf2verify.diagnosis.patterns.operations.reads import tensor_text
from tf2verify.records.diagnosis import GraphAspect, GraphDifference
from tf2verify.records.op_graph import CONSTANT, OpGraph, TensorKey
from tf2verify.relation.operations.op_pairs import family


def number_operand(
  graphs: tuple[OpGraph, OpGraph],
  pair: tuple[int, int],
  expected: Sequence[TensorKey | None],
  name: str,
) -> list[GraphDifference]:
  """Returns that one of the inputs is a number on one side alone, if the others are the same.

  Args:
    graphs: of tf1 and of the port.
    pair: the positions of the operation, which has as many inputs on both sides.
    expected: for each input of tf1, what the port has in its place; None for numbers.
    name: of the operation, for reports.
  """
  ops = [graph.ops[position] for graph, position in zip(graphs, pair, strict=True)]
  found = []
  for slot, (key, own, wanted) in enumerate(
    zip(ops[0].inputs, ops[1].inputs, expected, strict=True)
  ):
    numbers = [_number(graph, one) for graph, one in zip(graphs, (key, own), strict=True)]
    if numbers[0] == numbers[1]:
      if not numbers[0] and wanted != own:
        return []  # that is something else
      continue
    if all(numbers):
      return []  # what another constant is, is said elsewhere
    one, two = (
      (number or tensor_text(graph, read), CONSTANT if number else graph.ops[read[0]].op_type)
      for number, graph, read in zip(numbers, graphs, (key, own), strict=True)
    )
    what, aspect = ops[0].input_name(slot), GraphAspect.WIRING
    found.append(
      GraphDifference(aspect, name, ops[0].op_type, what, one[0], two[0], one[1], two[1])
    )
  return found if len(found) == 1 else []


def number_in_place_of_shapes(
  graphs: tuple[OpGraph, OpGraph],
  pair: RegionPair,
  partner: Callable[[TensorKey], TensorKey | None],
) -> list[GraphDifference]:
  """Returns the same of the end of regions in which one side only brings a tensor into a shape.

  A number has no shape to be brought into.

  Args:
    graphs: of tf1 and of the port.
    pair: the regions.
    partner: returns what the port has in the place of a tensor of tf1; None for nothing.
  """
  ends = pair.tf1.end, pair.tf2.end
  op, other = (graph.ops[end] for graph, end in zip(graphs, ends, strict=True))
  if family(op.op_type) != family(other.op_type) or len(op.inputs) != len(other.inputs):
    return []
  entering = dict(pair.entering)
  expected = [entering.get(key) or partner(key) for key in op.inputs]
  return number_operand(graphs, ends, expected, op.name)


def _number(graph: OpGraph, key: TensorKey) -> str:
  """Returns a number as text; '' for what is none."""
  value = known_value(graph, key[0])
  if value is None or value.size != 1 or value.dtype.kind not in 'fiu':
    return ''
  return f'{float(value.reshape(())):.7g}'
