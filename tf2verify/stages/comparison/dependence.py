"""Outputs whose numbers no variable has made."""

import dataclasses
from collections.abc import Sequence

import numpy as np

from tf2verify.numerics.tolerance import FLOATING_DTYPES, dtype_name
from tf2verify.records.observation import Observation
from tf2verify.reference.arrays import widened
from tf2verify.reference.nests import leaves_by_path
from tf2verify.sides.fill import ConstantFill
from tf2verify.sides.side import RunSpec
from tf2verify.stages.comparison.vacuity import listed
from tf2verify.stages.stage import CaseUnderTest

_SHARED_REASON = (
  'no output depends on any variable here: other values of the variables give the same numbers, '
  'so their effect was not compared; use other inputs, or override fill_values'
)


_OF_NOTHING = (
  'no output is computed from a variable or an input: each is a constant, which shows nothing of '
  'what the model does; return the outputs themselves'
)


@dataclasses.dataclass(frozen=True)
class Dependence:
  """What two runs with the same inputs and different variable values have shown."""

  reason: str = ''  # why no output tells anything of the variables; '' where one does
  notes: tuple[str, ...] = ()  # on outputs that are finite only where they depend on no variable


def dependence(
  case: CaseUnderTest, run: RunSpec, tf1: Sequence[Observation], same_inputs: bool
) -> Dependence:
  """Compares outputs at distinct values with those at the constant fill.

  Args:
    case: whose sides agree.
    run: the port's run at distinct values.
    tf1: the reference's, of the same values and at the constant fill.
    same_inputs: whether the latter had the same inputs; if not, the port runs once more.
  """
  first, second = tf1
  if _computed_from_nothing(case):
    return Dependence(_OF_NOTHING)
  if any(draw.in_loop for draw in first.random_draws) or not _values_differ(case, run):
    return Dependence()
  if not same_inputs:
    (second,) = case.tf2.observe_filled([dataclasses.replace(run, fill=ConstantFill())])
  fixed, partly, moved = [], [], False
  for one, other in zip(first.outputs, second.outputs, strict=True):
    if one.value is None or other.value is None or not one.value.size:
      continue
    found = _unmoved(one.value, other.value)
    if found is None:
      continue  # no number at all, which has a note of its own
    if not found:
      moved = True
    elif dtype_name(one.value.dtype) in FLOATING_DTYPES and not _finite(one.value).all():
      partly.append(one.name)
    else:
      fixed.append(one.name)
  if not moved and (fixed or partly):
    return Dependence(_SHARED_REASON)
  text = (
    'finite only where it depends on no variable, so the effect of variables on it was not compared'
  )
  return Dependence(notes=(listed(partly, 'output', text),) if partly else ())


def _computed_from_nothing(case: CaseUnderTest) -> bool:
  """Returns whether no output of a model with variables depends on any of them, or on inputs."""
  without = case.tf1.without_influence(outputs_only=True)
  variables = {name for name, _ in case.alignment().pairs}
  inputs = leaves_by_path(case.inputs)
  return (
    bool(variables) and variables <= set(without.variables) and len(without.inputs) == len(inputs)
  )


def _values_differ(case: CaseUnderTest, run: RunSpec) -> bool:
  """Returns whether a variable that the outputs may depend on has different values."""
  without = set(case.tf1.without_influence(outputs_only=True).variables)
  constant = ConstantFill()
  tf2_names = dict(case.alignment().pairs)
  for variable in case.tf1.inventory().variables:
    if variable.name in without or variable.name not in tf2_names or None in variable.shape:
      continue
    by_tf1 = dataclasses.replace(run, tf1_names={variable.name: variable.name})
    given = by_tf1.value_for(variable)
    if given is None or not given.size:
      continue
    wanted = constant(variable.name, given.shape, given.dtype)
    if wanted is not None and not np.array_equal(given, wanted):
      return True
  return False


def _unmoved(one: np.ndarray, other: np.ndarray) -> bool | None:
  """Returns whether all finite numbers are the same; None where there are none."""
  if one.shape != other.shape or one.dtype != other.dtype:
    return False
  if dtype_name(one.dtype) not in FLOATING_DTYPES:
    return bool(np.array_equal(one, other))
  finite = _finite(one) & _finite(other)
  return bool(np.array_equal(one[finite], other[finite])) if finite.any() else None


def _finite(value: np.ndarray) -> np.ndarray:
  return np.asarray(np.isfinite(widened(value)))
