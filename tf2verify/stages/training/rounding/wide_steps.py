"""A training step computed with 64 bits, to see whether what differs in it is rounding."""

from collections.abc import Mapping, Sequence

import numpy as np

from tf2verify.diagnosis.places.looking import targets_of
from tf2verify.records.tensor_key import TensorKey
from tf2verify.sides.graphs.run import GraphRun
from tf2verify.stages.comparison.noise.double_precision import Graphs, Targets, explained
from tf2verify.stages.comparison.noise.rounding import Judge, Sorted, Suspect
from tf2verify.stages.training.steps import quantities
from tf2verify.stages.training.steps.quantities import Steps

# What is compared by its distance to where it started.
_CHANGES = (quantities.UPDATE, quantities.STATE, quantities.SHADOW)


def _target_of(key: TensorKey) -> str:
  return next(iter(targets_of([(key.quantity, key.name)])), '')


def wide_steps(
  steps: Steps, number: int, variables: Mapping[TensorKey, str], graphs: Graphs
) -> Judge:
  """Returns what judges differences of a step by both sides computed with 64 bits.

  Both start from the values of the reference before the step. What was compared has to be as exact
  as that, but for the rounding that the port has from the steps before.

  Args:
    steps: taken so far.
    number: of the step, from 1.
    variables: the tf1 names of those that a tensor belongs to.
    graphs: returns both sides of the step.
  """
  start = {
    record.name: record.value for record in steps.tf1.values_before if record.value is not None
  }

  def shown(key: TensorKey, value: np.ndarray, run: GraphRun) -> np.ndarray:
    variable = variables.get(key, '')
    layout = run.layouts.get(variable)
    held = value if layout is None else layout.to_tf1(value)
    before = start.get(variable) if key.quantity in _CHANGES else None
    if before is None or before.shape != held.shape:
      return held
    return np.asarray(held - before.astype(held.dtype))

  def judge(suspects: Sequence[Suspect], found: Sorted) -> Sorted:
    gradients = {
      variables.get(s.key): s.key for s in suspects if s.key.quantity == quantities.GRADIENT
    }

    def source_of(key: TensorKey) -> TensorKey | None:
      """Returns the gradient of a slot: momentum of Keras is another multiple than that of TF1."""
      return gradients.get(variables.get(key, '')) if key.quantity == quantities.SLOT else None

    targets = Targets(_target_of, shown, number > 1, repeats=True, source_of=source_of)
    try:
      return explained(suspects, found, graphs, targets)
    except Exception:  # noqa: BLE001 - without it the differences stand: it must cost no verdict
      return found

  return judge
