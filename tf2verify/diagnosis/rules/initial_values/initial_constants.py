"""Variables that start with another constant."""

import numpy as np

from tf2verify.diagnosis.evidence.failed_stage import FailedStage
from tf2verify.numerics.same_numbers import holds_one_number
from tf2verify.records.failed_tensor import FailedTensor

# Of an LSTM, along its bias.
_GATES = 4


def other_constant(evidence: FailedStage) -> tuple[str, str] | None:
  """Returns what to say of initial values that are constant on one side at least.

  Returns:
    What is wrong, and what was seen; None without any that no stage has explained already.
  """
  explained = {d.tf1_subject for d in evidence.differences if d.hint}
  found = {
    failed.name: failed
    for failed in reversed(evidence.of_quantity('initial value'))
    if failed.name not in explained and _is_other_constant(failed)
  }
  if not found:
    return None
  first, *others = reversed(found.values())
  more = ''
  if others:
    more = f' (and {len(others)} more: {", ".join(failed.name for failed in others[:3])}'
    more += ', …)' if len(others) > 3 else ')'
  one, other = _numbers(first.tf1), _numbers(first.tf2)
  named = {d.tf1_subject: d.tf2_subject for d in evidence.differences}
  # Under the shim there is no map, and names are the same.
  is_mapped = named.get(first.name, first.name) not in ('', first.name)
  added = _lacks_constant(first) if is_mapped else 0.0
  if added:
    return (
      f'the port starts {first.name} with 0 where the variable map adds {added:g} to a part of it, '
      'as the cell of TF1 does in each step (its forget bias): let the port start that part with '
      f'{added:g} (unit_forget_bias=True for 1){more}',
      f'initial value of {first.name}, through the map: {one} (tf1), {other} (tf2)',
    )
  return (
    f'the port starts {first.name} with {other}, tf1 with {one}{more}: give the variable of the '
    'port the initializer of tf1',
    f'initial value of {first.name}: {one} (tf1), {other} (tf2)',
  )


def _is_other_constant(failed: FailedTensor) -> bool:
  if failed.tf1.shape != failed.tf2.shape:
    return False
  constant = holds_one_number(failed.tf1), holds_one_number(failed.tf2)
  return any(constant) if failed.tf1.size > 1 else all(constant)


def _lacks_constant(failed: FailedTensor) -> float:
  """Returns what a cell adds to one of its four gates, if the port starts that at 0; 0 for nothing.

  A map subtracts it from the port's bias, which then starts below tf1's zeros by that.
  """
  one, other = failed.tf1, failed.tf2
  if one.ndim != 1 or one.size % _GATES or one.any() or other.dtype.kind != 'f':
    return 0.0
  blocks = other.reshape(_GATES, -1).astype(np.float64)
  lower = np.flatnonzero(blocks.any(axis=1))
  if len(lower) != 1 or not holds_one_number(blocks[lower[0]]):
    return 0.0
  return max(-float(blocks[lower[0], 0]), 0.0)


def _numbers(array: np.ndarray) -> str:
  wide = array.astype(np.float64) if array.dtype.kind in 'fiuV' else array
  if holds_one_number(array):
    return f'{wide.flat[0]:g}' if wide.dtype.kind == 'f' else str(wide.flat[0])
  return f'numbers from {wide.min():.3g} to {wide.max():.3g}'
