"""Metrics of both sides, after one update on the same arrays."""

import dataclasses

import numpy as np

from tf2verify.diagnosis.causes import first_cause
from tf2verify.diagnosis.evidence.losses import MetricEvidence
from tf2verify.errors import UserCodeError
from tf2verify.numerics.extreme_outputs import extreme_examples
from tf2verify.numerics.output_relations import relations
from tf2verify.records.difference import Aspect, Difference
from tf2verify.records.loss_values import LossExample, MetricValue
from tf2verify.records.tensor_key import TensorKey
from tf2verify.records.training import LossObservation
from tf2verify.sides.losses import loss_function
from tf2verify.sides.tf1.loss_function import Tf1LossFunction
from tf2verify.sides.tf2.loss_function import Tf2LossFunction
from tf2verify.stages.comparison.comparing import Comparison
from tf2verify.stages.losses import reference_faults
from tf2verify.stages.stage import CaseUnderTest

METRIC = 'metric'
# Which of more follow from which is not looked for.
_MOST_OUTPUTS = 16


class MetricsAlone:
  """Compares `tf1_metrics` and `tf2_metrics` on the model's outputs and on extreme ones.

  Attributes:
    notes: for the report.
  """

  def __init__(
    self, case: CaseUnderTest, tf1: LossObservation, tf2: LossObservation, comparison: Comparison
  ) -> None:
    self._case = case
    self._comparison = comparison
    labels = loss_function.leaves_of(case.labels)
    outputs = loss_function.leaves_of(tf1.outputs)
    self._model = LossExample("the model's outputs", outputs, labels, extreme=False)
    self._tf1 = Tf1LossFunction(case.declaration, tf1.outputs, case.labels)
    self._tf2 = Tf2LossFunction(case.declaration, tf2.outputs, case.labels)
    self._pairs: dict[str, list[tuple[np.ndarray, MetricValue]]] = {}
    self.notes: list[str] = []

  def compare(self) -> None:
    """Runs the metrics on every example and compares them by name."""
    self._compare(self._model)
    floating = loss_function.floating_paths(self._model.outputs)
    if len(floating) > _MOST_OUTPUTS:
      self.notes.append("metrics were compared only on the model's outputs, since it has many")
      return
    related = relations(self._model.outputs, self._model.outputs)
    derived = {relation.derived for relation in related}
    read = [path for path in floating if path not in derived]
    for example in extreme_examples(self._model, read, related):
      try:
        self._compare(example)
      except UserCodeError as error:
        self.notes.append(f'metrics left out, since {error}: {example.name}')

  def _compare(self, example: LossExample) -> None:
    tf1 = {metric.name: metric for metric in self._tf1.metrics(example)}
    tf2 = {metric.name: metric for metric in self._tf2.metrics(example)}
    for name in sorted(tf1.keys() | tf2.keys()):
      one, other = tf1.get(name), tf2.get(name)
      if one is None or other is None:
        self._missing(name, one is None, example.name)
        continue
      value = other.value
      if value.dtype.kind in 'fiu' and one.value.dtype.kind in 'fiu':
        value = value.astype(one.value.dtype)  # counts are floats on one side
      fault = reference_faults.metric_zero_by_zero(self._model, example, name, one.value, value)
      if fault:
        self._comparison.blind_spots.append(fault)
        continue
      key = TensorKey(METRIC, name, example.name)
      self._comparison.tensors(key, one.value, value, self._case.tolerance)
      self._pairs.setdefault(name, []).append((one.value, other))

  def _missing(self, name: str, on_tf1: bool, run: str) -> None:
    texts = ('missing', 'there') if on_tf1 else ('there', 'missing')
    found = Difference(METRIC, name, Aspect.PRESENCE, *texts, run=run)
    if not any((d.quantity, d.subject) == (METRIC, name) for d in self._comparison.differences):
      self._comparison.add(found)

  def with_cause(self, difference: Difference) -> Difference:
    """Returns a difference of a metric with its cause, where that can be shown."""
    if difference.quantity != METRIC or difference.hint:
      return difference
    evidence = MetricEvidence(tuple(self._pairs.get(difference.subject, ())))
    return dataclasses.replace(difference, hint=first_cause(evidence))
