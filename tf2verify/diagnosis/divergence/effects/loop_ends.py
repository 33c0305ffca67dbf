"""Loops of one side in which an example ends before the last step, and the same without that.

`dynamic_rnn(sequence_length=)` keeps the state of an example that has ended, as a Keras layer does
where it is given a mask. Where a side is run with its choices made as if no example had ended, and
yields what the other side yields, that is all in which the two differ.
"""

import dataclasses
from collections.abc import Iterator, Sequence

import numpy as np

from tf2verify.diagnosis.divergence.tensors.sources import FoundSource, InspectableRun
from tf2verify.diagnosis.evidence.failed_stage import LoopEnd
from tf2verify.numerics.agreement import agreement
from tf2verify.records import rounds
from tf2verify.records.observation import SourceLine
from tf2verify.records.op_graph import INPUT, VARIABLE, OpGraph, TensorKey

_CHOICES = ('Select', 'SelectV2')
# With what an example is held against the number of the round.
_COMPARISONS = ('GreaterEqual', 'Greater', 'Less', 'LessEqual')
# How padding is told from a value.
_PADDINGS = ('NotEqual', 'Equal')
# What is left of a difference that is explained: no more than rounding, here or further on.
_UNEXPLAINED = 1e-3
_LESS = 0.1
# Loops that are tried out one by one, where all of them together explain nothing.
_MOST_LOOPS = 4

Ends = Sequence[tuple[int, int]]


@dataclasses.dataclass(frozen=True)
class _Choice:
  """An operation that keeps, or leaves out, what a round has computed."""

  position: int
  loop: str
  condition: TensorKey
  goes_on: bool  # the condition's value for an example that goes on
  computed: TensorKey  # what an example that goes on gets


def loop_ends(
  tf1: InspectableRun, tf2: InspectableRun, ends: Ends, sources: Sequence[FoundSource]
) -> tuple[LoopEnd, ...]:
  """Returns the loops of one side in which examples end, where the other side goes on.

  Args:
    tf1: the tf1 side's run.
    tf2: the port's.
    ends: positions of the targets that differ, in pairs.
    sources: where the sides part.
  """
  choices = [_choices(run.op_graph) for run in (tf1, tf2)]
  if not ends or not sources or not any(choices):
    return ()
  ones = tf1.fetch([tf1.op_graph.ops[one].tensors[0] for one, _ in ends])
  others = tf2.fetch([tf2.op_graph.ops[other].tensors[0] for _, other in ends])
  both = ((tf1, ones, others, [e for e, _ in ends]), (tf2, others, ones, [e for _, e in ends]))
  for side, (run, own, wanted, positions) in enumerate(both):
    for group in _groups(choices[side]):
      given, early = _going_on(run, group)
      if not given:
        continue
      found = run.refetched([run.op_graph.ops[n].tensors[0] for n in positions], given)
      if found is not None and _explains(found, own, wanted):
        return (_loop_end(run, group, early, explains=True),)
  stopping, other = (tf1, tf2) if choices[0] else (tf2, tf1)
  known = choices[0] or choices[1]
  given, early = _going_on(stopping, known)
  if not given or (choices[0] and choices[1]) or not _is_at(known, sources, stopping is tf1):
    return ()
  run, own, wanted, positions = both[0 if choices[0] else 1]
  found = run.refetched([run.op_graph.ops[n].tensors[0] for n in positions], given)
  if found is not None and not _matters(found, own, wanted):
    return ()
  if _is_shared(stopping, other, known):
    return (_loop_end(stopping, known, early, explains=False),)
  return ()


def _groups(choices: Sequence[_Choice]) -> Iterator[Sequence[_Choice]]:
  """Yields all choices, then those of each loop, if there are several."""
  if choices:
    yield choices
  loops = list(dict.fromkeys(one.loop for one in choices))
  if 1 < len(loops) <= _MOST_LOOPS:
    for loop in loops:
      yield [one for one in choices if one.loop == loop]


def _choices(graph: OpGraph) -> list[_Choice]:
  """Returns the choices in the rounds of loops that inputs make, and nothing that is trained."""
  found: list[_Choice] = []
  trained: list[bool] = []  # of each operation, whether a variable is among what it is made of
  given: list[bool] = []  # likewise an input
  for position, op in enumerate(graph.ops):
    read = [n for n, _ in op.inputs]
    trained.append(op.op_type == VARIABLE or any(trained[n] for n in read))
    given.append(op.op_type == INPUT or any(given[n] for n in read))
    loop = rounds.outermost_loop(op.name)
    if op.op_type not in _CHOICES or loop is None or len(op.inputs) != 3:
      continue
    condition, first, second = op.inputs
    is_of_inputs = given[condition[0]] and not trained[condition[0]]
    computed = [_is_computed(graph, key, op.name) and trained[key[0]] for key in (first, second)]
    if is_of_inputs and computed[0] != computed[1]:
      kept = first if computed[0] else second
      found.append(_Choice(position, loop, condition, computed[0], kept))
  return found


def _is_computed(graph: OpGraph, key: TensorKey, choice: str) -> bool:
  """Returns whether the round of a choice computes a tensor, rather than the one before."""
  name = graph.ops[key[0]].name
  same_loop = rounds.outermost_loop(name) == rounds.outermost_loop(choice)
  return same_loop and rounds.numbers_of(name) == rounds.numbers_of(choice)


def _going_on(
  run: InspectableRun, choices: Sequence[_Choice]
) -> tuple[dict[str, np.ndarray], tuple[int, int]]:
  """Returns the conditions as if no example had ended, and how many do, of how many.

  Nothing where none ends before the last step.
  """
  ops = run.op_graph.ops
  wanted = {ops[one.condition[0]].tensors[one.condition[1]]: one.goes_on for one in choices}
  values = run.fetch(list(wanted))
  ended: np.ndarray | None = None
  given: dict[str, np.ndarray] = {}
  for (name, goes_on), value in zip(wanted.items(), values, strict=True):
    if value.dtype != np.bool_ or not value.ndim or len(value) != len(values[0]):
      return {}, (0, 0)
    its = (value != goes_on).reshape(len(value), -1).any(axis=1)
    ended = its if ended is None else ended | its
    given[name] = np.full(value.shape, goes_on)
  if ended is None or not ended.any():
    return {}, (0, 0)
  return given, (int(ended.sum()), ended.size)


def _explains(
  found: Sequence[np.ndarray], own: Sequence[np.ndarray], wanted: Sequence[np.ndarray]
) -> bool:
  """Returns whether a side that goes on yields what the other one does."""
  for now, before, other in zip(found, own, wanted, strict=True):
    left, was = agreement(other, now), agreement(other, before)
    # Beside a mask of -1e9 everything looks like rounding, the difference that is there as well.
    is_rounding = left.is_rounding and not left.is_doubtful
    is_less = left.absolute <= _LESS * was.absolute
    if not (is_rounding and is_less) and not left.absolute <= _UNEXPLAINED * was.absolute < np.inf:
      return False
  return True


def _matters(
  found: Sequence[np.ndarray], own: Sequence[np.ndarray], wanted: Sequence[np.ndarray]
) -> bool:
  """Returns whether a side that goes on yields something else, beside what differs."""
  return any(
    agreement(before, now).absolute > _LESS * agreement(other, before).absolute
    for now, before, other in zip(found, own, wanted, strict=True)
  )


def _is_at(choices: Sequence[_Choice], sources: Sequence[FoundSource], of_tf1: bool) -> bool:
  """Returns whether the sides part at a choice, or at what reads one."""
  known = {one.position for one in choices}
  for source in sources:
    region = source.regions.tf1 if of_tf1 else source.regions.tf2
    read = {n for n, _ in region.frontier}
    if known & {region.end, *region.inner, *read}:
      return True
  return False


def _is_shared(run: InspectableRun, other: InspectableRun, choices: Sequence[_Choice]) -> bool:
  """Returns whether, where an example ends first, the other side has computed the same till then.

  That is looked for in the round of the same number, in the same shape.
  """
  ops = run.op_graph.ops
  for number in sorted({rounds.numbers_of(ops[one.position].name) for one in choices}):
    here = [one for one in choices if rounds.numbers_of(ops[one.position].name) == number]
    if not _going_on(run, here)[0]:
      continue
    keys = list(dict.fromkeys(one.computed for one in here))
    names = [ops[n].tensors[k] for n, k in keys]
    there = [
      tensor
      for op in other.op_graph.ops
      if rounds.numbers_of(op.name) == number
      for (dtype, _), tensor in zip(op.outputs, op.tensors, strict=False)
      if dtype.startswith('float')
    ]
    values = other.fetch(there)
    return all(
      any(one.shape == its.shape and agreement(one, its).is_rounding for its in values)
      for one in run.fetch(names)
    )
  return False


def _loop_end(
  run: InspectableRun, choices: Sequence[_Choice], early: tuple[int, int], explains: bool
) -> LoopEnd:
  graph = run.op_graph
  behind = sorted(graph.ancestors([choices[0].condition[0]]))
  test = _test(graph, behind)
  return LoopEnd(
    graph.side,
    tuple(graph.ops[n].name for n in behind if graph.ops[n].op_type == INPUT),
    _line(graph, test),
    graph.ops[test].op_type in _COMPARISONS,
    early,
    explains,
    frozenset(_led_to(graph, [one.position for one in choices])),
  )


def _test(graph: OpGraph, behind: Sequence[int]) -> int:
  """Returns what tells whether an example has ended: a comparison, or what the condition reads."""
  found = [n for n in behind if graph.ops[n].op_type in (*_COMPARISONS, *_PADDINGS)]
  return found[-1] if found else behind[-1]


def _line(graph: OpGraph, test: int) -> SourceLine | None:
  """Returns the user's line of the lengths where it computes them, or of what compares them."""
  op = graph.ops[test]
  made = [graph.ops[n] for n, _ in op.inputs]
  lines = [
    one.source
    for one in made
    if not one.is_leaf and rounds.outermost_loop(one.name) is None and one.source != op.source
  ]
  known = [line for line in lines if line is not None]
  return known[0] if known and rounds.outermost_loop(op.name) is not None else op.source


def _led_to(graph: OpGraph, starts: Sequence[int]) -> Iterator[str]:
  """Yields the names of operations that are computed from some, with those."""
  found = set(starts)
  for position, op in enumerate(graph.ops):
    if position in found or any(n in found for n, _ in op.inputs):
      found.add(position)
      yield op.name
