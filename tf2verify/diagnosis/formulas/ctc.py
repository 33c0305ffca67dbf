"""Connectionist temporal classification in numpy, to see which class a side takes as blank.

A. Graves et al. 2006, "Connectionist Temporal Classification", equations 5 to 8: the
forward variables, here as logarithms.
"""

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np

from tf2verify.numerics.output_relations import log_softmax
from tf2verify.records.loss_values import LossExample

_Array = np.ndarray[Any, Any]
# Beyond this the plain Python loops take too long.
_MOST_CELLS = 20_000


def losses(log_probabilities: _Array, labels: list[list[int]], blank: int) -> _Array:
  """Returns the loss of each example.

  Args:
    log_probabilities: (batch, steps, classes); rows of steps that are not there end
      with NaN.
    labels: of each example, without blanks.
    blank: the class that stands for no label.
  """
  return np.array(
    [_loss(steps, label, blank) for steps, label in zip(log_probabilities, labels, strict=True)]
  )


def _loss(steps: _Array, label: list[int], blank: int) -> float:
  steps = steps[~np.isnan(steps).any(-1)]
  if not len(steps):
    return np.inf if label else 0.0  # no step yields no label, and nothing else
  states = [blank, *itertools.chain.from_iterable((symbol, blank) for symbol in label)]
  skips = np.array(
    [n > 1 and state != blank and state != states[n - 2] for n, state in enumerate(states)]
  )
  forward = np.full(len(states), -np.inf)
  forward[:2] = steps[0, states[:2]]
  for row in steps[1:]:
    before = np.concatenate([[-np.inf, -np.inf], forward])
    skipped = np.where(skips, before[:-2], -np.inf)
    forward = np.logaddexp(np.logaddexp(before[2:], before[1:-1]), skipped) + row[states]
  return -float(np.logaddexp.reduce(forward[-2:]))


def interpretations(example: LossExample, path: str) -> Iterator[tuple[_Array, list[list[int]]]]:
  """Yields what an output and the labels may be as (batch, steps, classes) and sequences."""
  output = example.outputs[path].astype(np.float64)
  if output.ndim != 3 or output.size > _MOST_CELLS:
    return
  for logits in (output, output.swapaxes(0, 1)):
    batch, steps = logits.shape[:2]
    vectors = [
      array
      for array in example.labels.values()
      if array.dtype.kind in 'iu' and array.shape == (batch,)
    ]
    for sequences in _sequences(example, batch):
      lengths = [None, *(v for v in vectors if v.min() >= 0)]
      for label_length, logit_length in itertools.product(lengths, lengths):
        if logit_length is not None and logit_length.max() > steps:
          continue
        yield (
          _cut(log_softmax(logits), logit_length),
          [
            sequence if label_length is None else sequence[: int(label_length[n])]
            for n, sequence in enumerate(sequences)
          ],
        )


def _cut(steps: _Array, lengths: _Array | None) -> _Array:
  if lengths is None:
    return steps
  beyond = np.arange(steps.shape[1]) >= lengths[:, None]
  found: _Array = np.where(beyond[..., None], np.nan, steps)
  return found


def _sequences(example: LossExample, batch: int) -> Iterator[list[list[int]]]:
  for path, array in example.labels.items():
    if array.dtype.kind not in 'iu':
      continue
    if array.ndim == 2 and array.shape[0] == batch and not path.endswith('.indices'):
      yield [[int(symbol) for symbol in row if symbol >= 0] for row in array]
      yield [[int(symbol) for symbol in row if symbol > 0] for row in array]
    if path.endswith('.indices') and path.removesuffix('indices') + 'values' in example.labels:
      values = example.labels[path.removesuffix('indices') + 'values']
      rows: list[list[int]] = [[] for _ in range(batch)]
      if array.size and array[:, 0].max() < batch:
        for (row, _), value in zip(array, values, strict=True):
          rows[int(row)].append(int(value))
        yield rows
