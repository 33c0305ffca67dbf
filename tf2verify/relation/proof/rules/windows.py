"""Rules for convolutions, pooling and batch norm."""

from collections.abc import Sequence

import numpy as np

from tf2verify.relation.proof.normal_forms.contractions import contracted
from tf2verify.relation.proof.normal_forms.elementwise import elementwise
from tf2verify.relation.proof.normal_forms.operation import Operation, Rule
from tf2verify.relation.proof.normal_forms.polynomials import (
  decimal,
  product,
  reciprocal,
  split_factor,
  total,
)
from tf2verify.relation.proof.normal_forms.reductions import reduced
from tf2verify.relation.proof.normal_forms.shapes import reshape
from tf2verify.relation.proof.normal_forms.terms import Shape, Terms, size_of

Pads = tuple[tuple[int, int], ...]


def _spatial(op: Operation) -> list[int] | None:
  """Returns the axes of an image's extent; None for a format that is not known."""
  layout = op.attributes.get('data_format', 'NHWC')
  rank = len(op.terms.shape(op.inputs[0]) or ())
  if layout not in ('NHWC', 'NCHW', 'NDHWC', 'NCDHW') or len(layout) != rank:
    return None
  return [axis for axis, letter in enumerate(layout) if letter in 'DHW']


def _pads(op: Operation, window: Sequence[int], axes: Sequence[int]) -> Pads | None:
  """Returns how many elements are padded before and after, along axes.

  Args:
    op: a convolution or pooling.
    window: how far its window extends along each of the axes.
    axes: of the image's extent.
  """
  shape, padding = op.terms.shape(op.inputs[0]), op.attributes.get('padding')
  if shape is None:
    return None
  if padding == 'VALID':
    return ((0, 0),) * len(axes)
  if padding == 'EXPLICIT':
    given = op.attributes.get('explicit_paddings', ())
    return tuple((given[2 * axis], given[2 * axis + 1]) for axis in axes)
  if padding != 'SAME':
    return None
  strides, found = op.attributes['strides'], []
  for axis, extent in zip(axes, window, strict=True):
    steps = -(-shape[axis] // strides[axis])
    pad = max((steps - 1) * strides[axis] + extent - shape[axis], 0)
    found.append((pad // 2, pad - pad // 2))
  return tuple(found)


def convolution(op: Operation) -> Sequence[int] | None:
  """A convolution: its padding in numbers; of one element that moves by one, a product."""
  shapes, axes = op.shapes(), _spatial(op)
  if shapes is None or axes is None or op.shape is None:
    return None
  strides = op.attributes['strides']
  dilations = op.attributes.get('dilations') or (1,) * len(shapes[0])
  kernel = shapes[1][: len(axes)]
  window = [(size - 1) * dilations[axis] + 1 for size, axis in zip(kernel, axes, strict=True)]
  pads = _pads(op, window, axes)
  if pads is None:
    return None
  image, pads = _without_padding(op.terms, op.inputs[0], pads, axes)
  is_plain = op.op_type in ('Conv2D', 'Conv3D')
  steps = tuple(strides[axis] for axis in axes)
  channel = next(axis for axis in range(1, len(shapes[0])) if axis not in axes)
  one_group = shapes[1][-2] == shapes[0][channel]
  if is_plain and one_group and set(kernel) == set(steps) == {1} and not any(map(any, pads)):
    letters = 'abcde'[: len(shapes[0])]
    matrix = reshape(op.terms, op.inputs[1], shapes[1][-2:])
    result = letters[:channel] + 'z' + letters[channel + 1 :]
    found = contracted(op.terms, image, letters, matrix, letters[channel] + 'z', result, op.dtype)
    if found is not None:
      return [found]
  spread = tuple(
    dilations[axis] if size > 1 else 1 for size, axis in zip(kernel, axes, strict=True)
  )
  factor, image = split_factor(op.terms, image)
  detail = (steps, spread, pads, channel)
  made = op.terms.add(op.op_type, (image, op.inputs[1]), detail, op.dtype, op.shape)
  return [total(op.terms, [(made, factor)], op.dtype, op.shape)]


def _without_padding(terms: Terms, image: int, pads: Pads, axes: Sequence[int]) -> tuple[int, Pads]:
  """Returns what was padded with zeros before, and the paddings together."""
  term = terms[image]
  if term.kind != 'pad':
    return image, pads
  widths, value = term.detail
  if value != 0 or any(any(width) for n, width in enumerate(widths) if n not in axes):
    return image, pads
  both = tuple(
    (before + widths[axis][0], after + widths[axis][1])
    for (before, after), axis in zip(pads, axes, strict=True)
  )
  return term.inputs[0], both


def pooling(op: Operation) -> Sequence[int] | None:
  """Pooling: its padding in numbers; over all of the image, a mean or a maximum."""
  shapes, axes = op.shapes(), _spatial(op)
  if shapes is None or axes is None or op.shape is None:
    return None
  window = [op.attributes['ksize'][axis] for axis in axes]
  pads = _pads(op, window, axes)
  others = [axis for axis in range(len(shapes[0])) if axis not in axes]
  if pads is None or any(op.attributes['ksize'][axis] != 1 for axis in others):
    return None
  kind = 'Max' if op.op_type.startswith('Max') else 'Mean'
  if not any(map(any, pads)):
    if set(window) == {op.attributes['strides'][axis] for axis in axes} == {1}:
      return [op.inputs[0]]
    if window == [shapes[0][axis] for axis in axes]:
      return [_reduced_to(op.terms, kind, op.inputs[0], axes, op.dtype, op.shape)]
  steps = tuple(op.attributes['strides'][axis] for axis in axes)
  detail = (tuple(window), steps, pads, tuple(axes))
  return [op.terms.add(op.op_type, op.inputs, detail, op.dtype, op.shape)]


def _reduced_to(
  terms: Terms, kind: str, number: int, axes: Sequence[int], dtype: str, shape: Shape
) -> int:
  found = reduced(terms, 'Sum' if kind == 'Mean' else kind, number, axes, dtype)
  found = reshape(terms, found, shape)
  if kind != 'Mean':
    return found
  before = terms.shape(number) or ()
  return total(terms, [(found, 1 / size_of(tuple(before[n] for n in axes)))], dtype, shape)


def batch_norm(op: Operation) -> Sequence[int] | None:
  """Fused batch norm, spelled as its arithmetic."""
  shape, layout = op.terms.shape(op.inputs[0]), op.attributes.get('data_format', 'NHWC')
  if shape is None or op.shape is None or 0 in shape or 'C' not in layout:
    return None
  if len(layout) != len(shape) or op.terms.dtype(op.inputs[0]) != op.outputs[1][0]:
    return None
  channel = layout.index('C')
  along = tuple(size if axis == channel else 1 for axis, size in enumerate(shape))
  axes = [axis for axis in range(len(shape)) if axis != channel]
  terms, dtype, image = op.terms, op.dtype, op.inputs[0]
  scale, offset, mean, variance = (_along(terms, number, along) for number in op.inputs[1:5])
  outputs = [op.inputs[3], op.inputs[4]]
  if op.attributes.get('is_training', True):
    mean, variance = _moments(terms, image, axes, dtype)
    outputs = _moving(op, size_of(shape) // shape[channel], mean, variance)
  inverse = product(terms, [_inverse_spread(op, variance, along), scale], dtype, along)
  shift = product(terms, [mean, inverse], dtype, along)
  scaled = product(terms, [image, inverse], dtype, shape)
  result = total(terms, ((scaled, 1), (offset, 1), (shift, -1)), dtype, shape)
  trains = bool(op.attributes.get('is_training', True))
  numbers = range(3, len(op.outputs))
  kept = [terms.add(_KEPT, (image,), (n, trains), *op.outputs[n]) for n in numbers]
  return [result, *outputs, *kept]


def _moments(terms: Terms, image: int, axes: Sequence[int], dtype: str) -> tuple[int, int]:
  """Returns mean and variance along axes, which keep one element each."""
  shape = terms.shape(image) or ()
  along = tuple(1 if axis in axes else size for axis, size in enumerate(shape))
  mean = _reduced_to(terms, 'Mean', image, axes, dtype, along)
  difference = total(terms, ((image, 1), (mean, -1)), dtype, shape)
  squares = product(terms, [difference, difference], dtype, shape)
  return mean, _reduced_to(terms, 'Mean', squares, axes, dtype, along)


def _inverse_spread(op: Operation, variance: int, along: Shape) -> int:
  """Returns one over the square root of a variance and the epsilon of an operation."""
  terms, dtype = op.terms, op.dtype
  epsilon = terms.constant(np.float32(op.attributes.get('epsilon', 1e-4)), dtype)
  spread = total(terms, ((variance, 1), (epsilon, 1)), dtype, along)
  root = elementwise(terms, 'Sqrt', [spread], dtype, along)
  return reciprocal(terms, root, dtype, along)


def batch_norm_gradient(op: Operation) -> Sequence[int] | None:
  """The gradient of fused batch norm, spelled as its arithmetic."""
  terms, dtype, (gradient, image, scale) = op.terms, op.dtype, op.inputs[:3]
  shape, layout = terms.shape(image), op.attributes.get('data_format', 'NHWC')
  if shape is None or 0 in shape or 'C' not in layout or len(layout) != len(shape):
    return None
  if terms.dtype(image) != terms.dtype(scale):
    return None
  channel = layout.index('C')
  along = tuple(size if axis == channel else 1 for axis, size in enumerate(shape))
  axes = [axis for axis in range(len(shape)) if axis != channel]
  trains = bool(op.attributes.get('is_training', True))
  kept = [terms[number] for number in op.inputs[3:5]]
  wanted = [(_KEPT, (image,), (n, True)) for n in (3, 4)]
  if trains and [(term.kind, term.inputs, term.detail) for term in kept] != wanted:
    return None  # of another run of batch norm, in which it has kept other moments
  mean, variance = (_along(terms, number, along) for number in op.inputs[3:5])
  if trains:
    mean, variance = _moments(terms, image, axes, dtype)
  inverse = _inverse_spread(op, variance, along)
  centred = total(terms, ((image, 1), (mean, -1)), dtype, shape)
  normal = product(terms, [centred, inverse], dtype, shape)
  weighted = product(terms, [gradient, normal], dtype, shape)
  of_scale = _reduced_to(terms, 'Sum', weighted, axes, dtype, along)
  of_offset = _reduced_to(terms, 'Sum', gradient, axes, dtype, along)
  through = gradient
  if trains:
    share = 1 / (size_of(shape) // shape[channel])
    back = product(terms, [normal, of_scale], dtype, shape)
    through = total(terms, ((gradient, 1), (of_offset, -share), (back, -share)), dtype, shape)
  of_image = product(terms, [through, inverse, _along(terms, scale, along)], dtype, shape)
  flat = (shape[channel],)
  numbers = range(3, len(op.outputs))
  rest = [terms.add('unused', (image,), n, *op.outputs[n]) for n in numbers]
  return [of_image, reshape(terms, of_scale, flat), reshape(terms, of_offset, flat), *rest]


def _along(terms: Terms, number: int, shape: Shape) -> int:
  """Returns a term of one number a channel on the channels' axis."""
  known = terms.shape(number)
  return reshape(terms, number, shape) if known and size_of(known) == size_of(shape) else number


def _moving(op: Operation, count: int, mean: int, variance: int) -> list[int]:
  """Returns the mean and the unbiased variance, or the moving ones."""
  terms, dtype = op.terms, op.outputs[1][0]
  size = op.terms.shape(mean) or ()
  flat = (size_of(size),)
  share = decimal(op.attributes.get('exponential_avg_factor', 1.0))
  found = []
  for batch, before, factor in (
    (mean, op.inputs[3], 1.0),
    (variance, op.inputs[4], count / max(count - 1, 1)),
  ):
    parts: list[tuple[int, float | int]] = [(reshape(terms, batch, flat), share * factor)]
    if share != 1:
      parts.append((before, 1 - share))
    found.append(total(terms, parts, dtype, flat))
  return found


_KEPT = 'kept by batch norm'
_CONVOLUTIONS = ('Conv2D', 'Conv3D', 'DepthwiseConv2dNative')
_NORMS = ('FusedBatchNorm', 'FusedBatchNormV2', 'FusedBatchNormV3')

RULES: dict[str, Rule] = {
  **dict.fromkeys(_CONVOLUTIONS, convolution),
  **dict.fromkeys(('MaxPool', 'AvgPool', 'MaxPool3D', 'AvgPool3D'), pooling),
  **dict.fromkeys(_NORMS, batch_norm),
  **dict.fromkeys((f'{kind[:14]}Grad{kind[14:]}' for kind in _NORMS), batch_norm_gradient),
}
