"""Another momentum of a moving average."""

import math

from tf2verify.diagnosis.evidence.failed_stage import FailedStage, StateEvidence
from tf2verify.diagnosis.states import batch_factor
from tf2verify.records.diagnosis import Cause


def moving_average_momentum(evidence: FailedStage) -> Cause | None:
  """A moving average that forgets faster or slower.

  Looks for momenta that make the port's state out of that of tf1.
  """
  for state in evidence.states:
    momenta = other_momenta(state)
    if momenta is None or batch_factor(state, *momenta) is None:
      continue
    tf1, tf2 = (f'{momentum:.7g}' for momentum in momenta)
    return Cause(
      f'the moving average keeps {tf2} of its value per step in the port, {tf1} in tf1: pass '
      f'momentum={tf1} (slim calls it decay, 0.999 by default; tf.layers and Keras default to '
      '0.99)',
      f'{state.name}: momentum {tf1} (tf1), {tf2} (tf2)',
    )
  return None


def other_momenta(state: StateEvidence) -> tuple[float, float] | None:
  """Returns the momenta of both sides where they are known, and not the same."""
  tf1, tf2 = state.momenta
  if tf1 is None or tf2 is None or math.isclose(tf1, tf2, rel_tol=1e-5):
    return None
  return tf1, tf2
