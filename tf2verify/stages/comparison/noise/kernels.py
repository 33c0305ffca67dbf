"""Differences from a recording that are between the kernels of two versions of TensorFlow.

A recorded reference was computed by other kernels than the port. Moving its values by one
unit in the last place does not show how far that takes a deep network, since every one
of its operations rounds differently: Inception-ResNet-v2 of TensorFlow 1.15.5 and of 2.21
are up to 23 times their noise apart (docs/decisions/0026-replay.md). The recorded graph,
run here, has the port's kernels: what differs from the recording as that does is no
fault of the port.
"""

from collections.abc import Sequence

import numpy as np

from tf2verify.errors import NotApplicable
from tf2verify.numerics.noise import Kind, NoiseVerdict
from tf2verify.records.difference import Difference
from tf2verify.reference.arrays import widened
from tf2verify.reference.perturbation import Perturber
from tf2verify.stages.comparison.noise import rounding
from tf2verify.stages.comparison.noise.reruns import Rerun, RunHere
from tf2verify.stages.comparison.noise.rounding import Sorted, Suspect

# Up to this multiple of the noise, what the graph run here differs by is taken for rounding.
FACTOR = 64.0


def sort_out(
  suspects: Sequence[Suspect], rerun: Rerun, here: RunHere | None, narrow_bits: int = 0
) -> Sorted:
  """Judges differences as `rounding.sort_out` does, and by the recorded graph where that fails.

  A difference is one of kernels where the port agrees, within the tolerance, with the
  recorded graph run here, and that graph is no more than `FACTOR` times the noise away
  from what was recorded. Nothing is excused beside a difference that is none.

  Args:
    suspects: differences of one run.
    rerun: repeats the reference.
    here: None for a reference that is not a recording.
    narrow_bits: as in `rounding.sort_out`.
  """
  found = rounding.sort_out(suspects, rerun, narrow_bits)
  excused = {id(difference) for difference in (*found.rounding, *found.degenerate)}
  if here is None or all(id(suspect.difference) in excused for suspect in suspects):
    return found
  of_kernels = _of_kernels(suspects, rerun, here)
  if not of_kernels:
    return found
  explained = {id(difference) for difference, _ in of_kernels}
  others = rounding.sort_out([s for s in suspects if id(s.difference) not in explained], rerun)
  left = len(suspects) - len(of_kernels) - len(others.rounding) - len(others.degenerate)
  if left:
    return found
  return Sorted((*of_kernels, *others.judged), (*others.notes, _note(of_kernels)))


def _of_kernels(
  suspects: Sequence[Suspect], rerun: Rerun, here: RunHere
) -> list[tuple[Difference, NoiseVerdict]]:
  wanted = rounding.keys_of(suspects)
  try:
    computed = here(wanted)
  except NotApplicable:
    return []
  moved = rerun(Perturber(0, rounding.finest(suspects)), wanted)
  judged = []
  for suspect in suspects:
    verdict = _judged(suspect, suspect.among(computed), suspect.among(moved))
    if verdict is not None:
      judged.append((suspect.difference, verdict))
  return judged


def _judged(
  suspect: Suspect, computed: np.ndarray | None, moved: np.ndarray | None
) -> NoiseVerdict | None:
  """Returns the verdict on a difference of kernels; None for any other one."""
  if computed is None or moved is None or computed.shape != suspect.tf2.shape:
    return None
  here, port, recorded = widened(computed), widened(suspect.tf2), widened(suspect.tf1)
  with np.errstate(all='ignore'):
    allowed = suspect.tolerance.atol + suspect.tolerance.rtol * np.abs(here)
    agree = (np.abs(port - here) <= allowed) | (np.isnan(port) & np.isnan(here)) | (port == here)
    difference = float(np.max(np.abs(here - recorded), where=np.isfinite(recorded), initial=0.0))
    noise = float(
      np.max(np.abs(widened(moved) - recorded), where=np.isfinite(recorded), initial=0.0)
    )
  if not agree.all() or not noise or not difference <= FACTOR * noise:
    return None
  size = float(np.max(np.abs(recorded), where=np.isfinite(recorded), initial=0.0))
  # Not DEGENERATE, however noisy: the graph run here, which the port agrees with, tells.
  return NoiseVerdict(Kind.ROUNDING, difference, noise, size)


def _note(judged: Sequence[tuple[Difference, NoiseVerdict]]) -> str:
  difference, verdict = max(judged, key=lambda pair: pair[1].ratio)
  count = '1 tensor differs' if len(judged) == 1 else f'{len(judged)} tensors differ'
  return (
    f'{count} from what was recorded as the recorded graph does, run here, and by no more than '
    f'{FACTOR:.0f} x rounding noise: kernels of a different version round differently (worst: '
    f'{difference.quantity} {difference.subject} [{difference.run}], difference '
    f'{verdict.difference:.2g}, noise {verdict.noise:.2g}, largest element {verdict.size:.2g})'
  )
