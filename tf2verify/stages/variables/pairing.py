"""Which variables of the two sides belong together, and how their values lie."""

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Protocol

from tf2verify.errors import CaseDefinitionError, Tf2VerifyError
from tf2verify.numerics.relayout import without_ones
from tf2verify.records.observation import VariableRecord
from tf2verify.relation.layouts.interchangeable import Exchange, exchanged
from tf2verify.relation.layouts.variable_layouts import Layouts, VariableLayout, layout_of
from tf2verify.relation.left_out import declared_reasons
from tf2verify.relation.names.alignment import Alignment, align
from tf2verify.relation.names.forced_renaming import ForcedRenaming, forced_renaming
from tf2verify.relation.variable_map import VariableMap
from tf2verify.sides.graphs.variables.effects import Effect
from tf2verify.sides.side import Declaration, Inventory
from tf2verify.sides.tf1.reference import ReferenceGraph
from tf2verify.sides.tf2.layer import Tf2Layer
from tf2verify.stages.variables import step_counter
from tf2verify.stages.variables.derived_map import derived_map
from tf2verify.stages.variables.map_found import DerivedMap
from tf2verify.stages.variables.map_trials import NotDerivable
from tf2verify.stages.variables.mapped import DERIVE, Mapped, declared_map, fitted


class CannotBePaired(Tf2VerifyError):
  """The variables of a port that is only traced cannot be paired; the message says why."""


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
  mapped: Mapped | None = None  # the variable map, where there is one
  derived: DerivedMap | None = None  # likewise, where it was derived
  by_default: bool = False  # whether it was, although the case does not ask for it
  counter: tuple[tuple[str, str], ...] = ()  # the pair of counts of steps that nobody declared

  @property
  def counter_notes(self) -> list[str]:
    """What is said of the counts of steps that were paired."""
    return [
      f'{other} of the port is paired with {one} of tf1, the global step, which its model reads'
      for one, other in self.counter
    ]

  def presentation(self) -> Layouts:
    """Returns how the port's variables are shown."""
    return Layouts(self.layouts, () if self.mapped is None else self.mapped.groups)


class PortVariables(Protocol):
  """What is asked of a port to pair its variables: of one that can be run, or only traced."""

  def inventory(self) -> Inventory: ...
  def made_by_get_variable(self) -> bool: ...
  def effects_of(self, variables: Collection[str], labels: Any, /) -> dict[str, Effect] | None: ...
  def present(self, layouts: Layouts, mapped: bool = False) -> None: ...


def paired(
  declaration: Declaration,
  tf1: ReferenceGraph,
  tf2: PortVariables,
  variable_names: Any,
  labels: Any,
  inputs: Any,
) -> Pairing:
  """Pairs the variables of two sides.

  By the names that the case gives. Where it gives none, and nothing in the port is made by
  `get_variable`, whose names are those of tf1, also by a renaming, if there is one alone; where
  there is none, by a map that is derived. A mapping that
  leaves variables on both sides fixes its pairs in such a map.

  Args:
    declaration: the case.
    tf1: the reference.
    tf2: the port.
    variable_names: the case's mapping; None where it has none.
    labels: the checked nest of arrays; None without.
    inputs: likewise, of the inputs.

  Raises:
    CannotBePaired: it takes a port that can be run.
    CaseDefinitionError: what the case declares of its variables does not fit them.
  """
  declared = declared_map(declaration)
  if declared is not None:
    return _by_map(declaration, tf1, tf2, declared)
  if getattr(declaration, 'variable_map', None) == DERIVE:
    if not isinstance(tf2, Tf2Layer):
      raise CannotBePaired("variable_map = 'derive' compares numbers of both sides")
    try:
      return _by_derived_map(declaration, tf1, tf2, derived_map(declaration, tf1, tf2, inputs))
    except NotDerivable as error:
      raise CaseDefinitionError(
        f"variable_map = 'derive' is not possible: {error}; write the map, or declare "
        'variable_names'
      ) from error
  ones, others = tf1.inventory(), tf2.inventory()
  names = _names(ones), _names(others)
  alignment = align(*names, variable_names)
  counter = _counter(declaration, tf1, others, alignment, variable_names)
  if counter:
    alignment = align(*names, {**(variable_names or {}), **counter})
  only = _declared_only(declaration, alignment, *names)
  inferred = None
  unpaired = alignment.only_tf1 or alignment.only_tf2
  if variable_names is None and unpaired and not tf2.made_by_get_variable():
    inferred = _inferred(tf1, tf2, labels, only, counter)
  if inferred is not None and all(one == other for one, other in inferred.renames):
    inferred = None
  if inferred is not None:
    try:
      alignment = align(*names, {**dict(inferred.renames), **counter})
      only = _declared_only(declaration, alignment, *names)
    except CaseDefinitionError:  # a variable that is left out has a name that is wanted
      inferred = None
  # What cannot be run has no numbers to compare.
  # Some names declared are fixed pairs; none, {}, say that names are to be taken as they are.
  open_names = variable_names is None or (isinstance(variable_names, Mapping) and variable_names)
  unlike = 0 if tf2.made_by_get_variable() else _of_other_shapes(alignment, ones, others)
  if open_names and isinstance(tf2, Tf2Layer) and (inferred is None or unlike):
    derived = None
    if unlike or _is_of_other_names(alignment, only, tf1, tf2):
      fitting = len(alignment.pairs) - unlike
      derived = _derived_by_default(declaration, tf1, tf2, inputs, fitting)
    if derived is not None:
      return derived
  layouts = _layouts(alignment, ones, others)
  return Pairing(alignment, layouts, *only, inferred, counter=tuple(counter.items()))


def _counter(
  declaration: Declaration,
  tf1: ReferenceGraph,
  others: Inventory,
  alignment: Alignment,
  variable_names: Any,
) -> Mapping[str, str]:
  """Returns the pair of both sides' counts of steps; empty where names say what is paired."""
  if variable_names is not None and not isinstance(variable_names, Mapping):
    return {}
  return step_counter.step_counter(
    declaration, tf1, others, (alignment.only_tf1, alignment.only_tf2)
  )


def _of_other_shapes(alignment: Alignment, tf1: Inventory, tf2: Inventory) -> int:
  """Returns how many pairs have sizes that are not the same in this order."""
  ones, others = _by_name(tf1), _by_name(tf2)
  shapes = ((ones[one].shape, others[other].shape) for one, other in alignment.pairs)
  return sum(without_ones(one) != without_ones(other) for one, other in shapes)


def _is_of_other_names(
  alignment: Alignment,
  only: tuple[Collection[str], Collection[str]],
  tf1: ReferenceGraph,
  tf2: Tf2Layer,
) -> bool:
  """Returns whether a native port has variables whose names do not fit.

  Where one side alone has some left, the names fit, and these are missing.
  """
  steps = {v.name for v in tf1.inventory().variables if 'global_step' in v.collections}
  ones = set(alignment.only_tf1) - set(only[0]) - steps
  others = set(alignment.only_tf2) - set(only[1])
  return bool(ones and others) and not tf2.made_by_get_variable()


def _derived_by_default(
  declaration: Declaration, tf1: ReferenceGraph, tf2: Tf2Layer, inputs: Any, paired_by_name: int
) -> Pairing | None:
  """Pairs by a map that nobody has asked for; None where it is no better than the names are."""
  try:
    derived = derived_map(declaration, tf1, tf2, inputs)
    known = sum(len(entry.tf1) for entry in derived.variable_map.entries)
    if known <= paired_by_name:
      return None
    found = _by_derived_map(declaration, tf1, tf2, derived)
  except Tf2VerifyError:  # what the port raises is found by the stages that call it
    tf2.present(Layouts((), ()), mapped=True)
    return None
  return dataclasses.replace(found, by_default=True)


def _by_derived_map(
  declaration: Declaration, tf1: ReferenceGraph, tf2: Tf2Layer, derived: DerivedMap
) -> Pairing:
  found = _by_map(declaration, tf1, tf2, derived.variable_map)
  entries = derived.variable_map.entries
  counter = tuple((e.tf1[0], e.tf2[0]) for e in entries if e.reason == step_counter.REASON)
  return dataclasses.replace(found, derived=derived, counter=counter)


def interchanged(
  pairing: Pairing, exchange: Exchange, declaration: Declaration, tf1: ReferenceGraph, tf2: Tf2Layer
) -> Pairing:
  """Returns a pairing by a derived map with two variables paired the other way round.

  Args:
    pairing: by a map that was derived.
    exchange: one of its interchangeable variables.
    declaration: the case.
    tf1: the reference.
    tf2: the port, whose variables are shown accordingly from now on.
  """
  derived = pairing.derived
  assert derived is not None
  known = derived.variable_map
  entries = exchanged(known.entries, exchange)
  # What has decided this is not asked again; nor what has a variable of it.
  names = {name for entry in exchange for name in entry.tf1}
  derived = dataclasses.replace(
    derived,
    variable_map=dataclasses.replace(known, entries=entries),
    interchangeable=tuple(
      one
      for one in derived.interchangeable
      if names.isdisjoint(name for entry in one for name in entry.tf1)
    ),
  )
  tf2.present(Layouts((), ()), mapped=True)
  found = _by_derived_map(declaration, tf1, tf2, derived)
  return dataclasses.replace(found, by_default=pairing.by_default)


def _by_map(
  declaration: Declaration, tf1: ReferenceGraph, tf2: PortVariables, declared: VariableMap
) -> Pairing:
  mapped = fitted(declared, tf1.inventory(), tf2.inventory())
  tf2.present(mapped.presentation(), mapped=True)
  ones, others = tf1.inventory(), tf2.inventory()
  alignment = mapped.alignment(ones, others)
  known = mapped.variable_map
  only = _declared_only(
    declaration, alignment, _names(ones), _names(others), dict(known.tf1_only), dict(known.tf2_only)
  )
  layouts = (*mapped.layouts, *_layouts(alignment, ones, others))
  return Pairing(alignment, layouts, *only, None, mapped)


def _names(inventory: Inventory) -> list[str]:
  return [variable.name for variable in inventory.variables]


def _declared_only(
  declaration: Declaration,
  alignment: Alignment,
  tf1: Sequence[str],
  tf2: Sequence[str],
  tf1_only: Mapping[str, str] = MappingProxyType({}),
  tf2_only: Mapping[str, str] = MappingProxyType({}),
) -> tuple[dict[str, str], dict[str, str]]:
  """Returns the reasons for what each side has alone: those of a map, and of the case."""
  found = []
  for side, names, only, left in (
    ('tf1', tf1, tf1_only, alignment.only_tf1),
    ('tf2', tf2, tf2_only, alignment.only_tf2),
  ):
    attribute = f'{side}_only_variables'
    declared = declared_reasons(attribute, getattr(declaration, attribute), left, names)
    found.append({**only, **declared})
  return found[0], found[1]


def _inferred(
  tf1: ReferenceGraph,
  tf2: PortVariables,
  labels: Any,
  only: tuple[Collection[str], Collection[str]],
  counter: Mapping[str, str],
) -> ForcedRenaming | None:
  """Returns the renaming of all variables, or of all that have an effect."""
  ones = [
    variable
    for variable in tf1.inventory().variables
    if 'global_step' not in variable.collections and variable.name not in only[0]
  ]
  left_out = {*only[1], *counter.values()}
  others = [variable for variable in tf2.inventory().variables if variable.name not in left_out]
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
