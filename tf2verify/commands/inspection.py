"""What a checkpoint holds, next to what a case has."""

import contextlib
import dataclasses
from collections.abc import Sequence

from tf2verify.case import EquivalenceCase, new_ladder
from tf2verify.errors import UsageError
from tf2verify.records.checkpoint import AccountedKey, CheckpointKey, KeyAccount, KeyKind
from tf2verify.records.table_text import row_lines
from tf2verify.relation import checkpoint_keys
from tf2verify.sides.process import state as process_state
from tf2verify.sides.side import Progress
from tf2verify.sides.tf1.checkpoint import CheckpointFile
from tf2verify.stages.checkpoints.loading import global_steps
from tf2verify.stages.stage import by_name

_VALUE = '/.ATTRIBUTES/VARIABLE_VALUE'
_NO_VARIABLE = '(none)'
# Lines before the table; the table has them all.
_SHOWN = 5


@dataclasses.dataclass(frozen=True)
class Inspection:
  """What a checkpoint holds.

  Attributes:
    text: a table of its keys.
    fits: whether every variable that the port of the case has can be read from it; True without a
      case.
  """

  text: str
  fits: bool = True


def inspect(path: str, case: type[EquivalenceCase] | None, progress: Progress) -> Inspection:
  """Returns a table of the keys of a checkpoint: shape, dtype and what each one holds.

  Args:
    path: prefix of a name-based checkpoint; without a case, also of an object-based one.
    case: its variables are shown next to the keys; None for the keys alone.
    progress: called with one line of text before every long step.

  Raises:
    CheckpointError: it cannot be read.
    UsageError: a case is given and the checkpoint is an object-based one.
  """
  file = CheckpointFile(path)
  if file.is_object_based:
    if case is not None:
      raise UsageError(
        f'{path} is an object-based checkpoint, whose keys are object paths, not names: inspect '
        'it without --case'
      )
    rows = [(k.name.removesuffix(_VALUE), str(k.shape), k.dtype) for k in file.keys]
    head = f'{path}: {len(rows)} keys, object-based (tf.train.Checkpoint)'
    return Inspection('\n'.join([head, *row_lines([('object path', 'shape', 'dtype'), *rows])]))
  head = f'{path}: {len(file.keys)} keys, name-based (tf.compat.v1.train.Saver)'
  if case is None:
    return Inspection('\n'.join([head, *row_lines(_rows(checkpoint_keys.kinds(file.keys)))]))
  account, names = _beside(file.keys, case, progress)
  fit = len(account.sources)
  counts = f'{case.__name__}: {fit} of {len(names)} variables have a key that fits'
  misfits = _misfits(account, names)
  shown = [*misfits.values()][:_SHOWN]
  if len(misfits) > _SHOWN:
    shown.append(f'  … and {len(misfits) - _SHOWN:,} more, see the table')
  lines = [head, counts, *shown, *row_lines(_rows_beside(account, names))]
  needed = {name for name, port in names.items() if port != _NO_VARIABLE}
  return Inspection('\n'.join(lines), fits=needed.isdisjoint(misfits))


def _misfits(account: KeyAccount, names: dict[str, str]) -> dict[str, str]:
  """Returns a line for each variable that no key fits, by its tf1 name."""
  lines = {one.variable: f'  no key: {one.variable}' for one in account.missing}
  kept = {key.key.name: key.variable for key in account.keys}
  for changed in account.changed:
    lines[kept[changed.key.name]] = (
      f'  does not fit: {changed.key.name} is {changed.key}, the variable is '
      f'{changed.shape} {changed.dtype}'
    )
  only_tf1 = ' (only TF1 has the variable)'
  return {
    name: line + only_tf1 * (names[name] == _NO_VARIABLE) for name, line in sorted(lines.items())
  }


def _beside(
  keys: Sequence[CheckpointKey], case: type[EquivalenceCase], progress: Progress
) -> tuple[KeyAccount, dict[str, str]]:
  """Returns the account of the keys, and the tf2 name of each tf1 variable."""
  with contextlib.closing(new_ladder(case, progress)) as ladder, process_state.preserved():
    under_test = ladder.prepared()
    alignment = under_test.alignment()
    records = by_name(under_test.tf1.inventory())
    steps = global_steps(under_test)
    unpaired = {name: _NO_VARIABLE for name in alignment.only_tf1 if name not in steps}
    names = {**dict(alignment.pairs), **unpaired}
    variables = [record for name, record in records.items() if name in names]
    shadows = under_test.declaration.evaluate_with_ema
    return checkpoint_keys.account(keys, variables, shadows, steps), names


def _rows(keys: Sequence[AccountedKey]) -> list[tuple[str, ...]]:
  rows = [
    (key.key.name, str(key.key.shape), key.key.dtype, _kind(key, key.variable)) for key in keys
  ]
  return [('key', 'shape', 'dtype', 'holds'), *rows]


def _rows_beside(account: KeyAccount, names: dict[str, str]) -> list[tuple[str, ...]]:
  read = {source.key: source.variable for source in account.sources}
  changed = {changed.key.name: changed for changed in account.changed}
  rows = []
  for key in account.keys:
    name = key.key.name
    variable = names.get(read.get(name, ''), '')
    if name in changed:
      variable = f'does not fit: {changed[name].shape} {changed[name].dtype}'
    rows.append((name, str(key.key.shape), key.key.dtype, _kind(key, key.variable), variable))
  for missing in account.missing:
    closest = f' (closest: {missing.closest})' if missing.closest else ''
    rows.append((f'no key{closest}', '', '', missing.variable, names[missing.variable]))
  return [('key', 'shape', 'dtype', 'holds', 'tf2 variable'), *rows]


def _kind(key: AccountedKey, variable: str) -> str:
  of = f' of {variable}' if variable and key.kind is not KeyKind.MODEL else ''
  return f'{key.kind.value}{of}'
