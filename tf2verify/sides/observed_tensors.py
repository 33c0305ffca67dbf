"""The tensors of an observation, by key."""

from collections.abc import Iterable, Sequence

import numpy as np

from tf2verify.records.observation import Observation, RegularizationLoss, TensorRecord
from tf2verify.records.tensor_key import Run, TensorKey, numbered

_REGULARIZATION = 'regularization loss'


def all_tensors(observation: Observation) -> Run:
  """Returns all that an observation holds, but for the total of its regularization losses."""
  losses = [
    TensorRecord(', '.join(loss.variables) or '(reads no variable)', loss.value)
    for loss in observation.regularization_losses
  ]
  records = (
    ('initial value', observation.initial_values),
    ('output', observation.outputs),
    (_REGULARIZATION, losses),
    ('state after the call', observation.state_after),
    ('gradient', observation.gradients),
  )
  return numbered(
    (TensorKey(quantity, record.name, observation.run), record.value)
    for quantity, found in records
    for record in found
  )


def tensors_of(observation: Observation, wanted: Iterable[TensorKey]) -> Run:
  """Returns those of some tensors that an observation has, whatever run the keys name.

  A regularization loss may be one of several variables, of which the observation has one each.
  """
  known = {(key.quantity, key.name): value for key, value in all_tensors(observation).items()}
  return {
    key: _regularization(observation, key.name)
    if key.quantity == _REGULARIZATION
    else known.get((key.quantity, key.name))
    for key in wanted
  }


def _regularization(observation: Observation, subject: str) -> np.ndarray | None:
  if subject == '(total)':
    return observation.regularization_total
  return _sum_over(observation.regularization_losses, subject)


def _sum_over(losses: Sequence[RegularizationLoss], subject: str) -> np.ndarray | None:
  """Adds up the losses of a group of variables, which the comparison may have joined."""
  group = set(subject.split(', ')) if not subject.startswith('(') else set()
  total: np.ndarray | None = None
  for loss in losses:
    if set(loss.variables) <= group and bool(loss.variables) == bool(group):
      total = loss.value if total is None else np.asarray(total + loss.value, total.dtype)
  return total
