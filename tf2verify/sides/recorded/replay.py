"""A recorded run, given again."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from tf2verify.errors import NotApplicable
from tf2verify.numerics.noise import RUNS
from tf2verify.numerics.sampling import sampled
from tf2verify.recordings.recording import Recording
from tf2verify.recordings.run_entries import RunEntry
from tf2verify.records.observation import Observation, TensorRecord
from tf2verify.records.sampled import SampledArray
from tf2verify.reference.arrays import widened
from tf2verify.reference.perturbation import Perturber, fraction_bits

# Runs the recorded graph here: moved, or as it is for None; with the gradients of these
# variables, or of all for None.
RunHere = Callable[[Perturber | None, frozenset[str] | None], Observation]


class Replay:
  """A recorded run as it was, moved, or as a second one gave it.

  Moved, it is what was recorded and its noise, the same every time: the greatest of the
  moved runs that the recorder has made. Of a large model these are few, so that some
  elements may have stood still by chance. Where more runs are asked for than decide
  most cases, the graph is run here, and how far that moves is added to what was recorded.
  """

  def __init__(self, recording: Recording, entry: RunEntry, run_here: RunHere) -> None:
    """Takes a run of a recording.

    Args:
      recording: the recording.
      entry: the run.
      run_here: runs its graph; raises `NotApplicable` where that is not done.
    """
    self._recording = recording
    self._entry = entry
    self._run_here = run_here
    self._still: Observation | None = None

  def __call__(
    self, perturber: Perturber | None, again: bool, gradients_of: frozenset[str] | None = None
  ) -> Observation:
    """Returns the run.

    Args:
      perturber: moves it; None leaves it.
      again: whether it is to show if it repeats itself.
      gradients_of: the variables whose gradients are wanted; None for all.
    """
    if perturber is None:
      return self._recording.observation(self._entry, again=again)
    if perturber.number >= RUNS:
      try:
        return self._moved_here(perturber, gradients_of)
      except NotApplicable:
        pass  # what was recorded is all that is known
    return self._recording.observation(self._entry, moved=True)

  def _moved_here(self, perturber: Perturber, gradients_of: frozenset[str] | None) -> Observation:
    if self._still is None:
      self._still = self._run_here(None, gradients_of)
    still, moved = self._still, self._run_here(perturber, gradients_of)
    recorded = self._recording.observation(self._entry)
    losses = zip(
      recorded.regularization_losses,
      still.regularization_losses,
      moved.regularization_losses,
      strict=True,
    )
    return dataclasses.replace(
      recorded,
      outputs=_shifted_records(recorded.outputs, still.outputs, moved.outputs),
      regularization_losses=tuple(
        dataclasses.replace(one, value=_shifted(one.value, before.value, after.value))
        for one, before, after in losses
      ),
      regularization_total=_shifted_total(recorded, still, moved),
      state_after=_shifted_records(recorded.state_after, still.state_after, moved.state_after),
      gradients=_shifted_records(recorded.gradients, still.gradients, moved.gradients),
    )


def _shifted_total(
  recorded: Observation, still: Observation, moved: Observation
) -> np.ndarray | None:
  total, before = recorded.regularization_total, still.regularization_total
  after = moved.regularization_total
  if total is None or before is None or after is None:
    return total
  return _shifted(total, before, after)


def _shifted_records(
  recorded: Sequence[TensorRecord], still: Sequence[TensorRecord], moved: Sequence[TensorRecord]
) -> tuple[TensorRecord, ...]:
  before, after = _by_name(still), _by_name(moved)
  return tuple(
    TensorRecord(record.name, _shifted(record.value, before[record.name], after[record.name]))
    if record.value is not None and record.name in before and record.name in after
    else record
    for record in recorded
  )


def _by_name(records: Sequence[TensorRecord]) -> Mapping[str, np.ndarray]:
  return {record.name: record.value for record in records if record.value is not None}


def _shifted(recorded: np.ndarray, still: np.ndarray, moved: np.ndarray) -> np.ndarray:
  if fraction_bits(recorded.dtype) is None or still.shape != moved.shape:
    return recorded
  with np.errstate(all='ignore'):
    shift = widened(moved) - widened(still)
  if isinstance(recorded, SampledArray):
    shift = sampled(shift, recorded.samples, recorded.block, sha256='')
  found: np.ndarray = widened(recorded) + shift
  return found
