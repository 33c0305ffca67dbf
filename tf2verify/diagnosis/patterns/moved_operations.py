"""Operations that both sides have, at different places."""

from collections.abc import Collection, Sequence

from tf2verify.records.op_graph import INPUT, VARIABLE, OpGraph
from tf2verify.relation.op_pairs import Pairing


def place_elsewhere(pairing: Pairing, of_port: bool, positions: Sequence[int]) -> str:
  """Returns where one side has operations that the other one seems to lack; '' for nowhere.

  The operands tell that are made of variables alone, as the scale and the offset of a normalization
  are: where the other side computes as much with each of them, the operations are only moved.

  Args:
    pairing: of both sides' operations.
    of_port: whether the port has the operations here; else TF1.
    positions: of the operations.
  """
  graph, other = (pairing.tf2, pairing.tf1) if of_port else (pairing.tf1, pairing.tf2)
  partner_of = pairing.tf1_of if of_port else pairing.tf2_of
  back = pairing.tf2_of if of_port else pairing.tf1_of
  readers, its_readers = graph.consumers(), other.consumers()
  places: list[int] = []
  for position in positions:
    op_type = graph.ops[position].op_type
    found = None
    for operand in _of_variables(graph, position, positions):
      partner = partner_of[operand]
      if partner is None:
        continue
      mine = [n for n, _ in readers[operand] if graph.ops[n].op_type == op_type]
      its = [n for n, _ in its_readers[partner] if other.ops[n].op_type == op_type]
      free = [n for n in its if back[n] not in mine or back[n] == position]
      if free and len(mine) <= len(its):
        found = free[0]
    if found is None:
      return ''
    places.append(found)
  if not places:
    return ''
  op = other.ops[places[0]]
  return op.name if op.source is None else f'{op.name} ({op.source.short})'


def _of_variables(graph: OpGraph, position: int, chain: Collection[int]) -> list[int]:
  """Returns the operands of an operation that are computed from variables and no input."""
  found = []
  for operand, _ in graph.ops[position].inputs:
    if operand in chain:
      continue
    types = {graph.ops[n].op_type for n in graph.ancestors([operand])}
    if VARIABLE in types and INPUT not in types:
      found.append(operand)
  return found
