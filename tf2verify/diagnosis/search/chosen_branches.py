"""Choices that tf1 makes element by element, of which the port computes one branch everywhere.

`where(kept, new, old)` in tf1 and `new` in the port: all that the port lacks is the condition, the
other branch and the choice, which are many operations; their lines say more.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from tf2verify.diagnosis.divergence.tensors.regions import Region
from tf2verify.diagnosis.edits.mistakes import Mistake
from tf2verify.diagnosis.patterns.operations.reads import text_with_line
from tf2verify.diagnosis.places.looking import Looking, Place
from tf2verify.numerics.agreement import agreement
from tf2verify.records.op_graph import OpGraph, TensorKey
from tf2verify.relation.operations.op_pairs import family

_OF_ROWS = 'Select'
_CHOICES = frozenset((_OF_ROWS, 'SelectV2'))
_FLOAT = 'float'
_LAYOUTS = frozenset(
  ('Cast', 'ExpandDims', 'Identity', 'Pack', 'Reshape', 'Squeeze', 'StridedSlice', 'Transpose')
)
_MOST = 8


def chosen_branch(looking: Looking, mistake: Mistake) -> str:
  """Returns that tf1 chooses where the port does not, as text; '' if that is not seen.

  Args:
    looking: the search in the port as it is.
    mistake: one that replaces operations of the port by those of tf1.
  """
  said = [_at(looking, place) for place in mistake.places if looking.has(place)]
  known = [*dict.fromkeys(said)]
  if not all(said) or len(said) < len(mistake.places):
    return ''
  more = f'; the same at {len(known) - 1} more' if len(known) > 1 else ''
  return f'{known[0]}{more}'


def _at(looking: Looking, place: Place) -> str:
  graph, other = looking.tf1.op_graph, looking.tf2.op_graph
  regions = place.source.regions
  choices = [n for n in regions.tf1.inner if graph.ops[n].op_type in _CHOICES]
  read = [*dict.fromkeys(_read_by_the_port(looking, place))]
  after = {key: _after(other, key[0], regions.tf2) for key in read}
  for n in choices[::-1][:_MOST]:
    wanted = _after(graph, n, regions.tf1)
    keys = [*graph.ops[n].inputs, (n, 0)]
    is_mask = not _decides_by_itself(graph, keys)
    fits = [key for key in read if is_mask or after[key] <= wanted]
    condition, chosen = looking.tf1.fetch([graph.tensor(key) for key in (keys[0], keys[-1])])
    # `Select` chooses whole rows by a vector.
    if graph.ops[n].op_type == _OF_ROWS:
      condition = condition.reshape((*condition.shape, *[1] * (chosen.ndim - condition.ndim)))
    is_true = np.broadcast_to(condition, chosen.shape)
    for key, value in zip(fits, looking.tf2.fetch([other.tensor(k) for k in fits]), strict=True):
      which = _which(is_true, chosen, value)
      if which is None:
        continue
      where, rest = ('true', 'false')[which], np.mean(is_true == bool(which))
      return (
        f'the port takes {text_with_line(other, key)} for all elements; tf1 takes that only where '
        f'{text_with_line(graph, keys[0])} is {where}, and elsewhere, in {100 * rest:.0f} % of the '
        f'elements here, {text_with_line(graph, keys[2 - which])}'
      )
  return ''


def _decides_by_itself(graph: OpGraph, keys: Sequence[TensorKey]) -> bool:
  """Returns whether a condition is computed from one of the branches: that is no mask."""
  condition, one, other, _ = keys
  behind = graph.ancestors([condition[0]])
  return one[0] in behind or other[0] in behind


def _after(graph: OpGraph, position: int, region: Region) -> set[str]:
  """Returns what operations of a region make of the output of one.

  Where the port makes something else of it than tf1 of what it chooses, that is no choice left out:
  `where(x < 0, x, -x)` is a part of many formulas of x.
  """
  reached = {position}
  for n in sorted({*region.inner, region.end}):
    if any(producer in reached for producer, _ in graph.ops[n].inputs):
      reached.add(n)
  return {family(graph.ops[n].op_type) for n in reached - {position}} - _LAYOUTS


def _which(is_true: np.ndarray, chosen: np.ndarray, value: np.ndarray) -> int | None:
  """Returns which of two branches the port has for all elements; None for neither.

  In a loop the branch itself may be another one, of what was not chosen a round before.

  Args:
    is_true: by what tf1 chooses, of the shape of what it has chosen.
    chosen: what that is.
    value: of the port.
  """
  if value.shape != chosen.shape or value.dtype != chosen.dtype:
    return None
  for which, where in enumerate((is_true, ~is_true)):
    if not where.any() or where.all() or not np.ptp(chosen[where]):
      continue  # a number that a branch has everywhere may be any
    both = [agreement(chosen[one], value[one]).is_rounding for one in (where, ~where)]
    if both == [True, False]:
      return which
  return None


def _read_by_the_port(looking: Looking, place: Place) -> Iterator[TensorKey]:
  """Yields what the port reads, or makes, where tf1 chooses."""
  graph, regions = looking.tf2.op_graph, place.source.regions.tf2
  for n in (regions.end, *regions.inner[::-1]):
    known = graph.ops[n].inputs
    yield from (key for key in known if graph.ops[key[0]].outputs[key[1]][0].startswith(_FLOAT))
