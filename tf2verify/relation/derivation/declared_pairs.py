"""Pairs of variables that a case declares, in place of what was derived for them."""

import dataclasses
from collections.abc import Collection, Mapping

from tf2verify.relation.derivation.result import Choice, Derivation
from tf2verify.relation.layouts.map_entry import MapEntry

_CONTRADICTED = "what the graphs pair it with is another variable's partner by variable_names"


def with_declared(
  found: Derivation,
  names: Mapping[str, str],
  tf2_names: Collection[str],
  reason: str = 'declared by variable_names',
) -> Derivation:
  """Returns a derivation in which the declared pairs are fixed, and the rest is as derived.

  Args:
    found: what the graphs tell.
    names: from tf1 to tf2 names.
    tf2_names: all of the port. A variable whose declared partner is none of them is in no entry.
    reason: why they are pairs.
  """
  choices = [_fitting(choice, names) for choice in found.choices]
  kept = [entry for choice in choices for entry in choice.alternatives[0]]
  known = {name for entry in kept for name in entry.tf1}
  declared = [
    Choice(((MapEntry((tf1,), (tf2,), reason=reason),),))
    for tf1, tf2 in names.items()
    if tf1 not in known and tf2 in tf2_names
  ]
  derived = [entry for choice in found.choices for entry in choice.alternatives[0]]
  placed = [known | set(names), {n for e in kept for n in e.tf2} | set(names.values())]
  left = [
    [(name, why) for name, why in before if name not in names_placed]
    + [
      (name, _CONTRADICTED)
      for entry in derived
      for name in (entry.tf1, entry.tf2)[side]
      if name not in names_placed
    ]
    for side, (before, names_placed) in enumerate(
      zip((found.tf1_left, found.tf2_left), placed, strict=True)
    )
  ]
  return dataclasses.replace(
    found,
    choices=(*(choice for choice in choices if any(choice.alternatives)), *declared),
    tf1_left=tuple(left[0]),
    tf2_left=tuple(left[1]),
    crossed=tuple(
      pair for pair in found.crossed if pair[0] not in names and pair[1] not in names.values()
    ),
    exchangeable=tuple(name for name in found.exchangeable if name not in names),
  )


def _fitting(choice: Choice, names: Mapping[str, str]) -> Choice:
  """Returns the alternatives that no declared pair contradicts; of the first what is left."""
  fitting = tuple(
    entries for entries in choice.alternatives if all(_fits(entry, names) for entry in entries)
  )
  if fitting:
    return dataclasses.replace(choice, alternatives=fitting)
  return Choice((tuple(entry for entry in choice.alternatives[0] if _fits(entry, names)),))


def _fits(entry: MapEntry, names: Mapping[str, str]) -> bool:
  """Returns whether an entry holds both variables of each declared pair, or neither."""
  return all((tf1 in entry.tf1) == (tf2 in entry.tf2) for tf1, tf2 in names.items())
