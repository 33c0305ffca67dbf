"""Both sides at inputs of another size."""

import dataclasses
import enum
import functools
import time
from collections.abc import Callable, Iterable
from typing import Any

from tf2verify.errors import BuilderError, CaseDefinitionError, LayerError, UserCodeError
from tf2verify.records.difference import Aspect, Difference
from tf2verify.records.observation import Observation, SourceLine
from tf2verify.sides.graphs.lines.source_lines import line_of_error
from tf2verify.sides.graphs.run import GraphRun
from tf2verify.sides.hooks import extents, other_sizes
from tf2verify.sides.hooks.other_sizes import OtherSize
from tf2verify.sides.side import RunSpec
from tf2verify.sides.tf1.reference import PreparedRuns, ReferenceGraph
from tf2verify.stages.comparison.comparing import Comparison
from tf2verify.stages.comparison.noise.reruns import repeated, rerun_of
from tf2verify.stages.comparison.regularization_in_total import settle
from tf2verify.stages.comparison.zero_by_zero import leave_out
from tf2verify.stages.passes.further_runs.longer_inputs import LongerRun
from tf2verify.stages.stage import CaseUnderTest

_REFUSALS = (UserCodeError, BuilderError)
# How many sizes are tried, each with a graph of its own, by the operations of the graph: a
# build of 500 takes a few tens of milliseconds. More are tried while that takes no longer than some
# seconds, or than twice the time of one that both sides ran at.
_SMALL = 500
_MOST_SIZES = 6
_MOST_SIZES_OF_LARGE = 3
_SECONDS = 5.0
_OF_FIRST = 2.0
# What else a size shows, and what a batch does not.
_ONE_SIZE = (
  'Only if the model is never used at another size, declare that: other_sizes = (), which hides '
  'all such mistakes'
)
_ELSE = {
  'size': ' Or does the port pad, stride or pool differently (SAME for VALID), which shows only at '
  f'some sizes? TF1 has a result there. {_ONE_SIZE}',
  'batch': '',
}
_NO_TIME = (
  'inputs that are longer in only some dimensions were not compared, since that would have taken '
  'too long ({}): other_sizes declares the sizes that matter'
)
_EXCHANGED = (
  'at the inputs of the case and at {} both sides agree: are two dimensions exchanged, such as '
  'height and width, or is one used for the other? Where they are equal in all inputs, declare '
  'sizes that are: other_sizes'
)


class _Kind(enum.Enum):
  REFUSED = 'the reference takes no such inputs'
  AGREES = 'both sides agree'
  DIFFERS = 'the sides differ'
  RAISES = 'the port raises'
  DECLARED = 'the port declares that it takes no such inputs'
  UNREAD = 'the sides differ, and the reference does not read the added elements'
  EXAMPLES = 'the sides differ, and the reference makes further examples of the added elements'


_UNMEANT = (
  (_Kind.UNREAD, 'does not read the added elements'),
  (_Kind.EXAMPLES, 'makes further examples of the added elements, so that outputs have more'),
)


@dataclasses.dataclass(frozen=True, eq=False)
class _Outcome:
  """What came of a size."""

  size: OtherSize  # the inputs
  kind: _Kind  # what came of it
  reason: str = ''  # why it was refused, or what the port raised or declares
  line: SourceLine | None = None  # of the user's, that raised or called what did
  other_variables: bool = False  # whether it was refused since its variables would be others
  # The size at which all lengths are one longer, where the sides agree there and fail where each is
  # longer by another amount.
  agrees_at: str = ''
  run: RunSpec | None = None  # of tf1, where it ran
  rerun: PreparedRuns | None = None  # repeats it
  observed: tuple[Observation, Observation] | None = None  # both sides, where both ran

  @property
  def halves(self) -> bool:
    """Whether the reference may take a multiple of what it refused."""
    return self.kind is _Kind.REFUSED and not self.other_variables

  @property
  def raised(self) -> str:
    """What the port raised, with the line."""
    return f'{self.reason}{f" ({self.line})" if self.line else ""}'

  @property
  def fails(self) -> bool:
    """Whether it is a finding."""
    return self.kind in (_Kind.DIFFERS, _Kind.RAISES)


class OtherSizes:
  """Runs both sides at other sizes, as far as the reference takes them."""

  def __init__(self, case: CaseUnderTest, run: RunSpec, comparison: Comparison) -> None:
    """Takes what agrees at the case's own size.

    Args:
      case: the case.
      run: of tf1, at which both sides agree.
      comparison: gets the findings.
    """
    self._case = case
    self._run = run
    self._comparison = comparison
    self._outcomes: list[_Outcome] = []
    self._most = _MOST_SIZES
    self._apart: _Outcome | None = None
    self._start = time.perf_counter()
    self._longest = _SECONDS
    self._untried: list[str] = []

  def check(self) -> list[str]:
    """Adds to the comparison what other sizes show; returns notes."""
    declared = self._case.declaration.other_sizes
    fixed = self._case.tf1.fixed_size
    if declared is None:
      if fixed:
        return [f'inputs of other sizes were not tried: {fixed}']
      self._check_proposed()
      if not any(outcome.fails for outcome in self._outcomes):
        self._case.tf1.release_other_size()
        self._keep_agreed()
      return self._notes()
    sizes = list(other_sizes.declared_sizes(declared, self._run.inputs))
    if not sizes:
      return ['inputs of other sizes were not tried: the case forbids it (other_sizes)']
    if fixed:
      raise CaseDefinitionError(
        f'the case declares other_sizes ({sizes[0].name}), and {fixed}: leave other_sizes out'
      )
    self._check_declared(sizes)
    self._keep_agreed()
    return self._notes()

  def _keep_agreed(self) -> None:
    """Keeps a size at which both sides agree in this mode, for the other one."""
    agreed = [one.size for one in self._outcomes if one.kind is _Kind.AGREES]
    self._case.agreed_sizes[:] = agreed[:1]

  def _check_declared(self, sizes: Iterable[OtherSize]) -> None:
    for size in sizes:
      outcome = self._tried(size, lambda _: '')
      if outcome.kind is _Kind.REFUSED:
        raise CaseDefinitionError(
          f'other_sizes declares {size.name}, which the reference refuses: {outcome.reason}; '
          'declare a size that build_tf1_graph takes with the same variables'
        )
      self._add(outcome)

  def _check_proposed(self) -> None:
    proposed = other_sizes.proposals(self._run.inputs)
    self._most = _MOST_SIZES if self._is_small() else _MOST_SIZES_OF_LARGE
    first = self._first_accepted(proposed.everything if self._is_small() else proposed.extremes)
    if first is None or first.kind is not _Kind.AGREES:
      batch = self._first_accepted([proposed.batch] if proposed.batch else [])
      # The smallest change that shows a fault names it best.
      if first is None or (batch is not None and (batch.fails or not first.fails)):
        first = batch
    if first is not None:
      self._add(first)
    further = [] if first is not None and not first.size.batch_only else [*proposed.parts]
    if self._is_small():
      further += proposed.features
    if first is None or not first.fails:
      self._try_each(further)
    if not any(outcome.kind is not _Kind.REFUSED for outcome in self._outcomes):
      self._comparison.blind_spots.append(self._nothing_tried())
    elif self._untried:
      self._comparison.blind_spots.append(_NO_TIME.format('; '.join(self._untried)))

  def _try_each(self, proposed: Iterable[frozenset[other_sizes.Axis]]) -> None:
    for axes in proposed:
      found = self._first_accepted([axes])
      if found is not None:
        self._add(found)
        if found.fails:
          self._untried.clear()  # what fails is to be fixed first
          return

  def _first_accepted(self, proposed: Iterable[frozenset[other_sizes.Axis]]) -> _Outcome | None:
    for axes in proposed:
      outcome = self._grown(axes)
      if outcome is None or outcome.kind is not _Kind.REFUSED:
        return outcome
    return None

  def _grown(self, axes: frozenset[other_sizes.Axis]) -> _Outcome | None:
    """Returns what comes of longer axes; None if enough has been tried.

    Each length grows by another amount where the reference takes that, so that height and
    width are told apart; where that agrees, or can never be taken, there is no second try.
    """
    inputs, apart = self._run.inputs, None
    if other_sizes.grow_apart(inputs, axes):
      apart = self._tried_growth(other_sizes.grown(inputs, axes, apart=True))
      if apart is None or apart.kind is _Kind.AGREES or apart.other_variables:
        return apart
      self._most += 1  # both tries of these axes count as one
    together = self._tried_growth(other_sizes.grown(inputs, axes))
    if together is not None and together.halves and other_sizes.divides(inputs, axes):
      self._most += 1  # of a model that halves its inputs, one more is never accepted
      together = self._tried_growth(other_sizes.grown(inputs, axes, divided=True)) or together
    if apart is None or not apart.fails or together is None:
      return together or apart
    if together.kind is _Kind.AGREES:
      return dataclasses.replace(apart, agrees_at=together.size.name)
    return together if together.fails else apart

  def _tried_growth(self, size: OtherSize) -> _Outcome | None:
    if len(self._outcomes) >= self._most and time.perf_counter() - self._start > self._longest:
      self._untried += [] if size.name in self._untried else [size.name]
      return None
    start = time.perf_counter()
    found = self._tried(size, self._limit_of(size))
    if found.kind is not _Kind.REFUSED:
      self._longest = max(self._longest, _OF_FIRST * (time.perf_counter() - start))
    return found

  def _is_small(self) -> bool:
    graph = self._case.tf1.built(self._run.training).graph
    return len(graph.get_operations()) <= _SMALL

  def _limit_of(self, size: OtherSize) -> Callable[[Exception], str]:
    """Returns what tells of an error whether the port declares it; of a batch it cannot."""

    def limit(error: Exception) -> str:
      run = dataclasses.replace(self._run, inputs=size.inputs)
      cause = error.__cause__
      declared = not size.batch_only and isinstance(cause, Exception)
      return self._case.tf2.declared_limit(run, cause) if declared else ''  # type: ignore[arg-type]

    return limit

  def _tried(self, size: OtherSize, limit: Callable[[Exception], str]) -> _Outcome:
    """Returns what comes of a size; `limit` tells how the port declares what it raised."""
    outcome = self._run_both(size, limit)
    if outcome.fails and (kind := self._unmeant(outcome)) is not None:
      unmeant = dataclasses.replace(outcome, kind=kind, observed=None)
      outcome = self._read_to_end(unmeant, limit) or unmeant
    self._outcomes.append(outcome)
    return outcome

  def _read_to_end(self, unmeant: _Outcome, limit: Callable[[Exception], str]) -> _Outcome | None:
    """Returns a failure where lengths and masks read what was added; None without one."""
    size = unmeant.size
    inputs, paths = extents.read_to_end(self._run.inputs, size.inputs, size.lengths)
    if unmeant.kind is not _Kind.UNREAD or not paths:
      return None
    name = f'{size.name}, read to their end by {", ".join(paths)}'
    found = self._run_both(dataclasses.replace(size, inputs=inputs, name=name), limit)
    return found if found.fails and self._unmeant(found) is None else None

  def _run_both(self, size: OtherSize, limit: Callable[[Exception], str]) -> _Outcome:
    case = self._case
    tf1_run = dataclasses.replace(self._run, inputs=size.inputs, size=size.name)
    names = {tf2: tf1 for tf1, tf2 in case.alignment().pairs}
    tf2_run = dataclasses.replace(tf1_run, tf1_names=names)
    try:
      reference = case.tf1.at(size.inputs)
      problem = _other_variables(case.tf1, reference, tf1_run.training)
      if problem:
        return _Outcome(size, _Kind.REFUSED, problem, other_variables=True)
      run_tf1 = reference.prepare_filled([tf1_run])
      (tf1,) = run_tf1()
    except _REFUSALS as error:
      return _Outcome(size, _Kind.REFUSED, _short(error))
    try:  # not beside the reference: the port is spared what that refuses
      (tf2,) = case.tf2.observe_filled([tf2_run])
    except (UserCodeError, LayerError) as error:
      declared = limit(error)
      case.tf2.release()  # whatever the error left behind
      kind = _Kind.DECLARED if declared else _Kind.RAISES
      reason = declared or _short(error)
      return _Outcome(size, kind, reason, line_of_error(error), run=tf1_run, rerun=run_tf1)
    agreed = _Outcome(size, _Kind.AGREES, run=tf1_run, rerun=run_tf1, observed=(tf1, tf2))
    scratch = Comparison()
    self._compare(agreed, scratch)
    return dataclasses.replace(agreed, kind=_Kind.DIFFERS) if scratch.differences else agreed

  def _unmeant(self, outcome: _Outcome) -> _Kind | None:
    """Returns why nobody means a size that the reference takes; None for one that may be meant."""
    if outcome.rerun is None or outcome.run is None:
      return None
    longer = LongerRun(outcome.size, outcome.run, outcome.rerun)
    if not longer.reads_what_is_longer(self._case, self._run):
      return _Kind.UNREAD
    return _Kind.EXAMPLES if longer.adds_examples(self._case, self._run) else None

  def _inspectable(self, run: RunSpec) -> GraphRun:
    return self._case.tf1.at(run.inputs).inspectable(run)

  def _compare(self, outcome: _Outcome, comparison: Comparison) -> None:
    assert outcome.observed is not None and outcome.run is not None and outcome.rerun is not None
    case, (tf1, tf2) = self._case, outcome.observed
    with comparison.unless_drawn_in_a_loop(tf1) as part:
      part.outputs(tf1, tf2, case.tolerance)
      part.regularization(tf1, tf2, case.alignment().pairs, case.regularization_tolerance)
      inspect = functools.partial(self._inspectable, outcome.run)
      rerun = rerun_of(repeated(outcome.rerun, outcome.run))
      port = functools.partial(case.inspectable_port, outcome.run)
      part.excuse_rounding(tf1, rerun, inspect=inspect, inspect_port=port)
      leave_out(part, inspect, tf1.run)
    settle(case, comparison)
    comparison.repeatable(outcome.run)

  def _add(self, outcome: _Outcome) -> None:
    """Adds an outcome to the comparison of the stage."""
    if outcome.agrees_at:
      self._apart = outcome
    if outcome.observed is not None:
      self._compare(outcome, self._comparison)
    elif outcome.kind is _Kind.RAISES:
      what = 'batch' if outcome.size.batch_only else 'size'
      self._comparison.add(
        Difference(
          'inputs',
          f'({outcome.size.name})',
          Aspect.SIZE,
          f'the reference accepts {outcome.size.name}',
          f'the port raises {outcome.raised}',
          hint=_EXCHANGED.format(outcome.agrees_at)
          if outcome.agrees_at
          else f'is the {what} of the inputs hard-coded in the port?{_ELSE[what]}',
        )
      )

  def _notes(self) -> list[str]:
    """Returns what a reader has to know; what the port declares is a blind spot, once."""
    declared = next((one for one in self._outcomes if one.kind is _Kind.DECLARED), None)
    if declared is not None:
      self._comparison.blind_spots.append(
        f'the reference accepts {declared.size.name}, and the port declares that it does not, by '
        f'{declared.reason}: it was not compared there'
      )
    for kind, but in _UNMEANT:
      unmeant = next((one for one in self._outcomes if one.kind is kind), None)
      if unmeant is not None:
        self._comparison.blind_spots.append(
          f'the reference accepts {unmeant.size.name}, but {but}: that the port '
          f'{f"raises {unmeant.raised}" if unmeant.reason else "differs"} was not judged'
        )
    differing = [one.size.name for one in self._outcomes if one.kind is _Kind.DIFFERS]
    if not differing:
      return []
    if self._apart is not None:
      agrees_at = _EXCHANGED.format(self._apart.agrees_at)
      return [f'at {self._apart.size.name} the sides differ: {agrees_at}']
    return [
      f"at the case's own inputs both sides agree, at {differing[-1]} they do not: is a size of "
      f'the inputs hard-coded in one of them?{_ELSE["size"]}'
    ]

  def _nothing_tried(self) -> str:
    if not self._outcomes:
      return 'inputs of no other size were compared: no input has a dimension that can vary'
    first = self._outcomes[-1]
    return (
      'inputs of no other size were compared: the reference refuses each one that was tried '
      f'({"; ".join(one.size.name for one in self._outcomes)}): {first.reason:.200}'
    )


def _other_variables(base: ReferenceGraph, other: ReferenceGraph, training: bool) -> str:
  """Returns how the variables at another size are others; '' if they are the same."""

  def variables(side: ReferenceGraph) -> dict[str, Any]:
    records = [variable.record for variable in side.built(training).variables]
    return {record.name: (record.shape, record.dtype) for record in records}

  ones, others = variables(base), variables(other)
  if ones == others:
    return ''
  name = next(name for name in {**ones, **others} if ones.get(name) != others.get(name))
  found = others.get(name, ('absent',))[0]
  return f'its variable {name} is {found} there, not {ones.get(name, ("absent",))[0]}'


def _short(error: Exception) -> str:
  return error.summary if isinstance(error, UserCodeError) else str(error)
