"""Scopes and numbers in names that say which variables belong together, where the graphs differ.

A whole tower, block or layer, not a single variable: `query` and `candidate` of tf1 against
`candidate_tower` and `query_tower`; or `bn0` and `bn1` against `n1` and `n0`, where `fc0` and `fc1`
are `d0` and `d1`.
"""

import itertools
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from tf2verify.relation.names.words import alike, beginning, telling

_Shapes = Mapping[str, tuple[int, ...]]
# A scope as its components.
_Scope = tuple[str, ...]
# Scopes of tf1 and of the port in which layers are.
_Block = tuple[_Scope, _Scope]
# So many times as many variables as are paired otherwise tell which scopes belong together.
_MOST = 3
# More scopes next to each other are the layers of a model without scopes, and many pairs.
_MOST_SIBLINGS = 64
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
    for one, other in itertools.combinations(scopes, 2) if len(scopes) <= _MOST_SIBLINGS else ():
      yield from _exchanged((one, inside[one]), (other, inside[other]), partner, tf2_shapes)


def _exchanged(
  first: tuple[_Scope, Sequence[str]],
  second: tuple[_Scope, Sequence[str]],
  partner: Mapping[str, str],
  shapes: _Shapes,
) -> Iterator[tuple[str, str]]:
  """Yields the pairs by name of what two scopes next to each other have crosswise."""
  (one, its_names), (other, others_names) = first, second
  found = {name: _parts(partner[name]) for name in (*its_names, *others_names)}
  depth = len(beginning([parts[:-1] for parts in found.values()]))
  inside: dict[str, list[_Scope]] = defaultdict(list)
  for parts in found.values():
    inside[parts[depth] if len(parts) > depth + 1 else ''].append(parts)
  if '' in inside or len(inside) != 2:
    return
  here, there = (beginning([parts[:-1] for parts in side]) for side in inside.values())
  crossing = [name for name in its_names if found[name][: len(here)] != here]
  crossing += [name for name in others_names if found[name][: len(there)] != there]
  straight = _by_words((one[-1], other[-1]), ('/'.join(here), '/'.join(there)))
  if straight is None:
    straight = _by_most(len(crossing), len(found) - len(crossing))
  if straight is None:
    return
  turned = crossing if straight else [name for name in found if name not in set(crossing)]
  wanted = {}
  for name in turned:
    parts = found[name]
    old, new = (here, there) if parts[: len(here)] == here else (there, here)
    wanted[name] = '/'.join(new + parts[len(old) :])
  if all(shapes.get(wanted[name]) == shapes[partner[name]] for name in turned):
    yield from wanted.items()


def _by_words(names: tuple[str, str], scopes: tuple[str, str]) -> bool | None:
  """Returns whether two scopes belong to two names in this order; None if words do not tell."""
  (one, other), (here, there) = telling(*names), telling(*scopes)
  straight = alike(one, here), alike(other, there)
  crosswise = alike(one, there), alike(other, here)
  if all(straight) and not any(crosswise):
    return True
  return False if all(crosswise) and not any(straight) else None


def _by_most(crossing: int, others: int) -> bool | None:
  """Returns whether most variables of two scopes are paired straight; None if neither is so."""
  if crossing and others >= _MOST * crossing:
    return True
  return False if others and crossing >= _MOST * others else None


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
