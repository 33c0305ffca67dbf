"""What both sides' losses gave for an example, and how it is compared."""

import dataclasses
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from tf2verify.diagnosis.evidence.losses import ExtremeLosses
from tf2verify.numerics.arrays import compare_arrays
from tf2verify.numerics.output_relations import Relation, pulled_back
from tf2verify.numerics.tolerance import Tolerance, ToleranceTable, dtype_name
from tf2verify.records.difference import Difference
from tf2verify.records.loss_values import LossExample, LossValue
from tf2verify.records.table import Table

# What is compared, and what marks the runs of the port's loss as a `tf.function`.
LOSS, GRADIENT, TRACED = 'loss', 'loss gradient', ', tf.function'
# The example of the model's own outputs.
MODEL = "the model's outputs"
_NO_NUMBERS = (
  "both losses are NaN at all outputs that were tried besides the model's own: only at these were "
  'they compared; give loss_examples'
)
# A loss is a sum: its rounding error grows with the number of terms.
_TIMES_RTOL = 10
# What is close to zero is a loss that is nearly none.
_SHARE_OF_ATOL = 0.1


@dataclasses.dataclass(frozen=True, eq=False)
class LossResult:
  """What both sides gave for an example."""

  example: LossExample  # outputs and labels
  tf1: LossValue  # the reference's
  tf2: LossValue  # the port's, eagerly
  # The port's as a `tf.function`; None where it does not run as one.
  traced: LossValue | None = None

  @property
  def summed(self) -> bool:
    """Whether one side has a loss per example, the other one what that adds up to."""
    one, other = self.tf1.value.shape, self.tf2.value.shape
    return one != other and not (one and other)


@dataclasses.dataclass(frozen=True)
class LossReading:
  """How the outputs that losses read depend on each other."""

  read: tuple[str, ...] = ()  # paths of the outputs, without those that follow from another one
  related: tuple[Relation, ...] = ()  # those that do

  def gradient(self, value: LossValue, example: LossExample, path: str) -> np.ndarray | None:
    """Returns the gradient by an output, through what follows from it as well."""
    source = example.outputs[path]
    total = value.gradient(path)
    for relation in self.related:
      given = value.gradient(relation.derived) if relation.source == path else None
      if given is not None:
        further = pulled_back(relation, source, given).astype(source.dtype)
        total = further if total is None else np.asarray(total + further)
    return total

  def is_finite(self, value: LossValue, example: LossExample) -> bool:
    """Returns whether a loss and its gradients are finite."""
    gradients = [self.gradient(value, example, path) for path in self.read]
    known = [value.value, *(gradient for gradient in gradients if gradient is not None)]
    return all(bool(np.isfinite(array).all()) for array in known)


def is_offset(results: Sequence[LossResult], differences: Sequence[Difference]) -> bool:
  """Returns whether a constant may have been added: to all losses, and to no gradient."""
  names = {difference.run.removesuffix(TRACED) for difference in differences}
  is_everywhere = all(result.example.name in names for result in results)
  return is_everywhere and all(difference.quantity != GRADIENT for difference in differences)


def place(path: str) -> str:
  """Returns an output's place for reports: `outputs['logits']`."""
  return f'outputs{path}'


def comparable(tf1: np.ndarray, tf2: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
  """Returns what to compare: a loss per example next to a scalar is what it adds up to.

  An optimizer differentiates the sum.
  """
  if tf1.shape != tf2.shape and not (tf1.shape and tf2.shape):
    return summed(tf1), summed(tf2)
  return tf1, tf2


def summed(value: np.ndarray) -> np.ndarray:
  """Returns the sum in the value's own dtype."""
  return np.asarray(value.sum(dtype=value.dtype))


def loss_tolerance(table: ToleranceTable) -> ToleranceTable:
  """Returns the allowance of losses, given that of values."""
  return ToleranceTable(
    tuple(
      (name, Tolerance(_TIMES_RTOL * value.rtol, _SHARE_OF_ATOL * value.atol))
      for name, value in table
    )
  )


def gradient_tolerance(table: ToleranceTable, tf1: np.ndarray | None) -> ToleranceTable:
  """Returns the allowance of a gradient by outputs: its atol is a share of the greatest element.

  The gradient of a mean is as small as one over its terms, so no share of less than that.
  """
  if tf1 is None or not tf1.size:
    return table
  finite = np.abs(tf1[np.isfinite(tf1)].astype(np.float64))
  scale = min(1.0, max(float(finite.max(initial=0.0)), 1.0 / tf1.size))
  allowed = table.for_dtype(tf1.dtype)
  return ToleranceTable(((dtype_name(tf1.dtype), Tolerance(allowed.rtol, allowed.atol * scale)),))


def same_when_traced(
  result: LossResult, reading: LossReading, values: ToleranceTable, gradients: ToleranceTable
) -> bool:
  """Returns whether the port's loss gives the same numbers as a `tf.function`."""
  traced = result.traced
  if traced is None:
    return True
  pairs = [(result.tf2.value, traced.value, loss_tolerance(values))]
  for path in reading.read:
    one, other = (reading.gradient(v, result.example, path) for v in (result.tf2, traced))
    if one is None or other is None:
      if one is not other:
        return False
      continue
    pairs.append((one, other, gradient_tolerance(gradients, one)))
  return all(
    compare_arrays(one, other, tolerance.for_dtype(one.dtype)).aspect is None
    for one, other, tolerance in pairs
  )


def both_nan_of(results: Sequence[LossResult]) -> list[str]:
  """Returns the names of the examples of which both losses are NaN."""
  return [
    result.example.name
    for result in results
    if np.isnan(result.tf1.value).any() and np.isnan(result.tf2.value).any()
  ]


def both_nan(results: Sequence[LossResult]) -> list[str]:
  """Returns a note on the examples of which both losses are NaN."""
  names = both_nan_of(results)
  return [f'both losses are NaN, which counts as equal, on: {"; ".join(names)}'] if names else []


def no_numbers(model: LossExample, results: Sequence[LossResult]) -> list[str]:
  """Returns a blind spot where the losses are NaN at all outputs that are not the model's own."""
  made = [
    result
    for result in results
    if result.example.outputs is not model.outputs and not result.example.other_batch
  ]
  return [_NO_NUMBERS] if made and len(both_nan_of(made)) == len(made) else []


def table_of_losses(results: Sequence[LossResult]) -> Table:
  """Returns the losses side by side."""
  rows = tuple(
    (
      result.example.name,
      *('' if v is None else _text(v.value) for v in (result.tf1, result.tf2, result.traced)),
    )
    for result in results
  )
  return Table('loss of each example', ('example', 'tf1', 'tf2', 'tf2, tf.function'), rows)


def _text(value: np.ndarray) -> str:
  if not value.shape:
    return f'{float(value):.8g}'
  total = float(np.sum(value, dtype=np.float64))
  return f'{total:.8g} (sum of {value.shape})'


def unlike_examples(
  results: Sequence[LossResult],
  differences: Iterable[Difference],
  is_same: Callable[[LossResult], bool],
) -> ExtremeLosses | None:
  """Returns which examples differ, if not all of them do, or none of them as a graph.

  Args:
    results: of both sides, of all examples.
    differences: of their losses and gradients.
    is_same: returns whether the port's loss is the same in eager mode and as a graph.
  """
  runs = {difference.run for difference in differences}
  names = {run.removesuffix(TRACED) for run in runs}
  different = [result for result in results if result.example.name in names]
  if not different:
    return None
  shown = tuple(result.example.name for result in different)
  is_traced = all(result.traced is not None and not is_same(result) for result in different)
  if is_traced and runs.isdisjoint(name + TRACED for name in names):
    return ExtremeLosses(shown, False, eager_only=True)
  if len(different) == len(results) or MODEL in names:
    return None
  return ExtremeLosses(shown, all(result.example.finite_only for result in different))
