"""All pairs, and what runs them once a process."""

import functools

import tf2verify
from tests.port_bugs import (
  arithmetic,
  batch_norm,
  checkpoints,
  convolution,
  creation,
  determinism,
  gradients,
  initializers,
  inventory,
  lookups,
  loss_controls,
  losses,
  normalization,
  optimizer_controls,
  optimizers,
  randomness,
  recurrent,
  regularization,
  resizing,
  right_ports,
  schedules,
  sharing,
  train_ops,
)
from tests.port_bugs.port_bug import Control, PortBug
from tf2verify.diagnosis.evidence.failed_stage import FailedStage
from tf2verify.diagnosis.rules import RULES
from tf2verify.stages import STAGES

# About a training step, or a loss, as a whole: its mistake is planted in `tests/stages`.
_OF_STEPS = ('inference_in_step', 'stopped_output')
RULES_OF_PLACES = frozenset(
  rule.name for rule in RULES if rule.reads is FailedStage and rule.name not in _OF_STEPS
)
_EXPERIMENT = 'experiment'
_EXPLAIN_THEMSELVES = ('loss', 'training_steps')

PORT_BUGS = (
  *creation.PORT_BUGS,
  *inventory.PORT_BUGS,
  *sharing.PORT_BUGS,
  *batch_norm.PORT_BUGS,
  *normalization.PORT_BUGS,
  *convolution.PORT_BUGS,
  *resizing.PORT_BUGS,
  *arithmetic.PORT_BUGS,
  *recurrent.PORT_BUGS,
  *lookups.PORT_BUGS,
  *regularization.PORT_BUGS,
  *initializers.PORT_BUGS,
  *randomness.PORT_BUGS,
  *gradients.PORT_BUGS,
  *losses.PORT_BUGS,
  *optimizers.PORT_BUGS,
  *schedules.PORT_BUGS,
  *train_ops.PORT_BUGS,
  *checkpoints.PORT_BUGS,
  *determinism.PORT_BUGS,
)
CONTROLS = (
  *right_ports.CONTROLS,
  *loss_controls.CONTROLS,
  *optimizer_controls.CONTROLS,
  *determinism.CONTROLS,
)


_NAMES = tuple(stage.name for stage in STAGES)
# Right ports climb to here where the pair is about no later stage. The controls climb on to
# `checkpoint`, the stages after which run a side against itself. Most examples climb all stages,
# and so do all pairs in `benchmarks.port_bugs`.
_LAST_OF_PAIR, _LAST_OF_CONTROL = 'training_steps', 'checkpoint'
_ABOUT_REPETITION = frozenset(control.right for control in determinism.CONTROLS)


@functools.cache
def verdict(case: type[tf2verify.EquivalenceCase], last: str = _NAMES[-1]) -> tf2verify.CaseVerdict:
  """Returns the verdict of a case, which climbs the ladder once, up to a stage."""
  return tf2verify.verify(case, stages=_NAMES[: _NAMES.index(last) + 1])


def last_of_right(pair: PortBug | Control) -> str:
  """Returns the last stage that the right port of a pair climbs."""
  if pair.right in _ABOUT_REPETITION:
    return _NAMES[-1]
  if isinstance(pair, Control):
    return _LAST_OF_CONTROL
  return max(pair.stage, _LAST_OF_PAIR, key=_NAMES.index)


def rules_of_places(stage: tf2verify.StageVerdict) -> tuple[str, ...]:
  """Returns the rules on places, and edits, that a report names: the table has these.

  Rules on the numbers of losses and steps are those of the stages, and so are their edits.
  """
  known = {*RULES_OF_PLACES, *(() if stage.stage in _EXPLAIN_THEMSELVES else [_EXPERIMENT])}
  causes = () if stage.diagnosis is None else stage.diagnosis.causes
  return tuple(cause.rule for cause in causes if cause.rule in known)


def found(bug: PortBug, last: str = '') -> tf2verify.StageVerdict:
  """Returns the verdict of the wrong port that has to name the mistake.

  It is the first failure; where the ladder passes, the stage whose notes name it.

  Args:
    bug: the pair.
    last: the last stage that is climbed; by default the one that has to see the mistake.
  """
  whole = verdict(bug.wrong, last or bug.stage)
  if whole.first_failure is not None:
    return whole.first_failure
  return next(stage for stage in whole.stages if stage.stage == bug.stage)
