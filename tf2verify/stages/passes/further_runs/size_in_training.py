"""Both sides in training mode at inputs of another size."""

import dataclasses
import functools

from tf2verify.errors import BuilderError, LayerError, NotApplicable, UserCodeError
from tf2verify.records.difference import Aspect, Difference
from tf2verify.records.observation import Observation
from tf2verify.sides.graphs.run import GraphRun
from tf2verify.sides.side import RunSpec
from tf2verify.stages.comparison.comparing import Comparison
from tf2verify.stages.comparison.noise.reruns import repeated, rerun_of
from tf2verify.stages.comparison.zero_by_zero import leave_out
from tf2verify.stages.passes.further_runs.longer_inputs import outputs_differ
from tf2verify.stages.stage import CaseUnderTest

_REFUSALS = (UserCodeError, BuilderError, NotApplicable)
# Of a larger graph the build at another size is more than a small share of the ladder's time.
_MOST_OPERATIONS = 5000
_HINT = (
  'is the size of the inputs hard-coded in what the port does only in training? If the model is '
  'for one size only, declare that: other_sizes = ()'
)


def compare_in_training(
  case: CaseUnderTest,
  run: RunSpec,
  observed: tuple[Observation, Observation],
  comparison: Comparison,
) -> list[str]:
  """Compares outputs in training mode at a size at which both sides agree in inference.

  Where they differ at the case's own size already, as of random numbers in another order, another
  size tells nothing.

  Args:
    case: the case.
    run: of tf1 in training mode, at the case's own inputs.
    observed: what tf1 and the port gave there.
    comparison: gets the findings.

  Returns:
    Notes.
  """
  is_own_mode = run.training and False in case.declaration.training_modes
  if not is_own_mode or not case.agreed_sizes or _is_large(case) or outputs_differ(case, *observed):
    return []
  (size,) = case.agreed_sizes
  tf1_run = dataclasses.replace(run, inputs=size.inputs, gradients=False, size=size.name)
  names = {tf2: tf1 for tf1, tf2 in case.alignment().pairs}
  try:
    run_tf1 = case.tf1.at(size.inputs).prepare_filled([tf1_run])
    (tf1,) = run_tf1()
  except _REFUSALS:
    return []
  finally:
    case.tf1.release_other_size()
  try:
    (tf2,) = case.tf2.observe_filled([dataclasses.replace(tf1_run, tf1_names=names)])
  except (UserCodeError, LayerError) as error:
    case.tf2.release()
    raised = error.summary if isinstance(error, UserCodeError) else str(error)
    comparison.add(
      Difference(
        'inputs',
        f'(training, {size.name})',
        Aspect.SIZE,
        f'the reference accepts {size.name} in training',
        f'the port raises {raised}',
        hint=_HINT,
      )
    )
    return []
  at_size = Comparison()
  with at_size.unless_drawn_in_a_loop(tf1) as part:
    part.outputs(tf1, tf2, case.tolerance)
    inspect = functools.partial(_inspectable, case, tf1_run)
    port = functools.partial(case.inspectable_port, tf1_run)
    rerun = rerun_of(repeated(run_tf1, tf1_run))
    part.excuse_rounding(tf1, rerun, inspect=inspect, inspect_port=port)
    leave_out(part, inspect, tf1.run)
  if not at_size.differences:
    return []
  comparison.absorb(at_size)
  return [
    f"at the case's own inputs both sides agree in training, at {size.name} they do not: {_HINT}"
  ]


def _inspectable(case: CaseUnderTest, run: RunSpec) -> GraphRun:
  return case.tf1.at(run.inputs).inspectable(run)


def _is_large(case: CaseUnderTest) -> bool:
  return len(case.tf1.built(True).graph.get_operations()) > _MOST_OPERATIONS
