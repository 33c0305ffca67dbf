"""Rung 6: the gradients agree."""

import dataclasses
import functools
import gc
import math
from collections.abc import Callable, Sequence

from tf2verify.errors import NotApplicable
from tf2verify.numerics.telling import Blank
from tf2verify.records.observation import Observation, TensorRecord
from tf2verify.reference import inputs as case_inputs
from tf2verify.sides.graphs.run import GraphRun
from tf2verify.sides.side import RunSpec
from tf2verify.stages.comparison import eager_branches, first_nan, unread_variables
from tf2verify.stages.comparison.comparing import Comparison
from tf2verify.stages.comparison.noise.reruns import Again, here_of, repeated, rerun_of
from tf2verify.stages.comparison.vacuity import gradient_notes
from tf2verify.stages.comparison.zero_by_zero import leave_out
from tf2verify.stages.passes.further_runs.size_in_training import compare_in_training
from tf2verify.stages.passes.further_runs.wider_gradients import told_apart
from tf2verify.stages.passes.zero_randomness import case_fill
from tf2verify.stages.stage import CaseUnderTest, Findings, Stage

# Elements of variables that may be held beside the reference's, with their gradients.
_MOST_HELD = 5_000_000


@dataclasses.dataclass(frozen=True, eq=False)
class ReferenceGradients:
  """The gradients of the reference, to compare a port's with.

  Attributes:
    run: what was run.
    tf1: what it yields.
    again: repeats it, to measure rounding noise.
  """

  run: RunSpec
  tf1: Observation
  again: Again

  def compared(
    self,
    case: CaseUnderTest,
    gradients: Sequence[TensorRecord],
    inspect_port: Callable[[], GraphRun] | None = None,
  ) -> Comparison:
    """Returns the comparison with a port's gradients, what rounding explains left out.

    Args:
      case: both sides.
      gradients: the port's.
      inspect_port: repeats its run such that every tensor can be asked for.
    """
    tf1, comparison = self.tf1, Comparison()
    comparison.telling.told_elsewhere = (('gradient', Blank.ZERO),)
    with comparison.unless_drawn_in_a_loop(tf1) as part:
      pairs, tolerance = compared_pairs(case), case.gradient_tolerance
      part.variables('gradient', pairs, tf1.gradients, gradients, tolerance, tf1.run)
      inspect = functools.partial(case.tf1.inspectable, self.run)
      recorded = case.tf1.recorded()
      here = None if recorded is None else here_of(recorded.filled_on_current_tf(self.run))
      part.excuse_rounding(tf1, rerun_of(self.again), here, inspect, inspect_port)
      leave_out(part, inspect, tf1.run)
      forward = dataclasses.replace(self.run, gradients=False)
      sides = (
        functools.partial(case.tf1.inspectable, forward),
        functools.partial(case.inspectable_port, forward),
      )
      unread_variables.leave_out(part, (tf1.gradients, gradients), sides)
      known = {record.name: record.value for record in tf1.gradients}
      in_graph = functools.partial(case.inspectable_port, self.run)
      eager_branches.leave_out(part, known, in_graph)
    first_nan.explain(comparison, inspect)
    return comparison


def compared_pairs(case: CaseUnderTest) -> list[tuple[str, str]]:
  """Returns the names of the variables whose gradients count: not of what neither side trains."""
  return [pair for pair in case.alignment().pairs if pair[0] not in case.rightly_frozen]


class Gradients(Stage):
  """Differentiates the case's loss for every trainable variable."""

  name = 'gradients'
  needs = ('seeded_constant',)
  tried_when_blocked = True
  proves = 'the gradient of the loss agrees for every trainable variable'

  def check(self, case: CaseUnderTest) -> Findings:
    """Compares the gradients, by name, in training mode and at distinct variable values.

    Seeded initial values would do as well, but many of them are zeros and ones
    on purpose (biases, gammas, the last layer of a residual branch), which stop
    gradients or make them alike.
    """
    training = True in case.declaration.training_modes
    inputs, replaced = case_inputs.varied_inputs(case.inputs)
    pairs = case.alignment().pairs
    trainable = {v.name for v in case.tf1.inventory().variables if v.trainable}
    if not trainable and not any(v.trainable for v in case.tf2.inventory().variables):
      raise NotApplicable('no variable is trainable on either side')
    fill = case_fill(case)
    tf1_run = RunSpec(inputs, training, fill, {tf1: tf1 for tf1, _ in pairs}, gradients=True)
    tf2_run = RunSpec(inputs, training, fill, {tf2: tf1 for tf1, tf2 in pairs}, gradients=True)
    run_tf1 = case.tf1.prepare_filled([tf1_run])
    (tf2,) = case.tf2.observe_filled([tf2_run])
    if _is_large(case):
      # Variables and gradients of both sides at once would be the ladder's peak of
      # memory: one side after the other, and the layer is let go in between.
      case.tf2.release()
      gc.collect()
    (tf1,) = run_tf1()
    reference = ReferenceGradients(tf1_run, tf1, repeated(run_tf1, tf1_run))
    inspect_port = functools.partial(case.inspectable_port, reference.run)
    comparison = reference.compared(case, tf2.gradients, inspect_port)
    comparison.repeatable(tf1_run)
    known = [record for record in tf1.gradients if record.name not in case.rightly_frozen]
    unconnected = sum(record.value is None for record in known)
    notes = []
    if left_out := len(tf1.gradients) - len(known):
      noun = 'variable' if left_out == 1 else 'variables'
      notes.append(f'{left_out} {noun} that neither side trains: no gradient is compared')
    if unconnected and not comparison.differences:
      notes.append(f'{unconnected} variables have no gradient on either side')
    if not comparison.differences:
      comparison.blind_spots += gradient_notes(known)
      notes += compare_in_training(case, tf1_run, (tf1, tf2), comparison)
    if not comparison.differences:
      comparison.blind_spots += told_apart(case, tf1_run, tf1, functools.partial(_at, case))
    if replaced:
      notes.append(f'constant inputs were varied: {", ".join(replaced)}')
    return comparison.findings(notes)


def _at(case: CaseUnderTest, run: RunSpec, tf1: Observation, tf2: Observation) -> Comparison:
  again = repeated(case.tf1.prepare_filled([run]), run)
  return ReferenceGradients(run, tf1, again).compared(case, tf2.gradients)


def _is_large(case: CaseUnderTest) -> bool:
  variables = case.tf2.inventory().variables
  return sum(math.prod(size or 1 for size in variable.shape) for variable in variables) > _MOST_HELD
