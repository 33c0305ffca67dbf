"""Variables that a case declares as those of one side alone."""

import difflib
import fnmatch
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from tf2verify.errors import CaseDefinitionError
from tf2verify.records.wording import listed

_SHOWN = 5


def declared_reasons(
  attribute: str, declared: Any, unpaired: Sequence[str], known: Sequence[str]
) -> dict[str, str]:
  """Returns the reason of every variable that a declaration leaves to one side.

  Args:
    attribute: `tf1_only_variables` or `tf2_only_variables`.
    declared: its value: from names, or glob patterns of names, to reasons.
    unpaired: names of the side's variables that the other side lacks.
    known: names of all of the side's variables.

  Raises:
    CaseDefinitionError: it is not a mapping of texts, or a name or pattern of it stands for no
      variable that the other side lacks.
  """
  if not isinstance(declared, Mapping):
    raise CaseDefinitionError(
      f'{attribute} is a {type(declared).__name__}; it must be a mapping from a variable name, or '
      "a glob pattern of names, to the reason: {'unused/*': 'nothing reads it'}"
    )
  found: dict[str, str] = {}
  for name, reason in declared.items():
    if not isinstance(name, str) or not isinstance(reason, str) or not reason.strip():
      raise CaseDefinitionError(
        f'{attribute} maps {name!r:.80} to {reason!r:.80}; both must be strings: a name, or a glob '
        'pattern of names, and the reason why the other side has no such variable'
      )
    pattern = name.removesuffix(':0')
    matching = _matching(pattern, unpaired)
    if not matching:
      raise CaseDefinitionError(_nothing_text(attribute, name, _matching(pattern, known), known))
    found.update((one, reason) for one in matching if one not in found)
  return found


def names_declared(declared: Any, names: Sequence[str]) -> set[str]:
  """Returns which names a declaration leaves to one side; whether it is valid is not asked."""
  patterns = declared if isinstance(declared, Mapping) else ()
  known = (str(pattern).removesuffix(':0') for pattern in patterns)
  return {name for pattern in known for name in _matching(pattern, names)}


def _matching(pattern: str, names: Sequence[str]) -> list[str]:
  if pattern in names:
    return [pattern]
  return [name for name in names if fnmatch.fnmatchcase(name, pattern)]


def _nothing_text(attribute: str, name: str, paired: Sequence[str], known: Sequence[str]) -> str:
  side, other = ('tf1', 'tf2') if attribute.startswith('tf1') else ('tf2', 'tf1')
  if paired:
    return (
      f'{attribute} names {name!r}, and the {other} side has {paired[0]} as well: take it out of '
      f'{attribute}'
    )
  text = f'{attribute} names {name!r}, which is not a {side} variable'
  closest = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
  if closest:
    return f'{text}. Maybe you meant {closest[0]!r}'
  shown = listed([repr(one) for one in known], _SHOWN)
  return f'{text}. The {side} side has {shown or "none"}'


def declaration(attribute: str, names: Sequence[str], known: Collection[str], reason: str) -> str:
  """Returns the line that declares some variables, scopes of which all are meant as patterns.

  Args:
    attribute: as of `declared_reasons`.
    names: of the variables to declare.
    known: names of all of the side's variables.
    reason: for all of them.
  """
  meant = frozenset(names)
  patterns = dict.fromkeys(_pattern(name, meant, known) for name in names)
  return f'{attribute} = {{{", ".join(f"{pattern!r}: {reason!r}" for pattern in patterns)}}}'


def _pattern(name: str, meant: Collection[str], known: Collection[str]) -> str:
  """Returns the widest scope of a name in which all variables are meant; else the name."""
  parts = name.split('/')
  for depth in range(1, len(parts)):
    scope = '/'.join(parts[:depth]) + '/'
    inside = [other for other in known if other.startswith(scope)]
    if len(inside) > 1 and all(other in meant for other in inside):
      return f'{scope}*'
  return name
