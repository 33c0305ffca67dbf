"""A map of variables that was derived, and how sure it is."""

import dataclasses

from tf2verify.relation.layouts.interchangeable import Exchange
from tf2verify.relation.variable_map import VariableMap


@dataclasses.dataclass(frozen=True)
class DerivedMap:
  """A map, and how sure it is.

  Attributes:
    variable_map: each entry has its reason.
    outputs_agree: whether the outputs of both sides are the same numbers through the map.
    agreeing: at how many places of variables both sides compute the same numbers.
    places: at how many places that was looked at.
    doubts: what is not decided, and what speaks against the map, one sentence each.
    declared: how many pairs `variable_names` gives.
    ambiguous: tf1 names of variables whose partner, or layout, nothing decides.
    unpaired: how many variables of tf1 have no partner.
    exchanged: pairs by name that the port uses crosswise; with these exchanged the outputs agree.
    interchangeable: exchanges of two variables that change no output.
    confirmed: tf1 names of variables at whose places both sides compute the same numbers.
  """

  variable_map: VariableMap
  outputs_agree: bool
  agreeing: int
  places: int
  doubts: tuple[str, ...]
  declared: int = 0
  ambiguous: tuple[str, ...] = ()
  unpaired: int = 0
  exchanged: tuple[tuple[str, str], ...] = ()
  interchangeable: tuple[Exchange, ...] = ()
  confirmed: frozenset[str] = frozenset()

  @property
  def rank(self) -> tuple[bool, int]:
    """How far it fits; the greater the better."""
    return self.outputs_agree, self.agreeing

  @property
  def is_certain(self) -> bool:
    """Whether there is nothing that another look at the graphs might tell."""
    return self.outputs_agree or not (self.ambiguous or self.unpaired)

  @property
  def certainty(self) -> tuple[bool, int, int]:
    """How little it leaves open; the greater the better."""
    return self.outputs_agree, -self.unpaired, -len(self.ambiguous)

  def summary(self) -> str:
    """Returns in one sentence how sure the map is."""
    entries = len(self.variable_map.entries)
    agree = 'agree' if self.outputs_agree else 'do not agree'
    declared = f', {self.declared:,} of them declared by variable_names' if self.declared else ''
    return (
      f'{entries:,} entries derived from what the variables do{declared}; at {self.agreeing:,} of '
      f'{self.places:,} places both sides compute the same numbers; the outputs {agree} through it'
    )
