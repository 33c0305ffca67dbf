"""What a reference does wrong, and a right port does not repeat."""

from collections.abc import Sequence

import numpy as np

from tf2verify.records.loss_values import LossExample
from tf2verify.stages.losses.results import LossResult


def fixed_size(model: LossExample, result: LossResult, read: Sequence[str]) -> str:
  """Returns a note if the reference divides by the batch size that it was written for, or ''.

  It never sees another one: a port that divides by the true size is right.

  Args:
    model: the outputs and labels of the case.
    result: what both losses yield for some of its examples.
    read: paths of the outputs that the losses read.
  """
  if not result.example.other_batch or not read:
    return ''
  size, fewer = (of.outputs[read[0]].shape[0] for of in (model, result.example))
  one, other = (float(np.sum(value.value)) for value in (result.tf1, result.tf2))
  if not np.isclose(one * size, other * fewer, 1e-4, 0.0) or not one:
    return ''
  return (
    f'left out, since tf1_loss divides by a batch size of {size}, whatever the batch is: '
    f'{result.example.name}'
  )


def zero_by_zero(model: LossExample, result: LossResult) -> str:
  """Returns a blind spot if the reference divides 0 by 0 and the port does not, or ''.

  Labels may leave nothing to average. Nobody wants the NaN: a port that gives 0 in its place, or
  the other terms, is right.

  Args:
    model: the outputs and labels of the case.
    result: what both losses yield for its outputs.
  """
  if result.example.outputs is not model.outputs:
    return ''
  ports = [value.value for value in (result.tf2, result.traced) if value is not None]
  finite = all(bool(np.isfinite(value).all()) for value in ports)
  if not np.isnan(result.tf1.value).all() or not finite:
    return ''
  return (
    f'tf1_loss is NaN and tf2_loss is {float(np.sum(ports[0])):.6g} on {result.example.name}: '
    'the reference divides 0 by 0 there, which the port fixes: not compared'
  )
