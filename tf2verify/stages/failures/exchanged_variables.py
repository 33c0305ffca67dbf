"""Variables that a port uses otherwise than their names, or a map by hand, say; by numbers."""

import math
from collections.abc import Iterable, Mapping

import numpy as np

from tf2verify.errors import Tf2VerifyError
from tf2verify.records.diagnosis import Cause
from tf2verify.records.wording import listed
from tf2verify.relation.layouts.map_entry import MapEntry
from tf2verify.relation.layouts.variable_layouts import Layouts
from tf2verify.relation.variable_map import VariableMap
from tf2verify.stages.stage import CaseUnderTest
from tf2verify.stages.variables.derived_map import derived_map
from tf2verify.stages.variables.map_found import DerivedMap
from tf2verify.stages.variables.mapped import Mapped

# A map of more variables takes longer than an answer may.
_MOST_VARIABLES = 200
# Of more variables the layers or scopes are named that they are in.
_MOST_NAMED = 4


def exchange_cause(case: CaseUnderTest) -> Cause | None:
  """Returns that the outputs of both sides agree with variables exchanged; None if they do not.

  Args:
    case: one whose outputs differ. If the names of its port are those of tf1, what its variables
      do is looked at here.
  """
  pairing = case.pairing
  if pairing.derived is not None:
    return _cause(dict(pairing.derived.exchanged))
  is_by_name = pairing.mapped is None and not pairing.layouts and case.tf2.is_native_keras()
  pairs = dict(case.alignment().pairs)
  if pairing.mapped is not None and len(pairs) <= _MOST_VARIABLES:
    return _map_cause(case, pairing.mapped)
  if not is_by_name or not 1 < len(pairs) <= _MOST_VARIABLES:
    return None
  try:
    derived = derived_map(case.declaration, case.tf1, case.tf2, case.inputs)
  except Tf2VerifyError:  # what cannot be derived is no exchange
    return None
  return _cause(dict(derived.exchanged) or _used_differently(pairs, derived))


def _map_cause(case: CaseUnderTest, mapped: Mapped) -> Cause | None:
  """Returns which entries of a map by hand do not fit, where the outputs agree through others."""
  case.tf2.present(Layouts((), ()), mapped=True)
  try:
    derived = derived_map(case.declaration, case.tf1, case.tf2, case.inputs)
  except Tf2VerifyError:
    return None
  finally:
    case.tf2.present(mapped.presentation(), mapped=True)
  if derived.exchanged:
    return _cause(dict(derived.exchanged))
  if not derived.outputs_agree:
    return None
  shapes = {v.name: tuple(int(s or 0) for s in v.shape) for v in case.tf1.inventory().variables}
  maps = mapped.variable_map.entries, derived.variable_map.entries
  given, told = (
    _elements([entry for entry in own if entry not in other], shapes)
    for own, other in (maps, maps[::-1])
  )
  both = given.keys() & told.keys()
  wrong = {name for name in both if not np.array_equal(given[name], told[name])}
  declared, fitting = ([e for e in one if wrong & set(e.tf2)] for one in maps)
  # A port that reads a renamed variable in another order is wrong by itself: its line is named.
  names = {str(entry) for entry in fitting}
  if all(entry.is_rename and str(entry) in names for entry in declared):
    return None
  texts = [listed([_text(entry) for entry in one], most=5) for one in (declared, fitting)]
  return Cause(
    f'variable_map has {texts[0]}, and the graphs tell {texts[1]}: correct the map, or, if it says '
    'what is meant, let the port use its variables so',
    rule='variable_map_entry',
    numbers='with the entries that the graphs tell the outputs of both sides agree',
  )


def _elements(
  entries: Iterable[MapEntry], shapes: Mapping[str, tuple[int, ...]]
) -> dict[str, np.ndarray]:
  """Returns what entries make, for each variable of the port, of numbers that are all distinct."""
  starts = dict(zip(shapes, np.cumsum([0, *map(math.prod, shapes.values())]), strict=False))
  found: dict[str, np.ndarray] = {}
  for entry in entries:
    numbers = {
      name: (starts[name] + np.arange(math.prod(shapes[name]), dtype=np.float64)).reshape(
        shapes[name]
      )
      for name in entry.tf1
    }
    found.update(VariableMap((entry,)).to_tf2(numbers))
  return found


def _text(entry: MapEntry) -> str:
  added = ', '.join(f'{axis}={number:g}' for axis, number in entry.added)
  layout = f' (layout {entry.layout})' if entry.layout else ''
  return f'`{entry}`{layout}{f" (add {added})" if added else ""}'


def _used_differently(pairs: Mapping[str, str], derived: DerivedMap) -> dict[str, str]:
  """Returns the pairs by name that the graphs exchange among each other, if the outputs agree."""
  if not derived.outputs_agree:
    return {}
  partner = {
    entry.tf1[0]: entry.tf2[0]
    for entry in derived.variable_map.entries
    if len(entry.tf1) == len(entry.tf2) == 1 and entry.keeps_order
  }
  found = {one: other for one, other in pairs.items() if partner.get(one, other) != other}
  is_exchange = sorted(found.values()) == sorted(partner[one] for one in found)
  return found if is_exchange and partner.keys() == pairs.keys() else {}


def _cause(exchanged: Mapping[str, str]) -> Cause | None:
  """Returns the cause, given the pairs by name that the port uses crosswise."""
  if not exchanged:
    return None
  pairs = list(exchanged.items())
  if len(pairs) > _MOST_NAMED:
    pairs = list(dict.fromkeys(_without_common_end(*pair) for pair in pairs))
  names = listed([f'{other} is {one} of tf1' for one, other in pairs], most=5)
  return Cause(
    f'the port exchanges variables: by their names {names}, and it uses them in place of each '
    'other; let the port use each as tf1 does, or, if only the names are misleading, declare '
    'variable_map with the entries that the graphs tell',
    rule='variables_exchanged',
    numbers='with them exchanged the outputs of both sides agree',
  )


def _without_common_end(one: str, other: str) -> tuple[str, str]:
  """Returns two names without the components that they end with alike, but with one at least."""
  first, second = one.split('/'), other.split('/')
  while min(len(first), len(second)) > 1 and first[-1] == second[-1]:
    first, second = first[:-1], second[:-1]
  return '/'.join(first), '/'.join(second)
