"""Which leftovers of the two sides are probably the same variable under two names."""

import dataclasses
import difflib
import re
from collections.abc import Callable, Hashable, Sequence

from tf2verify.records.observation import VariableRecord
from tf2verify.relation.names.forced_renaming import common_prefixes
from tf2verify.relation.names.roles import (
  counters,
  may_be_one,
  role,
  same_but_counters,
  without_counters,
  words,
)

_WORDS = re.compile(r'[a-z]+|\d+')

_COUNTED = (
  'which count the layers made so far: Keras counts on after a second instance, and a scope after '
  'a second use of its name; pass name='
)
_LEAST_SIMILARITY = 0.5
_LEAST_LEAD = 0.1
# What takes about a tenth of a second, smallest groups of one shape and role first.
# In a large one similarity would hardly single out one name.
_MOST_PAIRS = 10_000


@dataclasses.dataclass(frozen=True)
class RenameSuggestion:
  """Names that may belong together. A suggestion: nothing is compared by it."""

  # (tf1, tf2), one to one, of equal shape and dtype, in tf1 order: what `variable_names` could be.
  renames: tuple[tuple[str, str], ...]
  # What all of them have in common, as a sentence without a full stop; empty where it is no more
  # than similarity.
  explanation: str = ''

  def among(
    self, only_tf1: Sequence[VariableRecord], only_tf2: Sequence[VariableRecord]
  ) -> 'RenameSuggestion':
    """Returns the pairs of which both are still to be explained."""
    names = {v.name for v in only_tf1}, {v.name for v in only_tf2}
    left = tuple(pair for pair in self.renames if pair[0] in names[0] and pair[1] in names[1])
    return self if left == self.renames else RenameSuggestion(left)


def rename_suggestions(
  only_tf1: Sequence[VariableRecord], only_tf2: Sequence[VariableRecord]
) -> RenameSuggestion:
  """Pairs leftovers of equal shape and dtype whose names are alike.

  In this order: one prefix that is missing, extra or another for all; one scope that is
  called differently in all (`block17_1` to `block17_20` against `b17_1`, ...); the same name in
  a different library's terms; counters that differ (`dense_1`, `dense`), alone or all by
  the same step; similar names; the one variable that each side has alone, whatever its name.
  What has two equally good counterparts is left out.

  Args:
    only_tf1: variables that only the tf1 side has; names are unique.
    only_tf2: likewise.
  """
  by_rule = _prefix_change(only_tf1, only_tf2) or _scope_change(only_tf1, only_tf2)
  if by_rule is not None:
    return by_rule
  tf1, tf2 = list(only_tf1), list(only_tf2)
  found: dict[str, str] = {}
  for step in (_same_words, _same_but_counters, _counters_shifted, _most_similar):
    found.update(step(tf1, tf2))
    taken = set(found.values())
    tf1 = [variable for variable in tf1 if variable.name not in found]
    tf2 = [variable for variable in tf2 if variable.name not in taken]
  names = (variable.name for variable in only_tf1)
  renames = tuple((name, found[name]) for name in names if name in found)
  if not renames:
    return _single(only_tf1, only_tf2)
  return RenameSuggestion(renames, _counters_text(renames))


def _kind(variable: VariableRecord) -> tuple[Hashable, ...]:
  return variable.shape, variable.dtype


def _single(tf1: Sequence[VariableRecord], tf2: Sequence[VariableRecord]) -> RenameSuggestion:
  """Pairs the one variable of each side, unless their names say that they serve another end."""
  if len(tf1) != 1 or len(tf2) != 1 or _kind(tf1[0]) != _kind(tf2[0]):
    return RenameSuggestion(())
  if not may_be_one(tf1[0].name, tf2[0].name):
    return RenameSuggestion(())
  text = 'each side has one variable that the other lacks, of the same shape and dtype'
  return RenameSuggestion(((tf1[0].name, tf2[0].name),), text)


_COUNTER = re.compile(r'(_\d+)?$')


def _scope_change(
  tf1: Sequence[VariableRecord], tf2: Sequence[VariableRecord]
) -> RenameSuggestion | None:
  """Returns the suggestion if one scope of another name accounts for the shorter side."""
  fewest = min(len(tf1), len(tf2))
  if fewest < 2:
    return None
  others = {variable.name: variable for variable in tf2}
  changes = dict.fromkeys(
    change
    for variable in tf2
    if _kind(variable) == _kind(tf1[0])
    for change in (_changed_scope(tf1[0].name, variable.name),)
    if change is not None
  )
  for old, new in changes:
    renames = []
    for variable in tf1:
      name = '/'.join(_with_stem(part, old, new) for part in variable.name.split('/'))
      if name in others and _kind(others[name]) == _kind(variable):
        renames.append((variable.name, name))
    if len(renames) == fewest:
      text = f'{fewest} names: a scope is called "{old}" on the tf1 side, "{new}" on the tf2 side'
      return RenameSuggestion(tuple(renames), text)
  return None


def _changed_scope(tf1: str, tf2: str) -> tuple[str, str] | None:
  """Returns the one scope in which two names differ, without its counter; None otherwise."""
  ones, others = tf1.split('/'), tf2.split('/')
  if len(ones) != len(others) or ones[-1] != others[-1]:
    return None
  differing = [(one, other) for one, other in zip(ones, others, strict=True) if one != other]
  if len(differing) != 1:
    return None
  one, other = differing[0]
  same_counter = _COUNTER.search(one).group() == _COUNTER.search(other).group()  # type: ignore[union-attr]
  return (_COUNTER.sub('', one), _COUNTER.sub('', other)) if same_counter else None


def _with_stem(part: str, old: str, new: str) -> str:
  stem = _COUNTER.sub('', part)
  return new + part[len(stem) :] if stem == old else part


def _prefix_change(
  tf1: Sequence[VariableRecord], tf2: Sequence[VariableRecord]
) -> RenameSuggestion | None:
  """Returns the suggestion if one change of prefix accounts for the shorter side."""
  fewest = min(len(tf1), len(tf2))
  if fewest < 2:
    return None
  # Shortest first: the least that has to be changed.
  changes = [(old, new) for old in common_prefixes(tf1) for new in common_prefixes(tf2)]
  changes.sort(key=lambda change: len(change[0]) + len(change[1]))
  spellings: tuple[Callable[[str], Hashable], ...] = (str, words)
  for spelling in spellings:
    for old, new in changes:
      buckets = _buckets(tf1, tf2, _after(old, spelling), _after(new, spelling))
      renames = tuple(_single_pairs(buckets).items())
      if len(renames) == fewest:
        return RenameSuggestion(renames, _prefix_text(old, new, fewest))
  return None


def _after(prefix: str, spelling: Callable[[str], Hashable]) -> Callable[[str], Hashable]:
  return lambda name: spelling(name[len(prefix) :])


def _prefix_text(old: str, new: str, count: int) -> str:
  if not (old or new):
    return ''
  if not new:
    return f'{count} names: the tf2 side lacks the prefix "{old}"'
  if not old:
    return f'{count} names: the tf2 side has the prefix "{new}", which the tf1 side lacks'
  text = f'{count} names: they begin with "{old}" on the tf1 side, with "{new}" on the tf2 side'
  return f'{text}, {_COUNTED}' if same_but_counters(old, new) else text


def _counters_text(renames: Sequence[tuple[str, str]]) -> str:
  """Explains renames that all differ in nothing but counters; '' for others."""
  if not renames or not all(same_but_counters(one, other) for one, other in renames):
    return ''
  for one, other in zip(renames[0][0].split('/'), renames[0][1].split('/'), strict=True):
    if one != other:
      return f'the names differ in their counters only ({one} → {other}), {_COUNTED}'
  return ''


_Buckets = list[tuple[list[VariableRecord], list[VariableRecord]]]


def _buckets(
  tf1: Sequence[VariableRecord],
  tf2: Sequence[VariableRecord],
  tf1_key: Callable[[str], Hashable],
  tf2_key: Callable[[str], Hashable] | None = None,
) -> _Buckets:
  """Returns the variables of both sides that share shape, dtype and key."""
  sides = ((tf1, tf1_key), (tf2, tf2_key or tf1_key))
  found: dict[Hashable, tuple[list[VariableRecord], list[VariableRecord]]] = {}
  for side, (variables, key) in enumerate(sides):
    for variable in variables:
      bucket = found.setdefault((_kind(variable), key(variable.name)), ([], []))
      bucket[side].append(variable)
  return [bucket for bucket in found.values() if bucket[0] and bucket[1]]


def _single_pairs(buckets: _Buckets) -> dict[str, str]:
  return {tf1[0].name: tf2[0].name for tf1, tf2 in buckets if len(tf1) == 1 and len(tf2) == 1}


def _same_words(tf1: Sequence[VariableRecord], tf2: Sequence[VariableRecord]) -> dict[str, str]:
  return _single_pairs(_buckets(tf1, tf2, words))


def _same_but_counters(
  tf1: Sequence[VariableRecord], tf2: Sequence[VariableRecord]
) -> dict[str, str]:
  return _single_pairs(_buckets(tf1, tf2, without_counters))


def _counters_shifted(
  tf1: Sequence[VariableRecord], tf2: Sequence[VariableRecord]
) -> dict[str, str]:
  """Pairs series of equal length whose counters all differ by the same step."""
  found: dict[str, str] = {}
  for series1, series2 in _buckets(tf1, tf2, without_counters):
    if len(series1) != len(series2):
      continue
    names1 = sorted((variable.name for variable in series1), key=counters)
    names2 = sorted((variable.name for variable in series2), key=counters)
    pairs = list(zip(names1, names2, strict=True))
    steps = {
      tuple(b - a for a, b in zip(counters(name1), counters(name2), strict=True))
      for name1, name2 in pairs
    }
    if len(steps) == 1:
      found.update(pairs)
  return found


def _most_similar(tf1: Sequence[VariableRecord], tf2: Sequence[VariableRecord]) -> dict[str, str]:
  """Pairs names that are each other's most similar, by a clear lead over the next."""
  found: dict[str, str] = {}
  buckets = _buckets(tf1, tf2, role)
  buckets.sort(key=lambda bucket: len(bucket[0]) * len(bucket[1]))
  budget = _MOST_PAIRS
  for group1, group2 in buckets:
    budget -= len(group1) * len(group2)
    if budget < 0:
      break
    table = _similarities(group1, group2)
    columns = list(zip(*table, strict=True))
    for row, variable in enumerate(group1):
      column = _clear_best(table[row])
      if column is not None and _clear_best(columns[column]) == row:
        found[variable.name] = group2[column].name
  return found


def _similarities(
  tf1: Sequence[VariableRecord], tf2: Sequence[VariableRecord]
) -> list[list[float]]:
  spelled = [_WORDS.findall('/'.join(words(variable.name))) for variable in tf1]
  table = [[0.0] * len(tf2) for _ in tf1]
  matcher = difflib.SequenceMatcher[str](autojunk=False)
  for column, variable in enumerate(tf2):
    matcher.set_seq2(_WORDS.findall('/'.join(words(variable.name))))
    for row, own in enumerate(spelled):
      matcher.set_seq1(own)
      table[row][column] = matcher.ratio()
  return table


def _clear_best(similarities: Sequence[float]) -> int | None:
  """Returns the position of the greatest, if it is great enough and has no rival."""
  best = max(range(len(similarities)), key=similarities.__getitem__)
  rivals = (value for position, value in enumerate(similarities) if position != best)
  lead = similarities[best] - max(rivals, default=0.0)
  enough = similarities[best] >= _LEAST_SIMILARITY and lead >= _LEAST_LEAD
  return best if enough else None
