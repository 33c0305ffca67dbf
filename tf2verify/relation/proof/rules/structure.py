"""Rules for operations that only move elements, and for sizes, which are constants here."""

from collections.abc import Sequence

import numpy as np

from tf2verify.relation.proof.normal_forms.operation import Operation, Rule, axes_of
from tf2verify.relation.proof.normal_forms.pieces import Cuts, concatenated, transposed_stack, whole
from tf2verify.relation.proof.normal_forms.polynomials import is_ring, total
from tf2verify.relation.proof.normal_forms.shapes import reshape, source, transpose
from tf2verify.relation.proof.normal_forms.terms import Shape, Terms, size_of
from tf2verify.relation.proof.rules.parts import part_of


def reshaped(op: Operation) -> Sequence[int] | None:
  """`Reshape`, `Squeeze`, `ExpandDims`: their static result tells all."""
  shape, before = op.shape, op.terms.shape(op.inputs[0])
  if shape is None or before is None or size_of(shape) != size_of(before):
    return None
  return [reshape(op.terms, op.inputs[0], shape)]


def transposed(op: Operation) -> Sequence[int] | None:
  """`Transpose` by a constant order."""
  shape, order = op.terms.shape(op.inputs[0]), op.terms.integers(op.inputs[1])
  if shape is None or order is None or len(order) != len(shape):
    return None
  perm = [axis % len(shape) for axis in order]
  if sorted(perm) != sorted(set(perm)):
    return None
  stack = transposed_stack(op.terms, op.inputs[0], perm)
  return [transpose(op.terms, op.inputs[0], perm) if stack is None else stack]


def _concatenation(axis_first: bool) -> Rule:
  def rule(op: Operation) -> Sequence[int] | None:
    parts = op.inputs[1:] if axis_first else op.inputs[:-1]
    axis = op.terms.integers(op.inputs[0 if axis_first else -1])
    shapes = [op.terms.shape(part) for part in parts]
    known = [shape for shape in shapes if shape]
    if len(known) < len(shapes):
      return None
    found = axes_of(axis, len(known[0]))
    return None if found is None else [concatenated(op.terms, parts, found[0])]

  return rule


def packed(op: Operation) -> Sequence[int] | None:
  """`stack`: a concatenation along a new axis."""
  shapes = op.shapes()
  if not shapes:
    return None
  axis = op.attributes.get('axis', 0) % (len(shapes[0]) + 1)
  new = (*shapes[0][:axis], 1, *shapes[0][axis:])
  return [concatenated(op.terms, [reshape(op.terms, n, new) for n in op.inputs], axis)]


def unpacked(op: Operation) -> Sequence[int] | None:
  """`unstack`: slices of one element."""
  shape = op.terms.shape(op.inputs[0])
  if not shape:
    return None
  axis = op.attributes.get('axis', 0) % len(shape)
  result = (*shape[:axis], *shape[axis + 1 :])
  parts = _parts(op.terms, op.inputs[0], axis, [1] * shape[axis])
  return [reshape(op.terms, part, result) for part in parts]


def _parts(terms: Terms, number: int, axis: int, sizes: Sequence[int]) -> list[int]:
  cuts, found, start = whole(terms.shape(number) or ()), [], 0
  for size in sizes:
    found.append(part_of(terms, number, (*cuts[:axis], (start, size, 1), *cuts[axis + 1 :])))
    start += size
  return found


def split(op: Operation) -> Sequence[int] | None:
  """`Split` into equal parts; of `SplitV` the sizes are given."""
  is_equal = op.op_type == 'Split'
  number = op.inputs[1 if is_equal else 0]
  shape = op.terms.shape(number)
  axes = axes_of(op.terms.integers(op.inputs[0 if is_equal else 2]), len(shape or ()))
  if shape is None or axes is None:
    return None
  (axis,) = axes
  count = len(op.outputs)
  sizes: list[int] | None = [shape[axis] // count] * count
  if not is_equal:
    sizes = op.terms.integers(op.inputs[1])
    if sizes is None:
      return None
    sizes = [shape[axis] - sum(s for s in sizes if s >= 0) if s < 0 else s for s in sizes]
  assert sizes is not None
  return _parts(op.terms, number, axis, sizes) if sum(sizes) == shape[axis] else None


def slice_(op: Operation) -> Sequence[int] | None:
  """`Slice` from constant places."""
  shape = op.terms.shape(op.inputs[0])
  begin, size = (op.terms.integers(number) for number in op.inputs[1:3])
  if shape is None or begin is None or size is None:
    return None
  cuts = tuple(
    (first, whole_size - first if count < 0 else count, 1)
    for whole_size, first, count in zip(shape, begin, size, strict=True)
  )
  return [part_of(op.terms, op.inputs[0], cuts)]


def strided_slice(op: Operation) -> Sequence[int] | None:
  """`x[a:b:c, ..., None]` with constant numbers."""
  shape = op.terms.shape(op.inputs[0])
  cuts = None if shape is None else _strided_cuts(op, shape, op.inputs[1:4])
  if cuts is None or op.shape is None or _count(cuts) != size_of(op.shape):
    return None
  return [reshape(op.terms, part_of(op.terms, op.inputs[0], cuts), op.shape)]


def strided_slice_gradient(op: Operation) -> Sequence[int] | None:
  """A gradient put where the elements of a slice came from, among zeros."""
  sizes = op.terms.integers(op.inputs[0])
  gradient = op.terms.shape(op.inputs[4])
  cuts = None if sizes is None else _strided_cuts(op, tuple(sizes), op.inputs[1:4])
  if sizes is None or cuts is None or gradient is None or _count(cuts) != size_of(gradient):
    return None
  if any(step != 1 for _, count, step in cuts if count > 1) or 'float' not in op.dtype:
    return None
  part = reshape(op.terms, op.inputs[4], tuple(count for _, count, _ in cuts))
  widths = [
    (start, size - start - count) for size, (start, count, _) in zip(sizes, cuts, strict=True)
  ]
  return [among_zeros(op.terms, part, widths, op.dtype)]


def _count(cuts: Cuts) -> int:
  return size_of(tuple(size for _, size, _ in cuts))


def _strided_cuts(op: Operation, shape: Shape, numbers: Sequence[int]) -> Cuts | None:
  """Returns what `x[a:b:c, ..., None]` takes of a shape; None where that is not known."""
  places = [op.terms.integers(number) for number in numbers]
  known = [place for place in places if place is not None]
  if len(known) < 3:
    return None
  begins, ends, steps = known
  masks = (op.attributes.get(f'{name}_mask', 0) for name in ('new_axis', 'ellipsis'))
  if next(masks) & next(masks):
    return None
  cuts: list[tuple[int, int, int]] = []
  sparse = [n for n in range(len(begins)) if not op.attributes.get('new_axis_mask', 0) >> n & 1]
  ellipsis = op.attributes.get('ellipsis_mask', 0)
  for n in sparse:
    if ellipsis >> n & 1:
      rest = len(shape) - (len(sparse) - 1)
      cuts += [(0, shape[len(cuts) + m], 1) for m in range(rest)]
      continue
    if len(cuts) >= len(shape):
      return None
    size = shape[len(cuts)]
    if op.attributes.get('shrink_axis_mask', 0) >> n & 1:
      cuts.append((begins[n] % size if size else 0, 1, 1))
      continue
    begin = None if op.attributes.get('begin_mask', 0) >> n & 1 else begins[n]
    end = None if op.attributes.get('end_mask', 0) >> n & 1 else ends[n]
    found = range(*slice(begin, end, steps[n]).indices(size))
    cuts.append((found.start if len(found) else 0, len(found), found.step))
  return (*cuts, *((0, size, 1) for size in shape[len(cuts) :]))


def shape_of(op: Operation) -> Sequence[int] | None:
  """`Shape`, `Size` and `Rank` of a known shape."""
  shape = op.terms.shape(op.inputs[0])
  if shape is None:
    return None
  found = {'Shape': shape, 'Size': size_of(shape), 'Rank': len(shape)}[op.op_type]
  return [op.terms.constant(np.asarray(found, op.dtype), op.dtype)]


def shapes_of(op: Operation) -> Sequence[int] | None:
  """`ShapeN`: of several tensors."""
  shapes = op.shapes()
  if shapes is None:
    return None
  return [op.terms.constant(np.asarray(shape, op.dtype), op.dtype) for shape in shapes]


def offsets(op: Operation) -> Sequence[int] | None:
  """`ConcatOffset`: where operands of a concatenation begin, given the axis and their shapes."""
  axis, *shapes = (op.terms.integers(number) for number in op.inputs)
  known = [shape for shape in shapes if shape is not None]
  if not axis or len(known) < len(shapes) or not known:
    return None
  found, begin = [], [0] * len(known[0])
  for shape in known:
    found.append(op.terms.constant(np.asarray(begin, op.dtype), op.dtype))
    begin[axis[0]] += shape[axis[0]]
  return found


def filled(op: Operation) -> Sequence[int] | None:
  """`Fill`, `ZerosLike`, `OnesLike`: one number everywhere."""
  if op.shape is None or op.dtype in ('variant', 'resource'):
    return None
  if np.dtype(_numpy(op.dtype)).kind not in 'fiub':
    return None
  number = {'ZerosLike': 0, 'OnesLike': 1}.get(op.op_type)
  value = op.terms.single(op.inputs[1]) if number is None else number
  if value is None:
    return None
  whole_value = np.broadcast_to(np.asarray(value, _numpy(op.dtype)), op.shape)
  return [op.terms.constant(whole_value, op.dtype)]


def _numpy(dtype: str) -> str:
  return 'float32' if dtype in ('bfloat16', 'float16') else dtype


def broadcast(op: Operation) -> Sequence[int] | None:
  """`BroadcastTo`, and `Tile` that repeats axes of one element only: as a sum would broadcast."""
  shape = op.terms.shape(op.inputs[0])
  if op.shape is None or shape is None:
    return None
  if shape == op.shape:
    return [op.inputs[0]]
  if op.op_type == 'Tile' and any(
    size != 1 and size != made for size, made in zip(shape, op.shape, strict=True)
  ):
    return None
  return _broadcast(op, op.shape)


def _broadcast(op: Operation, shape: Shape) -> Sequence[int] | None:
  if not is_ring(op.dtype) or op.terms.dtype(op.inputs[0]) != op.dtype or 0 in shape:
    return None
  return [total(op.terms, [(op.inputs[0], 1)], op.dtype, shape)]


def resized(op: Operation) -> Sequence[int] | None:
  """A resized image that is a pixel everywhere, itself, or each pixel equally often."""
  shape = op.terms.shape(op.inputs[0])
  if shape is None or op.shape is None or op.terms.dtype(op.inputs[0]) != op.dtype:
    return None
  if shape[1:3] == op.shape[1:3]:
    return [op.inputs[0]]
  if shape[1:3] == (1, 1):
    return _broadcast(op, op.shape)
  return _of_nearest(op, shape, op.shape) if op.op_type == 'ResizeNearestNeighbor' else None


def _of_nearest(op: Operation, shape: Shape, result: Shape) -> Sequence[int] | None:
  """Returns an image of which every pixel is repeated equally often; None for any other."""
  if op.attributes.get('align_corners') or 0 in result:
    return None
  middle = 0.5 if op.attributes.get('half_pixel_centers') else 0.0
  apart: list[int] = [shape[0]]
  for before, after in zip(shape[1:3], result[1:3], strict=True):
    # As the kernel does; from the middle of a pixel or not, it rounds to the same pixel then.
    scale = np.float32(before) / np.float32(after)
    places = np.floor((np.arange(after, dtype=np.float32) + np.float32(middle)) * scale)
    if after % before or not np.array_equal(places, np.arange(after) // (after // before)):
      return None
    apart += [before, after // before]
  apart.append(shape[3])
  pixels = reshape(op.terms, op.inputs[0], (shape[0], shape[1], 1, shape[2], 1, shape[3]))
  if not is_ring(op.dtype):
    return None
  return [reshape(op.terms, total(op.terms, [(pixels, 1)], op.dtype, tuple(apart)), result)]


def reversed_(op: Operation) -> Sequence[int] | None:
  """`reverse`: a slice with a step of -1."""
  shape = op.terms.shape(op.inputs[0])
  axes = axes_of(op.terms.integers(op.inputs[1]), len(shape or ()))
  if shape is None or axes is None or 0 in shape:
    return None
  cuts = tuple(
    (size - 1, size, -1) if axis in axes and size != 1 else (0, size, 1)
    for axis, size in enumerate(shape)
  )
  return [part_of(op.terms, op.inputs[0], cuts)]


def along_axis(op: Operation) -> Sequence[int] | None:
  """An operation along one constant axis, counted from the front."""
  shape = op.terms.shape(op.inputs[0])
  axes = axes_of(op.terms.integers(op.inputs[1]), len(shape or ()))
  if shape is None or axes is None or len(axes) != 1:
    return None
  detail = (axes[0], *(op.attributes.get(name, False) for name in ('exclusive', 'reverse')))
  kind, read, dtype = op.op_type, op.inputs[0], op.terms.dtype(op.inputs[0])
  if kind == 'ArgMin' and 'float' in dtype:  # the place of the greatest negative
    kind, read = 'ArgMax', total(op.terms, [(read, -1)], dtype, shape)
  return [op.terms.add(kind, [read], detail, op.dtype, op.outputs[0][1])]


def one_hot(op: Operation) -> Sequence[int] | None:
  """`one_hot` along an axis, counted from the front."""
  shape = op.terms.shape(op.inputs[0])
  if shape is None or op.shape is None:
    return None
  axis = op.attributes.get('axis', -1) % (len(shape) + 1)
  inputs = (_without_widening(op.terms, op.inputs[0]), *op.inputs[1:])
  return [op.terms.add('OneHot', inputs, axis, op.dtype, op.shape)]


def _without_widening(terms: Terms, number: int) -> int:
  """Returns whole numbers before a cast to a dtype that holds them all, which indexes alike."""
  known = terms[source(terms, number)]
  if known.kind != 'Cast' or terms.dtype(number) != 'int64':
    return number
  inner, shape = known.inputs[0], terms.shape(number)
  is_whole = terms.dtype(inner) in ('int32', 'uint8', 'int8', 'int16', 'uint16')
  return reshape(terms, inner, shape) if is_whole and shape is not None else number


def padded(op: Operation) -> Sequence[int] | None:
  """`Pad` by constant widths; by none it does nothing."""
  widths, shape = op.terms.integers(op.inputs[1]), op.terms.shape(op.inputs[0])
  if widths is None or shape is None or op.shape is None:
    return None
  if not any(widths):
    return [op.inputs[0]]
  value = op.terms.single(op.inputs[2]) if op.op_type == 'PadV2' else 0
  if value is None:
    return None
  detail = (tuple(zip(widths[::2], widths[1::2], strict=True)), value)
  return [op.terms.add('pad', op.inputs[:1], detail, op.dtype, op.shape)]


def among_zeros(terms: Terms, number: int, widths: Sequence[tuple[int, int]], dtype: str) -> int:
  """Returns a term of known shape with zeros before and after it, along each axis."""
  shape = terms.shape(number) or ()
  whole_shape = tuple(size + sum(width) for size, width in zip(shape, widths, strict=True))
  if whole_shape == shape:
    return number
  return terms.add('pad', (number,), (tuple(widths), 0), dtype, whole_shape)


def diagonal(op: Operation) -> Sequence[int] | None:
  """The main diagonal of a matrix: `tf.linalg.diag_part` of TF1, and of batches."""
  shape = op.terms.shape(op.inputs[0])
  if shape is None or len(shape) != 2 or shape[0] != shape[1] or op.shape != shape[:1]:
    return None
  if len(op.inputs) > 1 and op.terms.single(op.inputs[1]) != 0:
    return None
  return [op.terms.add('diagonal', op.inputs[:1], None, op.dtype, op.shape)]


RULES: dict[str, Rule] = {
  **dict.fromkeys(('DiagPart', 'MatrixDiagPart', 'MatrixDiagPartV2', 'MatrixDiagPartV3'), diagonal),
  'Reshape': reshaped,
  'Squeeze': reshaped,
  'ExpandDims': reshaped,
  'Transpose': transposed,
  'ConcatV2': _concatenation(axis_first=False),
  'Concat': _concatenation(axis_first=True),
  'Pack': packed,
  'Unpack': unpacked,
  'Split': split,
  'SplitV': split,
  'Slice': slice_,
  'StridedSlice': strided_slice,
  'StridedSliceGrad': strided_slice_gradient,
  'Shape': shape_of,
  'ShapeN': shapes_of,
  'ConcatOffset': offsets,
  'Size': shape_of,
  'Rank': shape_of,
  'Fill': filled,
  'ZerosLike': filled,
  'OnesLike': filled,
  'BroadcastTo': broadcast,
  'Tile': broadcast,
  'ResizeBilinear': resized,
  'ResizeNearestNeighbor': resized,
  'ReverseV2': reversed_,
  **dict.fromkeys(('ArgMax', 'ArgMin', 'Cumsum', 'Cumprod'), along_axis),
  'OneHot': one_hot,
  'Pad': padded,
  'PadV2': padded,
}
