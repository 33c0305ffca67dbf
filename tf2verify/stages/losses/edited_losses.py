"""The port's loss alone, run again on every example with edits of its graph."""

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tf2verify.diagnosis.places.bench import Left, LookedAt
from tf2verify.numerics.agreement import agreement
from tf2verify.records.diagnosis import Cause
from tf2verify.records.difference import Difference
from tf2verify.records.loss_values import LossExample, LossValue
from tf2verify.records.observation import TensorRecord
from tf2verify.sides import side
from tf2verify.sides.graphs.edits.repairs import Repair
from tf2verify.sides.graphs.rewriting.unrolled_loops import is_apart
from tf2verify.sides.graphs.run import GraphRun
from tf2verify.sides.losses import loss_function
from tf2verify.sides.tf1.reference import ReferenceLoss
from tf2verify.sides.tf2.loss_function import Tf2LossFunction
from tf2verify.sides.tf2.traces.repaired import RepairedRuns, given_values, repaired_run
from tf2verify.sides.tf2.traces.tracing import TracedPort
from tf2verify.stages.losses.results import LossResult, comparable

# An edit may let a loop run for ever.
_RUN_SECONDS = 60


class EditedLosses:
  """The examples of the stage, see `diagnosis.bench.BenchRun`."""

  def __init__(
    self,
    results: Sequence[LossResult],
    functions: tuple[ReferenceLoss, Tf2LossFunction],
    compare: Callable[[LossResult, LossValue], Sequence[Difference]],
    explain: Callable[[Sequence[LossResult]], Sequence[Cause]],
    tf1: GraphRun,
  ) -> None:
    """Prepares.

    Args:
      results: what both sides gave for each example, the one that is looked into first.
      functions: both losses.
      compare: compares what the port's gives for an example as the stage does it.
      explain: names causes, given results, as the stage does it.
      tf1: the reference on that example.
    """
    self._results = results
    self._functions = functions
    self._compare = compare
    self._explain = explain
    self._ports: dict[str, TracedPort] = {}
    self._references = {results[0].example.name: tf1}
    self._tf1 = tf1

  @property
  def names(self) -> frozenset[str]:
    """The examples, as differences name them."""
    return frozenset(result.example.name for result in self._results)

  def why_not(self) -> str:
    """Returns why the port cannot be edited; '' where its graph yields what it yields."""
    for result, value in zip(self._results, self._as_they_are, strict=True):
      if not _is_alike(value.value, result.tf2.value):
        return f'as a graph, tf2_loss yields something else on {result.example.name}'
    return ''

  def looked_at(self, repairs: Sequence[Repair], left: Left) -> LookedAt:
    """Returns both losses on the first example that is left, the port's with edits."""
    runs = {run for _, _, run in left}
    examples = [result.example for result in self._results]
    example = next((one for one in examples if one.name in runs), examples[0])
    port, given, other_run = self._edited(example, repairs)
    run = repaired_run(port, repairs, given, other_run)
    return LookedAt(example.name, self._reference(example), run)

  def judged(self, repairs: Sequence[Repair]) -> tuple[Left, list[float]]:
    """Returns what differs with edits, and how far each pair of tensors is apart."""
    left: set[tuple[str, str, str]] = set()
    shares: list[float] = []
    for result, value in zip(self._results, self._values(repairs), strict=True):
      found = self._compare(result, value)
      left |= {(d.quantity, d.tf1_subject, d.run) for d in found}
      shares += _shares(result.tf1, value)
    return frozenset(left), shares

  def still_fails(self, repairs: Sequence[Repair]) -> bool:
    """Returns whether the example that is looked into first still fails with edits."""
    first = self._results[0]
    (value,) = self._values_with(repairs, [first])
    return bool(self._compare(first, value))

  def causes(self, repairs: Sequence[Repair]) -> Sequence[Cause]:
    """Returns the mistakes that the numbers show which the edited port gives."""
    both = zip(self._results, self._values(repairs), strict=True)
    return self._explain([LossResult(one.example, one.tf1, value) for one, value in both])

  def close(self) -> None:
    """Lets go of the references on further examples."""
    for reference in self._references.values():
      if reference is not self._tf1:
        reference.close()

  def _values(self, repairs: Sequence[Repair]) -> Sequence[LossValue]:
    """Returns what the port gives with edits, in the order of the examples."""
    return self._values_with(repairs, self._results) if repairs else self._as_they_are

  @functools.cached_property
  def _as_they_are(self) -> Sequence[LossValue]:
    return self._values_with([], self._results)

  def _values_with(
    self, repairs: Sequence[Repair], results: Sequence[LossResult]
  ) -> Sequence[LossValue]:
    found = []
    with RepairedRuns(repairs) as runs:
      for example in (result.example for result in results):
        port, given, other_run = self._edited(example, repairs)
        values, _ = runs.targets(port, given, other_run, _RUN_SECONDS)
        found.append(_loss_value(values, example))
    return found

  def _edited(
    self, example: LossExample, repairs: Sequence[Repair]
  ) -> tuple[TracedPort, dict[str, np.ndarray], Mapping[str, Any] | None]:
    """Returns the port's loss, what it is given, and tf1's graph where that is another one."""
    port = self._port(example)
    given: dict[str, np.ndarray] = {}
    if any(repair.given for repair in repairs):
      given = given_values(self._reference(example), repairs)
    is_other = port.traced.graph is not self._port(self._results[0].example).traced.graph
    return port, given, self._reference(example).nodes() if is_other and repairs else None

  def _port(self, example: LossExample) -> TracedPort:
    if example.name not in self._ports:
      self._ports[example.name] = self._functions[1].editable(example)
    return self._ports[example.name]

  def _reference(self, example: LossExample) -> GraphRun:
    if example.name not in self._references:
      unrolls = is_apart(self._port(example).traced.graph)
      self._references[example.name] = self._functions[0].inspectable(example, unrolls)
    return self._references[example.name]


def _loss_value(values: Mapping[str, tuple[np.ndarray, ...]], example: LossExample) -> LossValue:
  gradients = []
  for path in loss_function.floating_paths(example.outputs):
    found = values.get(loss_function.gradient_target(path))
    if found is None:
      gradients.append(TensorRecord(path, None))
      continue
    rows, *indices = found
    shape = example.outputs[path].shape
    dense = side.dense_gradient(rows, indices[0], shape) if indices else rows
    gradients.append(TensorRecord(path, dense))
  return LossValue(values[loss_function.VALUE_TARGET][0], tuple(gradients))


def _shares(tf1: LossValue, tf2: LossValue) -> list[float]:
  """Returns how far apart values and gradients are, as shares of tf1's greatest element."""
  pairs = [comparable(tf1.value, tf2.value)]
  others = {record.name: record.value for record in tf2.gradients}
  for record in tf1.gradients:
    other = others.get(record.name)
    if record.value is not None and other is not None:
      pairs.append((record.value, other))
  return [agreement(*pair).relative for pair in pairs]


def _is_alike(one: np.ndarray, other: np.ndarray) -> bool:
  if one.shape != other.shape:
    return False
  found = agreement(one, other)
  return found.identical or found.is_rounding
