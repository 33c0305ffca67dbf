"""Where TF1 divides 0 by 0, and a port that does not is no worse for it."""

import contextlib
import dataclasses
import functools
import operator
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from tf2verify.errors import Tf2VerifyError
from tf2verify.numerics.arrays import compare_arrays
from tf2verify.numerics.telling import Blank
from tf2verify.numerics.tolerance import FLOATING_DTYPES, Tolerance
from tf2verify.records.difference import Aspect, Difference
from tf2verify.records.failed_tensor import FailedTensor
from tf2verify.records.op_graph import TARGET, OpRecord, TensorKey
from tf2verify.sides.graphs.run import GraphRun
from tf2verify.stages.comparison.comparing import Comparison

# Runs the reference such that every tensor can be asked for.
Inspect = Callable[[], GraphRun]

_DIVISIONS = ('RealDiv', 'Div')
_SHOWN = 3
# How the targets of an op graph begin that are outputs.
_OUTPUT = 'output '


def leave_out(comparison: Comparison, inspect: Inspect, run: str) -> None:
  """Makes blind spots of what differs only since tf1 divides 0 by 0 and the port does not.

  Elements that are NaN in tf1 and finite in the port. The graph is run only where there are
  such: every NaN of its outputs has to begin at a division of 0 by 0, or at the mean of no
  element. What else differs of a tensor remains, without these elements.

  Args:
    comparison: what has been found.
    inspect: repeats the reference, of whose outputs the NaN are looked at.
    run: whose findings to look at.
  """
  arrays = {(k.quantity, k.name): k for k in comparison.failed_tensors() if k.run == run}
  found = []
  for difference in comparison.differences:
    known = arrays.get((difference.quantity, difference.tf1_subject))
    of_run = difference.run == run and difference.aspect is Aspect.NON_FINITE
    if known is None or difference.array is None or not of_run:
      continue
    allowed = Tolerance(difference.array.rtol, difference.array.atol)
    broken = _broken(known)
    if broken is not None:
      rest = compare_arrays(np.where(broken, known.tf2, known.tf1), known.tf2, allowed)
      found.append((difference, broken, rest))
  divisions = _divisions(inspect) if found else ()
  for difference, broken, rest in found if divisions else ():
    comparison.withdraw(functools.partial(operator.is_, difference))
    comparison.blind_spots.append(_text(difference, broken, divisions))
    if rest.aspect is not None:
      comparison.add(dataclasses.replace(difference, aspect=rest.aspect, array=rest.difference))
    if broken.all():
      comparison.telling.add(difference.key, Blank.NON_FINITE)


def _broken(known: FailedTensor) -> np.ndarray | None:
  """Returns where tf1 is NaN and the port finite; None if that is nowhere."""
  one, other = known.tf1, known.tf2
  if one.shape != other.shape or one.dtype != other.dtype or one.dtype.kind != 'f':
    return None
  broken: np.ndarray = np.isnan(one) & np.isfinite(other)
  return broken if broken.any() else None


def _text(difference: Difference, broken: np.ndarray, divisions: Sequence[str]) -> str:
  places = ', '.join(divisions[:_SHOWN]) + (', …' if len(divisions) > _SHOWN else '')
  where = ''
  if broken.ndim:
    indices = [tuple(int(axis) for axis in index) for index in np.argwhere(broken)[:_SHOWN]]
    where = f' ({", ".join(map(str, indices))}{", …" if broken.sum() > _SHOWN else ""})'
  return (
    f'tf1 divides 0 by 0 there, at {places}: {int(broken.sum()):,} of {broken.size:,} elements of '
    f'{difference.quantity} {difference.subject} [{difference.run}] are NaN in tf1{where}; the '
    'port gives finite values, which could not be compared: give inputs for which tf1 yields '
    'numbers (no empty mask)'
  )


def _divisions(inspect: Inspect) -> tuple[str, ...]:
  """Returns where tf1 divides 0 by 0; none if a NaN of its outputs begins elsewhere."""
  try:
    run = inspect()
  except Tf2VerifyError:
    return ()
  with contextlib.closing(run):
    return _origins(run)


def _origins(run: GraphRun) -> tuple[str, ...]:
  graph = run.op_graph
  ends = [position for name, position in graph.targets().items() if name.startswith(_OUTPUT)]
  behind = sorted(graph.ancestors(ends))
  keys = [key for position in behind for key in _floating(graph.ops[position], position)]
  names = [graph.ops[position].tensors[number] for position, number in keys]
  values = dict(zip(keys, run.fetch(names), strict=True))
  found = []
  for position in behind:
    op = graph.ops[position]
    mine = [values[key] for key in keys if key[0] == position]
    given = [values.get(key) for key in op.inputs]
    if not any(np.isnan(value).any() for value in mine):
      continue
    if any(value is not None and np.isnan(value).any() for value in given):
      continue
    if not _is_zero_by_zero(op, mine, given):
      return ()
    place = op.source
    found.append(f'{op.name} at {place.path}:{place.line}' if place is not None else op.name)
  return tuple(found)


def _is_zero_by_zero(
  op: OpRecord, results: Sequence[np.ndarray], given: Sequence[np.ndarray | None]
) -> bool:
  """Returns whether all NaN of an operation are 0 divided by 0, or by no element."""
  if op.op_type == 'Mean':
    return given[0] is not None and not given[0].size
  if op.op_type not in _DIVISIONS or len(given) < 2 or given[0] is None or given[1] is None:
    return False
  both: np.ndarray = np.broadcast_to((given[0] == 0) & (given[1] == 0), results[0].shape)
  return bool(np.all(both[np.isnan(results[0])]))


def _floating(op: OpRecord, position: int) -> Iterator[TensorKey]:
  for number, ((dtype, _), tensor) in enumerate(zip(op.outputs, op.tensors, strict=False)):
    if tensor and op.op_type != TARGET and dtype in FLOATING_DTYPES:
      yield position, number
