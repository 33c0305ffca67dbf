"""Reshapes and transposes: what only says where elements lie.

A reshape is never of a reshape, and a transpose exchanges axes of more than one element only,
those that stay side by side taken as one. So every way to say the same is the same term.
"""

from collections.abc import Sequence

from tf2verify.relation.proof.normal_forms.terms import Shape, Terms, size_of

RESHAPE = 'reshape'
TRANSPOSE = 'transpose'


def reshape(terms: Terms, number: int, shape: Shape) -> int:
  """Returns a term in another shape, row by row.

  Args:
    terms: all terms.
    number: of a term of known shape.
    shape: of as many elements.
  """
  known = terms.shape(number)
  assert known is not None and size_of(known) == size_of(shape), (known, shape)
  if known == shape:
    return number
  term = terms[number]
  if term.value is not None:
    return terms.constant(term.value.reshape(shape), term.dtype)
  if term.kind == RESHAPE:
    return reshape(terms, term.inputs[0], shape)
  return terms.add(RESHAPE, (number,), None, term.dtype, shape)


def source(terms: Terms, number: int) -> int:
  """Returns what a term is a reshape of, or itself."""
  term = terms[number]
  return term.inputs[0] if term.kind == RESHAPE else number


def transpose(terms: Terms, number: int, perm: Sequence[int]) -> int:
  """Returns a term of known shape with its axes in another order."""
  shape = terms.shape(number)
  assert shape is not None and sorted(perm) == list(range(len(shape)))
  result = tuple(shape[axis] for axis in perm)
  value = terms.value(number)
  if value is not None and value.size <= 65536:
    return terms.constant(value.transpose(perm), terms.dtype(number))
  order = [axis for axis in perm if shape[axis] != 1]
  axes = sorted(order)
  if order == axes:
    return reshape(terms, number, result)
  sizes = [shape[axis] for axis in axes]
  order = [axes.index(axis) for axis in order]
  squeezed = reshape(terms, number, tuple(sizes))
  inner = terms[source(terms, squeezed)]
  if inner.kind == TRANSPOSE:
    composed = _of_transpose(terms, inner.inputs[0], inner.detail, tuple(sizes), order)
    if composed is not None:
      return reshape(terms, composed, result)
  return reshape(terms, _coarse(terms, squeezed, sizes, order), result)


def _coarse(terms: Terms, number: int, sizes: Sequence[int], order: Sequence[int]) -> int:
  """Transposes with axes that stay side by side taken as one."""
  runs: list[list[int]] = []
  for axis in order:
    if runs and runs[-1][-1] + 1 == axis:
      runs[-1].append(axis)
    else:
      runs.append([axis])
  if len(runs) == 1:
    return number
  by_place = sorted(runs)
  shape = tuple(size_of(tuple(sizes[axis] for axis in run)) for run in by_place)
  perm = tuple(by_place.index(run) for run in runs)
  whole = reshape(terms, number, shape)
  out = tuple(shape[axis] for axis in perm)
  return terms.add(TRANSPOSE, (whole,), perm, terms.dtype(number), out)


def _of_transpose(
  terms: Terms, number: int, perm: tuple[int, ...], shape: Shape, order: Sequence[int]
) -> int | None:
  """Transposes what is, in some shape, a transpose already; None where the axes do not fit.

  Args:
    terms: all terms.
    number: what was transposed.
    perm: how.
    shape: what that was reshaped to.
    order: the order of its axes.
  """
  fine = _refined(terms, number, perm, shape)
  if fine is None:
    return None
  inner, origin = fine
  return transpose(terms, inner, [origin[axis] for axis in order])


def as_transpose(terms: Terms, number: int) -> tuple[int, list[int]] | None:
  """Returns what a term is a transpose of, and the axes of that in its order; None elsewhere."""
  inner, shape = terms[source(terms, number)], terms.shape(number)
  if inner.kind != TRANSPOSE or shape is None:
    return None
  return _refined(terms, inner.inputs[0], inner.detail, shape)


def _refined(
  terms: Terms, number: int, perm: tuple[int, ...], shape: Shape
) -> tuple[int, list[int]] | None:
  """Returns a term, and its axis for each axis of a shape that its transpose is reshaped to.

  None where the axes do not fit.
  """
  before = terms.shape(number)
  assert before is not None
  parts = blocks(tuple(before[axis] for axis in perm), shape)
  if parts is None or any(len(coarse) != 1 for coarse, _ in parts):
    return None
  fine = {perm[coarse[0]]: [shape[axis] for axis in axes] for coarse, axes in parts}
  sizes = [size for axis in range(len(before)) for size in fine[axis]]
  starts, place = {}, 0
  for axis in range(len(before)):
    starts[axis] = place
    place += len(fine[axis])
  # Of every axis of `shape`, its axis in the finer shape of what was transposed.
  origin = [starts[axis] + n for axis in perm for n in range(len(fine[axis]))]
  return reshape(terms, number, tuple(sizes)), origin


def blocks(one: Shape, other: Shape) -> list[tuple[list[int], list[int]]] | None:
  """Returns the smallest runs of axes of two shapes that have as many elements.

  None where an axis has no element, or the shapes have different numbers of them.
  """
  if 0 in one or size_of(one) != size_of(other):
    return None
  found: list[tuple[list[int], list[int]]] = []
  first = second = 0
  while first < len(one) or second < len(other):
    left, right = [], []
    a = b = 1
    if first < len(one):
      left.append(first)
      a *= one[first]
      first += 1
    if second < len(other):
      right.append(second)
      b *= other[second]
      second += 1
    while a != b:
      if a < b:
        left.append(first)
        a *= one[first]
        first += 1
      else:
        right.append(second)
        b *= other[second]
        second += 1
    found.append((left, right))
  return found
