"""Both sides computed with 64 bits, to see whether a difference is rounding.

Moved inputs show how far rounding takes the reference's own operations. A port that computes the
same function by others rounds otherwise: `z + half` for `inv * (x - mean + half)`. With 64 bits
both give the same, unless they are not the same function; how far 32 bits are from that is the
rounding of each side, measured and not estimated.
"""

import dataclasses
from collections.abc import Callable, Sequence

import numpy as np

from tf2verify.errors import Tf2VerifyError
from tf2verify.numerics.noise import Kind, NoiseVerdict
from tf2verify.records.tensor_key import TensorKey
from tf2verify.sides.graphs.run import GraphRun
from tf2verify.sides.tf2.tracing import NotTraceable
from tf2verify.stages.comparison.rounding import Sorted, Suspect

# What is left with 64 bits of a difference that is rounding: constants were rounded to 32 before.
_LEFT = 1e-2
_SAME = 1e-7  # relative
# Of the greatest element: more is no rounding.
_SMALL = 1e-3
# How many times the error of the reference that of the port may be.
FACTOR = 4.0
_NOTE = (
  'with 64 bits both sides agree (worst: {}, to {:.1g}): what differs is the rounding of 32 bits, '
  'which is {:.2g} times as much in the port as in tf1'
)

Graphs = Callable[[], tuple[GraphRun, GraphRun]]


@dataclasses.dataclass(frozen=True)
class _Errors:
  """Of the elements of a tensor that differ, relative: apart with 64 bits, and errors of 32."""

  apart: float
  tf1: float
  tf2: float

  @property
  def ratio(self) -> float:
    return self.tf2 / max(self.tf1, float(np.finfo(np.float32).eps))


def explained(suspects: Sequence[Suspect], found: Sorted, graphs: Graphs) -> Sorted:
  """Returns the judgement of small differences by both sides computed with 64 bits.

  A tensor that rounding makes as large as it is stays one that tells nothing.

  Args:
    suspects: differences of one run.
    found: what moves of inputs and values have shown.
    graphs: returns the run of both sides; it is asked only if that may explain something.

  Returns:
    `found`, with those differences as rounding that are, if all that are left are.
  """
  wrong = {id(d): noise for d, noise in found.judged if noise.kind is Kind.DIFFERENT}
  if not wrong or any(not noise.difference <= _SMALL * noise.size for noise in wrong.values()):
    return found
  left = [suspect for suspect in suspects if id(suspect.difference) in wrong]
  errors = _errors(left, graphs)
  if len(errors) < len(left):
    return found
  worst = max(errors, key=lambda key: errors[key].ratio)
  note = _NOTE.format(worst, errors[worst].apart, errors[worst].ratio)
  if errors[worst].ratio > FACTOR:
    return dataclasses.replace(found, notes=(*found.notes, note))
  judged = [(d, _as_rounding(noise) if id(d) in wrong else noise) for d, noise in found.judged]
  return dataclasses.replace(found, judged=tuple(judged), notes=(*found.notes, note))


def _as_rounding(noise: NoiseVerdict) -> NoiseVerdict:
  return dataclasses.replace(noise, kind=Kind.ROUNDING, noise=noise.difference, index=-1)


def _errors(suspects: Sequence[Suspect], graphs: Graphs) -> dict[TensorKey, _Errors]:
  """Returns the errors of tensors that are the same with 64 bits; without the others."""
  try:
    one, other = graphs()
  except (Tf2VerifyError, NotTraceable):
    return {}
  try:
    wide = [_wide(run, suspects) for run in (one, other)]
  finally:
    one.close()
    other.close()
  found: dict[TensorKey, _Errors] = {}
  for suspect in suspects:
    tf1, tf2 = (values.get(suspect.key) for values in wide)
    errors = None if tf1 is None or tf2 is None else _of(suspect, tf1, tf2)
    if errors is not None:
      found[suspect.key] = errors
  return found


def _wide(run: GraphRun, suspects: Sequence[Suspect]) -> dict[TensorKey, np.ndarray]:
  """Returns the tensors of suspects, computed with 64 bits; nothing if that is not possible."""
  targets = run.op_graph.targets()
  names: dict[TensorKey, str] = {}
  for suspect in suspects:
    position = targets.get(f'{suspect.key.quantity} {suspect.key.name}')
    tensors = () if position is None else run.op_graph.ops[position].tensors
    if len(tensors) != 1 or suspect.views is not None or suspect.tf1.dtype != np.float32:
      return {}
    names[suspect.key] = tensors[0]
  values = run.in_double(list(names.values()))
  return {} if values is None else dict(zip(names, values, strict=True))


def _of(suspect: Suspect, tf1: np.ndarray, tf2: np.ndarray) -> _Errors | None:
  """Returns the errors of a tensor; None where it is not the same with 64 bits."""
  narrow = suspect.tf1, suspect.tf2
  shapes = {np.shape(array) for array in (tf1, tf2, *narrow)}
  if len(shapes) > 1 or not all(np.isfinite(array).all() for array in (tf1, tf2, *narrow)):
    return None
  ones, others = (array.astype(np.float64) for array in narrow)
  allowed = suspect.tolerance.atol + suspect.tolerance.rtol * np.abs(tf1)
  differs = np.abs(ones - others)
  apart = np.abs(tf1 - tf2)
  vanishes = apart <= np.maximum(_LEFT * np.maximum(differs, allowed), _SAME * np.abs(tf1))
  beyond = differs > allowed
  if not vanishes.all() or not beyond.any():
    return None
  # Element by element, or large ones would hide the small ones beside them.
  scale = np.abs(tf1[beyond]) + suspect.tolerance.atol
  errors = (apart, np.abs(ones - tf1), np.abs(others - tf2))
  return _Errors(*(float((error[beyond] / scale).max()) for error in errors))
