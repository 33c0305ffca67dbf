"""One sum, divided by two numbers."""

from collections.abc import Sequence

import numpy as np

from tf2verify.diagnosis.evidence.losses import LossOfOutput
from tf2verify.diagnosis.formulas.losses import DENOMINATORS, Denominator, possible_weights
from tf2verify.records.accepted import Change, Changed
from tf2verify.records.diagnosis import Cause
from tf2verify.records.loss_values import LossExample

# Of a ratio that is the same for several examples.
_SAME = 1e-3


def loss_denominator(evidence: LossOfOutput) -> Cause | None:
  """The same sum over other numbers: the ratio on every example is that of the numbers."""
  ratios = []
  for one, other in zip(evidence.tf1, evidence.tf2, strict=True):
    sums = float(np.sum(one.value, dtype=np.float64)), float(np.sum(other.value, dtype=np.float64))
    if all(np.isfinite(sums)) and all(abs(total) > 1e-6 for total in sums):
      ratios.append((one.example, sums[1] / sums[0]))
  if not ratios or all(np.isclose(ratio, 1.0, _SAME) for _, ratio in ratios):
    return None
  example = ratios[0][0]
  # Labels that count classes are hardly weights.
  weights = sorted(
    possible_weights(example, evidence.path),
    key=lambda name: example.labels[name].dtype.kind != 'f',
  )
  for terms in ('rows', 'elements'):
    for weighted in (None, *weights):
      for number, mine in enumerate(DENOMINATORS):
        for its in (*DENOMINATORS[:number], *DENOMINATORS[number + 1 :]):
          if all(_explains(mine, its, terms, weighted, evidence.path, *pair) for pair in ratios):
            words = mine.name, its.name, terms, evidence.path, weighted or ''
            change = Change(Changed.DENOMINATOR, words=words)
            text = _denominator_text(mine, its, ratios, weighted) + _per_example(evidence)
            return Cause(text, change=change)
  return None


def _per_example(evidence: LossOfOutput) -> str:
  """Returns what to do where one side returns a number for each example; '' elsewhere."""
  shapes = [np.shape(one.value) for one in (evidence.tf1[0], evidence.tf2[0])]
  if bool(shapes[0]) == bool(shapes[1]):
    return ''
  hook, shape = ('tf1_loss', shapes[0]) if shapes[0] else ('tf2_loss', shapes[1])
  return (
    f'; {hook} returns a value for each example, shape {shape}, of which training would minimize '
    'the sum: return the one number that production minimizes, such as tf.reduce_mean of it'
  )


def _explains(
  mine: Denominator,
  its: Denominator,
  terms: str,
  weighted: str | None,
  path: str,
  example: LossExample,
  ratio: float,
) -> bool:
  output = example.outputs[path]
  shape = output.shape[:-1] if terms == 'rows' else output.shape
  weights = None if weighted is None else example.labels[weighted]
  try:
    expected = mine.of(shape, weights) / its.of(shape, weights)
  except (ValueError, ZeroDivisionError):
    return False
  return bool(np.isclose(expected, ratio, _SAME))


def _denominator_text(
  mine: Denominator,
  its: Denominator,
  ratios: Sequence[tuple[LossExample, float]],
  weighted: str | None,
) -> str:
  example, ratio = next(pair for pair in ratios if not np.isclose(pair[1], 1.0, _SAME))
  which = f' (labels{weighted})' if weighted else ''
  return (
    f'the same sum is divided by {mine.text} in tf1 and by {its.text} in tf2{which}: tf2 is '
    f'{ratio:.6g} times tf1 on {example.name}, and by the corresponding factor on the others'
  )
