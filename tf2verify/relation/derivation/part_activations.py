"""Which part of a divided product is which, by the activations that follow.

The columns of one kernel are those of a transform gate and a candidate, say: the other side has a
kernel for each, and tells by `sigmoid` and `relu` which they are, also where a mistake before them
keeps numbers from telling.
"""

import re
from collections.abc import Sequence

from tf2verify.records.op_graph import OpRecord
from tf2verify.relation.derivation.undivided import ACTIVATIONS, KEEPING, SLICES, SPLITS
from tf2verify.relation.layouts.map_entry import MapEntry
from tf2verify.relation.operations.op_pairs import family
from tf2verify.relation.operations.variable_uses import VariableUses

_PARTS = re.compile(r'\((z\d+(?:\+z\d+)+)\)')
_MOST_STEPS = 12
_SUMS = ('AddV2', 'Sub')


def likely_order(
  uses: tuple[VariableUses, VariableUses], entries: Sequence[MapEntry]
) -> int | None:
  """Returns which of entries that differ in the order of parts fits the activations.

  For where numbers decide nothing: an order that numbers show is right whatever follows.

  Args:
    uses: of the variables of tf1 and of the port.
    entries: of the same variables, one of which is the whole.

  Returns:
    Its position; None where activations do not tell.
  """
  first = entries[0]
  side = 0 if len(first.tf1) == 1 else 1
  names = first.tf1, first.tf2
  if len(names[side]) != 1 or len(names[1 - side]) < len('ab'):
    return None
  whole = _of_positions(uses[side], names[side][0])
  parts = [_following(uses[1 - side], name) for name in names[1 - side]]
  if len(whole) != len(parts) or None in whole or len(set(parts)) != len(parts):
    return None
  order = _by(whole, parts)
  fitting = [n for n, entry in enumerate(entries) if order and order_of_parts(entry) == order]
  return fitting[0] if len(fitting) == 1 else None


def _by(whole: Sequence[str | None], parts: Sequence[str | None]) -> list[int]:
  """Returns the part at each position; nothing where activations do not tell."""
  return [parts.index(kind) for kind in whole] if set(whole) == set(parts) else []


def order_of_parts(entry: MapEntry) -> list[int]:
  """Returns the part that an entry has at each position of the whole; nothing if it has no one."""
  told = _PARTS.search(entry.layout)
  order = [int(end[1:]) - 1 for end in told.group(1).split('+')] if told else []
  count = max(len(entry.tf1), len(entry.tf2))
  return order if sorted(order) == list(range(count)) else []


def _following(uses: VariableUses, name: str) -> str | None:
  """Returns the activation of what a variable computes; None where there is none or several."""
  reader = uses.readers.get(name)
  return None if reader is None else _activation(uses, (reader, 0))


def _of_positions(uses: VariableUses, name: str) -> list[str | None]:
  """Returns the activation of each part of what a variable computes, in the order of the parts."""
  reader = uses.readers.get(name)
  consumers = uses.graph.consumers()
  for _ in range(_MOST_STEPS if reader is not None else 0):
    following = [n for n, _ in consumers[reader or 0]]
    kinds = {family(uses.graph.ops[n].op_type) for n in following}
    if kinds & set(SPLITS) and len(following) == 1:
      op = uses.graph.ops[following[0]]
      return [_activation(uses, (following[0], k)) for k in range(len(op.outputs))]
    if kinds and kinds <= set(SLICES):
      starts = [(_start(uses, uses.graph.ops[n]), n) for n in following]
      ordered = sorted((start, n) for start, n in starts if start is not None)
      return [_activation(uses, (n, 0)) for _, n in ordered] if len(ordered) == len(starts) else []
    if len(following) != 1 or not kinds <= {*KEEPING, *_SUMS}:
      return []
    (reader,) = following
  return []


def _activation(uses: VariableUses, key: tuple[int, int]) -> str | None:
  """Returns the first activation behind a tensor, past sums and other shapes."""
  consumers = uses.graph.consumers()
  for _ in range(_MOST_STEPS):
    ops = uses.graph.ops
    following = [n for n, slot in consumers[key[0]] if ops[n].inputs[slot] == key]
    kinds = {family(ops[n].op_type) for n in following}
    if len(kinds) == 1 and kinds <= set(ACTIVATIONS):
      return kinds.pop()
    if len(following) != 1 or not kinds <= {*KEEPING, *_SUMS}:
      return None
    key = following[0], 0
  return None


def _start(uses: VariableUses, op: OpRecord) -> int | None:
  """Returns where a slice begins on the last axis; None where that is not known."""
  begin = uses.graph.ops[op.inputs[1][0]].constant if len(op.inputs) > 1 else None
  return None if begin is None or not begin.size else int(begin.ravel()[-1])
