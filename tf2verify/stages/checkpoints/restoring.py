"""Restored values compared with those that were saved."""

import dataclasses
from collections.abc import Callable, Iterator, Mapping

import numpy as np

from tf2verify.diagnosis.evidence.checkpoint import RestoredValue
from tf2verify.numerics.restored_values import sentinel
from tf2verify.numerics.tolerance import ToleranceTable
from tf2verify.records.difference import Aspect, Difference
from tf2verify.records.tensor_key import TensorKey
from tf2verify.sides.process import randomness
from tf2verify.sides.tf2.files import checkpoint as tf2_checkpoint
from tf2verify.sides.tf2.layers.port import Port
from tf2verify.stages.comparison.comparing import Comparison
from tf2verify.stages.stage import CaseUnderTest

EXACT = ToleranceTable(())


def compare_restored(
  comparison: Comparison,
  key: TensorKey,
  expected: np.ndarray,
  actual: np.ndarray,
  with_cause: Callable[[Difference], Difference] = lambda found: found,
) -> None:
  """Compares the restored value of one variable, which has to be equal."""
  comparison.tensors(key, expected, actual, EXACT, with_cause)
  if not _is_without_numbers(expected):  # two that are NaN may be mistaken for each other
    comparison.telling.add(key, None)  # it had another value before


def _is_without_numbers(value: np.ndarray) -> bool:
  return bool(value.size) and value.dtype.kind in 'fc' and not np.isfinite(value).any()


def with_hint(difference: Difference, value: RestoredValue, source: str, hint: str) -> Difference:
  """Returns a difference of a restored value with its hint; what was kept as not restored.

  Args:
    difference: of the values.
    value: what the variable holds, and should hold.
    source: where its value should come from, for reports.
    hint: why it is another.
  """
  if not value.kept:
    return dataclasses.replace(difference, hint=hint)
  return dataclasses.replace(
    difference,
    aspect=Aspect.PRESENCE,
    tf1=source,
    tf2='kept its value: not restored',
    array=None,
    hint=hint,
  )


def called_port(case: CaseUnderTest) -> Port:
  """Returns a fresh layer with all its variables."""
  with randomness.seeded(randomness.CONSTANT):
    port = case.tf2.fresh_port()
    call_for_variables(case, port)
  port.forget_initial_values(port.variables())  # as much memory as the variables
  return port


def call_for_variables(case: CaseUnderTest, port: Port) -> None:
  """Calls a layer until it has all its variables: once, in both modes if it has to be."""
  wanted = {variable.name for variable in case.tf2.inventory().variables}
  for training in sorted(case.declaration.training_modes):
    case.tf2.call(port, case.inputs, training, 'the call that makes the variables')
    if wanted <= {record.name for record in port.inventory()}:
      break


class Sentinels(Mapping[str, np.ndarray]):
  """Values unlike those that variables should be restored to, each made when it is asked for."""

  def __init__(self, values: Mapping[str, np.ndarray]) -> None:
    """Takes the values that the others are unlike, by name of the variable."""
    self._values = values

  def __getitem__(self, name: str) -> np.ndarray:
    return sentinel(name, self._values[name])

  def __iter__(self) -> Iterator[str]:
    return iter(self._values)

  def __len__(self) -> int:
    return len(self._values)


def with_sentinels(port: Port, values: Mapping[str, np.ndarray]) -> Sentinels:
  """Gives every variable a value unlike the one that it should be restored to.

  Returns:
    What the variables hold now, by name.
  """
  before = Sentinels(
    {
      name: values[name] if _alike(values.get(name), value) else value
      for name, value in tf2_checkpoint.values_of(port).items()
    }
  )
  tf2_checkpoint.assign(port, before)
  port.expect(values)
  return before


def _alike(value: np.ndarray | None, other: np.ndarray) -> bool:
  return value is not None and (value.shape, value.dtype) == (other.shape, other.dtype)
