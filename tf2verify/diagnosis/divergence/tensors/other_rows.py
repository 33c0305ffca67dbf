"""Numbers that are the same by the examples that a run happens to have, and not by what they are.

Where half of the examples count, a mean over all of them is half of the mean over those: with a
weight of 0.5 on one side it is the other side's number. From other examples it is not. Rows of the
inputs that exist already, taken again in another order, are inputs that a model accepts.
"""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from tf2verify.diagnosis.divergence.tensors.sources import InspectableRun
from tf2verify.numerics.relayout import alike_as_held
from tf2verify.records.op_graph import INPUT

_LEAST_ROWS = 2
_Pairs = Sequence[tuple[int, int]]


def unlike_at_other_rows(tf1: InspectableRun, tf2: InspectableRun, pairs: _Pairs) -> list[int]:
  """Returns the tf1 operations that do not yield what their partners do from other examples.

  Args:
    tf1: the tf1 side's run.
    tf2: the tf2 side's.
    pairs: positions of operations that yield the same in these runs.

  Returns:
    None of them where the inputs are not examples: rows, the same number in each.
  """
  if not pairs:
    return []
  found: list[int] = []
  for ones, others in _other_inputs(tf1, tf2):
    first = tf1.refetched([tf1.op_graph.ops[n].tensors[0] for n, _ in pairs], ones)
    second = tf2.refetched([tf2.op_graph.ops[m].tensors[0] for _, m in pairs], others)
    if first is None or second is None:
      continue
    found += [
      n
      for (n, _), one, other in zip(pairs, first, second, strict=True)
      if n not in found and _are_finite(one, other) and not alike_as_held(one, other)
    ]
  return found


def _are_finite(*values: np.ndarray) -> bool:
  return all(bool(np.isfinite(value).all()) for value in values)


def _other_inputs(
  tf1: InspectableRun, tf2: InspectableRun
) -> Iterator[tuple[Mapping[str, np.ndarray], Mapping[str, np.ndarray]]]:
  """Yields the inputs of both sides with their rows taken otherwise."""
  ones, others = _inputs(tf1), _inputs(tf2)
  values = [value for side in (ones, others) for value in side.values()]
  sizes = {np.shape(value)[0] if np.ndim(value) else 0 for value in values}
  if len(sizes) != 1 or min(sizes) < _LEAST_ROWS:
    return
  (size,) = sizes
  numbers = np.arange(size)
  # Each of the first half twice; but for the last row, the first one.
  for rows in (numbers // 2, np.where(numbers == size - 1, numbers, 0)):
    yield (
      {name: value[rows] for name, value in ones.items()},
      {name: value[rows] for name, value in others.items()},
    )


def _inputs(run: InspectableRun) -> dict[str, np.ndarray]:
  ops = [op for op in run.op_graph.ops if op.op_type == INPUT and op.tensors]
  names = [op.tensors[0] for op in ops]
  return dict(zip(names, run.fetch(names), strict=True)) if names else {}
