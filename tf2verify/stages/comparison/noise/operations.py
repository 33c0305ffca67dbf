"""Rounding of the operations on the way to a tensor, where moves of what a run reads hide it.

The tanh of 3 hardly changes where its input moves by a unit in the last place, and is itself
rounded by far more: 1 - tanh(x)² then has few digits that mean anything, and `1 + 1e-6 - tanh²`
is as right as `1 - tanh² + 1e-6`. Each result on the way is moved by a unit in turn, and what
that does to a tensor is added up with random signs: that is how rounding moves it.
"""

import dataclasses
import time
from collections.abc import Callable, Sequence

import numpy as np

from tf2verify.errors import Tf2VerifyError
from tf2verify.numerics.noise import Kind
from tf2verify.records.op_graph import TARGET, OpGraph
from tf2verify.records.tensor_key import Run, TensorKey
from tf2verify.reference.perturbation import Perturber, moved
from tf2verify.reference.random_ops import is_random_op
from tf2verify.sides.graphs.run import GraphRun
from tf2verify.stages.comparison.noise import double_precision, rounding
from tf2verify.stages.comparison.noise.rounding import Sorted, Suspect

# Runs the reference such that every tensor can be asked for.
Inspect = Callable[[], GraphRun]

# A difference that is more of a tensor's greatest element is no rounding.
_SMALL = 1e-3
# Each result on the way takes a run: of more of them, or of more time, nothing is said.
_MOST, _SECONDS = 500, 20.0
# Elements of all suspects, for all results on the way.
_MOST_ELEMENTS = 2**25
_MOVED = ('float32', 'float64')
# Their results are elements of their inputs, or whole numbers: nothing rounds.
_EXACT = (
  ' Abs BroadcastTo Cast ConcatV2 Const Diag DynamicStitch Equal ExpandDims Fill Floor '
  ' Gather GatherNd GatherV2 Greater GreaterEqual Identity Less MatrixDiag MatrixTranspose '
  ' Max MaxPool Maximum Min Minimum Neg OneHot OnesLike Pack Pad PadV2 Placeholder '
  ' PlaceholderWithDefault PreventGradient ReadVariableOp Relu Relu6 ReluGrad Reshape '
  ' ResourceGather Reverse ReverseV2 Round ScatterNd Select SelectV2 Sign Slice Split SplitV '
  ' Squeeze StopGradient StridedSlice StridedSliceGrad Tile Transpose Unpack VarHandleOp '
  ' VariableV2 Where ZerosLike '
)
_NOTE = (
  'perturbed inputs and values do not explain these differences, but the rounding of the '
  'operations does: each of {} intermediate results was perturbed by one unit in the last place'
)


def excused(
  suspects: Sequence[Suspect],
  found: Sorted,
  inspect: Inspect,
  inspect_port: Inspect | None = None,
  lined_up: bool = False,
) -> Sorted:
  """Returns the judgement of small differences by the rounding of the operations.

  If the port can be repeated too, both are computed with 64 bits before.

  Args:
    suspects: differences of one run, all of them.
    found: what moves of inputs and values have shown.
    inspect: repeats the run of the reference.
    inspect_port: repeats that of the port.
    lined_up: as `double_precision.explained`.

  Returns:
    `found`, unless that explains all of them.
  """
  if inspect_port is not None:
    port = inspect_port
    found = double_precision.explained(
      suspects, found, lambda: (inspect(), port()), lined_up=lined_up
    )
  wrong = [noise for _, noise in found.judged if noise.kind is Kind.DIFFERENT]
  if not wrong or any(not noise.difference <= _SMALL * noise.size for noise in wrong):
    return found
  try:
    run = inspect()
  except Tf2VerifyError:
    return found
  try:
    effects = _effects(run, suspects)
  except Tf2VerifyError:
    effects = None
  finally:
    run.close()
  if not effects:
    return found
  count = len(next(iter(effects.values())))

  def rerun(perturber: Perturber | None, _: frozenset[TensorKey]) -> Run:
    values = {suspect.key: suspect.tf1 for suspect in suspects}
    if perturber is None:
      return values
    return {key: _added(value, effects[key], perturber) for key, value in values.items()}

  again = rounding.sort_out(suspects, rerun)
  if not again.judged or any(noise.kind is Kind.DIFFERENT for _, noise in again.judged):
    return found
  return dataclasses.replace(again, notes=(*again.notes, _NOTE.format(count)))


def _added(value: np.ndarray, effects: Sequence[np.ndarray], perturber: Perturber) -> np.ndarray:
  """Returns a tensor of a run in which every operation on the way rounds differently."""
  signs = np.random.RandomState(perturber.number).choice((-1.0, 1.0), len(effects))
  total = sum((s * e for s, e in zip(signs, effects, strict=True)), np.zeros(value.shape))
  added: np.ndarray = (value + total).astype(value.dtype)
  return added


def _effects(run: GraphRun, suspects: Sequence[Suspect]) -> dict[TensorKey, list[np.ndarray]]:
  """Returns what moving each result on the way does to each suspect; nothing if not known."""
  graph = run.op_graph
  ends: dict[TensorKey, int] = {}
  for suspect in suspects:
    position = graph.targets().get(f'{suspect.key.quantity} {suspect.key.name}')
    if position is None or len(graph.ops[position].tensors) != 1 or suspect.views is not None:
      return {}
    ends[suspect.key] = position
  wanted = [graph.ops[position].tensors[0] for position in ends.values()]
  names = _rounded(graph, list(ends.values()))
  elements = sum(suspect.tf1.size for suspect in suspects)
  if not names or len(names) > _MOST or len(names) * elements > _MOST_ELEMENTS:
    return {}
  start = time.perf_counter()
  values = run.refetched([*wanted, *names], {})
  again = None if values is None else run.refetched(wanted, {})
  if values is None or again is None:
    return {}
  pairs = zip(values, again, strict=False)
  if not all(np.array_equal(one, other, equal_nan=True) for one, other in pairs):
    return {}  # what is drawn anew in every run would be taken for the effect of rounding
  before = [value.astype(np.float64) for value in values[: len(wanted)]]
  found: dict[TensorKey, list[np.ndarray]] = {key: [] for key in ends}
  for name, value in zip(names, values[len(wanted) :], strict=True):
    if time.perf_counter() - start > _SECONDS:
      return {}
    after = run.refetched(wanted, {name: moved(value, f'result {name}')})
    for key, one, other in zip(found, before, after or before, strict=True):
      effect = other.astype(np.float64) - one
      found[key].append(np.where(np.isfinite(effect), effect, 0.0))
  return found


def _rounded(graph: OpGraph, ends: Sequence[int]) -> list[str]:
  """Returns the floating results, by name, that operations before some others round."""
  found = []
  for position in sorted(graph.ancestors(ends)):
    op = graph.ops[position]
    given = op.op_type == TARGET or not op.inputs or is_random_op(op.op_type)
    if given or f' {op.op_type} ' in _EXACT:
      continue
    found += [
      tensor
      for (dtype, _), tensor in zip(op.outputs, op.tensors, strict=False)
      if tensor and dtype in _MOVED
    ]
  return found
