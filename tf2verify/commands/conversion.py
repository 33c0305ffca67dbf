"""A TF1 checkpoint turned into the port's own, if everything about it can be verified."""

import dataclasses
import os
import re
import tempfile

from tf2verify.case import EquivalenceCase, new_ladder
from tf2verify.errors import UsageError
from tf2verify.records.checkpoint import KeyKind
from tf2verify.records.difference import Aspect, Difference
from tf2verify.records.status import Status
from tf2verify.records.table import Table
from tf2verify.records.table_text import table_lines
from tf2verify.records.verdict_text import compared_text, differences_text
from tf2verify.sides.process import state as process_state
from tf2verify.sides.side import Progress
from tf2verify.sides.tf1 import checkpoint as tf1_checkpoint
from tf2verify.sides.tf2 import checkpoint as tf2_checkpoint
from tf2verify.stages.checkpoints.loading import Loaded, key_table, load
from tf2verify.stages.checkpoints.restoring import RestoreComparison
from tf2verify.stages.checkpoints.saving import check_restored
from tf2verify.stages.passes.zero_randomness import ZeroRandomness
from tf2verify.stages.stage import CaseUnderTest

# The state file of a folder is no part of a checkpoint.
_STATE_FILE = 'checkpoint'


@dataclasses.dataclass(frozen=True)
class Conversion:
  """What became of a conversion.

  Attributes:
    case: the class's name.
    source: prefix of the TF1 checkpoint.
    written: prefix of the TF2 checkpoint; '' where the conversion was refused.
    compared: how much was verified, as text.
    refusal: why nothing was written, by lines; empty where something was.
    table: the account of the keys; None where it was not come to.
  """

  case: str
  source: str
  written: str
  compared: str
  refusal: tuple[str, ...] = ()
  table: Table | None = None

  def to_text(self) -> str:
    """Returns the outcome for a terminal."""
    lines = [f'{self.case}: {self.source}']
    if self.table is not None:
      lines += [f'  {line}' for line in table_lines(self.table)]
    if self.refusal:
      lines += ['REFUSED, nothing was written:', *(f'  {line}' for line in self.refusal)]
    else:
      lines += [f'  verified: {self.compared}', f'written: {self.written}']
    return '\n'.join(lines)


def convert(case: type[EquivalenceCase], source: str, out: str, progress: Progress) -> Conversion:
  """Restores a TF1 checkpoint into a fresh port, verifies it, and writes the port's own.

  Keys, values and outputs are compared as the stage `checkpoint` does; a key that
  nothing reads and nobody knows is a refusal as well. What is written has been
  restored into another fresh port before it gets its name.

  Args:
    case: a case that passes up to `zero_randomness`.
    source: prefix of the TF1 checkpoint.
    out: prefix of the checkpoint to write; no file of it may exist.
    progress: called with one line of text before every long step.

  Raises:
    UsageError: something of the name `out` exists, or its folder does not.
    CheckpointError: `source` cannot be read, or is of another model.
  """
  _check_free(out)
  file = tf1_checkpoint.name_based(source, '--tf1_checkpoint')
  ladder = new_ladder(case, progress)
  try:
    verdict = ladder.stage(ZeroRandomness)
    if verdict.status is not Status.PASSED:
      failure = ladder.verdict().first_failure
      first = verdict if failure is None else failure
      return Conversion(case.__name__, source, '', '', tuple(first.to_text().splitlines()))
    with process_state.preserved():
      return _converted(ladder.prepared(), case.__name__, file, out)
  finally:
    ladder.close()


def _converted(
  case: CaseUnderTest, name: str, file: tf1_checkpoint.CheckpointFile, out: str
) -> Conversion:
  comparison = RestoreComparison()
  loaded = load(case, file, comparison)
  for key in loaded.account.unread(KeyKind.UNKNOWN):
    comparison.lost(
      Difference(
        'checkpoint key',
        key.key.name,
        Aspect.PRESENCE,
        f'in the checkpoint, {key.key}',
        'read by no variable of the model, and neither a slot nor a moving average of one',
        hint='the checkpoint holds more than the model of this case: declare a case with the whole '
        'model, or write a checkpoint without these keys',
      )
    )
  table = key_table(loaded.account)
  if comparison.differences or comparison.inconclusive:
    return Conversion(name, file.path, '', '', _refusal(comparison), table)
  folder, base = os.path.split(os.path.abspath(out))
  with tempfile.TemporaryDirectory(prefix=f'.{base}.', dir=folder) as beside:
    prefix = _written(case, loaded, os.path.join(beside, base), comparison)
    if comparison.differences:
      return Conversion(name, file.path, '', '', _refusal(comparison), table)
    _check_free(out)
    _move(beside, folder)
  written = os.path.join(os.path.dirname(out), os.path.basename(prefix))
  return Conversion(name, file.path, written, compared_text(comparison.compared), (), table)


def _written(
  case: CaseUnderTest, loaded: Loaded, prefix: str, comparison: RestoreComparison
) -> str:
  """Saves the port, and restores it into another one."""
  tf2_checkpoint.assign(loaded.port, loaded.values)
  values = tf2_checkpoint.values_of(loaded.port)
  written = tf2_checkpoint.save(case.declaration, loaded.port.layer, prefix)
  if os.path.dirname(written) != os.path.dirname(prefix):
    raise UsageError(
      f'save_tf2_checkpoint was given {prefix} and has written {written}: it has to write where '
      'it is told, so that nothing is left where something goes wrong'
    )
  check_restored(case, loaded, values, written, comparison)
  return written


def _move(folder: str, target: str) -> None:
  """Moves the files of a checkpoint, the index last: without it there is no checkpoint."""
  names = [name for name in os.listdir(folder) if name != _STATE_FILE]
  for name in names:
    if os.path.exists(os.path.join(target, name)):
      raise UsageError(_taken(os.path.join(target, name)))
  for name in sorted(names, key=lambda name: name.endswith('.index')):
    os.rename(os.path.join(folder, name), os.path.join(target, name))


def _check_free(out: str) -> None:
  """Raises `UsageError` where a checkpoint of this name exists, or cannot be written."""
  folder, base = os.path.split(os.path.abspath(out))
  if not os.path.isdir(folder):
    raise UsageError(f'--out {out}: there is no folder {folder}; make it first')
  if not base or os.path.isdir(out):
    raise UsageError(f'--out {out} is a folder; give the prefix of the files to write in it')
  files = re.compile(rf'{re.escape(base)}(\.index|\.data-\d+-of-\d+)?')
  taken = [name for name in sorted(os.listdir(folder)) if files.fullmatch(name)]
  if taken:
    raise UsageError(_taken(os.path.join(folder, taken[0])))


def _taken(path: str) -> str:
  return (
    f'--out: {path} exists, and nothing is overwritten; give another prefix, or remove the old '
    'files'
  )


def _refusal(comparison: RestoreComparison) -> tuple[str, ...]:
  lines = differences_text(comparison.differences)
  return tuple(lines) or (comparison.inconclusive,)
