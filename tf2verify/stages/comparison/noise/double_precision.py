"""Both sides computed with 64 bits, to see whether a difference is rounding.

Moved inputs show how far rounding takes the reference's own operations. A port that computes the
same function by others rounds differently: `z + half` for `inv * (x - mean + half)`. With 64 bits
both give the same, unless they are not the same function; how far 32 bits are from that is the
rounding of each side, measured and not estimated.
"""

import dataclasses
import math
from collections.abc import Callable, Sequence

import numpy as np

from tf2verify.errors import Tf2VerifyError
from tf2verify.numerics.noise import Kind, NoiseVerdict
from tf2verify.records.tensor_key import TensorKey
from tf2verify.sides.graphs.run import GraphRun
from tf2verify.sides.tf2.traces.tracing import NotTraceable
from tf2verify.stages.comparison.noise.rounding import Sorted, Suspect

# What is left with 64 bits of a difference that is rounding: constants were rounded to 32 before.
_LEFT = 1e-2
_SAME = 1e-7  # relative
# Of the greatest element: of more the port must not lose more digits than the reference.
_SMALL = 1e-3
_LARGE = 0.1  # more is no rounding
_LINED_UP = 1.0  # the same where roundings line up, and another run has agreed
# How many times the error of the reference that of the port may be; and where it has that of steps
# before, which a batch norm in single operations passes on ten times as large as a fused one.
FACTOR = 4.0
FACTOR_LATER = 16.0
_NOTE = (
  'computed with 64 bits, both sides agree in {}, to {:.1g}: that difference is the rounding of 32 '
  'bits, which is {:.2g} times {}'
)
_OF_TF1 = 'as large in the port as in tf1'
_OF_NOISE = 'the rounding noise of tf1'

Graphs = Callable[[], tuple[GraphRun, GraphRun]]
_Arrays = dict[TensorKey, np.ndarray]


def _own_name(key: TensorKey) -> str:
  return f'{key.quantity} {key.name}'


def _as_it_is(key: TensorKey, value: np.ndarray, run: GraphRun) -> np.ndarray:
  return value


def _from_nothing(key: TensorKey) -> TensorKey | None:
  return None


@dataclasses.dataclass(frozen=True)
class Targets:
  """How what is compared is found in graphs: by the names of their targets, as it is there."""

  name_of: Callable[[TensorKey], str] = _own_name  # the target that a tensor is
  # A target's value as the tensor that is compared.
  shown: Callable[[TensorKey, np.ndarray, GraphRun], np.ndarray] = _as_it_is
  # Whether the port starts with the rounding of steps before, which the graphs do not have.
  after_others: bool = False
  # Whether the graph of TF1 has to yield again what was compared, which a recording may not do.
  repeats: bool = False
  # What a tensor is computed from that the graphs of both sides keep differently.
  source_of: Callable[[TensorKey], TensorKey | None] = _from_nothing


@dataclasses.dataclass(frozen=True)
class _Errors:
  """Of the elements of a tensor that differ, relative: apart with 64 bits, and errors of 32."""

  apart: float
  tf1: float
  tf2: float

  @property
  def ratio(self) -> float:
    return self.tf2 / max(self.tf1, float(np.finfo(np.float32).eps))


def explained(
  suspects: Sequence[Suspect],
  found: Sorted,
  graphs: Graphs,
  targets: Targets = Targets(),
  lined_up: bool = False,
) -> Sorted:
  """Returns the judgement of small differences by both sides computed with 64 bits.

  A tensor that rounding makes as large as it is stays one that tells nothing.

  Args:
    suspects: differences of one run.
    found: what moves of inputs and values have shown.
    graphs: returns the run of both sides; it is asked only if that may explain something.
    targets: where these have what is compared.
    lined_up: whether roundings line up in this run, and nothing differs in another one.

  Returns:
    `found`, with those differences as rounding that are, if all that are left are.
  """
  wrong = {id(d): noise for d, noise in found.judged if noise.kind is Kind.DIFFERENT}
  most = _LINED_UP if lined_up else _LARGE
  if not wrong or any(not noise.difference <= most * noise.size for noise in wrong.values()):
    return found
  is_small = all(noise.difference <= _SMALL * noise.size for noise in wrong.values())
  left = [suspect for suspect in suspects if id(suspect.difference) in wrong]
  errors = _errors(
    left, graphs, dataclasses.replace(targets, repeats=not is_small or targets.repeats)
  )
  if len(errors) < len(left):
    return found
  may_lose_digits = is_small or targets.after_others
  times_tf1 = FACTOR_LATER if targets.after_others and is_small else FACTOR
  times_tf1 = times_tf1 if may_lose_digits else 1.0
  # That one run of TF1 rounds little may be chance, which the noise of several runs is not: it has
  # the rounding of all steps before, too. Of a large difference without any it excuses nothing.
  noises = {s.key: wrong[id(s.difference)].ratio if may_lose_digits else math.inf for s in left}
  times = {
    key: min(
      (one.ratio / times_tf1, one.ratio, _OF_TF1), (_beyond(noises[key]), noises[key], _OF_NOISE)
    )
    for key, one in errors.items()
  }
  worst = max(times, key=lambda key: times[key][0])
  excess, *told = times[worst]
  note = _NOTE.format(worst, errors[worst].apart, *told)
  if excess > 1.0:
    return dataclasses.replace(found, notes=(*found.notes, note))
  judged = [(d, _as_rounding(noise) if id(d) in wrong else noise) for d, noise in found.judged]
  return dataclasses.replace(found, judged=tuple(judged), notes=(*found.notes, note))


def _beyond(ratio: float) -> float:
  """Returns how far a difference is beyond what noise excuses; noise that is not known, nothing."""
  return math.inf if math.isnan(ratio) else ratio / FACTOR


def _as_rounding(noise: NoiseVerdict) -> NoiseVerdict:
  return dataclasses.replace(noise, kind=Kind.ROUNDING, noise=noise.difference, index=-1)


def _errors(
  suspects: Sequence[Suspect], graphs: Graphs, targets: Targets
) -> dict[TensorKey, _Errors]:
  """Returns the errors of tensors that are the same with 64 bits; without the others."""
  try:
    runs = graphs()
  except (Tf2VerifyError, NotTraceable):
    return {}
  try:
    there = [s for s in suspects if all(_is_target(s.key, run, targets) for run in runs)]
    wide = [_values(run, there, targets, GraphRun.in_double) for run in runs]
    again = _values(runs[0], there, targets, GraphRun.fetch) if targets.repeats else wide[0]
  finally:
    for run in runs:
      run.close()
  found: dict[TensorKey, _Errors] = {}
  for suspect in there:
    key = suspect.key
    if not all(key in values for values in (*wide, again)):
      continue
    if targets.repeats and not _is_repeated(suspect, again[key]):
      continue
    errors = _of(suspect, wide[0][key], wide[1][key])
    if errors is not None:
      found[key] = errors
  sources = {suspect.key: suspect for suspect in there if suspect.key in found}
  for suspect in suspects:
    source = sources.get(targets.source_of(suspect.key) or suspect.key)
    if suspect.key not in found and source is not None and _may_follow(suspect, source):
      found[suspect.key] = found[source.key]
  return found


def _is_target(key: TensorKey, run: GraphRun, targets: Targets) -> bool:
  return targets.name_of(key) in run.op_graph.targets()


def _may_follow(suspect: Suspect, source: Suspect) -> bool:
  """Returns whether a tensor differs by no more than what comes from another one's rounding.

  A square doubles a relative error, and a sum of some that may cancel each other adds to that.
  """
  own, others = (
    float(np.abs(s.tf1.astype(np.float64) - s.tf2).max(initial=0.0) / (np.abs(s.tf1).max() or 1.0))
    for s in (suspect, source)
  )
  return suspect.tf1.shape == source.tf1.shape and own <= FACTOR * others


def _is_repeated(suspect: Suspect, again: np.ndarray) -> bool:
  """Returns whether TF1's graph yields what was compared, but for little of what differs."""
  if again.shape != suspect.tf1.shape:
    return False
  differs = np.abs(suspect.tf1.astype(np.float64) - suspect.tf2).max(initial=0.0)
  return bool(np.abs(again.astype(np.float64) - suspect.tf1).max(initial=0.0) <= _LEFT * differs)


def _values(
  run: GraphRun,
  suspects: Sequence[Suspect],
  targets: Targets,
  fetch: Callable[[GraphRun, Sequence[str]], list[np.ndarray] | None],
) -> _Arrays:
  """Returns the tensors of suspects as a run gives them; nothing if that is not possible."""
  positions = run.op_graph.targets()
  names: dict[TensorKey, str] = {}
  for suspect in suspects:
    position = positions.get(targets.name_of(suspect.key))
    tensors = () if position is None else run.op_graph.ops[position].tensors
    if len(tensors) != 1 or suspect.views is not None or suspect.tf1.dtype != np.float32:
      return {}
    names[suspect.key] = tensors[0]
  values = fetch(run, list(names.values()))
  if values is None:
    return {}
  return {key: targets.shown(key, v, run) for key, v in zip(names, values, strict=True)}


def _of(suspect: Suspect, tf1: np.ndarray, tf2: np.ndarray) -> _Errors | None:
  """Returns the errors of a tensor; None where it is not the same with 64 bits.

  The errors are those of what was compared: a graph may lack what the port does outside of it.

  Args:
    suspect: the tensor.
    tf1: what TF1 computes with 64 bits.
    tf2: what the port does.
  """
  narrow = suspect.tf1, suspect.tf2
  arrays = (tf1, tf2, *narrow)
  if len({np.shape(a) for a in arrays}) > 1 or not all(np.isfinite(a).all() for a in arrays):
    return None
  ones, others = (array.astype(np.float64) for array in narrow)
  allowed = suspect.tolerance.atol + suspect.tolerance.rtol * np.abs(tf1)
  differs = np.abs(ones - others)
  # Where TF1 has lost many digits, a mistake would be small compared to what rounding makes.
  small = np.minimum(differs, _SMALL * np.abs(tf1).max(initial=0.0))
  apart = np.abs(tf1 - tf2)
  vanishes = apart <= np.maximum(_LEFT * np.maximum(small, allowed), _SAME * np.abs(tf1))
  beyond = differs > allowed
  if not vanishes.all() or not beyond.any():
    return None
  # Element by element, or large ones would hide the small ones beside them.
  scale = np.abs(tf1[beyond]) + suspect.tolerance.atol
  errors = (apart, np.abs(ones - tf1), np.abs(others - tf2))
  return _Errors(*(float((error[beyond] / scale).max()) for error in errors))
