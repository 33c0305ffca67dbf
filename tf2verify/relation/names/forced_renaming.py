"""The one renaming that explains all variables of a port, where there is only one."""

import collections
import dataclasses
from collections.abc import Callable, Hashable, Sequence

from tf2verify.numerics.relayout import without_ones
from tf2verify.records.observation import VariableRecord
from tf2verify.relation.names.roles import may_be_one, role, same_but_counters, words
from tf2verify.relation.names.words import beginning

_Variables = Sequence[VariableRecord]
_Spelling = Callable[[str], Hashable]
_Fits = Callable[[VariableRecord, VariableRecord], bool]
_SPELLINGS: tuple[_Spelling, ...] = (str, words)


@dataclasses.dataclass(frozen=True)
class ForcedRenaming:
  """A renaming without an alternative."""

  # (tf1, tf2) of all variables, those of one name included, in tf1 order.
  renames: tuple[tuple[str, str], ...]
  reason: str  # why there is no other, as a part of a sentence


def forced_renaming(tf1: _Variables, tf2: _Variables) -> ForcedRenaming | None:
  """Returns the renaming that takes every variable to one of the other side.

  Either all names differ in one prefix alone, by which each is known; or no two variables
  could change places: one of each shape, dtype and role there is, or of one name.
  Trainability, and axes of length 1, are not looked at for this; nor, where all names
  differ in a prefix alone, are shapes, which are then what differs. A renaming by counters
  (`dense_2` for `dense`) is none: Keras counts on in every program in its own way.

  Args:
    tf1: variables of tf1, in its order.
    tf2: of the port.

  Returns:
    None where there is none, or more than one.
  """
  if not tf1 or len(tf1) != len(tf2):
    return None
  if _repeated(v.name for v in tf1) or _repeated(v.name for v in tf2):
    return None
  found = (
    _by_prefix(tf1, tf2, _same_kind)
    or _beside_equal_names(tf1, tf2)
    or _by_kind(tf1, tf2)
    or _by_prefix(tf1, tf2, _of_any_kind)
  )
  # Names that count the layers made so far are others in the next program.
  counted = found is not None and any(
    one != other and same_but_counters(one, other) for one, other in found.renames
  )
  return None if counted else found


def _repeated(keys: object) -> bool:
  return any(count > 1 for count in collections.Counter(keys).values())  # type: ignore[call-overload]


def _kind(variable: VariableRecord) -> tuple[Hashable, ...]:
  return without_ones(variable.shape), variable.dtype


def _same_kind(one: VariableRecord, other: VariableRecord) -> bool:
  return _kind(one) == _kind(other)


def _of_any_kind(one: VariableRecord, other: VariableRecord) -> bool:
  del one, other
  return True


def _by_prefix(tf1: _Variables, tf2: _Variables, fits: _Fits) -> ForcedRenaming | None:
  """Returns the renaming by one change of prefix; None where two such changes differ."""
  for spelling in _SPELLINGS:
    found: dict[tuple[tuple[str, str], ...], tuple[str, str]] = {}
    for old in common_prefixes(tf1):
      for new in common_prefixes(tf2):
        renames = _after_prefixes(tf1, tf2, old, new, spelling, fits)
        if renames:
          found.setdefault(renames, (old, new))
    if len(found) == 1:
      ((renames, (old, new)),) = found.items()
      return ForcedRenaming(renames, _prefix_reason(old, new, spelling is words))
    if found:
      return None
  return None


def _beside_equal_names(tf1: _Variables, tf2: _Variables) -> ForcedRenaming | None:
  """Returns the renaming where some names are equal, and the others have one scope in front.

  As in a Keras model, whose layers' variables begin with its name, while its own do not.
  """
  kinds = {variable.name: _kind(variable) for variable in tf2}
  equal = {variable.name for variable in tf1 if kinds.get(variable.name) == _kind(variable)}
  ones = [variable for variable in tf1 if variable.name not in equal]
  others = [variable for variable in tf2 if variable.name not in equal]
  if not equal or not ones:
    return None
  changes = [('', new) for new in common_prefixes(others)]
  changes += [(old, '') for old in common_prefixes(ones)]
  for old, new in changes:
    renames = dict(_after_prefixes(ones, others, old, new, str, _same_kind))
    if renames:
      every = tuple((v.name, renames.get(v.name, v.name)) for v in tf1)
      reason = _prefix_reason(old, new, by_words=False)
      return ForcedRenaming(every, reason.replace('every name', 'every other name', 1))
  return None


def _after_prefixes(
  tf1: _Variables, tf2: _Variables, old: str, new: str, spelling: _Spelling, fits: _Fits
) -> tuple[tuple[str, str], ...]:
  """Returns the renaming by the rest of the names, if that is one to one; else nothing."""
  ones = {spelling(variable.name[len(old) :]): variable for variable in tf1}
  others = {spelling(variable.name[len(new) :]): variable for variable in tf2}
  if len(ones) < len(tf1) or len(others) < len(tf2) or ones.keys() != others.keys():
    return ()
  if not all(fits(variable, others[rest]) for rest, variable in ones.items()):
    return ()
  return tuple((variable.name, others[rest].name) for rest, variable in ones.items())


def common_prefixes(variables: _Variables) -> list[str]:
  """Returns the scopes that contain all variables, the root ('') first."""
  shared = beginning(variable.name.split('/')[:-1] for variable in variables)
  return [''.join(f'{part}/' for part in shared[:depth]) for depth in range(len(shared) + 1)]


def _prefix_reason(old: str, new: str, by_words: bool) -> str:
  text = 'every name of the port is that of tf1'
  if old or new:
    text += f' with {new!r} in place of {old!r}' if old and new else ''
    text += f' with {new!r} in front' if new and not old else ''
    text += f' without {old!r} in front' if old and not new else ''
  return text + (", in a different library's terms" if by_words else '')


def _by_kind(tf1: _Variables, tf2: _Variables) -> ForcedRenaming | None:
  """Returns the renaming by shape, dtype and role, if no two variables could be exchanged."""
  ones, others = _buckets(tf1), _buckets(tf2)
  if ones.keys() != others.keys():
    return None
  found: dict[str, str] = {}
  for kind, here in ones.items():
    pairs = _pairs_of_kind(here, others[kind]) or _by_exact_shape(here, others[kind])
    if pairs is None:
      return None
    found.update(pairs)
  renames = tuple((variable.name, found[variable.name]) for variable in tf1)
  return ForcedRenaming(renames, 'no two variables of one shape and dtype could be exchanged')


def _buckets(variables: _Variables) -> dict[tuple[Hashable, ...], list[VariableRecord]]:
  found: dict[tuple[Hashable, ...], list[VariableRecord]] = {}
  for variable in variables:
    found.setdefault(_kind(variable), []).append(variable)
  return found


def _by_exact_shape(ones: _Variables, others: _Variables) -> dict[str, str] | None:
  """Pairs variables that differ in axes of length 1; None where that tells them not apart."""
  shapes = {variable.shape: variable.name for variable in others}
  known = {variable.shape for variable in ones}
  if len(known) < len(ones) or len(shapes) < len(others) or shapes.keys() != known:
    return None
  found = {variable.name: shapes[variable.shape] for variable in ones}
  return found if all(may_be_one(one, other) for one, other in found.items()) else None


def _pairs_of_kind(ones: _Variables, others: _Variables) -> dict[str, str] | None:
  """Pairs the names of one shape and dtype; None where that could be done in two ways."""
  tf1, tf2 = ([variable.name for variable in side] for side in (ones, others))
  if len(tf1) != len(tf2):
    return None
  if len(tf1) == 1:
    return {tf1[0]: tf2[0]} if may_be_one(tf1[0], tf2[0]) else None
  if sorted(tf1) == sorted(tf2):
    return {name: name for name in tf1}
  # The parts of one layer: no two of them have one role.
  here = {_last_word(name): name for name in tf1}
  there = {_last_word(name): name for name in tf2}
  if len(here) < len(tf1) or here.keys() != there.keys():
    return None
  return {name: there[last] for last, name in here.items()}


def _last_word(name: str) -> str:
  return role(name) or words(name)[-1]
