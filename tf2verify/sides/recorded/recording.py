"""A case whose reference is a recording: found, opened, and held against the case."""

import dataclasses
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tf2verify import hooks
from tf2verify.errors import RecordingError
from tf2verify.recordings.recording import Recording
from tf2verify.reference import nests
from tf2verify.reference.arrays import array_digest
from tf2verify.sides.hooks.inputs import checked_inputs
from tf2verify.sides.hooks.user_code import user_code
from tf2verify.sides.recorded import sources as recorded_sources
from tf2verify.sides.recorded.blind_spots import blind_spots
from tf2verify.sides.recorded.checkpoint import checkpoint_path

_MADE_BY = {'make_tf1_optimizer': 'optimizer', 'make_tf1_train_op': 'train_op'}
_STEPS = 'training_steps_to_take'


@dataclasses.dataclass(frozen=True, eq=False)
class OpenedRecording:
  """A recording that fits its case."""

  recording: Recording  # every digest of it has been compared
  inputs: Any  # the nest to feed to both sides
  labels: Any  # likewise; None without labels
  notes: tuple[str, ...]  # what was not checked, or cannot be seen


class RecordedDeclaration:
  """A case, with the hooks of the reference answered by its recording.

  Everything else is the case's own.
  """

  def __init__(
    self, case: Any, path: str, files: Sequence[str], overridden: frozenset[str]
  ) -> None:
    """Takes a case with `tf1_recording`; nothing is read yet.

    Args:
      case: the case.
      path: its `tf1_recording`.
      files: of the class that sets it, and of the case: what the path is relative to.
      overridden: of `hooks.COMPARED_WITH_RECORDING` those that the case defines, and the number
        of steps.
    """
    self._case = case
    self._path = path
    self._files = tuple(files)
    self._overridden = overridden
    self._recording: Recording | None = None

  def __getattr__(self, name: str) -> Any:
    return getattr(self._case, name)

  @property
  def case_class(self) -> Any:
    """The class of the case."""
    return type(self._case)

  @property
  def has_own_loss(self) -> bool:
    """Whether the case differentiates another loss than the one that was recorded."""
    return 'loss' in self._overridden

  @property
  def training_steps_to_take(self) -> Any:
    """How many steps to take: as many as were recorded, if the case does not say."""
    steps = None if self._recording is None else self._recording.manifest.steps
    if steps is None or _STEPS in self._overridden:
      return self._case.training_steps_to_take
    return len(steps.steps)

  def declares(self, hook: str) -> bool:
    """Returns whether the recording, for a hook of the reference, or the case has a hook."""
    known = self._recording
    if known is not None:
      manifest = known.manifest
      if hook == 'tf1_loss':
        return manifest.losses is not None and manifest.losses.own_loss
      if hook == 'tf1_total_loss':
        return manifest.losses is not None and manifest.losses.own_total_loss
      if hook in _MADE_BY:
        return manifest.steps is not None and manifest.steps.made_by == _MADE_BY[hook]
      if hook == 'tf1_checkpoint' and manifest.checkpoint is not None:
        return True
    return bool(self._case.declares(hook))

  def tf1_checkpoint(self) -> str:
    """Returns the path of the checkpoint that the recording, or the case, names.

    Raises:
      NotApplicable: it is not here.
      RecordingError: it holds something else than was recorded.
    """
    if self._recording is None:
      return str(self._case.tf1_checkpoint())
    return checkpoint_path(self._recording, self._case)

  def reference(self) -> tuple[tuple[str, str], ...]:
    """Returns what made the reference, for a report; empty before it is opened."""
    if self._recording is None:
      return ()
    manifest = self._recording.manifest
    made = manifest.environment
    what = f'TensorFlow {made.get("tensorflow", "?")}, Python {made.get("python", "?")}'
    return (('reference', f'{what}, recorded {manifest.made[:10]}'),)

  def open(self) -> OpenedRecording:
    """Opens the recording, verifies all of it and holds it against the case.

    Raises:
      RecordingError: it is not there, is damaged, or is of another case.
    """
    recording = Recording.open(self._found())
    recording.check()
    self._check_modes(recording)
    inputs = self._inputs(recording)
    labels = self._labels(recording)
    changes = recorded_sources.check(recording.manifest.builder, self._files, recording.path)
    notes = (*changes, *blind_spots(recording, self._case.training_modes))
    self._recording = recording
    return OpenedRecording(recording, inputs, labels, notes)

  def _found(self) -> str:
    if not isinstance(self._path, (str, os.PathLike)):
      raise RecordingError(
        f'tf1_recording is {self._path!r:.80}; it must be the path of a folder that '
        'tf1_recorder.py has written'
      )
    path = os.fspath(self._path)
    folders = [*dict.fromkeys(os.path.dirname(os.path.abspath(file)) for file in self._files)]
    tried = [*dict.fromkeys(os.path.join(folder, path) for folder in [*folders, os.getcwd()])]
    for candidate in tried:
      if os.path.lexists(candidate):
        return candidate
    raise RecordingError(
      f'tf1_recording = {path!r}: there is no such folder (looked for: {", ".join(tried)}); record '
      'the reference where TensorFlow 1.x is (python -m tf2verify recorder > tf1_recorder.py), and '
      'copy the folder here'
    )

  def _check_modes(self, recording: Recording) -> None:
    recorded = recording.manifest.training_modes
    modes = self._case.training_modes
    missing = [mode for mode in modes if mode not in recorded]
    if missing:
      names = {False: 'inference', True: 'training'}
      raise RecordingError(
        f'{recording.path} has no run of {" and ".join(names[mode] for mode in missing)} mode, '
        f'which training_modes = {tuple(modes)!r} asks for: record with --training '
        f'{",".join(names[mode] for mode in modes)}, or set training_modes = {tuple(recorded)!r}'
      )

  def _inputs(self, recording: Recording) -> Any:
    if 'make_inputs' not in self._overridden:
      return recording.inputs
    with user_code('case', 'make_inputs'):
      given = self._case.make_inputs()
    given = checked_inputs(given, made_by=self._case.make_inputs)
    _check_same('make_inputs', given, recording.inputs, recording.path, '--inputs')
    return given

  def _labels(self, recording: Recording) -> Any:
    if 'make_labels' not in self._overridden:
      return recording.labels
    with user_code('case', 'make_labels'):
      given = self._case.make_labels()
    if given is None:
      return recording.labels
    given = checked_inputs(given, 'make_labels', self._case.make_labels)
    if recording.labels is None:
      if recording.manifest.losses is None:
        return given  # nothing of the recording depends on them
      raise RecordingError(
        f'make_labels of the case gives labels, and {recording.path} was recorded without: record '
        'with --labels'
      )
    _check_same('make_labels', given, recording.labels, recording.path, '--labels')
    return given


def declaration_of(case: Any, base: type) -> Any:
  """Returns what the ladder is to see of a case: itself, or a `RecordedDeclaration`.

  Args:
    case: the case.
    base: the class whose hooks are defaults.
  """
  if case.tf1_recording is None:
    return case
  cls = type(case)
  setter = next((c for c in cls.__mro__ if 'tf1_recording' in vars(c)), cls)
  modules = [sys.modules.get(c.__module__) for c in (setter, cls)]
  files = [file for module in modules if (file := getattr(module, '__file__', None))]
  compared = hooks.COMPARED_WITH_RECORDING
  own = [hook for hook in compared if getattr(cls, hook) is not getattr(base, hook)]
  definitions = [vars(case), *(vars(c) for c in cls.__mro__[: cls.__mro__.index(base)])]
  own += [_STEPS] if any(_STEPS in known for known in definitions) else []
  return RecordedDeclaration(case, case.tf1_recording, files, frozenset(own))


def same_arrays(one: Any, other: Any) -> bool:
  """Returns whether two nests have the same arrays, bit by bit, in the same places."""
  if one is other:
    return True
  ones, others = nests.leaves_by_path(one), nests.leaves_by_path(other)
  return ones.keys() == others.keys() and all(
    _is_same(value, others[path]) for path, value in ones.items()
  )


def _is_same(one: np.ndarray, other: np.ndarray) -> bool:
  return one is other or array_digest(one) == array_digest(other)


def _check_same(hook: str, given: Any, recorded: Any, path: str, option: str) -> None:
  """Raises `RecordingError` where a case's arrays are others than those of the recording."""
  ones, others = nests.leaves_by_path(given), nests.leaves_by_path(recorded)
  fix = (
    f'leave {hook} out of the case, which then takes the recorded arrays; or save what it returns '
    f'with numpy.savez and record with {option} again'
  )
  if ones.keys() != others.keys():
    raise RecordingError(
      f'{hook} of the case gives the arrays {_places(ones)}, and {path} was recorded with '
      f'{_places(others)}: {fix}'
    )
  for place, value in ones.items():
    other = others[place]
    if not _is_same(value, other):
      raise RecordingError(
        f'{hook}(){place} of the case is {_described(value, other)}, and {path} was recorded with '
        f'{_described(other, value)}: {fix}'
      )


def _places(leaves: Mapping[str, np.ndarray]) -> str:
  return ', '.join(place or '(one array)' for place in leaves) or '(none)'


def _described(array: np.ndarray, other: np.ndarray) -> str:
  text = f'{array.shape} {array.dtype}'
  if (array.shape, array.dtype) == (other.shape, other.dtype):
    text += f' with sha256 {array_digest(array)[:12]}…'
  return text
