"""Whether a difference is the port's, or one between two versions of TensorFlow.

Numbers that TensorFlow 1.x recorded are compared with those of a port on another
TensorFlow. The recorded graph, run by that TensorFlow, stands between the two: it is the
reference's model on the port's kernels.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from tf2verify.diagnosis.causes import causes_of
from tf2verify.diagnosis.divergence.tensors.sources import InspectableRun
from tf2verify.diagnosis.evidence.variation import OtherVersion
from tf2verify.numerics.agreement import agreement
from tf2verify.numerics.sampling import Views
from tf2verify.records.diagnosis import Diagnosis
from tf2verify.records.failed_tensor import FailedTensor
from tf2verify.records.observation import Observation
from tf2verify.records.op_graph import TARGET
from tf2verify.records.recorded_on_current_tf import RecordedGraphHere
from tf2verify.records.sampled import SampledArray
from tf2verify.records.tensor_key import TensorKey
from tf2verify.sides.observed_tensors import tensors_of

# The graph run here is close to one of the two if it is ten times nearer to it.
_NEARER = 0.1


@dataclasses.dataclass(frozen=True)
class _Distances:
  """Of one tensor, over the greatest magnitude of what was recorded."""

  name: str  # the tensor
  here: float  # from what was recorded to the graph run here
  port: float  # from what was recorded to the port
  between: float  # from the graph run here to the port


def with_versions(
  diagnosis: Diagnosis,
  tensors: Sequence[FailedTensor],
  here: RecordedGraphHere,
  run: InspectableRun | None = None,
) -> Diagnosis:
  """Returns a diagnosis that tells the port's faults from changed kernels.

  Args:
    diagnosis: of the failed run.
    tensors: arrays behind the differences, those of the run among them.
    here: the same run of the recorded graph.
    run: the graph run here, to find the operation that differs first; None without one.
  """
  found = [
    distances
    for failed in tensors
    if failed.run == diagnosis.run and (distances := _distances(failed, here.observation))
  ]
  if not found:
    return diagnosis
  far = [one for one in found if one.between <= _NEARER * one.here and one.here > 0]
  if far and len(far) == len(found):
    worst = max(far, key=lambda one: one.here)
    first = '' if run is None else _first(here, run)
    evidence = OtherVersion(
      here.recorded_by, here.run_by, worst.name, worst.here, worst.between, first
    )
    return dataclasses.replace(diagnosis, causes=tuple(causes_of(evidence)))
  note = _note(here, found, len(far))
  return dataclasses.replace(diagnosis, notes=(*diagnosis.notes, note))


def _note(here: RecordedGraphHere, found: Sequence[_Distances], far: int) -> str:
  worst = max(found, key=lambda one: one.here)
  if all(one.here <= _NEARER * one.port for one in found):
    return (
      f'the recorded graph, run by {here.run_by} here, gives what {here.recorded_by} recorded '
      f"(max relative difference {worst.here:.2g}): the difference is the port's"
    )
  if far:
    return (
      f'{far} of {len(found)} tensors differ as the recorded graph does, run by {here.run_by} here '
      f'({worst.name} by a relative {worst.here:.2g}): there the kernels of {here.recorded_by} '
      "compute differently; the other differences are the port's"
    )
  return (
    f'the recorded graph, run by {here.run_by} here, differs from what {here.recorded_by} recorded '
    f'by a relative {worst.here:.2g} ({worst.name}), and the port by {worst.port:.2g}: part of the '
    'difference may be due to the versions of TensorFlow'
  )


def _distances(failed: FailedTensor, observation: Observation) -> _Distances | None:
  key = TensorKey(failed.quantity, failed.name)
  computed = tensors_of(observation, [key])[key]
  if computed is None:
    return None
  recorded, port = failed.tf1, failed.tf2
  if isinstance(recorded, SampledArray):
    if recorded.full_shape != port.shape or recorded.full_shape != computed.shape:
      return None
    views = Views(recorded, port)
    shown = views.of(computed)
    if shown is None:
      return None
    recorded, port, computed = views.tf1, views.tf2, shown
  if recorded.shape != computed.shape or recorded.dtype.kind not in 'fcV':
    return None
  here, apart = agreement(recorded, computed), agreement(recorded, port)
  between = agreement(computed, port)
  numbers = [here.absolute, apart.absolute, between.absolute]
  scale = here.scale or 1.0
  if here.identical:
    numbers[0] = 0.0
  return _Distances(f'{failed.quantity} {failed.name}', *(number / scale for number in numbers))


def _first(here: RecordedGraphHere, run: InspectableRun) -> str:
  """Returns the first operation that yields something else than was recorded."""
  known = [
    (op, tensor)
    for op in run.op_graph.ops
    if op.op_type != TARGET and not op.is_leaf
    for tensor in op.tensors[:1]
    if tensor in here.intermediates
  ]
  values = run.fetch([tensor for _, tensor in known])
  for (op, tensor), value in zip(known, values, strict=True):
    if not _agree(here.intermediates[tensor], value):
      line = f', {op.source}' if op.source is not None else ''
      return f'{op.name} ({op.op_type}{line})'
  return ''


def _agree(recorded: np.ndarray, value: np.ndarray) -> bool:
  one: Any = recorded
  other: Any = value
  if isinstance(recorded, SampledArray):
    if recorded.full_shape != value.shape:
      return False
    views = Views(recorded, value)
    one, other = views.tf1, views.tf2
  return agreement(one, other).is_rounding
