"""Numbers of one expression in another order: what a loop over a list of them makes.

`for s, by in zip(weights, (-1, 0, 1))` makes an operation for each number of the list. Where tf1
has them in another order, no number and no operation is one that the port lacks.
"""

import itertools
from collections.abc import Iterator

import numpy as np

from tf2verify.diagnosis.patterns.operations.op_text import value_text
from tf2verify.diagnosis.proposals.code_lines import Line, Proposal
from tf2verify.records.op_graph import NodeChange
from tf2verify.relation.operations.op_pairs import is_backward

# More orders are seldom written by hand, and take too long.
_FEWEST, _MOST = 2, 3
_Places = dict[float, list[int]]


def number_orders(line: Line) -> Iterator[Proposal]:
  """Yields a line with the numbers of its operations of one type in all other orders.

  Args:
    line: of the port.
  """
  graph = line.graph
  found: dict[tuple[str, int], _Places] = {}
  for n, op in zip(line.positions, line.ops, strict=True):
    for slot, (producer, _) in enumerate(op.inputs):
      value = graph.ops[producer].constant
      if value is not None and value.size == 1 and value.dtype.kind in 'if' and not is_backward(op):
        found.setdefault((op.op_type, slot), {}).setdefault(value.item(), []).append(n)
  for (_, slot), places in found.items():
    counts = {len(known) for known in places.values()}
    # Each as often as the others: in every run of the line.
    if _FEWEST <= len(places) <= _MOST and len(counts) == 1:
      yield from _orders(line, slot, places)


def _orders(line: Line, slot: int, places: _Places) -> Iterator[Proposal]:
  graph, numbers = line.graph, list(places)
  first = graph.ops[places[numbers[0]][0]]
  for order in itertools.permutations(numbers):
    if list(order) == numbers:
      continue
    changes = tuple(
      NodeChange(graph.ops[n].name, inputs=((slot, _like(line, n, slot, other)),))
      for number, other in zip(numbers, order, strict=True)
      for n in places[number]
      if number != other
    )
    one, two = (', '.join(map(value_text, known)) for known in (order, numbers))
    text = (
      f'{first.input_name(slot)} of {first.op_type} of this line is {two} in turn in the port; in '
      f'the order {one} it yields what tf1 does'
    )
    yield Proposal(changes, one, two, text, what=first.input_name(slot))


def _like(line: Line, position: int, slot: int, number: float) -> np.ndarray:
  constant = line.graph.ops[line.graph.ops[position].inputs[slot][0]].constant
  assert constant is not None, 'it has been read'
  return np.full(constant.shape, number, constant.dtype)
