"""TF1 names paired with TF2 names: by name, never by position."""

import collections
import dataclasses
import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from tf2verify.errors import CaseDefinitionError
from tf2verify.records.wording import listed

VariableNames = Mapping[str, str] | Callable[[str], str] | None

_SHOWN = 5


@dataclasses.dataclass(frozen=True)
class Alignment:
  """Which name of one side belongs to which of the other.

  Names are without `:0`. Invariant: every distinct name of a side is in exactly one of
  `pairs` and that side's leftovers, or its counterpart or itself is a duplicate.
  """

  pairs: tuple[tuple[str, str], ...]  # (tf1, tf2), in tf1 order; each name occurs once on its side
  only_tf1: tuple[str, ...]  # tf1 names without a counterpart, in tf1 order
  only_tf2: tuple[str, ...]  # tf2 names without a counterpart, in tf2 order
  duplicates_tf1: tuple[str, ...]  # names that several tf1 tensors bear
  duplicates_tf2: tuple[str, ...]  # names that several tf2 tensors bear
  # (tf1, tf2) for those of `only_tf1` that the case gives another name on the tf2 side.
  looked_for: tuple[tuple[str, str], ...]


def without_output_index(name: str) -> str:
  """Returns a variable name without the `:0` of its first output."""
  return name.removesuffix(':0')


def align(
  tf1_names: Sequence[str],
  tf2_names: Sequence[str],
  variable_names: VariableNames = None,
) -> Alignment:
  """Pairs the names of the two sides.

  Args:
    tf1_names: with or without `:0`; may contain duplicates.
    tf2_names: likewise.
    variable_names: from tf1 name to tf2 name. A mapping leaves out the names that are
      the same on both sides; a callable gets each name without `:0`; None stands for
      the same names throughout.

  Raises:
    CaseDefinitionError: `variable_names` is something else, has a key that is no tf1
      name, gives two tf1 names the same tf2 name, raises, or yields something else
      than a name.
  """
  tf1_counts = collections.Counter(map(without_output_index, tf1_names))
  tf2_counts = collections.Counter(map(without_output_index, tf2_names))
  counterparts = _counterparts(tuple(tf1_counts), variable_names)
  pairs, only_tf1 = [], []
  for tf1, tf2 in counterparts.items():
    if tf2 not in tf2_counts:
      only_tf1.append(tf1)
    elif tf1_counts[tf1] == tf2_counts[tf2] == 1:
      pairs.append((tf1, tf2))
  claimed = set(counterparts.values())
  return Alignment(
    pairs=tuple(pairs),
    only_tf1=tuple(only_tf1),
    only_tf2=tuple(name for name in tf2_counts if name not in claimed),
    duplicates_tf1=tuple(name for name, count in tf1_counts.items() if count > 1),
    duplicates_tf2=tuple(name for name, count in tf2_counts.items() if count > 1),
    looked_for=tuple((name, counterparts[name]) for name in only_tf1 if counterparts[name] != name),
  )


def _counterparts(tf1_names: tuple[str, ...], variable_names: VariableNames) -> dict[str, str]:
  """Returns the tf2 name that belongs to each distinct tf1 name."""
  if variable_names is None:
    return {name: name for name in tf1_names}
  if isinstance(variable_names, Mapping):
    renamed = _checked_mapping(variable_names, tf1_names)
    counterparts = {name: renamed.get(name, name) for name in tf1_names}
  elif callable(variable_names):
    counterparts = {name: _called(variable_names, name) for name in tf1_names}
  else:
    raise CaseDefinitionError(
      f'variable_names is a {type(variable_names).__name__}; it must be a mapping from tf1 name '
      'to tf2 name, a callable that takes the one and returns the other, or None where all '
      'names are the same'
    )
  _check_one_to_one(counterparts)
  return counterparts


def _checked_mapping(variable_names: Mapping[str, str], tf1_names: Iterable[str]) -> dict[str, str]:
  renamed: dict[str, str] = {}
  for tf1, tf2 in variable_names.items():
    if not isinstance(tf1, str) or not isinstance(tf2, str):
      raise CaseDefinitionError(
        f'variable_names maps {tf1!r} to {tf2!r}; both must be names, as str. '
        'Maybe you gave a variable instead of its .name'
      )
    key = without_output_index(tf1)
    if key in renamed:
      raise CaseDefinitionError(f'variable_names names {key!r} twice, with and without ":0"')
    renamed[key] = without_output_index(tf2)
  known = set(tf1_names)
  unknown = [name for name in renamed if name not in known]
  if unknown:
    raise CaseDefinitionError(_unknown_keys_text(unknown, renamed, known))
  return renamed


def _unknown_keys_text(unknown: list[str], renamed: Mapping[str, str], known: set[str]) -> str:
  text = f'variable_names has keys that name no tf1 variable: {_listed(unknown)}'
  closest = difflib.get_close_matches(unknown[0], sorted(known), n=1, cutoff=0.5)
  # Where both sides have the same names, the value of a misspelled key is that of its variable.
  is_misspelled = closest == [renamed[unknown[0]]]
  if all(renamed[name] in known for name in unknown) and not is_misspelled:
    return f'{text}. Their values do: maybe the mapping is the wrong way round (tf1 name: tf2 name)'
  if closest:
    return f'{text}. Maybe you meant {closest[0]!r} instead of {unknown[0]!r}'
  return f'{text}. The tf1 side has {_listed(sorted(known))}'


def _called(variable_names: Callable[[str], Any], name: str) -> str:
  try:
    tf2 = variable_names(name)
  except Exception as error:  # The user's own code: it can raise anything.
    raise CaseDefinitionError(
      f'variable_names({name!r}) raised {type(error).__name__}: {error}. It is called with every '
      'tf1 name, without ":0"; return the name itself where both sides have the same'
    ) from error
  if not isinstance(tf2, str):
    raise CaseDefinitionError(
      f'variable_names({name!r}) returned {tf2!r}; it must return the tf2 name, as str'
      + ('. Maybe a branch lacks its return' if tf2 is None else '')
    )
  return without_output_index(tf2)


def _check_one_to_one(counterparts: Mapping[str, str]) -> None:
  by_tf2: dict[str, list[str]] = {}
  for tf1, tf2 in counterparts.items():
    by_tf2.setdefault(tf2, []).append(tf1)
  clashes = {tf2: names for tf2, names in by_tf2.items() if len(names) > 1}
  if not clashes:
    return
  tf2, names = next(iter(clashes.items()))
  same = (
    ''
    if tf2 not in names
    else f'; {tf2!r} keeps its name unless variable_names gives a different one'
  )
  more = '' if len(clashes) == 1 else f'. {len(clashes) - 1} more tf2 names are given twice'
  raise CaseDefinitionError(
    f'variable_names gives {len(names)} tf1 variables the tf2 name {tf2!r}: '
    f'{_listed(names)}{same}; each tf2 variable can belong to only one{more}'
  )


def _listed(names: Sequence[str]) -> str:
  return listed([repr(name) for name in names], _SHOWN)
