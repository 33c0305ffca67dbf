"""Moving averages that one side updates more often."""

import numpy as np

from tf2verify.diagnosis.evidence.failed_stage import FailedStage
from tf2verify.records.diagnosis import Cause


def update_count(evidence: FailedStage) -> Cause | None:
  """A variable is written more often per call on one side.

  Looks for variables of another state that are not written equally often.
  """
  mode = any(difference.what == 'is_training' for _, difference in evidence.graph_differences())
  updates = [one for one in evidence.updates if not _is_refuted(evidence, *one)]
  if not updates or mode:  # the mode explains it
    return None
  variable, tf1, tf2 = updates[0]
  more = f' (and {len(updates) - 1} more)' if len(updates) > 1 else ''
  seen = f'{variable}{more}: {_updates(tf1)} in tf1, {_updates(tf2)} in tf2'
  if not tf1:
    return Cause(
      'the reference never updates it, and the port does: either the update ops of tf1 are not '
      'in UPDATE_OPS (then tf1 trains without them, and a port that does the same freezes '
      'them), or the port updates what it should not',
      seen,
    )
  if not tf2:
    return Cause(
      'tf1 updates it in each call and the port never does: call the layer with training=True, '
      'and let it own the update',
      seen,
    )
  return Cause(
    'the two sides do not update it equally often in one call: a layer that is called several '
    'times (a discriminator, for real and generated) updates at every call, tf1 by what stands '
    'in UPDATE_OPS or runs before its outputs',
    seen,
  )


def _is_refuted(evidence: FailedStage, variable: str, tf1: int, tf2: int) -> bool:
  """Returns whether a side that is said never to write a variable has changed it."""
  for state in evidence.states:
    if state.name == variable:
      moved = [not np.array_equal(state.before, after) for after in (state.tf1, state.tf2)]
      return (not tf1 and moved[0]) or (not tf2 and moved[1])
  return False


def _updates(number: int) -> str:
  return f'{number} update' + ('' if number == 1 else 's')
