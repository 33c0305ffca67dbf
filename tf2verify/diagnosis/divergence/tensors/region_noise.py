"""How far rounding alone moves what an operation yields, element by element.

The greatest element says little of the others: beside a mask of -1e9, any difference of
the scores is a small one. So each result on the way to the output, what enters
included, is moved by one unit in the last place, and the output is computed from there
again. That is the noise of `compare.noise`, of a few operations in place of a model, and
of all their results in place of the inputs alone: `log(1 + x)` loses the digits of a small x
in the sum.
"""

import dataclasses
import math
from collections.abc import Mapping, Sequence

import numpy as np

from tf2verify.diagnosis.divergence.tensors.regions import Region
from tf2verify.diagnosis.divergence.tensors.sources import FoundSource, InspectableRun
from tf2verify.numerics.agreement import Agreement
from tf2verify.numerics.noise import ELEMENT_FACTOR
from tf2verify.reference.perturbation import fraction_bits, moved

# How often what enters is moved: with one coin, two terms of a sum may cancel out.
_RUNS = 3
# Of the results on the way, no more are moved.
_MOST_RESULTS = 24


def settled(
  source: FoundSource,
  sides: Sequence[tuple[InspectableRun, Mapping[str, np.ndarray]]],
) -> FoundSource:
  """Returns a source whose difference is small compared to the greatest element, judged by element.

  Args:
    source: with a doubtful agreement.
    sides: tf1 and tf2: the run, and what enters the source's region by tensor names.

  Returns:
    The source with the agreement of those elements that are further apart than rounding
    brings them; the source as it is where there are none, or no noise can be measured.
  """
  if source.output is None:
    return source
  regions = source.regions.tf1, source.regions.tf2
  tf1, tf2 = source.tf1, source.tf2_as_tf1
  noise = np.zeros(tf1.shape)
  for (run, given), region in zip(sides, regions, strict=True):
    found = _noise(run, region, source.output, given)
    if found is None:
      return source
    if found.shape != tf1.shape and source.layout is not None:
      found = source.layout.to_tf1(found)
    if found.shape != tf1.shape:
      return source
    noise = np.maximum(noise, found)
  wide, other = tf1.astype(np.float64), tf2.astype(np.float64)
  finite = np.isfinite(wide) & np.isfinite(other)
  apart = np.abs(np.subtract(wide, other, out=np.zeros_like(wide), where=finite))
  epsilon = source.agreement.epsilon
  allowed = np.maximum(ELEMENT_FACTOR * noise, math.sqrt(epsilon) * np.abs(wide))
  beyond = finite & (apart > allowed)
  if not beyond.any():
    return source
  sizes = np.abs(wide[beyond]).max(), np.abs(other[beyond]).max()
  judged = Agreement(False, float(apart[beyond].max()), float(sizes[0] or sizes[1]), epsilon)
  return dataclasses.replace(source, agreement=judged, elements=beyond)


def _noise(
  run: InspectableRun, region: Region, output: int, given: Mapping[str, np.ndarray]
) -> np.ndarray | None:
  """Returns how far moved results move an output; None where that cannot be computed."""
  ops = run.op_graph.ops
  wanted = ops[region.end].tensors[output]
  inner = [ops[n].tensors[0] for n in region.inner if ops[n].tensors and _is_number(ops[n].outputs)]
  inner = inner[-_MOST_RESULTS:]
  (base,) = run.recompute([([wanted, *inner], given)])
  if base is None or fraction_bits(base[0].dtype) is None or base[0].dtype.kind == 'c':
    return None
  requests: list[tuple[list[str], dict[str, np.ndarray]]] = [
    ([wanted], {name: _moved(value, f'{number}:{name}') for name, value in given.items()})
    for number in range(_RUNS)
  ]
  for name, value in zip(inner, base[1:], strict=True):
    requests.append(([wanted], {**given, name: _moved(value, name)}))
  noise = np.zeros(base[0].shape)
  for answer in run.recompute(requests):
    if answer is not None and answer[0].shape == noise.shape:
      with np.errstate(invalid='ignore'):
        apart = np.abs(answer[0].astype(np.float64) - base[0].astype(np.float64))
      noise = np.maximum(noise, np.where(np.isfinite(apart), apart, 0.0))
  return noise


def _is_number(outputs: tuple[tuple[str, tuple[int | None, ...] | None], ...]) -> bool:
  return bool(outputs) and fraction_bits(outputs[0][0]) is not None


def _moved(value: np.ndarray, key: str) -> np.ndarray:
  return value if fraction_bits(value.dtype) is None else moved(value, key)
