"""Which tensors of a recorded reference repeated themselves when it was recorded."""

import dataclasses

import numpy as np

from tf2verify.numerics.repeatability import varying
from tf2verify.recordings import observations
from tf2verify.recordings.run_entries import RunEntry
from tf2verify.records.repetition import Variation
from tf2verify.records.tensor_key import Run, TensorKey
from tf2verify.sides.observed_tensors import all_tensors
from tf2verify.sides.process import randomness
from tf2verify.sides.recorded.build import parsed
from tf2verify.sides.repetition import repeating
from tf2verify.sides.repetition.gpu_kernels import WATCHED
from tf2verify.sides.repetition.run_ops import Sources
from tf2verify.sides.side import RunSpec
from tf2verify.sides.tf1.reference import RecordedReference

REMARK = (
  'the reference was run twice when it was recorded, and is not run here: what was the same both '
  'times, except for rounding, counts as the same bits'
)
_VARIED = 'other numbers in a second run when it was recorded'


def recorded_tensors(tf1: RecordedReference, run: RunSpec) -> Run:
  """Returns what was recorded of the runs that are repeated; the graph is not run for others.

  Args:
    tf1: the recorded reference.
    run: from given values, with gradients.

  Raises:
    RecordingError: the values are others than were recorded.
  """
  tf1.check_fill(run)
  observed = [tf1.recording.observation(entry) for entry in _entries(tf1, run)]
  tensors: dict[TensorKey, np.ndarray | None] = {}
  for found in observed:
    tensors.update(all_tensors(found))
  return tensors


def _entries(tf1: RecordedReference, run: RunSpec) -> list[RunEntry]:
  recording = tf1.recording
  found: list[RunEntry | None] = [
    recording.manifest.seeded(randomness.CONSTANT, run.training),
    recording.manifest.filled(run.training, run.fill.description, 'varied', True)
    or recording.manifest.filled(run.training, run.fill.description, 'varied', False),
  ]
  return [entry for entry in found if entry is not None]


def varying_tensors(
  tf1: RecordedReference, run: RunSpec, steps: int, with_steps: bool
) -> tuple[Variation, ...]:
  """Returns what came out differently in the second run of the recorder.

  Args:
    tf1: the recorded reference.
    run: from given values, with gradients.
    steps: how many training steps are looked at.
    with_steps: whether they are.
  """
  recording = tf1.recording
  found: list[Variation] = []
  for entry in _entries(tf1, run):
    first, again = (recording.observation(entry, again=second) for second in (False, True))
    found += varying(all_tensors(first), all_tensors(again))
  if with_steps:
    found += varying(_of_steps(tf1, steps, False), _of_steps(tf1, steps, True))
  return tuple(dataclasses.replace(variation, other=_VARIED) for variation in found)


def _of_steps(tf1: RecordedReference, count: int, again: bool) -> Run:
  taken = tf1.recording.steps(again=again)
  if taken is None:
    return {}
  steps = taken.steps[:count]
  return repeating.tensors_of_steps(iter(steps).__next__, len(steps))


def watched_ops(tf1: RecordedReference, training: bool) -> Sources:
  """Returns the types of the operations that vary on a GPU, with the user's line of the first."""
  entry = tf1.entry(training)
  nodes = parsed(tf1.recording.graph_def(entry), tf1.recording.path).node
  lines = observations.source_lines(entry.sources)
  numbers = tf1.recording.op_sources(entry).tolist()
  found: Sources = {}
  for node, number in zip(nodes, numbers, strict=False):
    if node.op in WATCHED and found.get(node.op) is None:
      found[node.op] = lines[number] if number >= 0 else None
  return found
