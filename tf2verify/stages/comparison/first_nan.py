"""Where the NaN of a reference begin: the first operation that makes them of numbers."""

import contextlib
from collections.abc import Callable, Sequence

import numpy as np

from tf2verify.errors import Tf2VerifyError
from tf2verify.numerics.tolerance import FLOATING_DTYPES
from tf2verify.records.op_graph import CONSTANT, TARGET, VARIABLE, OpGraph, OpRecord, TensorKey
from tf2verify.reference.arrays import widened
from tf2verify.sides.graphs.run import GraphRun
from tf2verify.stages.comparison.comparing import Comparison

# More variables than these are no domain to declare.
_SHOWN = 3


def explain(comparison: Comparison, *inspects: Callable[[], GraphRun]) -> None:
  """Lets what is said of NaN on both sides name where they begin in tf1.

  Costs nothing where there are none, or where something differs, which is told instead.

  Args:
    comparison: what a stage has compared.
    inspects: each runs the reference such that every tensor can be asked for; the first that
      holds NaN is told.
  """
  if comparison.differences or not comparison.telling.holds_nan:
    return
  for inspect in inspects:
    found = origin(inspect)
    if found:
      comparison.telling.nan_origin = found
      return


def origin(inspect: Callable[[], GraphRun]) -> str:
  """Returns where NaN begins and what to do; '' where the run holds none, or cannot be made."""
  try:
    run = inspect()
  except Tf2VerifyError:
    return ''
  with contextlib.closing(run):
    return _origin(run)


def _origin(run: GraphRun) -> str:
  graph = run.op_graph
  behind = sorted(graph.ancestors(graph.targets().values()))
  names = {
    (position, number): tensor
    for position in behind
    for number, tensor in enumerate(_floating(graph.ops[position]))
    if tensor
  }
  fetched = run.refetched(list(names.values()), {})
  if fetched is None:  # a branch that was not taken
    return ''
  values = dict(zip(names, map(_state, fetched), strict=True))
  first = _first(graph, behind, values, 'nan')
  if first is None:
    return ''
  # An infinity that no constant of the code is makes NaN later on.
  infinite = _first(graph, sorted(graph.ancestors([first])), values, 'infinite')
  return _text(graph, first if infinite is None else infinite, infinite is None)


def _floating(op: OpRecord) -> list[str]:
  """Returns the names of what an operation yields; '' for what is not floating, or no tensor."""
  if op.op_type == TARGET:
    return []
  pairs = zip(op.outputs, op.tensors, strict=False)
  return [tensor if dtype in FLOATING_DTYPES else '' for (dtype, _), tensor in pairs]


def _state(value: np.ndarray) -> str:
  wide = widened(value)
  if np.isnan(wide).any():
    return 'nan'
  return 'finite' if np.isfinite(wide).all() else 'infinite'


def _first(
  graph: OpGraph, positions: Sequence[int], values: dict[TensorKey, str], wanted: str
) -> int | None:
  """Returns the first operation that makes NaN, or infinities, of what has none."""
  for position in positions:
    op = graph.ops[position]
    mine = [values.get((position, number)) for number in range(len(op.outputs))]
    given = [values.get(key) for key in op.inputs]
    bad = ('nan',) if wanted == 'nan' else ('nan', 'infinite')
    if op.op_type != CONSTANT and wanted in mine and not any(value in bad for value in given):
      return position
  return None


def _text(graph: OpGraph, position: int, nan: bool) -> str:
  op = graph.ops[position]
  place = '' if op.source is None else f' at {op.source}'
  behind = [graph.ops[known] for known in sorted(graph.ancestors([position]))]
  names = sorted({known.name for known in behind if known.op_type == VARIABLE})
  what = 'NaN' if nan else 'infinities, which become NaN later,'
  text = f'tf1 first computes {what} in {op.op_type}{place}'
  if not names:
    return f'{text}, which depends on inputs only: use inputs for which it is finite'
  if len(names) > _SHOWN:
    return (
      f'{text}, which depends on {len(names)} variables: override fill_values with values '
      'in the domain of each, for instance those that TF1 starts with'
    )
  return (
    f'{text}, which depends on {", ".join(names)}: the values that are given in this check are '
    'outside of its domain; override fill_values with values inside of it, for instance those '
    'that TF1 starts with'
  )
