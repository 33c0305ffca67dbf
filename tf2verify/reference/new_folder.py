"""The folder of a recording, which is there when it is whole."""

import contextlib
import os
import shutil
from typing import Iterator

from .errors import RecorderError
from .messages import say
from .versions import KIND


def _is_recording(folder: str) -> bool:
  try:
    with open(os.path.join(folder, 'manifest.json'), 'rb') as file:
      return KIND.encode() in file.read()
  except OSError:
    return False


def partial_of(out: str) -> str:
  """Returns where a recording is written until it is whole."""
  return '{}.partial-{}'.format(os.path.abspath(out), os.getpid())


@contextlib.contextmanager
def new_folder(out: str, overwrite: bool) -> Iterator[str]:
  """Gives a folder beside `out`, which takes its name when all has gone well.

  Raises:
    RecorderError: `out` exists, or nothing can be written there.
  """
  out = os.path.abspath(out)
  parent, name = os.path.split(out)
  if os.path.lexists(out):
    if not overwrite:
      raise RecorderError(
        '--out {} exists; use a different name, or --overwrite to replace it'.format(out)
      )
    if os.path.isdir(out) and os.listdir(out) and not _is_recording(out):
      raise RecorderError(
        '--out {} is a folder, but not a recording, and is not overwritten; '
        'use a different name'.format(out)
      )
  partial = partial_of(out)
  try:
    os.makedirs(parent, exist_ok=True)
    left = sorted(n for n in os.listdir(parent) if n.startswith(name + '.partial-'))
    os.mkdir(partial)
  except OSError as error:
    raise RecorderError(
      'cannot write to {}: {}; give an --out where this user may write'.format(parent, error)
    ) from None
  if left:
    say('note: {} left by an interrupted run; delete it'.format(', '.join(left)))
  try:
    yield partial
    replaced = '{}.replaced-{}'.format(out, os.getpid())
    if os.path.lexists(out):  # it is allowed to be replaced
      os.rename(out, replaced)
    os.rename(partial, out)
    shutil.rmtree(replaced, ignore_errors=True)
  finally:
    shutil.rmtree(partial, ignore_errors=True)
