"""Which variables of the two sides belong together, and how their values lie."""

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from tf2verify.errors import CaseDefinitionError
from tf2verify.records.observation import VariableRecord
from tf2verify.relation.alignment import Alignment, align
from tf2verify.relation.forced_renaming import ForcedRenaming, forced_renaming
from tf2verify.relation.layouts import VariableLayout, layout_of
from tf2verify.relation.left_out import declared_reasons
from tf2verify.sides.side import Declaration, Inventory
from tf2verify.sides.tf1.reference import ReferenceGraph
from tf2verify.sides.tf2.layer import Tf2Layer


@dataclasses.dataclass(frozen=True)
class Pairing:
  """The variables of both sides, laid side by side."""

  alignment: Alignment  # by name
  layouts: tuple[VariableLayout, ...]  # of those pairs whose sides have other shapes
  tf1_only: Mapping[str, str]  # from the tf1 variables that the case leaves to tf1, to its reasons
  tf2_only: Mapping[str, str]  # likewise of the port
  # The renaming that the case does not declare; None where names are the same on both sides, or
  # declared.
  inferred: ForcedRenaming | None


def paired(
  declaration: Declaration, tf1: ReferenceGraph, tf2: Tf2Layer, variable_names: Any, labels: Any
) -> Pairing:
  """Pairs the variables of two sides.

  By the names that the case gives. Where it gives none, and nothing in the port is made by
  `get_variable`, whose names are those of tf1, also by a renaming, if there is one alone.

  Args:
    declaration: the case.
    tf1: the reference.
    tf2: the port.
    variable_names: the case's mapping; None where it has none.
    labels: the checked nest of arrays; None without.

  Raises:
    CaseDefinitionError: what the case declares of its variables does not fit them.
  """
  ones, others = tf1.inventory(), tf2.inventory()
  names = _names(ones), _names(others)
  alignment = align(*names, variable_names)
  only = _declared_only(declaration, alignment, *names)
  inferred = None
  unpaired = alignment.only_tf1 or alignment.only_tf2
  if variable_names is None and unpaired and not tf2.made_by_get_variable():
    inferred = _inferred(tf1, tf2, labels, only)
  if inferred is not None and all(one == other for one, other in inferred.renames):
    inferred = None
  if inferred is not None:
    try:
      alignment = align(*names, dict(inferred.renames))
      only = _declared_only(declaration, alignment, *names)
    except CaseDefinitionError:  # a variable that is left out has a name that is wanted
      inferred = None
  return Pairing(alignment, _layouts(alignment, ones, others), *only, inferred)


def _names(inventory: Inventory) -> list[str]:
  return [variable.name for variable in inventory.variables]


def _declared_only(
  declaration: Declaration, alignment: Alignment, tf1: Sequence[str], tf2: Sequence[str]
) -> tuple[dict[str, str], dict[str, str]]:
  return (
    declared_reasons('tf1_only_variables', declaration.tf1_only_variables, alignment.only_tf1, tf1),
    declared_reasons('tf2_only_variables', declaration.tf2_only_variables, alignment.only_tf2, tf2),
  )


def _inferred(
  tf1: ReferenceGraph, tf2: Tf2Layer, labels: Any, only: tuple[Collection[str], Collection[str]]
) -> ForcedRenaming | None:
  """Returns the renaming of all variables, or of all that have an effect."""
  ones = [
    variable
    for variable in tf1.inventory().variables
    if 'global_step' not in variable.collections and variable.name not in only[0]
  ]
  others = [variable for variable in tf2.inventory().variables if variable.name not in only[1]]
  found = forced_renaming(ones, others)
  if found is not None or len(ones) == len(others):
    return found
  if len(ones) > len(others):
    counting = tf1.effects_of([variable.name for variable in ones])
    return forced_renaming([variable for variable in ones if variable.name in counting], others)
  known = tf2.effects_of([variable.name for variable in others], labels) or {}
  return forced_renaming(ones, [variable for variable in others if variable.name in known])


def _layouts(alignment: Alignment, tf1: Inventory, tf2: Inventory) -> tuple[VariableLayout, ...]:
  ones, others = _by_name(tf1), _by_name(tf2)
  found = (layout_of(ones[one], others[other]) for one, other in alignment.pairs)
  return tuple(layout for layout in found if layout is not None)


def _by_name(inventory: Inventory) -> dict[str, VariableRecord]:
  return {variable.name: variable for variable in inventory.variables}
