"""Operations and their values for reading."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from tf2verify.diagnosis.patterns.numbers.known_values import known_value
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
    'incompatible_shape_error',
    'index_type',
    'exponential_avg_factor',
    'op',
  )
)
# Of a slice, in order: begin, end, strides.
_BOUNDS = 3
# An array of so many elements that are one number is told as that.
_SAME_EVERYWHERE = 4
_MANY = 12  # elements that are all shown
_MASKS = ('begin_mask', 'end_mask', 'ellipsis_mask', 'new_axis_mask', 'shrink_axis_mask')

# They give a tensor another shape, and nothing else.
SHAPING = frozenset(('Reshape', 'Squeeze', 'ExpandDims', 'Identity'))


def only_shapes(op_types: Iterable[str]) -> bool:
  """Returns whether operations of these types only give tensors another shape."""
  return SHAPING.issuperset(op_types)


def op_text(graph: OpGraph, position: int) -> str:
  """Returns an operation with what is special about it: `LeakyRelu(alpha=0.3)`."""
  op = graph.ops[position]
  sliced = slice_text(graph, position) if op.op_type == 'StridedSlice' else ''
  if sliced:
    return f'{op.op_type}[{sliced}]'
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


def slice_text(graph: OpGraph, position: int) -> str:
  """Returns what a slice takes, as Python writes it: `:, 6:`; '' where that is not known."""
  op = graph.ops[position]
  known = [known_value(graph, producer) for producer, _ in op.inputs[1:]]
  bounds = [value.ravel().tolist() for value in known if value is not None and value.ndim == 1]
  if len(bounds) != _BOUNDS or len({len(one) for one in bounds}) != 1:
    return ''
  masks = {name: op.attribute(name) or 0 for name in _MASKS}
  axes = []
  for axis, (begin, end, stride) in enumerate(zip(*bounds, strict=True)):
    has = {name for name, mask in masks.items() if mask >> axis & 1}
    if 'ellipsis_mask' in has:
      axes.append('...')
    elif 'new_axis_mask' in has:
      axes.append('None')
    elif 'shrink_axis_mask' in has:
      axes.append(str(begin))
    else:
      first, last = '' if 'begin_mask' in has else begin, '' if 'end_mask' in has else end
      axes.append(f'{first}:{last}' + (f':{stride}' if stride != 1 else ''))
  return ', '.join(axes)


def value_text(value: Any) -> str:
  """Returns a plain value for reading."""
  if isinstance(value, np.ndarray):
    if value.ndim == 0:
      value = value.item()
    elif _is_one_number(value):
      return f'{value_text(value.ravel()[0].item())} everywhere'
    else:
      text = np.array2string(value, separator=', ', threshold=_MANY, precision=7).replace('\n', '')
      return ' '.join(text.split())
  if isinstance(value, float):
    return f'{value:.7g}'
  if isinstance(value, bytes):
    return value.decode('utf-8', 'replace')
  return str(value)


def _is_one_number(value: np.ndarray) -> bool:
  """Returns whether all of many elements are one floating number; sizes and axes are listed."""
  is_many = value.size >= _SAME_EVERYWHERE and value.dtype.kind == 'f'
  return is_many and bool(np.all(value == value.ravel()[0]))


def value_texts(tf1: Any, tf2: Any) -> tuple[str, str]:
  """Returns two plain values for reading; of large arrays the first element that differs."""
  if not all(isinstance(one, np.ndarray) for one in (tf1, tf2)) or max(tf1.size, tf2.size) <= _MANY:
    return value_text(tf1), value_text(tf2)
  try:
    one, other = np.broadcast_arrays(tf1, tf2)
  except ValueError:
    return value_text(tf1), value_text(tf2)
  # Along which axes anything changes: a mask of a kernel is often the same for all channels.
  kept = [axis for axis in range(one.ndim) if not (_is_same_along(one, axis, other))]
  place = tuple(slice(None) if axis in kept else 0 for axis in range(one.ndim))
  one, other = one[place], other[place]
  differing = np.argwhere(one != other)
  if not len(differing):
    return value_text(tf1), value_text(tf2)
  first = iter(differing[0].tolist())
  index = ', '.join(str(next(first)) if axis in kept else ':' for axis in range(len(place)))
  more = len(differing) - 1
  others = f' (and another one at {more} more of {one.size} places)' if more else ''
  ones = (value_text(array[tuple(differing[0])].item()) for array in (one, other))
  return next(ones), f'{next(ones)} at [{index}]{others}'


def _is_same_along(one: np.ndarray, axis: int, other: np.ndarray) -> bool:
  return all(
    bool(np.all(array == np.take(array, [0], axis))) for array in (one, other) if array.shape[axis]
  )
