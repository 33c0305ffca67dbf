"""The variable map of a case, derived and written down."""

import contextlib
import os

from tf2verify.case import EquivalenceCase, new_ladder
from tf2verify.errors import UsageError
from tf2verify.relation.variable_map import VariableMap
from tf2verify.sides.process import state as process_state
from tf2verify.sides.recorded import references
from tf2verify.sides.side import Progress
from tf2verify.stages.variables.derived_map import derived_map
from tf2verify.stages.variables.map_found import DerivedMap


def derive_variable_map(case: type[EquivalenceCase]) -> VariableMap:
  """Derives which variables of a port are which of TF1's, from what they do.

  Names are not needed. Each entry has a `reason`; what has no partner is in no entry.

  Args:
    case: a subclass of `EquivalenceCase`; its `variable_map` is not looked at.

  Returns:
    The map, in the order of the port's variables.

  Raises:
    CaseDefinitionError: the class is not a complete case.
    Tf2VerifyError: a side cannot be built, or not as a graph.
  """
  return derived_of(case, lambda _: None).variable_map


def derived_of(case: type[EquivalenceCase], progress: Progress) -> DerivedMap:
  """Returns the derived map of a case, and how sure it is; raises as `derive_variable_map`."""
  with (
    contextlib.closing(new_ladder(case, progress)) as ladder,
    process_state.preserved(),
    references.conditions(case),
  ):
    prepared = ladder.prepared()
    return derived_map(prepared.declaration, prepared.tf1, prepared.tf2, prepared.inputs)


def check_out(out: str | None) -> None:
  """Raises `UsageError` where a map file cannot be written."""
  if out is None:
    return
  folder = os.path.dirname(os.path.abspath(out))
  if not os.path.isdir(folder):
    raise UsageError(f'--out {out}: there is no folder {folder}; create it first')
  if os.path.exists(out):
    raise UsageError(f'--out {out} exists, and nothing is overwritten; use a different name')
