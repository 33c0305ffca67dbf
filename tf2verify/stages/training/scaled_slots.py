"""State of optimizers of somebody's own that one side keeps in another unit: a mean for a sum.

What it is called is a guess, and what it does to the variables is compared. Where all updates of
all steps agree, and what is kept is the same multiple everywhere, that is a unit and no mistake.
"""

import functools
import operator
from collections.abc import Iterable

import numpy as np

from tf2verify.records.failed_tensor import FailedTensor
from tf2verify.records.observation import TensorRecord
from tf2verify.records.wording import listed, number_text
from tf2verify.relation.slots import is_known_role
from tf2verify.stages.comparison.comparing import Comparison
from tf2verify.stages.training.steps.quantities import SLOT

# Of the greatest element; and how close the multiples of two variables, or steps, are.
_SAME = 1e-4
# Cosine of the angle between averaged weights and weights.
_ALIKE = 0.95
_SHOWN = 6


class ScaledSlots:
  """Leaves out such state, as long as its unit stays the same from step to step."""

  def __init__(self) -> None:
    self._scales: dict[str, float] = {}
    self._variables: dict[str, set[str]] = {}
    # By the number of a step, of how many tensors that was.
    self.counts: dict[int, int] = {}

  def leave_out(self, part: Comparison, number: int, weights: Iterable[TensorRecord]) -> None:
    """Takes back what differs of a step, where that is such state alone.

    State that has the direction of the weights is an average of them, which is there to be read in
    place of them: it has no other unit.

    Args:
      part: what was compared so far; steps before this one agree.
      number: of the step.
      weights: the variables of tf1 after it.
    """
    known_weights = {record.name: record.value for record in weights}
    differences = list(part.differences)
    failed = {(one.quantity, one.name, one.run): one for one in part.failed_tensors()}
    scales = dict(self._scales)
    for difference in differences:
      known = failed.get((difference.quantity, difference.tf1_subject, difference.run))
      role, _, variable = difference.tf1_subject.partition(' of ')
      is_average = known is not None and _are_alike(known.tf1, known_weights.get(variable))
      scale = None if known is None or is_average else _scale(known)
      if difference.quantity != SLOT or is_known_role(role) or scale is None:
        return
      if abs(scales.setdefault(role, scale) - scale) > _SAME * abs(scale):
        return
    self._scales = scales
    if differences:
      self.counts[number] = len(differences)
    for difference in differences:
      role, _, variable = difference.tf1_subject.partition(' of ')
      self._variables.setdefault(role, set()).add(variable)
      part.withdraw(functools.partial(operator.is_, difference))

  def told(self, parted: int) -> list[str]:
    """Returns what to say of what was left out.

    Args:
      parted: the first step that differs otherwise; 0 without.
    """
    steps = f'step{"s" if len(self.counts) > 1 else ""} {", ".join(map(str, self.counts))}'
    if parted:
      steps += (
        f', before step {parted}, the first one that differs otherwise: another unit of the same '
        'state, or what makes that step differ'
      )
    else:
      steps += (
        ', and all updates agree: another unit of the same state, unless something hides the '
        'factor, such as a clipping; a checkpoint of TF1 has to be multiplied by it'
      )
    return [
      f'{role} of {listed(sorted(self._variables[role]), _SHOWN)} is {number_text(scale)} times as '
      f'large in the port as in TF1 after {steps}'
      for role, scale in self._scales.items()
    ]


def _are_alike(state: np.ndarray, weights: object) -> bool:
  """Returns whether state has the direction of the weights that it is kept for."""
  if not isinstance(weights, np.ndarray) or weights.shape != state.shape or state.size < 2:
    return False
  one, other = state.astype(np.float64).ravel(), weights.astype(np.float64).ravel()
  sizes = float(np.linalg.norm(one) * np.linalg.norm(other))
  return bool(sizes and np.isfinite(sizes) and abs(one @ other) > _ALIKE * sizes)


def _scale(known: FailedTensor) -> float | None:
  """Returns the one number by which a tensor of the port is that of tf1; None where none is."""
  ones, others = known.tf1, known.tf2
  if ones.shape != others.shape or ones.dtype.kind != 'f' or others.dtype.kind != 'f':
    return None
  one, other = ones.astype(np.float64).ravel(), others.astype(np.float64).ravel()
  size = float(one @ one)
  if one.size < 2 or not np.isfinite(size) or not size or not np.isfinite(other).all():
    return None
  scale = float(one @ other) / size
  allowed = _SAME * float(np.abs(other).max())
  return scale if scale and np.abs(scale * one - other).max() <= allowed else None
