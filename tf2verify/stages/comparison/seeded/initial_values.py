"""Initial values that differ: what is said of them, and of how they are drawn."""

import dataclasses
import re
from collections.abc import Mapping, Sequence

import numpy as np

from tf2verify.diagnosis.causes import first_cause
from tf2verify.diagnosis.evidence.initial_values import OtherDistribution, SharedNumbers
from tf2verify.records.difference import Aspect, Difference
from tf2verify.records.initial_value import JudgedStart, Start
from tf2verify.records.observation import Observation
from tf2verify.records.wording import names_text
from tf2verify.relation.layouts.map_entry import MapEntry

# So many distributions are shown of those that differ alike.
_SHOWN = 3
# Scales of one family that are off by more factors than that are off by one mistake.
_MOST_FACTORS = 3
_NUMBER = re.compile(r'(?<![\w.])\d+(?:\.\d+)?(?:e[+-]?\d+)?(?![\w.])')


def _groups(
  judged: Mapping[str, JudgedStart], start: Start
) -> dict[tuple[str, str, bool], list[str]]:
  """Returns the variables that are drawn alike, by how both sides draw them."""
  groups: dict[tuple[str, str, bool], list[str]] = {}
  for name, known in judged.items():
    if known.start is start:
      groups.setdefault((known.tf1, known.tf2, known.is_related), []).append(name)
  return groups


def of_different_distributions(judged: Mapping[str, JudgedStart], run: str) -> list[Difference]:
  """Returns one difference for all variables whose initializers differ alike, in whatever scale.

  Args:
    judged: what is known of the initial values that differ, by tf1 name.
    run: for the report.
  """
  found = []
  for is_related, alike in _alike(judged):
    first = alike[0]
    evidence = dataclasses.replace(first, further=tuple(alike[1:]))
    found.append(
      Difference(
        'initial value',
        first.names[0],
        Aspect.DISTRIBUTION,
        *_both_texts(alike),
        run,
        # Of values that are those of tf1 scaled, a diagnosis says more.
        hint='' if is_related else first_cause(evidence),
      )
    )
  return found


def _both_texts(alike: Sequence[OtherDistribution]) -> tuple[str, str]:
  """Returns how each side draws variables whose initializers differ alike."""
  first = alike[0]
  if len(alike) == 1:
    others = f', and so {names_text(first.names[1:])}' if len(first.names) > 1 else ''
    return first.tf1 + others, first.tf2
  more = len(alike) - _SHOWN
  rest = f'; and {more} more' if more > 0 else ''
  tf1 = '; '.join(f'{one.tf1} ({names_text(one.names)})' for one in alike[:_SHOWN])
  return tf1 + rest, '; '.join(one.tf2 for one in alike[:_SHOWN]) + rest


def _alike(judged: Mapping[str, JudgedStart]) -> list[tuple[bool, list[OtherDistribution]]]:
  """Returns what differs by one mistake, as far as that is seen, and whether scale is all of it.

  Of two families, or of one with all scales off by one factor, it is; so are many scales of one
  family, each off by its own (fan in and fan out).
  """
  kinds: dict[tuple[bool, str, str], dict[str, list[OtherDistribution]]] = {}
  for (tf1, tf2, is_related), names in _groups(judged, Start.DIFFERENT).items():
    kind, its = (_NUMBER.sub('#', text) for text in (tf1, tf2))
    factor = _factor(tf1, tf2) if kind == its else ''
    one = OtherDistribution(tf1, tf2, tuple(names))
    kinds.setdefault((is_related, kind, its), {}).setdefault(factor, []).append(one)
  found = []
  for (is_related, *_), by_factor in kinds.items():
    groups = list(by_factor.values())
    if len(groups) > _MOST_FACTORS:
      groups = [[one for group in groups for one in group]]
    found += [(is_related, group) for group in groups]
  return found


def _factor(tf1: str, tf2: str) -> str:
  """Returns by what the numbers of two texts differ, to three digits."""
  pairs = zip(_NUMBER.findall(tf1), _NUMBER.findall(tf2), strict=True)
  return ', '.join(f'{float(its) / (float(one) or 1.0):.3g}' for one, its in pairs)


def notes_on_same(judged: Mapping[str, JudgedStart]) -> list[str]:
  """Returns what to say of initial values that differ and are drawn from one distribution."""
  same = {name: known for name, known in judged.items() if known.start is Start.SAME}
  if not same:
    return []
  kinds: dict[str, list[str]] = {}
  for name, known in same.items():
    kinds.setdefault(_kind_text(known), []).append(name)
  listed = '; '.join(f'{names_text(names)} ({kind})' for kind, names in kinds.items())
  count = '1 initial value is' if len(same) == 1 else f'{len(same)} initial values are'
  return [
    f'{count} drawn with different random numbers from the same distribution: {listed}; the port '
    'continued '
    "from tf1's values"
  ]


def _kind_text(known: JudgedStart) -> str:
  if not known.tested:
    return known.tf1
  both = known.tf1 if known.tf1 == known.tf2 else f'{known.tf1} in tf1, {known.tf2} in the port'
  return (
    f'{both}; by a test of {known.tested:,} numbers of each side, in which a scale '
    f'{100 * known.resolution:.2g} % off would show'
  )


def blind_spots(judged: Mapping[str, JudgedStart]) -> list[str]:
  """Returns what to say of initial values of whose distributions too little is known."""
  found = []
  for (tf1, tf2, _), names in _groups(judged, Start.UNKNOWN).items():
    resolution = max(judged[name].resolution for name in names)
    tested = min(judged[name].tested for name in names)
    hidden = (
      'any difference in scale'
      if resolution >= 1
      else f'a scale up to {100 * resolution:.2g} % off'
    )
    found.append(
      f'whether tf1 and the port draw {names_text(names)} from the same distribution is not known '
      f'(tf1: {tf1}; the port: {tf2}): the {tested:,} numbers of each side that were compared '
      f"would hide {hidden}; the port continued from tf1's values"
    )
  return found


def with_cause(difference: Difference, judged: Mapping[str, JudgedStart]) -> Difference:
  """Returns a difference with how the value is made, where one side draws it and one does not."""
  known = judged.get(difference.tf1_subject)
  hint = '' if known is None else first_cause(known)
  return dataclasses.replace(difference, hint=hint) if hint else difference


def shared_numbers(
  tf1: Observation, tf2: Observation, pairs: Sequence[tuple[str, str]]
) -> dict[str, str]:
  """Returns the variables that start with the numbers of an earlier one on one side only.

  Which distribution each has for itself does not show that.

  Args:
    tf1: a run whose random ops all have seeds of their own.
    tf2: the same run of the port.
    pairs: tf1 and tf2 names of the variables.

  Returns:
    What to say of it, by tf1 name.
  """
  ones = _numbers({r.name: r.value for r in tf1.initial_values}, [one for one, _ in pairs])
  others = _numbers({r.name: r.value for r in tf2.initial_values}, [other for _, other in pairs])
  tf2_names = dict(pairs)
  tf1_names = {other: one for one, other in pairs}
  found = {}
  for name, other in pairs:
    twin = tf1_names.get(others.get(other, ''))
    if twin is not None and ones.get(name) != twin:
      found[name] = first_cause(SharedNumbers(name, twin, in_port=True))
    twin = ones.get(name)
    if twin is not None and others.get(other) != tf2_names[twin]:
      found[name] = first_cause(SharedNumbers(name, twin, in_port=False))
  return found


def shared_parts(
  entries: Sequence[MapEntry],
  tf1: Mapping[str, np.ndarray | None],
  tf2: Mapping[str, np.ndarray | None],
) -> dict[str, str]:
  """Returns the variables of tf1 of which the port's parts start with the same numbers.

  Args:
    entries: of the variable map.
    tf1: initial values of tf1, by tf1 name.
    tf2: those of the port as tf1 holds them, by tf1 name.

  Returns:
    What to say of it, by tf1 name.
  """
  whose = {name: entry.tf1[0] for entry in entries for name in entry.tf2}
  ones, others = (_numbers(_parts(entries, values), [*whose]) for values in (tf1, tf2))
  return {
    whose[name]: first_cause(SharedNumbers(name, twin, in_port=True))
    for name, twin in others.items()
    if ones.get(name) != twin
  }


def _parts(
  entries: Sequence[MapEntry], values: Mapping[str, np.ndarray | None]
) -> dict[str, np.ndarray | None]:
  """Returns what the port's variables hold, each by itself."""
  found: dict[str, np.ndarray | None] = {}
  for entry in entries:
    known = [value for name in entry.tf1 if (value := values.get(name)) is not None]
    if len(known) == len(entry.tf1):
      found |= dict(zip(entry.tf2, entry.to_tf2(known), strict=True))
  return found


def _numbers(values: Mapping[str, np.ndarray | None], names: Sequence[str]) -> dict[str, str]:
  """Returns the first variable with the same numbers, for each that is not the first itself."""
  first: dict[tuple[tuple[int, ...], bytes], str] = {}
  found = {}
  for name in names:
    value = values.get(name)
    if value is None or value.size < 2 or bool((value == value.flat[0]).all()):
      continue
    key = value.shape, np.ascontiguousarray(value).tobytes()[:4096]
    twin = first.setdefault(key, name)
    other = values[twin]
    if twin != name and other is not None and bool((other == value).all()):
      found[name] = twin
  return found
