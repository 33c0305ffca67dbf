"""Gradients that differ at single values of the outputs alone, such as a logit of exactly 0.

`abs` and `relu` have no derivative at 0, where each formula has one of its own, even of a loss that
is smooth. What the tool makes up of outputs may be such values.
"""

import dataclasses
from collections.abc import Callable

import numpy as np

from tf2verify.numerics.output_relations import follow
from tf2verify.records.difference import Aspect, Difference
from tf2verify.records.loss_values import LossExample, LossValue
from tf2verify.stages.comparison.comparing import Comparison
from tf2verify.stages.losses.results import GRADIENT, TRACED, LossReading, LossResult

# So many units in the last place, by which elements are moved; each by another number of them,
# since two that are equal may be such a value as well.
_UNITS = (4, 12)
# Next to zero, in the smallest normal numbers: still far below any epsilon.
_SMALLEST = 2.0**20
# A gradient at such a value is of the size of those beside it, and not one over an epsilon.
_TIMES = 4.0
_SEED = 0

# Runs both losses on an example; None where it cannot be run, or where they differ.
Agreed = Callable[[LossExample], LossResult | None]


def leave_out(
  comparison: Comparison, result: LossResult, reading: LossReading, agreed: Agreed
) -> list[str]:
  """Takes back gradients that differ in an example, and agree on either side of its outputs.

  Args:
    comparison: of the losses.
    result: what both sides gave for an example, which was compared.
    reading: the outputs that are read.
    agreed: runs both losses.

  Returns:
    Notes on what was taken back.
  """
  example = result.example
  found = [d for d in comparison.differences if d.run.removesuffix(TRACED) == example.name]
  if not found or not example.extreme or example.declared or not all(map(_may_be_kink, found)):
    return []
  values = [value for value in (result.tf1, result.tf2, result.traced) if value is not None]
  for sign in (1.0, -1.0):
    moved = beside(example, reading, sign)
    known = None if moved is None else agreed(moved)
    if known is None or not all(
      _size(value, result, reading) <= _TIMES * _size(known.tf1, known, reading) for value in values
    ):
      return []
  comparison.withdraw(lambda known: any(known is one for one in found))
  names = dict.fromkeys(d.subject for d in found)
  return [
    f'gradients of {", ".join(names)} differ on {example.name}, and agree at outputs that are '
    'larger or smaller by rounding: the formulas of both sides have other derivatives at single '
    'values, such as abs and relu at 0 (a first step from outputs that are all zero may show it); '
    'not judged'
  ]


def beside(example: LossExample, reading: LossReading, sign: float) -> LossExample | None:
  """Returns an example with outputs moved by rounding; None where that cannot be done.

  Args:
    example: of which outputs and labels.
    reading: the outputs that are read; those that follow from them are moved with them.
    sign: 1 to move elements up, -1 for down.
  """
  outputs, generator = dict(example.outputs), np.random.RandomState(_SEED)
  for path in reading.read:
    value = outputs[path]
    if value.dtype not in (np.float32, np.float64):
      return None
    units = generator.randint(*_UNITS, size=value.shape).astype(value.dtype)
    least = _SMALLEST * np.finfo(value.dtype).tiny
    step = np.where(value == 0, least, np.spacing(np.abs(value)))
    outputs[path] = np.asarray(value + sign * units * step, value.dtype)
  for relation in reading.related:
    if relation.source in reading.read:
      source = outputs[relation.source]
      outputs[relation.derived] = follow(relation, source, example.outputs[relation.derived])
  name = f'{example.name}, {"larger" if sign > 0 else "smaller"} by rounding'
  return dataclasses.replace(example, name=name, outputs=outputs, larger=None)


def _may_be_kink(difference: Difference) -> bool:
  return difference.quantity == GRADIENT and difference.aspect is Aspect.VALUES


def _size(value: LossValue, result: LossResult, reading: LossReading) -> float:
  """Returns the greatest element of a loss's gradients; infinite where one is not finite."""
  gradients = (reading.gradient(value, result.example, path) for path in reading.read)
  sizes = [float(np.max(np.abs(g), initial=0.0)) for g in gradients if g is not None]
  size = max(sizes, default=0.0)
  return size if np.isfinite(size) else float('inf')
