"""The values that a case gives its variables, held against those of a recording."""

from tf2verify.recordings.recording import Recording
from tf2verify.reference.arrays import array_digest
from tf2verify.sides import side


def other_value(run: side.RunSpec, inventory: side.Inventory, recording: Recording) -> str:
  """Returns which variable a fill gives another value than was recorded; '' for none."""
  recorded = recording.manifest.fills.get(run.fill.description, {})
  for variable in inventory.variables:
    value = run.value_for(variable)
    known = recorded.get(variable.name)
    found = None if value is None else array_digest(value)
    if found != known:
      return (
        f'fill_values of the case gives {variable.name} {_digest_text(found)}, and '
        f'{recording.path} was recorded with {_digest_text(known)}: record with '
        '--fill module:function, where the function is that of the case, or leave fill_values out'
      )
  return ''


def _digest_text(digest: str | None) -> str:
  return 'no value' if digest is None else f'values with sha256 {digest[:12]}…'
