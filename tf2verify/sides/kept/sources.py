"""Where a ladder has its reference from: graphs of an earlier run, or of an earlier round."""

import os
from collections.abc import Callable
from typing import Any, final

from tf2verify.sides import side
from tf2verify.sides.kept import dependencies
from tf2verify.sides.kept.fingerprint import Fingerprint
from tf2verify.sides.kept.installed import held_bindings, rebound
from tf2verify.sides.kept.shelf import Shelf, folder_for
from tf2verify.sides.recorded import references
from tf2verify.sides.recorded.recording import RecordedDeclaration, same_arrays
from tf2verify.sides.recorded.references import DeclaredReference, Reference

# The folder that graphs of references are kept in and taken from; `1` for the user's cache.
REUSE_VARIABLE = 'TF2VERIFY_REUSE_REFERENCE'
_RECORDED = 'a recording is the reference'


@final
class KeptInFolder:
  """Makes the reference of a case from graphs that an earlier run has left in a folder."""

  def __init__(self, folder: str) -> None:
    self._folder = folder
    self._shelf: Shelf | None = None
    self._made: Reference | None = None

  def reference(
    self, case: DeclaredReference, progress: side.Progress, port_is_of_keras3: Callable[[], bool]
  ) -> Reference:
    """Returns the reference; nothing is read yet."""
    if not isinstance(case, RecordedDeclaration):
      self._shelf = Shelf(case, self._folder, progress)
    self._made = references.reference(case, progress, port_is_of_keras3, self._shelf)
    return self._made

  def said(self) -> str:
    """Returns whether graphs were reused, and if not, why."""
    return '' if self._shelf is None else self._shelf.said()

  def close(self) -> None:
    """Writes what was built, and lets go of it."""
    if self._shelf is not None:
      self._shelf.close()
    if self._made is not None:
      self._made.close()
      self._made = None


def source_for(given: bool | str) -> KeptInFolder | None:
  """Returns what reuses references, if that is wanted.

  Args:
    given: True, or a folder; where it is False, TF2VERIFY_REUSE_REFERENCE counts.
  """
  given = given or os.environ.get(REUSE_VARIABLE, '')
  return KeptInFolder(folder_for(given)) if given else None


@final
class HeldReference:
  """Has the reference of one case from round to round of a process, until its code changes."""

  def __init__(self) -> None:
    self._made: Reference | None = None
    self._code: Fingerprint | None = None
    self._names: Any = None
    self._progress: side.Progress = lambda _: None
    self._port_is_of_keras3: Callable[[], bool] = lambda: False
    self._said = ''

  def reference(
    self, case: DeclaredReference, progress: side.Progress, port_is_of_keras3: Callable[[], bool]
  ) -> Reference:
    """Returns the reference of the round before, where its code and inputs are the same."""
    self._progress, self._port_is_of_keras3 = progress, port_is_of_keras3
    hooks = (*dependencies.OF_GRAPH, *dependencies.OF_TRAINING, 'tf1_metrics')
    recorded = isinstance(case, RecordedDeclaration)
    code = None if recorded else dependencies.code_of(case, hooks)
    found = references.reference(
      case,
      lambda step: self._progress(step),
      lambda: self._port_is_of_keras3(),
      holds_sizes=True,
    )
    why = self._difference(code, found)
    self._said = 'the one of the round before' if not why else f'rebuilt: {why}'
    if why or self._made is None:
      self.release()
      self._made, self._code, self._names = found, code, held_bindings()
    return self._made

  def _difference(self, code: Fingerprint | None, found: Reference) -> str:
    """Returns why the reference of the round before is of no use; '' where it is."""
    known = self._made
    if known is None or self._code is None:
      return 'the first round' if code is not None else _RECORDED
    if code is None:
      return _RECORDED
    if code.obstacles:
      return code.obstacles[0]
    changed = dependencies.changes(self._code.parts, code.parts)
    changed += rebound(self._names)
    if changed:
      return f'{", ".join(changed[:3])} changed'
    if not same_arrays(known.inputs, found.inputs):
      return 'make_inputs returns different arrays'
    if (known.labels is None) != (found.labels is None) or (
      found.labels is not None and not same_arrays(known.labels, found.labels)
    ):
      return 'make_labels returns different arrays'
    return ''

  def said(self) -> str:
    """Returns whether it is that of the round before, and if not, why."""
    return self._said

  def close(self) -> None:
    """Keeps it for the next round."""

  def release(self) -> None:
    """Lets go of it."""
    if self._made is not None:
      self._made.close()
      self._made = None
