"""Gradients at greater values, where the forward pass does not tell what they are.

A gradient that is stopped or written by hand (`tf.custom_gradient`) is no consequence of the
outputs: a straight-through estimator whose gradient is zero far out agrees with one that passes
it everywhere, as long as no value is that far out.
"""

import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping

import numpy as np

from tf2verify.errors import Tf2VerifyError
from tf2verify.records.observation import Observation
from tf2verify.reference.arrays import widened
from tf2verify.sides.fill import MilderFill, StartedFill
from tf2verify.sides.side import RunSpec
from tf2verify.stages.comparison.comparing import Comparison
from tf2verify.stages.comparison.proof.proving import OWN_GRADIENTS
from tf2verify.stages.passes.further_runs.telling_inputs import scaled_inputs
from tf2verify.stages.stage import CaseUnderTest

_OF_INPUTS, _OF_VARIABLES = 100.0, (5.0, 50.0)
# Of the greatest element of a gradient, at these values and at the case's own.
_CLEAR = 0.01
_SAME = 1e-4
_TEXT = (
  'at {size} the outputs of both sides agree, and the gradient of {names} does not (by up to '
  "{apart:.3g} of its greatest element), though it does at the case's own values; gradients are "
  'stopped or written by hand at {lines}: make them the same as in tf1, or give inputs for which '
  'it matters'
)
_Compare = Callable[[RunSpec, Observation, Observation], Comparison]


def told_apart(
  case: CaseUnderTest, run: RunSpec, known: Observation, compare: _Compare
) -> list[str]:
  """Compares gradients at greater inputs, and at greater variables; returns what to say of it.

  Args:
    case: both sides, whose gradients agree.
    run: of tf1, at which they do.
    known: what tf1 gave there.
    compare: compares the gradients of both sides, given a run of tf1 and what both gave.
  """
  lines = case.remembered.get(OWN_GRADIENTS, '')
  if not lines or case.tf1.fixed_size:
    return []
  names = {tf2: tf1 for tf1, tf2 in case.alignment().pairs}
  for wider in _wider(run):
    try:
      (tf1,) = case.tf1.prepare_filled([wider])()
      (tf2,) = case.tf2.observe_filled([dataclasses.replace(wider, tf1_names=names)])
    except Tf2VerifyError:
      continue
    if not _agree_in_outputs(tf1, tf2):
      continue
    found = _unlike(tf1, tf2, known, names)
    told = {one.tf1_subject for one in compare(wider, tf1, tf2).differences} if found else set()
    found = {name: apart for name, apart in found.items() if name in told}
    if found:
      shown = ', '.join(sorted(found)[:3]) + (', ...' if len(found) > 3 else '')
      apart = max(found.values())
      return [_TEXT.format(size=wider.size, names=shown, apart=apart, lines=lines)]
  return []


def _wider(run: RunSpec) -> Iterator[RunSpec]:
  inputs = scaled_inputs(run.inputs, _OF_INPUTS)
  if inputs is not None:
    size = f'floating inputs times {_OF_INPUTS:g}'
    yield dataclasses.replace(run, inputs=inputs, size=size)
  if isinstance(run.fill, StartedFill):
    for factor in _OF_VARIABLES:
      fill = run.fill.over(MilderFill(run.fill.given, factor))
      yield dataclasses.replace(run, fill=fill, size=f'variables times {factor:g}')


def _agree_in_outputs(tf1: Observation, tf2: Observation) -> bool:
  others = {record.name: record.value for record in tf2.outputs}
  values = [(one.value, others.get(one.name)) for one in tf1.outputs]
  pairs = [pair for pair in values if pair[0] is not None and pair[0].dtype.kind in 'fc']
  return bool(pairs) and all(_apart(one, other, 0.0) <= _SAME for one, other in pairs)


def _unlike(
  tf1: Observation, tf2: Observation, known: Observation, names: Mapping[str, str]
) -> dict[str, float]:
  """Returns by how much gradients differ clearly, of what is greatest, by names of tf1."""
  sizes = {one.name: _size(one.value) for one in known.gradients}
  others = {names.get(one.name, one.name): one.value for one in tf2.gradients}
  found = {
    one.name: _apart(one.value, others.get(one.name), sizes.get(one.name, 0.0))
    for one in tf1.gradients
  }
  return {name: apart for name, apart in found.items() if _CLEAR < apart < math.inf}


def _apart(one: np.ndarray | None, other: np.ndarray | None, size: float) -> float:
  """Returns the greatest difference of two arrays, of the greatest element or of a size.

  Infinity where they are not to be compared.
  """
  if one is None or other is None or one.shape != other.shape or not one.size:
    return math.inf
  first, second = (widened(value) for value in (one, other))
  if not (np.isfinite(first).all() and np.isfinite(second).all()):
    return math.inf
  apart = float(np.max(np.abs(first - second)))
  return apart / max(_size(first), size) if apart else 0.0


def _size(value: np.ndarray | None) -> float:
  return 0.0 if value is None else float(np.max(np.abs(widened(value)), initial=0.0))
