"""Variables that a port uses in place of each other, as numbers tell."""

from collections.abc import Mapping

from tf2verify.errors import Tf2VerifyError
from tf2verify.records.diagnosis import Cause
from tf2verify.relation.variable_map import listed
from tf2verify.stages.derived_map import derived_map
from tf2verify.stages.map_trials import DerivedMap
from tf2verify.stages.stage import CaseUnderTest

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
  if not is_by_name or not 1 < len(pairs) <= _MOST_VARIABLES:
    return None
  try:
    derived = derived_map(case.declaration, case.tf1, case.tf2, case.inputs)
  except Tf2VerifyError:  # what cannot be derived is no exchange
    return None
  return _cause(dict(derived.exchanged) or _used_differently(pairs, derived))


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
  names = listed([f'{other} is {one} of tf1' for one, other in pairs])
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
