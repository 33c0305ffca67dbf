"""Smaller values for variables where distinct ones make outputs of the reference overflow."""

import dataclasses
from collections.abc import Sequence

import numpy as np

from tf2verify.records.observation import Observation, TensorRecord
from tf2verify.reference.arrays import widened
from tf2verify.sides.fill import MilderFill, StartedFill
from tf2verify.sides.side import RunSpec
from tf2verify.sides.tf1.reference import PreparedRuns
from tf2verify.stages.stage import CaseUnderTest

# So many times the values are halved. The greatest values at which the reference is finite are
# close to where it is not, which is where an epsilon or a bound of one side alone shows itself.
_MOST_HALVINGS = 10
_FINITE_IN_PORT = (
  'output {name} of tf1 is not finite in {count:,} of {size:,} elements at {run}, where the '
  "port's is: both sides are compared with these values times {factor:g}, here and in later "
  'stages; whether the port may be finite where tf1 overflows is not judged'
)
_BLANK = (
  'output {name} is not finite on both sides at {run}, which shows nothing: both sides are '
  'compared with these values times {factor:g}, here and in later stages'
)


@dataclasses.dataclass(frozen=True, eq=False)
class Milder:
  """A run of tf1 with smaller values of variables.

  Attributes:
    run: with these values.
    observed: what tf1 gave.
    told: what to say of it.
    is_blind: whether something is not compared therefore.
  """

  run: RunSpec
  observed: Observation
  told: str
  is_blind: bool


def milder(
  case: CaseUnderTest, run: RunSpec, tf1: Observation, tf2: Observation, run_tf1: PreparedRuns
) -> Milder | None:
  """Halves the values of variables until all outputs of tf1 are finite, where they tell nothing.

  That is where an output of tf1 has elements that are not finite where the port's are, or where
  all elements of an output are not finite on both sides. A reference that was recorded has no
  other values, and values that a case gives are the case's own.

  Args:
    case: both sides; gets the factor of the values.
    run: of tf1, at distinct values.
    tf1: what it gave.
    tf2: what the port gave.
    run_tf1: repeats runs of tf1.

  Returns:
    The run with smaller values; None where none is needed, or none helps.
  """
  found = None if case.tf1.recorded() is not None else _reason(tf1, tf2)
  if found is None or not isinstance(run.fill, StartedFill):
    return None
  record, is_blind = found
  for halvings in range(1, _MOST_HALVINGS + 1):
    factor = 0.5**halvings
    fill = run.fill.over(MilderFill(run.fill.given, factor))
    trial = dataclasses.replace(run, fill=fill)
    (observed,) = run_tf1([trial])
    if all(_is_finite(one) for one in _inexact(observed)):
      case.milder.append(factor)
      wide = widened(np.asarray(record.value))
      told = (_FINITE_IN_PORT if is_blind else _BLANK).format(
        name=record.name,
        count=int((~np.isfinite(wide)).sum()),
        size=wide.size,
        run=tf1.run,
        factor=factor,
      )
      return Milder(trial, observed, told, is_blind)
  return None


def _reason(tf1: Observation, tf2: Observation) -> tuple[TensorRecord, bool] | None:
  """Returns an output of tf1 that is not comparable, and whether the port's is finite there."""
  others: dict[str, TensorRecord] = {record.name: record for record in tf2.outputs}
  blank = None
  for record in _inexact(tf1):
    if _is_finite(record):
      continue
    other = others.get(record.name)
    if other is None or other.value is None or record.value is None:
      continue
    if other.value.shape != record.value.shape or other.value.dtype.kind not in 'fcV':
      continue
    infinite = ~np.isfinite(widened(record.value))
    port = np.isfinite(widened(other.value))
    if bool((infinite & port).any()):
      return record, True
    if bool(infinite.all()):
      blank = blank or (record, False)
  return blank


def _inexact(observation: Observation) -> Sequence[TensorRecord]:
  return [
    record
    for record in observation.outputs
    if record.value is not None and record.value.size and record.value.dtype.kind in 'fcV'
  ]


def _is_finite(record: TensorRecord) -> bool:
  return bool(np.isfinite(widened(np.asarray(record.value))).all())
