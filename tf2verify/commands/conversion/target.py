"""What a conversion writes: which files, whether they may be written, and how they get there."""

import contextlib
import dataclasses
import enum
import os
import re
import tempfile
from collections.abc import Iterator

from tf2verify.errors import UsageError

# The state file of a folder is not a part of a checkpoint.
_STATE_FILE = 'checkpoint'
_WORD = re.compile(r'\.[A-Za-z]\w*$')
# `model.ckpt-1000` is a prefix like any other.
_OF_CHECKPOINTS = re.compile(r'\.ckpt(-\d+)?$')


class Format(enum.Enum):
  """What is written; the value is the word for it on the command line."""

  CHECKPOINT = 'checkpoint'
  WEIGHTS = 'weights'
  MODEL = 'keras'

  @property
  def suffix(self) -> str:
    """How names of such files have to end; '' where any will do."""
    return _SUFFIXES.get(self, '')


_SUFFIXES = {Format.WEIGHTS: '.weights.h5', Format.MODEL: '.keras'}
_KINDS = (
  'FILE.keras (the whole model), FILE.weights.h5 (its weights) or the prefix of a checkpoint, '
  'without a suffix or with .ckpt'
)


@dataclasses.dataclass(frozen=True)
class Target:
  """Where a conversion writes.

  Attributes:
    path: of the file, or the prefix of a checkpoint.
    format: what is written.
    overwrite: whether what is there is replaced.
  """

  path: str
  format: Format
  overwrite: bool = False

  @property
  def base(self) -> str:
    """The name without its folder."""
    return os.path.basename(os.path.abspath(self.path))

  @property
  def folder(self) -> str:
    """The folder, as an absolute path."""
    return os.path.dirname(os.path.abspath(self.path))

  def check_free(self) -> None:
    """Raises `UsageError` where something of this name is there, or it cannot be written."""
    out = self.path
    if not os.path.isdir(self.folder):
      raise UsageError(f'--out {out}: there is no folder {self.folder}; create it first')
    if not os.path.basename(out) or os.path.isdir(out):
      kind = 'the prefix of the files' if self.format is Format.CHECKPOINT else 'the file'
      raise UsageError(f'--out {out} is a folder; give {kind} to write in it')
    taken = self._there()
    if taken and not self.overwrite:
      raise UsageError(_taken(os.path.join(self.folder, taken[0])))

  def _there(self) -> list[str]:
    """Returns the files that have the name of the target."""
    if self.format is not Format.CHECKPOINT:
      return [self.base] if os.path.lexists(self.path) else []
    files = re.compile(rf'{re.escape(self.base)}(\.index|\.data-\d+-of-\d+)?')
    return [name for name in sorted(os.listdir(self.folder)) if files.fullmatch(name)]

  @contextlib.contextmanager
  def folder_beside(self) -> Iterator[str]:
    """Yields a new folder on the same disk, which is removed in the end.

    Raises:
      UsageError: it cannot be made.
    """
    try:
      beside = tempfile.TemporaryDirectory(prefix=f'.{self.base}.', dir=self.folder)
    except OSError as error:
      raise UsageError(f'--out {self.path}: {self.folder} cannot be written: {error}') from error
    with beside as path:
      yield path

  def take(self, beside: str) -> None:
    """Moves all files from a folder to where they belong, the index last.

    Without an index there is no checkpoint, so that none is ever seen in part.
    """
    names = [name for name in os.listdir(beside) if name != _STATE_FILE]
    old = self._there() if self.overwrite else []
    for name in names:
      if os.path.lexists(os.path.join(self.folder, name)) and not self.overwrite:
        raise UsageError(_taken(os.path.join(self.folder, name)))
    for name in sorted(old, key=lambda name: not name.endswith('.index')):
      if self.format is Format.CHECKPOINT:
        os.remove(os.path.join(self.folder, name))
    for name in sorted(names, key=lambda name: name.endswith('.index')):
      os.replace(os.path.join(beside, name), os.path.join(self.folder, name))


def target_of(out: str, format_name: str | None = None, overwrite: bool = False) -> Target:
  """Returns where, and what, a conversion writes.

  Args:
    out: the path that was given.
    format_name: a value of `Format`; None to tell by the suffix.
    overwrite: whether what is there is replaced.

  Raises:
    UsageError: the name says nothing that can be written, or something else than the format; or
      it is taken, see `Target.check_free`.
  """
  by_suffix = [format for format in _SUFFIXES if out.endswith(format.suffix)]
  if format_name is not None:
    target = Target(out, Format(format_name), overwrite)
    if not out.endswith(target.format.suffix):
      raise UsageError(
        f'--out {out} with --format {format_name}: the name has to end in {target.format.suffix}, '
        'by which Keras knows such a file'
      )
  elif by_suffix:
    target = Target(out, by_suffix[0], overwrite)
  else:
    target = Target(out, Format.CHECKPOINT, overwrite)
    _check_suffix(out)
  target.check_free()
  return target


def _check_suffix(out: str) -> None:
  name = os.path.basename(out)
  found = _WORD.search(name)
  if found is None or _OF_CHECKPOINTS.search(name) or os.path.isdir(out):
    return
  suffix = found.group().lower()
  slip = {
    '.h5': f'{name[: -len(suffix)]}.weights.h5',
    '.hdf5': f'{name[: -len(suffix)]}.weights.h5',
    '.index': name[: -len(suffix)],
  }.get(suffix, f'{name[: -len(suffix)]}.keras')
  raise UsageError(
    f'--out {out}: files with the suffix {found.group()} are not written; give {_KINDS}. Is {slip} '
    'meant? For a checkpoint with exactly this prefix, add --format checkpoint'
  )


def _taken(path: str) -> str:
  return (
    f'--out: {path} exists, and nothing is overwritten; use a different name, remove the old '
    'files, '
    'or replace them with --overwrite'
  )
