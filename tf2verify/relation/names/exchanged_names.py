"""Names that say which variables belong together, where the graphs exchange them.

Not the same names: `memory_layer` and `memory`, `q` and `query`; or `a` in two blocks of a model
for what is `b` in the third one.
"""

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence

from tf2verify.relation.names.exchanged_scopes import by_numbers, by_scopes
from tf2verify.relation.names.roles import owner, role
from tf2verify.relation.names.words import alike, beginning, telling

_Shapes = Mapping[str, tuple[int, ...]]
# Of a variable of tf1 in its block, that of the port in its own.
_Pairs = frozenset[tuple[str, str]]
# So many times as many blocks as say one thing say the other.
_FEWER = 2


def exchanged(partner: Mapping[str, str], tf2_shapes: _Shapes) -> Iterator[dict[str, str]]:
  """Yields pairs by name, of variables that the graphs pair differently, those of a kind together.

  Args:
    partner: the port's variable of each of tf1, as the graphs tell it.
    tf2_shapes: of the variables of the port.
  """
  blocks: dict[str, list[str]] = defaultdict(list)
  for name in partner:
    blocks[_block(name)].append(name)
  yield {
    **dict(found for names in blocks.values() for found in _by_words(names, partner, tf2_shapes)),
    **dict(_by_other_blocks(blocks, partner, tf2_shapes)),
  }
  yield dict(by_scopes(partner, tf2_shapes))
  yield dict(by_numbers(partner, tf2_shapes))


def _block(name: str) -> str:
  """Returns the scope of the layer of a variable; of one by itself, its own scope."""
  return owner(owner(name)) if role(name) else owner(name)


def _by_words(
  names: Sequence[str], partner: Mapping[str, str], shapes: _Shapes
) -> Iterator[tuple[str, str]]:
  for one, other in itertools.combinations(names, 2):
    its, others = partner[one], partner[other]
    if shapes[its] != shapes[others] or role(one) != role(other):
      continue
    first, second = telling(one, other)
    third, fourth = telling(its, others)
    crossed = alike(first, fourth) and alike(second, third)
    if crossed and not alike(first, third) and not alike(second, fourth):
      yield one, others
      yield other, its


def _by_other_blocks(
  blocks: Mapping[str, Sequence[str]], partner: Mapping[str, str], shapes: _Shapes
) -> Iterator[tuple[str, str]]:
  """Yields what is the other way round in few of the blocks that have the same names in them."""
  same: dict[tuple[frozenset[str], frozenset[str]], dict[str, _Pairs]] = defaultdict(dict)
  for block, names in blocks.items():
    within = {name: name[len(block) :] for name in names}
    start = len(beginning([partner[name] for name in names]))
    pairs = frozenset((within[name], partner[name][start:]) for name in names)
    if len(pairs) > 1:
      known = frozenset(one for one, _ in pairs), frozenset(other for _, other in pairs)
      same[known][block] = pairs
  for found in same.values():
    (usual, times), *rest = Counter(found.values()).most_common()
    if times < _FEWER * sum(count for _, count in rest):
      continue
    for block, pairs in found.items():
      scope = ''.join(beginning([partner[name] for name in blocks[block]]))
      for one, other in usual - pairs:
        name, its = f'{block}{one}', f'{scope}{other}'
        if shapes[partner[name]] == shapes[its]:
          yield name, its
