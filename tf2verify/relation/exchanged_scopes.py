"""Scopes and numbers in names that say which variables belong together, where the graphs differ.

A whole tower, block or layer, not a single variable: `query` and `candidate` of tf1 against
`candidate_tower` and `query_tower`; or `bn0` and `bn1` against `n1` and `n0`, where `fc0` and `fc1`
are `d0` and `d1`.
"""

import itertools
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from tf2verify.relation.name_words import alike, telling

_Shapes = Mapping[str, tuple[int, ...]]
# A scope as its components.
_Scope = tuple[str, ...]
# Scopes of tf1 and of the port in which layers are.
_Block = tuple[_Scope, _Scope]
# A layer that its author has numbered. Keras and TF1 put an underscore before their own counts,
# which go by the order in which layers are made.
_NUMBERED = re.compile(r'(\D*[a-z])(\d+)')


def by_scopes(partner: Mapping[str, str], tf2_shapes: _Shapes) -> Iterator[tuple[str, str]]:
  """Yields pairs by name, of variables in two scopes that the graphs pair crosswise.

  Args:
    partner: the port's variable of each of tf1, as the graphs tell it.
    tf2_shapes: of the variables of the port.
  """
  inside: dict[_Scope, list[str]] = defaultdict(list)
  for name in partner:
    parts = _parts(name)
    for depth in range(1, len(parts)):
      inside[parts[:depth]].append(name)
  siblings: dict[_Scope, list[_Scope]] = defaultdict(list)
  for scope in inside:
    siblings[scope[:-1]].append(scope)
  for scopes in siblings.values():
    for one, other in itertools.combinations(scopes, 2):
      yield from _exchanged((one, inside[one]), (other, inside[other]), partner, tf2_shapes)


def _exchanged(
  first: tuple[_Scope, Sequence[str]],
  second: tuple[_Scope, Sequence[str]],
  partner: Mapping[str, str],
  shapes: _Shapes,
) -> Iterator[tuple[str, str]]:
  """Yields the pairs by name of two scopes next to each other, if their names say so."""
  (one, its_names), (other, others_names) = first, second
  if len(its_names) != len(others_names):
    return
  its, others = ([partner[name] for name in names] for names in (its_names, others_names))
  here, there = _scope_of(its), _scope_of(others)
  depth = _shared(here, there)
  if depth in (len(here), len(there)):  # neither is a scope of its own
    return
  inner = [
    {_parts(name)[len(scope) :]: shapes[name] for name in names}
    for scope, names in ((here, its), (there, others))
  ]
  if inner[0] != inner[1]:
    return
  one_only, other_only = telling(one[-1], other[-1])
  here_only, there_only = telling('/'.join(here[depth:]), '/'.join(there[depth:]))
  crosswise = alike(one_only, there_only) and alike(other_only, here_only)
  if not crosswise or alike(one_only, here_only) or alike(other_only, there_only):
    return
  for names, old, new in ((its_names, here, there), (others_names, there, here)):
    for name in names:
      yield name, '/'.join(new + _parts(partner[name])[len(old) :])


def by_numbers(partner: Mapping[str, str], tf2_shapes: _Shapes) -> Iterator[tuple[str, str]]:
  """Yields pairs by name, of layers whose numbers the graphs exchange beside others that they keep.

  Args:
    partner: the port's variable of each of tf1, as the graphs tell it.
    tf2_shapes: of the variables of the port.
  """
  places: dict[_Block, dict[tuple[str, str], dict[str, str]]] = {}
  layers: dict[tuple[_Block, str, str], list[str]] = defaultdict(list)
  for name, its in partner.items():
    for one, other in itertools.product(_numbered(name), _numbered(its)):
      block = one[0], other[0]
      families = places.setdefault(block, {})
      families.setdefault((one[1], other[1]), {})[one[2]] = other[2]
      layers[block, one[1], one[2]].append(name)
  for block, families in places.items():
    kept = [numbers for numbers in families.values() if all(a == b for a, b in numbers.items())]
    for (word, its_word), numbers in families.items():
      turned = {a: b for a, b in numbers.items() if a != b}
      if not turned or sorted(turned) != sorted(turned.values()):
        continue
      if not any(turned.keys() <= known.keys() for known in kept):
        continue
      for number in turned:
        for name in layers[block, word, number]:
          parts = list(_parts(partner[name]))
          parts[len(block[1])] = its_word + number
          wanted = '/'.join(parts)
          if tf2_shapes.get(wanted) == tf2_shapes[partner[name]]:
            yield name, wanted


def _numbered(name: str) -> Iterator[tuple[_Scope, str, str]]:
  """Yields each numbered component of a name: its scope, word and number."""
  parts = _parts(name)
  for at, part in enumerate(parts):
    if found := _NUMBERED.fullmatch(part):
      yield parts[:at], found.group(1), found.group(2)


def _parts(name: str) -> _Scope:
  return tuple(name.split('/'))


def _scope_of(names: Sequence[str]) -> _Scope:
  """Returns the scope that all of some variables are in."""
  parts = [_parts(name)[:-1] for name in names]
  return parts[0][: min(_shared(parts[0], other) for other in parts)]


def _shared(one: _Scope, other: _Scope) -> int:
  """Returns how many components two scopes begin with alike."""
  both = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False))
  return len(list(both))
