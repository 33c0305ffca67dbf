"""Two ways to add up the area under a curve."""

from collections.abc import Mapping

import numpy as np

from tf2verify.diagnosis.evidence.losses import MetricEvidence
from tf2verify.records.diagnosis import Cause

# tf.metrics.auc adds it to numerators and denominators.
_RATE_EPSILON = 1e-6


def auc_summation(evidence: MetricEvidence) -> Cause | None:
  """The tf1 value is the area by trapezoids under the port's own counts."""
  pairs = evidence.pairs
  if not pairs or not pairs[0][1].counts:
    return None
  settings = dict(pairs[0][1].settings)
  for method in ('trapezoidal', 'minoring', 'majoring'):
    if all(
      np.isclose(_area(dict(tf2.counts), str(settings.get('curve')), method), tf1, 1e-4, 1e-5)
      for tf1, tf2 in pairs
    ):
      return Cause(
        f'the tf1 value is what summation_method={method!r} gives for the thresholds and counts of '
        f'tf2, whose summation_method is {settings.get("summation_method")!r} (curve '
        f'{settings.get("curve")}): tf.metrics.auc sums trapezoids, '
        'tf.keras.metrics.AUC interpolates'
      )
  return None


def _area(counts: Mapping[str, np.ndarray], curve: str, method: str) -> float:
  """Returns the area under a curve as tf.metrics.auc computes it."""
  tp, fp = (np.asarray(counts[name], np.float64) for name in ('true_positives', 'false_positives'))
  tn, fn = (np.asarray(counts[name], np.float64) for name in ('true_negatives', 'false_negatives'))
  e = _RATE_EPSILON
  recall = (tp + e) / (tp + fn + e)
  if curve == 'PR':
    x, y = recall, (tp + e) / (tp + fp + e)
  else:
    x, y = fp / (fp + tn + e), recall
  heights = {
    'trapezoidal': (y[:-1] + y[1:]) / 2,
    'minoring': np.minimum(y[:-1], y[1:]),
    'majoring': np.maximum(y[:-1], y[1:]),
  }[method]
  return float(np.sum((x[:-1] - x[1:]) * heights))
