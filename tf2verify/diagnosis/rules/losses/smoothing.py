"""Labels that one loss smooths, shown by the difference of the two losses."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from tf2verify.diagnosis.evidence.losses import LossOfOutput
from tf2verify.diagnosis.formulas.losses import LEAST_SMOOTHING, MOST_SMOOTHING, Evaluated
from tf2verify.numerics.extreme_outputs import target_of
from tf2verify.records.diagnosis import Cause

_Array = np.ndarray[Any, Any]
# Of a share that is the same for several examples.
_SAME = 1e-3


def label_smoothing(evidence: LossOfOutput) -> Cause | None:
  """A loss of smoothed labels less one of plain ones is linear in the logits."""
  shares: dict[str, list[float]] = {}
  for one, other in zip(evidence.tf1, evidence.tf2, strict=True):
    difference = (
      one.value.astype(np.float64) - other.value if one.value.shape == other.value.shape else None
    )
    if difference is None or not np.isfinite(difference).all():
      continue
    for name, term in _smoothing_terms(one, evidence.path):
      scale = float(np.abs(term).max(initial=0.0))
      if term.shape == difference.shape and scale > 1e-3:
        share = float((difference * term).sum() / (term * term).sum())
        fits = bool(np.allclose(difference, share * term, 1e-3, 1e-5 * max(scale, 1.0)))
        shares.setdefault(name, []).append(share if fits else float('nan'))
  for found in shares.values():
    share = float(np.mean(found))
    close = max(abs(one - share) for one in found) <= _SAME
    if close and len(found) > 1 and LEAST_SMOOTHING < abs(share) < MOST_SMOOTHING:
      sides = ('tf1', 'tf2') if share > 0 else ('tf2', 'tf1')
      return Cause(
        f'the difference equals the smoothing term s·(z_y - mean z) with s = {abs(share):.3g}: '
        f'{sides[0]} smooths its labels by {abs(share):.3g} more than {sides[1]} does (by that '
        'divided by w, where the loss takes this part with a weight of w)'
      )
  return None


def _smoothing_terms(one: Evaluated, path: str) -> Iterator[tuple[str, _Array]]:
  output = one.example.outputs[path].astype(np.float64)
  for label in one.example.labels.values():
    y = target_of(output, label)
    if y is None:
      continue
    rows = {'of elements': output * (y - 0.5)}
    if output.ndim and output.shape[-1] > 1:
      rows['of rows'] = np.sum(output * y, -1) - np.mean(output, -1)
    for name, terms in rows.items():
      yield f'each {name}', terms
      yield f'mean {name}', np.asarray(terms.mean())
      yield f'sum {name}', np.asarray(terms.sum())
