"""Rung 3: with all variables set, both sides compute the same."""

import dataclasses
import functools
from collections.abc import Callable, Collection, Iterable, Sequence

import numpy as np

from tf2verify.errors import CaseDefinitionError
from tf2verify.numerics.telling import Blank
from tf2verify.records.observation import Observation
from tf2verify.reference import inputs as case_inputs
from tf2verify.sides.fill import ConstantFill, ConstantInDomain, Fill, MilderFill, StartedFill
from tf2verify.sides.graphs.run import GraphRun
from tf2verify.sides.hooks.places import with_place
from tf2verify.sides.hooks.user_code import user_code
from tf2verify.sides.side import Declaration, RunSpec
from tf2verify.sides.tf1.reference import PreparedRuns
from tf2verify.stages.comparison import first_nan, vacuity
from tf2verify.stages.comparison.comparing import Comparison
from tf2verify.stages.comparison.dependence import Dependence, dependence
from tf2verify.stages.comparison.noise.lined_up import RunOfSide, with_dither
from tf2verify.stages.comparison.noise.reruns import Again, here_of, repeated, rerun_of
from tf2verify.stages.comparison.proof.proving import related
from tf2verify.stages.comparison.regularization_in_total import settle
from tf2verify.stages.comparison.side_by_side import side_by_side
from tf2verify.stages.comparison.zero_by_zero import leave_out
from tf2verify.stages.passes.further_runs.other_sizes import OtherSizes
from tf2verify.stages.passes.further_runs.telling_inputs import other_inputs, tell_apart
from tf2verify.stages.passes.further_runs.unread_inputs import add_unread_inputs
from tf2verify.stages.passes.milder_values import milder
from tf2verify.stages.stage import CaseUnderTest, Findings, Stage


class CaseFill:
  """The values that the case's `fill_values` gives: distinct ones unless it is overridden."""

  description = 'distinct values'

  def __init__(self, declaration: Declaration) -> None:
    self._declaration = declaration

  def __call__(self, name: str, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray | None:
    """Returns the value of one variable, by tf1 name."""
    with user_code('case', 'fill_values'):
      value = self._declaration.fill_values(name, shape, dtype)
    if value is not None and not isinstance(value, np.ndarray):
      raise self._error(
        f'returned a {type(value).__name__} for {name}; return a numpy array of shape {shape}, or '
        'None to keep the initial value'
      )
    if value is None:
      return None
    try:
      return value.astype(dtype, copy=False)
    except (TypeError, ValueError) as error:
      raise self._error(
        f'gave {name} an array of dtype {value.dtype}; the variable has dtype {dtype}'
      ) from error

  def _error(self, said: str) -> CaseDefinitionError:
    hook = self._declaration.fill_values
    return CaseDefinitionError(with_place(f'fill_values {said}', 'fill_values', hook))


def case_fill(case: CaseUnderTest, kept: Collection[str] = ()) -> StartedFill:
  """Returns the case's own fill; what it leaves out and tf1 draws starts alike on both sides.

  Args:
    case: the case.
    kept: tf1 names of variables that keep their initial values.
  """
  kept = {*kept, *_kept(case)}
  own = CaseFill(case.declaration)
  fill = MilderFill(own, case.milder[-1]) if case.milder else own
  return StartedFill(fill, case.tf1.drawn_start, kept)


def constant_fill(case: CaseUnderTest) -> StartedFill:
  """Returns the guide's constant; what is not floating and tf1 draws starts alike as well."""
  return StartedFill(ConstantFill(), case.tf1.drawn_start, _kept(case))


def _kept(case: CaseUnderTest) -> frozenset[str]:
  """Returns the variables that the port alone has, as declared: tf1 has their values as numbers.

  And those that make no difference as they are, where the other side lacks them.
  """
  known = {variable.name for variable in case.tf1.inventory().variables}
  return frozenset(case.pairing.tf2_only.keys() - known) | case.neutral


class ZeroRandomness(Stage):
  """Sets every variable and runs both sides in inference mode."""

  name = 'zero_randomness'
  needs = ('no_new_variables', 'variable_inventory')
  tried_when_blocked = True
  proves = (
    'with every variable set to a fixed value of its own, outputs and regularization losses agree'
  )

  def check(self, case: CaseUnderTest) -> Findings:
    """Compares two runs: distinct values, then the guide's constant with the case's inputs."""
    # Inference, unless the case has only the training mode.
    training = False not in case.declaration.training_modes
    varied, replaced = case_inputs.varied_inputs(case.inputs)
    case.milder.clear()  # of an earlier check, by other pairs of variables
    runs = ((varied, case_fill(case)), (case.inputs, constant_fill(case)))
    comparison = Comparison()
    comparison.telling.judged_by = ('output',)
    comparison.telling.told_elsewhere = (('output', Blank.ZERO),)
    both = _BothSides.observed(case, runs, training)
    comparison.blind_spots += both.blind_spots
    tf1_runs, tf2_runs, observed = both.tf1, both.tf2, both.found
    for position, (one, other) in enumerate(zip(tf1_runs, tf2_runs, strict=True)):
      tf1, tf2 = (of_side[position] for of_side in observed)
      again = repeated(both.run_tf1, one)
      if isinstance(one.fill, StartedFill) and one.fill.is_constant:
        reference = RunOfSide(one, tf1, lambda run: both.run_tf1([run])[0])
        port = RunOfSide(other, tf2, lambda run: case.tf2.observe_filled([run])[0])
        again = with_dither(again, reference, port)
      # Equal numbers make ties and variances of zero, which rounding decides; others do not.
      _compare(case, comparison, one, (tf1, tf2), again, decides=not position)
    inspects = [functools.partial(case.tf1.inspectable, run) for run in tf1_runs]
    first_nan.explain(comparison, *inspects)
    notes = [*both.notes, *_nan_notes(observed[0])]
    if replaced:
      notes.append(
        f'constant inputs were varied for the first run: {", ".join(replaced)}; constant inputs '
        'hide mistakes'
      )
    found, proven = Dependence(), None
    settle(case, comparison, tf1_runs[0].fill)
    add_unread_inputs(case, varied, tf1_runs[0].fill, comparison)
    if not comparison.differences:
      notes += OtherSizes(case, tf1_runs[0], comparison).check()
    if not comparison.differences:
      # Equal values make equal outputs, which is no news.
      outputs = vacuity.OutputWatch()
      outputs.add(observed[0][0])
      comparison.blind_spots += [*outputs.notes(), *vacuity.influence_notes(case)]
      found = dependence(case, tf2_runs[0], observed[0], same_inputs=not replaced)
      comparison.blind_spots += found.notes
      graphs = related(case, tf2_runs[0])
      told = tell_apart(case, tf1_runs[0], comparison, graphs.differences)
      notes += [told] if told else []
      left = dataclasses.replace(graphs, differences=()) if told else graphs
      proven = left.record()
      comparison.blind_spots += other_inputs(case, tf1_runs[0], proven, left.blind_spots(), told)
    findings = dataclasses.replace(comparison.findings(notes), proven=proven)
    reason = _why_nothing(observed[0], inspects) or findings.inconclusive or found.reason
    return dataclasses.replace(findings, inconclusive=reason)


@dataclasses.dataclass(frozen=True, eq=False)
class _BothSides:
  """What both sides gave at distinct values and at the constant, with what was run.

  With `notes` and `blind_spots` of smaller values than the distinct ones.
  """

  tf1: tuple[RunSpec, ...]
  tf2: tuple[RunSpec, ...]
  found: tuple[Sequence[Observation], Sequence[Observation]]
  run_tf1: PreparedRuns
  notes: tuple[str, ...] = ()
  blind_spots: tuple[str, ...] = ()

  @classmethod
  def observed(
    cls, case: CaseUnderTest, runs: Sequence[tuple[object, Fill]], training: bool
  ) -> '_BothSides':
    """Runs both sides.

    Where all outputs of TF1 are NaN at the constant, variables with a domain have the case's
    values.
    """
    pairs = case.alignment().pairs

    def specs(tf1_names: dict[str, str], fills: Sequence[tuple[object, Fill]]) -> list[RunSpec]:
      return [RunSpec(inputs, training, fill, tf1_names) for inputs, fill in fills]

    names = {tf1: tf1 for tf1, _ in pairs}, {tf2: tf1 for tf1, tf2 in pairs}
    tf1_runs, tf2_runs = (specs(known, runs) for known in names)
    run_tf1 = case.tf1.prepare_filled(tf1_runs)
    tf1, tf2 = side_by_side(run_tf1, lambda: case.tf2.observe_filled(tf2_runs))
    if _is_all_nan(tf1[1]) and not _is_all_nan(tf1[0]):
      domain = ConstantInDomain(CaseFill(case.declaration))
      last = [(runs[1][0], StartedFill(domain, case.tf1.drawn_start, _kept(case)))]
      ones, others = (specs(known, last) for known in names)
      tf1_runs, tf2_runs = [tf1_runs[0], *ones], [tf2_runs[0], *others]
      tf1 = (tf1[0], *run_tf1(ones))
      tf2 = (tf2[0], *case.tf2.observe_filled(others))
    found = milder(case, tf1_runs[0], tf1[0], tf2[0], run_tf1)
    if found is None:
      return cls(tuple(tf1_runs), tuple(tf2_runs), (tf1, tf2), run_tf1)
    other = dataclasses.replace(tf2_runs[0], fill=found.run.fill)
    both = (found.observed, *tf1[1:]), (*case.tf2.observe_filled([other]), *tf2[1:])
    blind, noted = ((found.told,), ()) if found.is_blind else ((), (found.told,))
    ones, others = [found.run, *tf1_runs[1:]], [other, *tf2_runs[1:]]
    return cls(tuple(ones), tuple(others), both, run_tf1, noted, blind)


def _compare(
  case: CaseUnderTest,
  comparison: Comparison,
  run: RunSpec,
  observed: tuple[Observation, Observation],
  again: Again,
  decides: bool,
) -> None:
  """Compares both sides of one run.

  Args:
    case: both sides.
    comparison: collects what is found.
    run: of tf1.
    observed: what tf1 and tf2 gave.
    again: repeats the run of tf1.
    decides: whether outputs of which rounding changes too much make the stage inconclusive.
  """
  tf1, tf2 = observed
  lined_up = not (decides or comparison.differences)
  with comparison.unless_drawn_in_a_loop(tf1) as part:
    part.outputs(tf1, tf2, case.tolerance)
    part.regularization(tf1, tf2, case.alignment().pairs, case.regularization_tolerance)
    inspect = functools.partial(case.tf1.inspectable, run)
    port = functools.partial(case.inspectable_port, run)
    recorded = case.tf1.recorded()
    here = None if recorded is None else here_of(recorded.filled_on_current_tf(run))
    part.excuse_rounding(
      tf1, rerun_of(again), here, inspect, port, decides=decides, lined_up=lined_up
    )
    leave_out(part, inspect, tf1.run)
  comparison.repeatable(run)


def _nan_notes(runs: Iterable[Observation]) -> list[str]:
  counts = [(sum(int(np.isnan(v).sum()) for v in _floating_outputs(run)), run) for run in runs]
  return [
    f'{blind:,} output elements are NaN in {run.run}, so they show nothing where both sides '
    'agree on them; override fill_values if a variable has a domain'
    for blind, run in counts
    if blind
  ]


def _why_nothing(runs: Sequence[Observation], inspects: Sequence[Callable[[], GraphRun]]) -> str:
  """Returns why the outputs of runs of tf1 tell nothing; '' where they do.

  Args:
    runs: what tf1 gave.
    inspects: repeat them such that every tensor can be asked for.
  """
  outputs = vacuity.OutputWatch()
  for run in runs:
    outputs.add(run)
  if outputs.all_zero:
    return (
      'every output is zero on both sides in every run, which shows nothing: use other inputs, '
      'or override fill_values'
    )
  for run, inspect in zip(runs, inspects, strict=True):
    if _is_all_nan(run):
      remedy = first_nan.origin(inspect) or (
        'the values are outside the domain of some variable (a variance below zero); override '
        'fill_values'
      )
      return f'every output is NaN on both sides in {run.run}, which proves nothing: {remedy}'
  return ''


def _floating_outputs(observation: Observation) -> list[np.ndarray]:
  values = [record.value for record in observation.outputs]
  return [
    value for value in values if value is not None and value.size and value.dtype.kind in 'fcV'
  ]


def _is_all_nan(observation: Observation) -> bool:
  floating = _floating_outputs(observation)
  return bool(floating) and all(bool(np.isnan(value).all()) for value in floating)
