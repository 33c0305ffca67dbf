"""What is said of how the variables of both sides were paired, where the case does not say it."""

from collections.abc import Iterable

from tf2verify.relation.names.naming_rule import code, naming_rule
from tf2verify.stages.variables.mapped import layout_text
from tf2verify.stages.variables.pairing import Pairing

# More entries of a map than that are not shown.
_SHOWN = 4


def pairing_notes(pairing: Pairing) -> list[str]:
  """Returns the notes on a pairing; none where the case declares all of it."""
  return [*_inferred_note(pairing), *_map_notes(pairing), *pairing.counter_notes]


def _inferred_note(pairing: Pairing) -> Iterable[str]:
  """Yields which renaming is used that the case does not declare, and how to declare it."""
  if pairing.inferred is None:
    return
  renames = [(one, other) for one, other in pairing.inferred.renames if one != other]
  rule = naming_rule(renames)
  if rule is not None and (rule.exceptions or len(renames) < len(pairing.inferred.renames)):
    rule = None
  declared = code(renames, rule)
  yield (
    f'the names of the port differ, and only one renaming explains them all, so it is used: '
    f'{pairing.inferred.reason}; to declare it:\n{declared}'
  )


def _map_notes(pairing: Pairing) -> Iterable[str]:
  """Yields what the variable map does."""
  if pairing.mapped is None:
    return
  known = pairing.mapped.variable_map
  renames = sum(entry.is_rename for entry in known.entries)
  others = [entry for entry in known.entries if not entry.is_rename]
  where = f' {known.source}' if known.source else ''
  derived = pairing.derived
  if derived is not None:
    why = ', since its names do not fit' if pairing.by_default else ''
    yield (
      f'the variables of the port are paired by what they do{why}: '
      f'{derived.summary()}; `python -m tf2verify map` shows the entries and writes them to a file'
    )
    yield from derived.doubts
  text = f'by the variable map{where}: {renames:,} variables that are only renamed'
  if others:
    text += (
      f', {len(others):,} entries with a different layout, which are compared in the shapes of tf1'
    )
  yield text
  for entry in others[:_SHOWN]:
    yield f'{entry}: {layout_text(entry)}'
  if len(others) > _SHOWN:
    yield f'… and {len(others) - _SHOWN} more entries with a different layout'
