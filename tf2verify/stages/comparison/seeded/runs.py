"""A run of both sides from seeded initial values, compared."""

import contextlib
import dataclasses
import functools
from collections.abc import Callable, Collection, Mapping, Sequence

from tf2verify.errors import NotApplicable
from tf2verify.records.difference import Aspect, Difference
from tf2verify.records.initial_value import JudgedStart, Start
from tf2verify.records.observation import Observation, RandomDraw
from tf2verify.sides.process import randomness
from tf2verify.sides.process.answered_draws import By, answering
from tf2verify.sides.side import RunSpec
from tf2verify.sides.tf1.reference import SeededRun
from tf2verify.sides.tf2.layers.port import Port
from tf2verify.stages.comparison.comparing import Comparison
from tf2verify.stages.comparison.noise.reruns import here_of, rerun_of
from tf2verify.stages.comparison.regularization_in_total import settle
from tf2verify.stages.comparison.seeded import initial_values
from tf2verify.stages.comparison.seeded.doubtful_starts import doubtful_starts
from tf2verify.stages.comparison.seeded.idle_port_draws import without_idle
from tf2verify.stages.comparison.seeded.judged_starts import judged_start
from tf2verify.stages.comparison.side_by_side import side_by_side
from tf2verify.stages.comparison.zero_by_zero import leave_out
from tf2verify.stages.stage import CaseUnderTest

Pairs = Sequence[tuple[str, str]]
# Of which side draws without an effect do not count: a mode of tf1, and whether it is so of the
# port.
_WITHOUT_IDLE = (
  (randomness.EFFECTIVE, False),
  (randomness.COMPUTATION, True),
  (randomness.EFFECTIVE, True),
)


@dataclasses.dataclass(frozen=True, eq=False)
class SeededPair:
  """Both sides of a run that was compared."""

  tf1: Observation  # the reference's run
  tf2: Observation  # the port's, from its own initial values or from those of tf1
  tf1_draws: tuple[RandomDraw, ...]  # all random ops of the reference
  tf2_draws: tuple[RandomDraw, ...]  # all random ops of the port, while it was made included
  tf2_fixed: tuple[RandomDraw, ...] = ()  # draws of the port for which fixed numbers stood
  variables_first: bool = False  # whether the variables were set before the random ops were counted
  idle: tuple[RandomDraw, ...] = ()  # of the reference: without an effect, and not counted
  port_idle: tuple[RandomDraw, ...] = ()  # likewise of the port


def constant_run(
  comparison: Comparison, case: CaseUnderTest, training: bool, sure_starts: bool = False
) -> SeededPair:
  """Runs both sides with one seed for all random ops and compares all that a run yields.

  Where initial values differ, the port goes on from those of tf1.

  Args:
    comparison: where to compare.
    case: the case.
    training: the training mode.
    sure_starts: whether initial values count only where a wrong map is not why they differ.
  """
  mode = randomness.CONSTANT
  run_tf1 = case.tf1.prepare_seeded(mode, training)
  tf1, tf2 = side_by_side(run_tf1, lambda: case.tf2.observe_seeded(mode, training))
  pairs = present_pairs(case, tf1)
  judged = _starts(comparison, case, training, tf1, tf2, pairs, sure_starts)
  drawn = tf1.random_draws, tf2.random_draws, tf2.fixed_draws
  values = case.tf1.initial_fill(mode, training, tf1.initial_values)
  if judged:
    start = RunSpec(case.inputs, training, values, {other: one for one, other in pairs})
    try:
      tf2 = case.tf2.observe_started(mode, start)
    except NotApplicable as reason:  # recorded values that are not drawn again here
      comparison.note(f'the port continued from its own initial values: {reason}')
  recorded = case.tf1.recorded()
  here = None if recorded is None else recorded.seeded_on_current_tf(mode, training)
  started = RunSpec(case.inputs, training, values, {name: name for name, _ in pairs})
  _compare(comparison, case, tf1, tf2, pairs, run_tf1, here, started)
  comparison.repeatable(started)
  return SeededPair(tf1, tf2, *drawn)


def numbered_run(
  before: Comparison,
  case: CaseUnderTest,
  training: bool,
  then: Callable[[Port], None] | None = None,
) -> tuple[SeededPair, Comparison]:
  """Runs both sides with one seed per random op and compares all that a run yields.

  Where that differs, the variables are set first, and only the random ops of the
  computation are numbered: a port may make its variables in another order, or by other
  operations, or in a function that is traced twice. Where that differs too, random ops of a side
  without an effect do not count: a dropout that keeps everything draws nothing in the port.

  Args:
    before: what has been compared before; it stays as it is.
    case: the case.
    training: the training mode.
    then: gets the layer that has run.

  Returns:
    The run, and what has been compared with it.
  """
  mode = randomness.NUM_RANDOM_OPS
  run_tf1 = case.tf1.prepare_seeded(mode, training)
  tf1, tf2 = side_by_side(run_tf1, lambda: case.tf2.observe_seeded(mode, training, then))
  pairs = present_pairs(case, tf1)
  pair = SeededPair(tf1, tf2, tf1.random_draws, tf2.random_draws)
  comparison = before.copied()
  _compare_initial_values(comparison, case, tf1, tf2, pairs)
  recorded = case.tf1.recorded()
  here = None if recorded is None else recorded.seeded_on_current_tf(mode, training)
  values = case.tf1.initial_fill(mode, training, tf1.initial_values)
  start = RunSpec(case.inputs, training, values, {name: name for name, _ in pairs})
  _compare(comparison, case, tf1, tf2, pairs, run_tf1, here, start)
  if len(comparison.differences) == len(before.differences):
    return pair, comparison
  first = before.copied()
  try:
    numbered = _variables_first(first, case, training, pair, pairs)
  except NotApplicable as reason:
    comparison.note(f'variables could not be set first: {reason}')
    return pair, comparison
  is_apart = len(first.differences) > len(before.differences)
  for which, of_port in _WITHOUT_IDLE if is_apart else ():
    effective = before.copied()
    with contextlib.suppress(NotApplicable):
      found = _variables_first(effective, case, training, pair, pairs, which, of_port)
      if len(effective.differences) == len(before.differences):
        return found, effective
  if _is_aligned(tf1, tf2, pairs) and is_apart:
    return pair, comparison
  return numbered, first


def present_pairs(case: CaseUnderTest, tf1: Observation) -> Pairs:
  """Returns the pairs of the variables that a graph holds.

  Those of its training mode; a layer holds the variables of all its calls.
  """
  present = {record.name for record in tf1.initial_values}
  return tuple(pair for pair in case.alignment().pairs if pair[0] in present)


def _is_aligned(tf1: Observation, tf2: Observation, pairs: Pairs) -> bool:
  """Returns whether all variables start with the same bits."""
  ones = {record.name: record.value for record in tf1.initial_values}
  others = {record.name: record.value for record in tf2.initial_values}
  for one, other in pairs:
    mine, its = ones.get(one), others.get(other)
    if mine is None or its is None:
      continue
    if mine.shape != its.shape or mine.tobytes() != its.tobytes():
      return False
  return True


def _compare_initial_values(
  comparison: Comparison, case: CaseUnderTest, tf1: Observation, tf2: Observation, pairs: Pairs
) -> None:
  comparison.variables(
    'initial value', pairs, tf1.initial_values, tf2.initial_values, case.tolerance, tf1.run
  )


def _compare(
  comparison: Comparison,
  case: CaseUnderTest,
  tf1: Observation,
  tf2: Observation,
  pairs: Pairs,
  run_tf1: SeededRun,
  here: Callable[[frozenset[str]], Observation] | None,
  start: RunSpec,
) -> None:
  """Compares what a run yields besides the initial values."""
  with comparison.unless_drawn_in_a_loop(tf1) as part:
    part.outputs(tf1, tf2, case.tolerance)
    part.regularization(tf1, tf2, pairs, case.regularization_tolerance)
    part.variables(
      'state after the call', pairs, tf1.state_after, tf2.state_after, case.tolerance, tf1.run
    )
    inspect = functools.partial(case.tf1.inspectable, start)
    port = functools.partial(case.inspectable_port, start)
    rerun = rerun_of(lambda perturber, _: run_tf1(perturber, again=True))
    part.excuse_rounding(tf1, rerun, here_of(here), inspect, port)
    leave_out(part, inspect, tf1.run)
  settle(case, comparison)


def _starts(
  comparison: Comparison,
  case: CaseUnderTest,
  training: bool,
  tf1: Observation,
  tf2: Observation,
  pairs: Pairs,
  sure: bool = False,
) -> Mapping[str, JudgedStart]:
  """Compares the initial values: the numbers, and where these differ, how they are drawn.

  Returns:
    What is known of those that differ, by tf1 name.
  """
  _compare_initial_values(comparison, case, tf1, tf2, pairs)
  differing = {
    known.tf1_subject
    for known in comparison.differences
    if known.quantity == 'initial value' and known.run == tf1.run and known.array is not None
  }
  ones = {record.name: record.value for record in tf1.initial_values}
  others = {record.name: record.value for record in tf2.initial_values}
  judged = {
    one: judged_start(case, training, (one, other), (ones.get(one), others.get(other)))
    for one, other in pairs
    if one in differing
  }
  excused = {n for n, known in judged.items() if known.start in (Start.SAME, Start.UNKNOWN)}
  doubtful = doubtful_starts(case, training, judged, dict(pairs), (ones, others)) if sure else set()
  excused |= doubtful
  comparison.withdraw(
    lambda d: (d.quantity, d.run) == ('initial value', tf1.run) and d.tf1_subject in excused
  )
  for difference in comparison.withdraw(
    lambda d: (d.quantity, d.run, d.hint) == ('initial value', tf1.run, '')
  ):
    comparison.add(initial_values.with_cause(difference, judged))
  known = {_without_run(difference) for difference in comparison.differences}
  told = {name: known for name, known in judged.items() if name not in doubtful}
  for difference in initial_values.of_different_distributions(told, tf1.run):
    if _without_run(difference) not in known:  # each training mode has it
      comparison.add(difference)
  comparison.note(*initial_values.notes_on_same(judged))
  comparison.blind_spots += [
    spot for spot in initial_values.blind_spots(judged) if spot not in comparison.blind_spots
  ]
  return judged


def _without_run(difference: Difference) -> Difference:
  return dataclasses.replace(difference, run='')


def _variables_first(
  comparison: Comparison,
  case: CaseUnderTest,
  training: bool,
  as_is: SeededPair,
  pairs: Pairs,
  mode: str = randomness.COMPUTATION,
  spares_port: bool = False,
) -> SeededPair:
  """Compares a run in which the variables are set before random ops are counted.

  Raises:
    NotApplicable: the random ops of the reference cannot be numbered so; or those of the port all
      have an effect, and the ones without are not to count.
  """
  run_tf1 = case.tf1.prepare_seeded(mode, training)
  tf1 = run_tf1()
  values = case.tf1.initial_fill(mode, training, tf1.initial_values)
  names = {other: one for one, other in pairs}
  own = RunSpec(case.inputs, training, values, names)
  port_idle: tuple[RandomDraw, ...] = ()
  tf2 = case.tf2.observe_started(mode, own)
  if spares_port:
    tf2, port_idle = _without_idle(case, mode, own, tf2, tf1)
  _starts(comparison, case, training, as_is.tf1, as_is.tf2, pairs)
  _add_shared_numbers(comparison, case, as_is, pairs)
  start = RunSpec(case.inputs, training, values, {name: name for name, _ in pairs})
  _compare(comparison, case, tf1, tf2, pairs, run_tf1, None, start)
  drawn = as_is.tf1_draws, as_is.tf2_draws
  counted = {draw.op_name for draw in tf1.random_draws}
  idle = tuple(d for d in as_is.tf1_draws if d.feeds_outputs and d.op_name not in counted)
  return SeededPair(tf1, tf2, *drawn, variables_first=True, idle=idle, port_idle=port_idle)


def _without_idle(
  case: CaseUnderTest, mode: str, start: RunSpec, tf2: Observation, tf1: Observation
) -> tuple[Observation, tuple[RandomDraw, ...]]:
  def observe(draws: Collection[int], by: By) -> Observation:
    with answering(draws, by):
      return case.tf2.observe_started(mode, start)

  found = without_idle(observe, tf2.random_draws, tf1.random_draws)
  if found is None:
    raise NotApplicable('all random ops of the port have an effect')
  return found


def _add_shared_numbers(
  comparison: Comparison, case: CaseUnderTest, as_is: SeededPair, pairs: Pairs
) -> None:
  """Adds the variables that start with the numbers of another one on one side only."""
  shared = initial_values.shared_numbers(as_is.tf1, as_is.tf2, pairs)
  mapped = case.pairing.mapped
  if mapped is not None:
    held = {record.name: record.value for record in as_is.tf2.initial_values}
    shared |= initial_values.shared_parts(
      [entry for entry in mapped.variable_map.entries if len(entry.tf2) > 1],
      {record.name: record.value for record in as_is.tf1.initial_values},
      {one: held.get(other) for one, other in pairs},
    )
  known = {d.tf1_subject for d in comparison.differences if d.aspect is Aspect.VALUES}
  trial = Comparison()
  _compare_initial_values(
    trial, case, as_is.tf1, as_is.tf2, [pair for pair in pairs if pair[0] in shared]
  )
  for found in trial.differences:
    if found.tf1_subject not in known:
      comparison.add(dataclasses.replace(found, hint=shared[found.tf1_subject]))
