"""What a checkpoint holds, beside what a case has."""

from collections.abc import Sequence

from tf2verify.case import EquivalenceCase, new_ladder
from tf2verify.errors import UsageError
from tf2verify.records.checkpoint import AccountedKey, CheckpointKey, KeyAccount, KeyKind
from tf2verify.relation import checkpoint_keys
from tf2verify.sides.process import state as process_state
from tf2verify.sides.side import Progress
from tf2verify.sides.tf1.checkpoint import CheckpointFile
from tf2verify.stages.checkpoints.loading import global_steps
from tf2verify.stages.stage import by_name

_VALUE = '/.ATTRIBUTES/VARIABLE_VALUE'


def inspect(path: str, case: type[EquivalenceCase] | None, progress: Progress) -> str:
  """Returns a table of the keys of a checkpoint: shape, dtype and what each one holds.

  Args:
    path: prefix of a name-based checkpoint; without a case, also of an object-based one.
    case: its variables are shown beside the keys; None for the keys alone.
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
    return '\n'.join([head, *_columns([('object path', 'shape', 'dtype'), *rows])])
  head = f'{path}: {len(file.keys)} keys, name-based (tf.compat.v1.train.Saver)'
  if case is None:
    return '\n'.join([head, *_columns(_rows(checkpoint_keys.kinds(file.keys)))])
  account, names = _beside(file.keys, case, progress)
  fit = len(account.sources)
  counts = f'{case.__name__}: {fit} of {len(names)} variables have a key that fits'
  return '\n'.join([head, counts, *_columns(_rows_beside(account, names))])


def _beside(
  keys: Sequence[CheckpointKey], case: type[EquivalenceCase], progress: Progress
) -> tuple[KeyAccount, dict[str, str]]:
  """Returns the account of the keys, and the tf2 name of each tf1 variable."""
  ladder = new_ladder(case, progress)
  try:
    with process_state.preserved():
      under_test = ladder.prepared()
      alignment = under_test.alignment()
      records = by_name(under_test.tf1.inventory())
      steps = global_steps(under_test)
      unpaired = {name: '(none)' for name in alignment.only_tf1 if name not in steps}
      names = {**dict(alignment.pairs), **unpaired}
      variables = [record for name, record in records.items() if name in names]
      shadows = under_test.declaration.evaluate_with_ema
      return checkpoint_keys.account(keys, variables, shadows, steps), names
  finally:
    ladder.close()


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


def _columns(rows: Sequence[tuple[str, ...]]) -> list[str]:
  widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
  return [
    f'  {"  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))}'.rstrip()
    for row in rows
  ]
