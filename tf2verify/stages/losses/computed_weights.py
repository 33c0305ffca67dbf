"""What TF1's loss multiplies by that is made of labels and constants alone: weights of classes."""

import contextlib
from collections.abc import Callable

from tf2verify.diagnosis.formulas.losses import Weights
from tf2verify.records.loss_values import LossExample
from tf2verify.records.op_graph import INPUT, TARGET, OpGraph, TensorKey
from tf2verify.reference.graph_ops import reached
from tf2verify.sides.graphs.run import GraphRun

_PRODUCTS = ('Mul', 'MulNoNan')
_OF_OUTPUTS = 'outputs'
# More of them are hardly weights of the terms.
_MOST = 4


def computed_weights(
  inspect: Callable[[LossExample], GraphRun], example: LossExample
) -> tuple[Weights, ...]:
  """Returns what TF1's loss multiplies its terms by on an example, labels themselves left out.

  Args:
    inspect: returns the loss as a graph.
    example: outputs and labels.

  Returns:
    The weights; none where the loss cannot be looked into.
  """
  try:
    return _weights(inspect(example), example)
  except Exception:  # noqa: BLE001 - a fault in here must not cost the verdict
    return ()


def _weights(run: GraphRun, example: LossExample) -> tuple[Weights, ...]:
  with contextlib.closing(run):
    keys = _factors(run.op_graph)
    ops = run.op_graph.ops
    values = run.fetch([ops[n].tensors[k] for n, k in keys])
  rows = {output.shape[0] for output in example.outputs.values() if output.ndim}
  found = []
  for (n, _), value in zip(keys, values, strict=True):
    source = ops[n].source
    if value.dtype.kind == 'f' and value.ndim and value.shape[0] in rows and (value >= 0).all():
      place = ops[n].name if source is None else source.short
      found.append(Weights(f'the weights of {place}', value))
  return tuple(found[:_MOST])


def _factors(graph: OpGraph) -> list[TensorKey]:
  """Returns what is multiplied by something of the outputs, and made of labels."""
  of_outputs: list[bool] = []
  for op in graph.ops:
    is_output = op.op_type == INPUT and op.name.startswith(_OF_OUTPUTS)
    of_outputs.append(is_output or any(of_outputs[n] for n, _ in op.inputs))
  found: dict[TensorKey, None] = {}
  forward = set(
    reached(
      (n for n, op in enumerate(graph.ops) if _is_value(op.name, op.op_type)),
      lambda n: [one for one, _ in graph.ops[n].inputs],
    )
  )
  for position in sorted(forward):
    op = graph.ops[position]
    if op.op_type in _PRODUCTS and sum(of_outputs[n] for n, _ in op.inputs) == 1:
      found.update((key, None) for key in op.inputs if not of_outputs[key[0]])
  return [key for key in found if not graph.ops[key[0]].is_leaf]


def _is_value(name: str, op_type: str) -> bool:
  return op_type == TARGET and not name.startswith('loss gradient')
