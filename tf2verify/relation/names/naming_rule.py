"""What `variable_names` could be, as code for a case."""

import collections
import dataclasses
from collections.abc import Sequence

_Renames = Sequence[tuple[str, str]]


@dataclasses.dataclass(frozen=True)
class NamingRule:
  """A change of prefix that most renames have in common."""

  old: str  # what the tf1 names begin with; '' for nothing
  new: str  # what the tf2 names have in its place
  exceptions: tuple[tuple[str, str], ...]  # (tf1, tf2) of those renames that it does not give

  @property
  def expression(self) -> str:
    """The tf2 name, as a Python expression of `name`."""
    rest = f'name.removeprefix({self.old!r})' if self.old else 'name'
    return f'{self.new!r} + {rest}' if self.new else rest


def naming_rule(renames: _Renames) -> NamingRule | None:
  """Returns the change of prefix of at least half of the renames, None where there is none."""
  changes = collections.Counter(_prefixes(tf1, tf2) for tf1, tf2 in renames)
  changes.pop(('', ''), None)
  for (old, new), _ in changes.most_common(1):
    rest = tuple(pair for pair in renames if new + pair[0].removeprefix(old) != pair[1])
    if 2 * len(rest) <= len(renames):
      return NamingRule(old, new, rest)
  return None


def code(renames: _Renames, rule: NamingRule | None) -> str:
  """Returns the declaration of all renames, indented as it stands in a class.

  Args:
    renames: (tf1, tf2).
    rule: what gives them; None writes each of them down.
  """
  if rule is None:
    return '\n'.join(['  variable_names = {', *_entries(renames, 4), '  }'])
  lines = ['  def variable_names(self, name):']
  if not rule.exceptions:
    return '\n'.join([*lines, f'    return {rule.expression}'])
  lines += ['    others = {', *_entries(rule.exceptions, 6), '    }']
  return '\n'.join([*lines, f'    return others.get(name, {rule.expression})'])


def _entries(renames: _Renames, indent: int) -> list[str]:
  return [f'{" " * indent}{tf1!r}: {tf2!r},' for tf1, tf2 in renames]


def _prefixes(tf1: str, tf2: str) -> tuple[str, str]:
  """Returns the scopes in front of all that two names have in common at their ends."""
  ones, others = tf1.split('/'), tf2.split('/')
  while ones and others and ones[-1] == others[-1]:
    ones.pop()
    others.pop()
  return ''.join(f'{part}/' for part in ones), ''.join(f'{part}/' for part in others)
