"""Of which of the tensors that enter a region its operations are made."""

from collections.abc import Sequence

from tf2verify.records.op_graph import OpGraph, TensorKey


def made_of(
  graph: OpGraph, inner: Sequence[int], entering: Sequence[TensorKey]
) -> dict[int, frozenset[int]]:
  """Returns by position which of the tensors that enter a region each operation is made of."""
  numbers: dict[TensorKey, frozenset[int]] = {}
  for number, key in enumerate(entering):
    numbers[key] = numbers.get(key, frozenset()) | {number}
  found: dict[int, frozenset[int]] = {}
  for n in sorted(inner):
    read = [found.get(key[0], numbers.get(key, frozenset())) for key in graph.ops[n].inputs]
    found[n] = frozenset[int]().union(*read)
  return found


def share(one: frozenset[int], other: frozenset[int]) -> float:
  """Returns how much of two sets is in both; what is made of the same is likely the same."""
  return len(one & other) / len(one | other) if one | other else 0.0
