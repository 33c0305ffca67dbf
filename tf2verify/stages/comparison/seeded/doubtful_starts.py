"""Initial values that may differ by the derived map of the variables alone."""

import dataclasses
from collections.abc import Mapping

import numpy as np

from tf2verify.records.initial_value import JudgedStart, Start
from tf2verify.records.sampled import SampledArray
from tf2verify.stages.comparison.seeded.judged_starts import are_near, judged_anew
from tf2verify.stages.stage import CaseUnderTest

_Values = Mapping[str, np.ndarray | None]


@dataclasses.dataclass(frozen=True, eq=False)
class _Kind:
  """Variables that start alike, on both sides."""

  pair: tuple[str, str]  # one of them, in tf1 and in the port
  values: tuple[np.ndarray, np.ndarray]
  names: list[str]  # all of them, in tf1


def doubtful_starts(
  case: CaseUnderTest,
  training: bool,
  judged: Mapping[str, JudgedStart],
  partners: Mapping[str, str],
  values: tuple[_Values, _Values],
) -> set[str]:
  """Returns the variables of which a wrong map may be why their initial values differ.

  None where names say which variables belong together, or where both sides compute the same
  with them. Of the others, a wrong map only gives the starts of a right port to other variables:
  wherever tf1 starts differently by it, the port starts another one as tf1 does there.

  Args:
    case: both sides.
    training: the training mode whose graphs have the variables.
    judged: what is known of the initial values that differ, by tf1 name.
    partners: the port's variables, by tf1 name.
    values: that they start with, on each side by its names.
  """
  derived = case.pairing.derived
  if derived is None:
    return set()
  kinds = _kinds(judged, partners, values)
  either = {name for one in derived.interchangeable for entry in one for name in entry.tf1}
  sure = derived.confirmed - either
  return {
    name
    for kind in kinds
    if any(_starts_as(case, training, kind, other) for other in kinds)
    for name in kind.names
    if name not in sure
  }


def _kinds(
  judged: Mapping[str, JudgedStart], partners: Mapping[str, str], values: tuple[_Values, _Values]
) -> list[_Kind]:
  found: dict[object, _Kind] = {}
  for name, known in judged.items():
    one, other = values[0].get(name), values[1].get(partners[name])
    if known.start is Start.SAME or one is None or other is None:
      continue
    numbers = _numbers(one), _numbers(other)
    key: object = (known.tf1, known.tf2, _size(one))
    if known.start is not Start.DIFFERENT:
      key = tuple(array.tobytes() for array in numbers)
    kind = _Kind((name, partners[name]), (one, other), [])
    found.setdefault(key, kind).names.append(name)
  return [*found.values()]


def _starts_as(case: CaseUnderTest, training: bool, kind: _Kind, other: _Kind) -> bool:
  """Returns whether the port may start another kind of variables as tf1 starts one."""
  one, its = kind.values[0], other.values[1]
  if _size(one) != _size(its):
    return False
  if isinstance(one, SampledArray) or isinstance(its, SampledArray):
    return other is not kind  # a part of the numbers tells nothing of their order
  its = its.reshape(one.shape)
  if np.array_equal(_numbers(one), _numbers(its)):
    return True  # of itself, too: gates in another order
  if other is kind or one.dtype != its.dtype or one.dtype.kind not in 'fViub':
    return False
  if are_near(one, its):
    return True
  names = kind.pair[0], other.pair[1]
  return judged_anew(case, training, names, (one, its)).start in (Start.SAME, Start.UNKNOWN)


def _size(array: np.ndarray) -> int:
  return array.full_size if isinstance(array, SampledArray) else array.size


def _numbers(array: np.ndarray) -> np.ndarray:
  """Returns the numbers of an array, in whatever order a layout has them."""
  return np.sort(np.asarray(array), axis=None)
