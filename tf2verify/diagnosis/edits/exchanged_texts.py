"""An operation before others on one side, and after them on the other, as a sentence."""

import itertools
from collections.abc import Sequence

from tf2verify.records.diagnosis import GraphAspect, Source

_OF_ONE_SIDE = (GraphAspect.EXTRA, GraphAspect.MISSING)


def exchanged_text(groups: Sequence[Sequence[Source]]) -> str:
  """Returns that the places of an edit are of two things in another order; '' if they are not.

  Where it comes first, one side alone has it; where it comes last on the other side, that side has
  it in the place of what the others end with: an activation before a normalization, and after it.

  Args:
    groups: the places, those of which the same is said together.
  """
  for one, other in itertools.permutations(groups, 2):
    known, end = one[0].differences, other[0].differences
    if not len(known) == len(end) == 1 or end[0].aspect is not GraphAspect.TYPE:
      continue
    is_extra = known[0].aspect is GraphAspect.EXTRA
    op, same = (known[0].tf2, end[0].tf1) if is_extra else (known[0].tf1, end[0].tf2)
    if known[0].aspect not in _OF_ONE_SIDE or op != same or len(one) != len(other):
      continue
    side, rest = ('the port', 'tf1') if is_extra else ('tf1', 'the port')
    has = end[0].tf2 if is_extra else end[0].tf1
    first, then = ('before', 'after')[:: 1 if groups.index(one) < groups.index(other) else -1]
    more = f'; the same at {len(one) - 1} more' if len(one) > 1 else ''
    return (
      f'{side} computes {op} {first} {one[0].tf1_op}, and {rest} {then} it, at {other[0].tf1_op}, '
      f'where {side} has {has}: exchange the two in the port{more}'
    )
  return ''
