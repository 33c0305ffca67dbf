"""Operations and their values for reading."""

from typing import Any

import numpy as np

from tf2verify.diagnosis.patterns.known_values import known_value
from tf2verify.records.op_graph import OpGraph

# They say how, not what, an operation computes, or follow from its inputs.
SILENT_ATTRIBUTES = frozenset(
  (
    'T',
    'U',
    'N',
    'Tidx',
    'Tdim',
    'Tparams',
    'Tindices',
    'Taxis',
    'Tmultiples',
    'Tpaddings',
    'Tshape',
    'Tperm',
    'Tlen',
    'Index',
    'dtype',
    'DstT',
    'SrcT',
    'out_type',
    'output_type',
    'use_cudnn_on_gpu',
    'use_locking',
    'validate_indices',
    'validate_shape',
    'shared_name',
    'container',
    'batch_dims',
    'explicit_paddings',
    'grad_a',
    'grad_b',
    'seed',
    'seed2',
    'element_dtype',
    'parallel_iterations',
    'body',
    'cond',
    'then_branch',
    'else_branch',
    'Tin',
    'Tout',
    'Tcond',
    'output_shapes',
    'num_original_outputs',
    'config',
    'config_proto',
    'executor_type',
    'f',
    'is_constant',
    'exponential_avg_factor',
    'op',
  )
)


def op_text(graph: OpGraph, position: int) -> str:
  """Returns an operation with what is special about it: `LeakyRelu(alpha=0.3)`."""
  op = graph.ops[position]
  shown = [
    f'{name}={value_text(value)}'
    for name, value in op.attributes
    if name not in SILENT_ATTRIBUTES and not name.startswith('_') and value not in ('', (), None, 0)
  ]
  names = op.input_names or ('',) * len(op.inputs)
  for name, (producer, _) in zip(names, op.inputs, strict=True):
    constant = known_value(graph, producer)
    if constant is not None:
      shown.append(f'{name}={value_text(constant)}' if name else value_text(constant))
  return f'{op.op_type}({", ".join(shown)})' if shown else op.op_type


def value_text(value: Any) -> str:
  """Returns a plain value for reading."""
  if isinstance(value, np.ndarray):
    if value.ndim == 0:
      value = value.item()
    else:
      text = np.array2string(value, separator=', ', threshold=12, precision=7).replace('\n', '')
      return ' '.join(text.split())
  if isinstance(value, float):
    return f'{value:.7g}'
  if isinstance(value, bytes):
    return value.decode('utf-8', 'replace')
  return str(value)
