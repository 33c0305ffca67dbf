"""Tensors of both sides to be compared, in portions that fit into memory."""

from collections import Counter
from collections.abc import Iterable, Iterator, Set

from tf2verify.diagnosis.divergence.tensors.outputs import (
  comparable_outputs,
  output_bytes,
  read_outputs,
)
from tf2verify.records import rounds
from tf2verify.records.op_graph import TARGET, OpGraph, TensorKey

# Tensors are fetched in portions of about this size.
_PORTION_BYTES = 96 * 2**20

# Operations looked at past the first source. Those of a deep network behind it differ all.
_FURTHER = 64
# A loop's rounds differ all, too, where only those past the end of a sequence do so for good.
_FURTHER_IN_LOOPS = 1024
# An operation that differs in more rounds of a loop than these is looked at in the first of them.
_MOST_ROUNDS = 3


class Repeats:
  """Tells what was looked at in some rounds of a loop already: later ones show the same."""

  def __init__(self) -> None:
    """Has seen nothing yet."""
    self._rounds: Counter[str] = Counter()

  def has(self, name: str) -> bool:
    """Returns whether an operation was asked for in enough other rounds; counts it otherwise."""
    bare = rounds.without(name)
    if bare == name or self._rounds[bare] >= _MOST_ROUNDS:
      return bare != name
    self._rounds[bare] += 1
    return False


def past_the_first(graph: OpGraph) -> int:
  """Returns how many operations that differ are looked at past the first source."""
  in_loops = any(rounds.numbers_of(op.name) for op in graph.ops)
  return _FURTHER_IN_LOOPS if in_loops else _FURTHER


def portions(
  graphs: tuple[OpGraph, OpGraph],
  pairs: Iterable[tuple[int, int]],
  behind: tuple[Set[int], Set[int]],
) -> Iterator[tuple[list[TensorKey], list[TensorKey]]]:
  """Yields the outputs of pairs that somebody reads, those of tf1 and those of the port.

  Args:
    graphs: that of tf1 and that of the port.
    pairs: positions of operations in them.
    behind: positions of the operations that count as readers.
  """
  tf1_keys: list[TensorKey] = []
  tf2_keys: list[TensorKey] = []
  size = 0
  tf1_read, tf2_read = map(read_outputs, graphs, behind)
  for tf1, tf2 in pairs:
    op, other = graphs[0].ops[tf1], graphs[1].ops[tf2]
    for number in comparable_outputs(op, other):
      # What nothing reads may hold anything: a reserve space of batch norm.
      read = (tf1, number) in tf1_read and (tf2, number) in tf2_read
      if op.op_type != TARGET and not read:
        continue
      tf1_keys.append((tf1, number))
      tf2_keys.append((tf2, number))
      size += output_bytes(op.outputs[number])
      if size > _PORTION_BYTES:
        yield tf1_keys, tf2_keys
        tf1_keys, tf2_keys, size = [], [], 0
  if tf1_keys:
    yield tf1_keys, tf2_keys
