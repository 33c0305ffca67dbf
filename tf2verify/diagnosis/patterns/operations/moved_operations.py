"""Operations that both sides have, at different places."""

import functools
from collections.abc import Sequence

from tf2verify.diagnosis.divergence.tensors.gradient_sides import GradientSides
from tf2verify.diagnosis.patterns.operations.op_text import SHAPING
from tf2verify.records.op_graph import INPUT, TARGET, VARIABLE, OpGraph
from tf2verify.relation.layouts.variable_layouts import is_in_own_layout
from tf2verify.relation.operations.op_pairs import Pairing, family, is_backward

# The variables that something is computed from, by their places in tf1; None with an input.
_Made = frozenset[int] | None


class PlacesElsewhere:
  """Where one side has operations that the other one seems to lack.

  The operands tell that are made of variables alone, as the scale and the offset of a normalization
  are: where the other side computes as often with those of the same variables, the operations are
  only moved.
  """

  def __init__(self, pairing: Pairing) -> None:
    self._pairing = pairing

  @functools.cached_property
  def _gradients(self) -> GradientSides:
    return GradientSides(self._pairing)

  @functools.cached_property
  def _made(self) -> tuple[list[_Made], list[_Made]]:
    graph, tf1_of = self._pairing.tf2, self._pairing.tf1_of
    # One without a partner is none of tf1.
    own = [-1 - n if partner is None else partner for n, partner in enumerate(tf1_of)]
    return _made_of(self._pairing.tf1, range(len(self._pairing.tf1.ops))), _made_of(graph, own)

  def is_of_update(self, tf1: int) -> bool:
    """Returns whether an operation of tf1 is one of what is made of gradients."""
    return self._gradients.is_after(tf1)

  def said(self, ones: Sequence[int], others: Sequence[int], end: int) -> tuple[str, str, bool]:
    """Returns `elsewhere`, `alike` and `respelled` of a difference.

    Args:
      ones: operations of tf1 without counterparts at a place.
      others: those of the port.
      end: where the port's place ends.
    """
    if ones and others:
      return '', '', False
    partner = self._pairing.tf1_of[end]
    # What a port makes of gradients for something else, as averages, is none of an update.
    is_update = partner is not None and self.is_of_update(partner)
    alike = '' if others or is_update else self._alike(ones, end)
    found = ones or others
    return self.of(bool(others), found), alike, self.are_respelled(bool(others), found)

  def of(self, of_port: bool, positions: Sequence[int]) -> str:
    """Returns the first of the operations at the other place; '' where there is none.

    Args:
      of_port: whether the port has the operations here; else TF1.
      positions: of the operations.
    """
    other = self._pairing.tf1 if of_port else self._pairing.tf2
    places = [self._place(of_port, position) for position in positions]
    if not places or None in places:
      return ''
    op = other.ops[places[0] or 0]
    return op.name if op.source is None else f'{op.name} ({op.source.short})'

  def _alike(self, ones: Sequence[int], end: int) -> str:
    """Returns an operation of a type of tf1's ones that the port has behind its place.

    It has no counterpart, and nor has what lies between: it may be one of them in another form.
    """
    other, partner_of = self._pairing.tf2, self._pairing.tf1_of
    wanted = {family(self._pairing.tf1.ops[n].op_type) for n in ones} - SHAPING
    readers = other.consumers()
    pending, seen = [end], {end}
    while pending:
      for reader, _ in readers[pending.pop(0)]:
        op = other.ops[reader]
        if reader in seen or partner_of[reader] is not None or op.op_type == TARGET:
          continue
        if is_backward(op):  # formed of the forward pass, which has the mistake
          continue
        if family(op.op_type) in wanted:
          return f'{op.op_type} at {op.source.short}' if op.source is not None else op.shown_name
        seen.add(reader)
        pending.append(reader)
    return ''

  def are_respelled(self, of_port: bool, positions: Sequence[int]) -> bool:
    """Returns whether some operations read variables that the sides hold in different layouts."""
    graph = self._pairing.tf2 if of_port else self._pairing.tf1
    read = [n for position in positions for n, _ in graph.ops[position].inputs]
    variables = [n for n in read if graph.ops[n].op_type == VARIABLE]
    if of_port:
      return any(is_in_own_layout(graph.ops[n].name) for n in variables)
    others = (op.name for op in self._pairing.tf2.ops if op.op_type == VARIABLE)
    has_own = any(map(is_in_own_layout, others))
    return has_own and any(self._pairing.tf2_of[n] is None for n in variables)

  def _place(self, of_port: bool, position: int) -> int | None:
    tf1, tf2 = self._pairing.tf1, self._pairing.tf2
    graph, other = (tf2, tf1) if of_port else (tf1, tf2)
    made, its_made = reversed(self._made) if of_port else self._made
    partner_of = self._pairing.tf2_of if of_port else self._pairing.tf1_of
    op = graph.ops[position]
    for operand, _ in op.inputs:
      wanted = made[operand]
      if not wanted:
        continue
      mine = _readers(graph, op.op_type, wanted, made)
      its = _readers(other, op.op_type, wanted, its_made)
      free = [n for n in its if partner_of[n] not in mine]
      if free and len(mine) <= len(its):
        return free[0]
    return None


def _readers(
  graph: OpGraph, op_type: str, wanted: frozenset[int], made: Sequence[_Made]
) -> list[int]:
  """Returns the operations of a type that have an operand made of some variables."""
  return [
    n
    for n, op in enumerate(graph.ops)
    if op.op_type == op_type and any(made[producer] == wanted for producer, _ in op.inputs)
  ]


def _made_of(graph: OpGraph, names: Sequence[int]) -> list[_Made]:
  """Returns of what each operation is made, variables by some names."""
  made: list[_Made] = []
  for position, op in enumerate(graph.ops):
    if op.op_type in (VARIABLE, INPUT):
      # A count of steps, or a rate, is read by everything of a schedule.
      is_parameter = op.op_type == VARIABLE and op.outputs[0][1] != ()
      made.append(frozenset((names[position],)) if is_parameter else None)
      continue
    read = [made[producer] if producer < position else None for producer, _ in op.inputs]
    known = [one for one in read if one is not None]
    made.append(frozenset[int]().union(*known) if len(known) == len(read) else None)
  return made
