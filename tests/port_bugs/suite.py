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
from tests.port_bugs.port_bug import PortBug

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


@functools.cache
def verdict(case: type[tf2verify.EquivalenceCase]) -> tf2verify.CaseVerdict:
  """Returns the verdict of a case, which climbs the ladder once."""
  return tf2verify.verify(case)


def found(bug: PortBug) -> tf2verify.StageVerdict:
  """Returns the verdict of the wrong port that has to name the mistake.

  It is the first failure; where the ladder passes, the stage whose notes name it.
  """
  whole = verdict(bug.wrong)
  if whole.first_failure is not None:
    return whole.first_failure
  return next(stage for stage in whole.stages if stage.stage == bug.stage)
