"""Claims tried out: the port's operations with TF1's attributes and constants, run again.

What a graph shows to differ need not matter (`padding` of a window of one pixel, axes
written differently), nor be all that differs. So each attribute and each constant is given to
the port's operation as TF1 has it, from TF1's inputs, and what that yields is held against
what TF1 yields.
"""

import dataclasses
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from tf2verify.diagnosis.divergence.tensors.outputs import can_fetch, is_opaque
from tf2verify.diagnosis.divergence.tensors.sources import FoundSource, InspectableRun
from tf2verify.diagnosis.evidence.failed_stage import Standing
from tf2verify.numerics.agreement import Agreement, agreement
from tf2verify.records.diagnosis import GraphDifference
from tf2verify.records.op_graph import TARGET, NodeChange, OpRecord, TensorKey

# Of a difference that a change explains, no more than this share is left.
_UNEXPLAINED = 0.01
_MOST_CHANGES = 6
# Of two mistakes one may hide a part of the other; the difference is then not much greater.
_WORSE = 1.25
# The whole port is run again up to this size.
_MOST_OPERATIONS = 3000

Changes = Sequence[tuple[GraphDifference, NodeChange]]


@dataclasses.dataclass(frozen=True, eq=False)
class Trials:
  """Tries out what differs in the graphs at sources."""

  tf1: InspectableRun  # the tf1 side's run
  tf2: InspectableRun  # the tf2 side's
  ends: Sequence[tuple[int, int]] = ()  # positions of the targets that differ, in pairs
  # Returns the value of a tf1 tensor as its partner holds it.
  as_tf2: Callable[[TensorKey, np.ndarray], np.ndarray] = lambda _, value: value

  def standings(self, source: FoundSource, changes: Changes) -> list[Standing]:
    """Returns what each change comes to at a source.

    Args:
      source: the operation, with what it yields on both sides.
      changes: graph differences, each with what mends it in the port.
    """
    untried = [Standing.UNTRIED] * len(changes)
    end = self.tf2.op_graph.ops[source.regions.tf2.end]
    if not changes or len(changes) > _MOST_CHANGES or source.output is None:
      return untried
    mends = [change for _, change in changes]
    spliced = list(self._spliced_before(source, changes)) or list(self._splice(source))
    sets = [*_sets(mends, []), *(_sets(mends, spliced) if spliced else ())]
    answers = self.tf2.recompute_changed(
      [end.tensors[source.output]], self._given(source), [[], *sets]
    )
    found = [None if answer is None else answer[0] for answer in answers]
    unchanged, found = found[0], found[1:]
    if unchanged is None or not agreement(source.tf2, unchanged).is_rounding:
      return untried  # it draws random numbers, say
    count = len(mends) + 1
    for standing, part in ((Standing.SOLE, found[:count]), (Standing.JOINT, found[count:])):
      if part and part[0] is not None and explains(source, part[0]):
        # Each is needed if without it the others do not explain it.
        needed = [one is None or not explains(source, one) for one in part[1:]]
        return [standing if one else Standing.REFUTED for one in needed]
    if self._mends_targets(mends):
      return [Standing.SOLE if len(mends) == 1 else Standing.UNTRIED] * len(changes)
    if found[0] is None and (count >= len(found) or found[count] is None):
      return untried
    return [
      Standing.JOINT if self._mends_itself(source, *known) else Standing.REFUTED
      for known in changes
    ]

  def _mends_itself(
    self, source: FoundSource, difference: GraphDifference, change: NodeChange
  ) -> bool:
    """Returns whether an operation inside a chain is wrong, and right with a change.

    It has to read what tf1's one reads. Behind it there may be more mistakes.
    """
    spliced = list(self._spliced_before(source, [(difference, change)]))
    inner, ops = source.regions.tf1.inner, self.tf1.op_graph.ops
    keys = [(n, 0) for n in inner if ops[n].name == difference.op]
    if not spliced or not keys or not can_fetch(self.tf1.op_graph, keys[0]):
      return False
    (other,) = (n for n, op in enumerate(self.tf2.op_graph.ops) if op.name == change.op)
    return self.is_wrong_alone(source, (keys[0][0], other), [change, *spliced])

  def is_before_the_end(self, source: FoundSource) -> bool | None:
    """Returns whether the port's last operation yields tf1's value from what tf1's reads there.

    None where that cannot be told: it has other inputs, or draws random numbers.
    """
    end = self.tf2.op_graph.ops[source.regions.tf2.end]
    spliced = list(self._splice(source))
    if not spliced or source.output is None:
      return None
    wanted, given = [end.tensors[source.output]], self._given(source)
    unchanged, mended = self.tf2.recompute_changed(wanted, given, [[], spliced])
    if unchanged is None or mended is None or mended[0].shape != source.tf2.shape:
      return None
    if not agreement(source.tf2, unchanged[0]).is_rounding:
      return None
    return explains(source, mended[0])

  def is_wrong_behind(self, source: FoundSource, mends: Sequence[NodeChange]) -> bool:
    """Returns whether the last operation is wrong by itself, whatever is wrong before it.

    From what tf1's one reads it yields what that yields with changes, and not without them; nor
    are these enough without that. Neither may make it much worse: numbers of two spellings make
    up for each other.

    Args:
      source: the operation, with what it yields on both sides.
      mends: changes of the last operation of the port.
    """
    end = self.tf2.op_graph.ops[source.regions.tf2.end]
    spliced = list(self._splice(source))
    if not spliced or source.output is None:
      return False
    sets = [[], spliced, mends, [*mends, *spliced]]
    given, wanted = self._given(source), [end.tensors[source.output]]
    answers = self.tf2.recompute_changed(wanted, given, sets)
    found = [None if answer is None else answer[0] for answer in answers]
    if found[0] is None or not agreement(source.tf2, found[0]).is_rounding:
      return False
    explained = [one is not None and explains(source, one) for one in found[1:]]
    return explained == [False, False, True] and not any(_worsens(source, one) for one in found[1:])

  def is_wrong_alone(
    self, source: FoundSource, ops: tuple[int, int], mends: Sequence[NodeChange]
  ) -> bool:
    """Returns whether an operation that reads what enters is wrong, and right with changes.

    Args:
      source: with the operation inside.
      ops: its position on both sides.
      mends: changes of the port's.
    """
    tensor = self.tf2.op_graph.ops[ops[1]].tensors[0]
    (wanted,) = self.tf1.fetch([self.tf1.op_graph.ops[ops[0]].tensors[0]])
    answers = self.tf2.recompute_changed([tensor], self._given(source), [[], mends])
    unchanged, mended = (None if answer is None else answer[0] for answer in answers)
    if unchanged is None or mended is None or not wanted.shape == unchanged.shape == mended.shape:
      return False
    is_wrong = not agreement(wanted, unchanged).is_rounding
    return is_wrong and agreement(wanted, mended).is_rounding

  def worsens(self, source: FoundSource, mends: Sequence[NodeChange]) -> bool:
    """Returns whether changes inside a chain make what it yields much worse, or nothing at all."""
    end = self.tf2.op_graph.ops[source.regions.tf2.end]
    if source.output is None:
      return True
    wanted = [end.tensors[source.output]]
    (answer,) = self.tf2.recompute_changed(wanted, self._given(source), [mends])
    return _worsens(source, None if answer is None else answer[0])

  def _mends_targets(self, mends: Sequence[NodeChange]) -> bool:
    """Returns whether changes make the whole port yield what tf1 yields.

    Two spellings of a computation may have operations in pairs that are no counterparts.
    """
    if not self.ends or len(self.tf2.op_graph.ops) > _MOST_OPERATIONS:
      return False
    ones = [self.tf1.op_graph.ops[end].tensors[0] for end, _ in self.ends]
    others = [self.tf2.op_graph.ops[end].tensors[0] for _, end in self.ends]
    leaves = [
      op.tensors[0]
      for op in self.tf2.op_graph.ops
      if op.is_leaf and op.tensors and not is_opaque(op.outputs[0][0])
    ]
    values = self.tf2.fetch([*leaves, *others])
    given = dict(zip(leaves, values, strict=False))
    unchanged, mended = self.tf2.recompute_changed(others, given, [[], mends])
    if unchanged is None or mended is None:
      return False
    wanted = self.tf1.fetch(ones)
    apart = [agreement(one, its) for one, its in zip(wanted, unchanged, strict=True)]
    repeats = all(
      agreement(its, again).is_rounding
      for its, again in zip(values[len(leaves) :], unchanged, strict=True)
    )
    return repeats and all(
      is_left(agreement(one, its), before)
      for one, its, before in zip(wanted, mended, apart, strict=True)
    )

  def _given(self, source: FoundSource) -> dict[str, np.ndarray]:
    """Returns the tf1 side's inputs of a source, by the names of the port's tensors."""
    ops, others = self.tf1.op_graph.ops, self.tf2.op_graph.ops
    both = [
      (one, other)
      for one, other in source.regions.entering
      if one is not None and other is not None and can_fetch(self.tf1.op_graph, one)
    ]
    values = self.tf1.fetch([ops[n].tensors[k] for (n, k), _ in both])
    return {
      others[n].tensors[k]: self.as_tf2(one, value)
      for (one, (n, k)), value in zip(both, values, strict=True)
    }

  def _spliced_before(self, source: FoundSource, changes: Changes) -> Iterator[NodeChange]:
    """Yields what gives operations that are changed, inside a chain, what tf1's ones read."""
    pair = source.regions
    ops, others = self.tf1.op_graph.ops, self.tf2.op_graph.ops
    partners = {ops[n].name: ops[n] for n in pair.tf1.inner}
    own = {others[n].name: others[n] for n in pair.tf2.inner}
    for difference, change in changes:
      one, other = partners.get(difference.op), own.get(change.op)
      if one is None or other is None or one.op_type != other.op_type or change.inputs:
        continue
      slots = [
        slot
        for slot, (first, second) in enumerate(zip(one.inputs, other.inputs, strict=False))
        if (first[0] in pair.tf1.inner or second[0] in pair.tf2.inner)
        and can_fetch(self.tf1.op_graph, first)
      ]
      yield from self._with_inputs_of(one, other, slots)

  def _with_inputs_of(
    self, op: OpRecord, other: OpRecord, slots: Sequence[int]
  ) -> Iterator[NodeChange]:
    """Yields what gives some inputs of an operation of the port the values of tf1's one."""
    if slots:
      keys = [op.inputs[slot] for slot in slots]
      values = self.tf1.fetch([self.tf1.op_graph.ops[n].tensors[k] for n, k in keys])
      yield NodeChange(other.name, inputs=tuple(zip(slots, values, strict=True)))

  def _splice(self, source: FoundSource) -> Iterator[NodeChange]:
    """Yields what gives the port's operation, in place of a chain, what tf1's chain yields."""
    pair = source.regions
    op, other = self.tf1.op_graph.ops[pair.tf1.end], self.tf2.op_graph.ops[pair.tf2.end]
    if other.op_type == TARGET or len(op.inputs) != len(other.inputs):
      return
    slots = [
      slot
      for slot, (one, two) in enumerate(zip(op.inputs, other.inputs, strict=True))
      if (one[0] in pair.tf1.inner or two[0] in pair.tf2.inner)
      and can_fetch(self.tf1.op_graph, one)
    ]
    yield from self._with_inputs_of(op, other, slots)


def _sets(mends: Sequence[NodeChange], spliced: Sequence[NodeChange]) -> list[list[NodeChange]]:
  """Returns all changes together, and all but each."""
  without = [[*mends[:n], *mends[n + 1 :], *spliced] for n in range(len(mends))]
  return [[*mends, *spliced], *without]


def explains(source: FoundSource, mended: np.ndarray) -> bool:
  """Returns whether a fixed port yields what tf1 yields."""
  return is_left(source.apart_from(mended), source.agreement)


def _worsens(source: FoundSource, changed: np.ndarray | None) -> bool:
  return changed is None or not (
    source.apart_from(changed).absolute <= _WORSE * source.agreement.absolute
  )


def is_left(left: Agreement, before: Agreement) -> bool:
  """Returns whether nothing, or next to nothing, is left of a difference."""
  if left.is_rounding:
    return True
  return left.epsilon > 0 and left.absolute <= _UNEXPLAINED * min(before.absolute, left.scale)
