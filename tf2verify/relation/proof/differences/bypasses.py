"""Operations of which one side reads the result, and the other side what they are computed from.

Both sides may have them: a bound of an observation that the actor of the port has, and its critic
has lost. No operation is missing then, and what reads it is alike.
"""

from collections.abc import Iterator

from tf2verify.records.op_graph import OpRecord, TensorKey
from tf2verify.relation.operations.op_pairs import family
from tf2verify.relation.proof.differences.pairs import (
  EXTRA,
  MISSING,
  Unlike,
  passed,
  spelled,
  unlike_settings,
)
from tf2verify.relation.proof.proving import Proof, Side

# A clipping is two.
_LONGEST = 3
_Kind = tuple[str, tuple[tuple[str, tuple[int | None, ...] | None], ...]]


def bypasses(proof: Proof) -> Iterator[Unlike]:
  """Yields pairs of one kind, of which one reads what the other does by way of proven operations.

  Args:
    proof: what is proven of both graphs.
  """
  for side, other, what in ((proof.tf1, proof.tf2, MISSING), (proof.tf2, proof.tf1, EXTRA)):
    partners: dict[tuple[_Kind, tuple[int, ...]], int] = {}
    for position in sorted(other.tested):
      op = other.graph.ops[position]
      read = tuple(other.values[key] for key in op.inputs)
      partners.setdefault((_kind(op), read), position)
    for position in sorted(side.tested):
      op = side.graph.ops[position]
      read = tuple(side.values[key] for key in op.inputs)
      for slot, key in enumerate(op.inputs if not op.functions else ()):
        for chain, before in _ways(proof, side, key):
          wanted = (*read[:slot], side.values[before], *read[slot + 1 :])
          partner = partners.get((_kind(op), wanted))
          if partner is None:
            continue
          pair = (position, partner) if what == MISSING else (partner, position)
          if unlike_settings(proof, *pair) is None:
            text = ' → '.join(spelled(proof, side, n) for n in reversed(chain))
            values = (text, '') if what == MISSING else ('', text)
            yield Unlike(*pair, what, values, named=chain[0])


def _ways(proof: Proof, side: Side, key: TensorKey) -> Iterator[tuple[tuple[int, ...], TensorKey]]:
  """Yields what yields a tensor, the last operation first, and what all of it is computed from.

  Of operations that are not proven, others tell.
  """
  chain: tuple[int, ...] = ()
  while len(chain) < _LONGEST and key[0] not in side.tested:
    before = passed(proof, side, key[0])
    if before is None:
      return
    chain += (key[0],)
    yield chain, before
    key = before


def _kind(op: OpRecord) -> _Kind:
  return family(op.op_type), tuple(op.outputs)
