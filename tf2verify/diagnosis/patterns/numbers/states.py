"""Variables that a call leaves in another state, and what their numbers say of the reason."""

from collections.abc import Sequence

import numpy as np

from tf2verify.diagnosis.divergence.tensors.sources import InspectableRun
from tf2verify.diagnosis.evidence.failed_stage import StateEvidence
from tf2verify.diagnosis.patterns.numbers.normalizations import momentum_behind
from tf2verify.records.failed_tensor import FailedTensor
from tf2verify.records.op_graph import VARIABLE, OpGraph

_STATE = 'state after the call'
# Of a difference that a claim explains, no more than this share is left.
_UNEXPLAINED = 0.02
# Rounding of a float32 average, in units of the greatest value.
_ROUNDING = 4e-7


def state_evidence(
  tensors: Sequence[FailedTensor], run: str, tf1: InspectableRun, tf2: OpGraph
) -> tuple[StateEvidence, ...]:
  """Returns the variables of another state whose value before the call is known.

  Args:
    tensors: what differs.
    run: the run looked into; others start from other values.
    tf1: the tf1 side's run.
    tf2: the port's graph.
  """
  leaves = {op.name: op.tensors[0] for op in tf1.op_graph.ops if op.op_type == VARIABLE}
  wanted = {
    failed.name: failed
    for failed in tensors
    if failed.quantity == _STATE and failed.run == run and failed.name in leaves
  }
  before = tf1.fetch([leaves[name] for name in wanted])
  return tuple(
    StateEvidence(name, value, failed.tf1, failed.tf2, _momenta(name, tf1.op_graph, tf2))
    for (name, failed), value in zip(wanted.items(), before, strict=True)
    if failed.tf1.shape == failed.tf2.shape == value.shape and value.dtype.kind == 'f'
  )


def _momenta(name: str, tf1: OpGraph, tf2: OpGraph) -> tuple[float | None, float | None]:
  ends = []
  for graph in (tf1, tf2):
    targets = graph.targets()
    once = f'update of {name} (2)' not in targets  # of several updates nothing is known
    ends.append(targets.get(f'update of {name}') if once else None)
  one, other = (
    None if end is None else momentum_behind(graph, end)
    for graph, end in zip((tf1, tf2), ends, strict=True)
  )
  return one, other


def batch_factor(state: StateEvidence, tf1: float, tf2: float) -> float | None:
  """Returns how many times the port averages what tf1 averages; None where no number fits.

  Args:
    state: the variable.
    tf1: the momentum of tf1.
    tf2: that of the port.

  Returns:
    1 where the momenta alone explain the port's state.
  """
  if not (0 <= tf1 < 1 and 0 <= tf2 < 1):
    return None
  before, one, other = (array.astype(np.float64) for array in (state.before, state.tf1, state.tf2))
  batch, its = (one - tf1 * before) / (1 - tf1), (other - tf2 * before) / (1 - tf2)
  size = float((batch * batch).sum())
  if not size or not np.isfinite(size):
    return None
  allowance = _UNEXPLAINED * np.abs(one - other) + _ROUNDING * np.abs(before).max(initial=0.0)
  for factor in (1.0, float((batch * its).sum() / size)):
    predicted = tf2 * before + (1 - tf2) * factor * batch
    if bool((np.abs(predicted - other) <= allowance).all()):
      return factor
  return None
