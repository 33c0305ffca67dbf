"""What a reference does wrong, and a right port does not repeat."""

from collections.abc import Sequence

import numpy as np

from tf2verify.records.loss_values import LossExample
from tf2verify.stages.losses.results import LossResult

FIXED_SIZE = (
  'a number of examples, or of steps where those come first, is written into tf2_loss; only if the '
  'model is never used with a different one, declare that: other_sizes = ()'
)


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


def saturated(result: LossResult, is_finite: bool, differ: Sequence[str]) -> list[str]:
  """Returns a blind spot if both losses are not the same at outputs of ±100.

  Args:
    result: what both losses yield there; the port's and its gradients are finite.
    is_finite: whether the reference's loss and its gradients are.
    differ: names of what differs, if all is finite.
  """
  one, other = (float(np.sum(value.value)) for value in (result.tf1, result.tf2))
  shown = f'on {result.example.name} (±100), tf1_loss is {one:.6g}'
  if not is_finite:
    gradient = ' with a gradient that is not finite' if np.isfinite(one) else ''
    return [
      f'{shown}{gradient}, and tf2_loss is {other:.6g}, finite with its gradient: the reference '
      'overflows or underflows there, which the port fixes: not compared'
    ]
  if not differ:
    return []
  return [
    f'{shown} and tf2_loss is {other:.6g} (different: {", ".join(differ)}): not judged, since no '
    'label gives the right class, and losses of sequences underflow there'
  ]


def zero_by_zero(model: LossExample, result: LossResult) -> str:
  """Returns a blind spot if the reference divides 0 by 0 and the port does not, or ''.

  Labels may leave nothing to average. Nobody wants the NaN: a port that gives 0 in its place, or
  the other terms, is right.

  Args:
    model: the outputs and labels of the case.
    result: what both losses yield for its outputs.
  """
  ports = [value.value for value in (result.tf2, result.traced) if value is not None]
  return _fixed_nan(model, result.example, ('tf1_loss', result.tf1.value), ('tf2_loss', ports))


def metric_zero_by_zero(
  model: LossExample, example: LossExample, name: str, tf1: np.ndarray, tf2: np.ndarray
) -> str:
  """Returns the same of a metric.

  Args:
    model: the outputs and labels of the case.
    example: those that the metric was given.
    name: of the metric.
    tf1: what the reference yields.
    tf2: what the port yields.
  """
  sides = (f'metric {name} of tf1', tf1), ('that of the port', [tf2])
  return _fixed_nan(model, example, *sides)


def _fixed_nan(
  model: LossExample,
  example: LossExample,
  one: tuple[str, np.ndarray],
  other: tuple[str, Sequence[np.ndarray]],
) -> str:
  if example.outputs is not model.outputs:
    return ''
  (tf1, value), (tf2, ports) = one, other
  finite = all(bool(np.isfinite(port).all()) for port in ports)
  if value.dtype.kind != 'f' or not np.isnan(value).all() or not finite:
    return ''
  return (
    f'{tf1} is NaN and {tf2} is {float(np.sum(ports[0])):.6g} on {example.name}: '
    'the reference divides 0 by 0 there, which the port fixes: not compared'
  )
