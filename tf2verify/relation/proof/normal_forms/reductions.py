"""Reductions along axes; a sum is that of each summand, and what it does not run over is a factor.

So the mean of squared differences and the mean of the squares less the squared mean are one term,
and so are the gradients that differentiation makes of either.
"""

import math
from collections.abc import Sequence
from string import ascii_lowercase

import numpy as np

from tf2verify.relation.proof.normal_forms.contractions import contracted
from tf2verify.relation.proof.normal_forms.pieces import CONCATENATION
from tf2verify.relation.proof.normal_forms.polynomials import (
  OF_ML,
  Number,
  exponent,
  exponential,
  polynomial,
  product,
  total,
)
from tf2verify.relation.proof.normal_forms.shapes import as_transpose, reshape, transpose
from tf2verify.relation.proof.normal_forms.terms import Shape, Terms, size_of

# What has more summands is summed as a whole.
_MOST_SUMMANDS = 16


def reduced(terms: Terms, kind: str, number: int, axes: Sequence[int], dtype: str) -> int:
  """Returns a term of known shape reduced along axes, which are left out of its shape."""
  shape = terms.shape(number)
  assert shape is not None
  if kind == 'Sum' and 'float' in dtype and 0 not in shape:
    return _sum(terms, number, axes, dtype)
  return _as_one(terms, kind, number, axes, dtype)


def _sum(terms: Terms, number: int, axes: Sequence[int], dtype: str) -> int:
  shape = terms.shape(number)
  assert shape is not None
  kept = tuple(size for axis, size in enumerate(shape) if axis not in axes)
  found = polynomial(terms, number)
  if len(found) > _MOST_SUMMANDS:
    return _as_one(terms, 'Sum', number, axes, dtype)
  parts = [
    (_monomial(terms, monomial, shape, axes, dtype), coefficient)
    for monomial, coefficient in found.items()
  ]
  whole = tuple(1 if axis in axes else size for axis, size in enumerate(shape))
  return reshape(terms, total(terms, parts, dtype, whole), kept)


def _monomial(
  terms: Terms, atoms: Sequence[int], shape: Shape, axes: Sequence[int], dtype: str
) -> int:
  """Returns the sum of a product along axes, which keep one element each."""
  whole = tuple(1 if axis in axes else size for axis, size in enumerate(shape))
  full = {atom: _padded(terms, atom, len(shape)) for atom in set(atoms)}
  inside = [atom for atom in atoms if any(full[atom][axis] != 1 for axis in axes)]
  factors = [atom for atom in atoms if atom not in inside]
  own = tuple(int(size) for size in np.broadcast_shapes(*(full[atom] for atom in inside)))
  own = own if inside else (1,) * len(shape)
  # Along an axis that only the result has, the same number is added up.
  repeated = size_of(tuple(shape[axis] for axis in axes if own[axis] == 1))
  if inside:
    made = _of_product(terms, inside, own, axes, dtype)
    factors.append(reshape(terms, made, tuple(1 if n in axes else s for n, s in enumerate(own))))
  found = product(terms, factors, dtype, whole)
  return total(terms, [(found, repeated)], dtype, whole)


def _padded(terms: Terms, atom: int, rank: int) -> Shape:
  known = terms.shape(atom) or ()
  return (1,) * (rank - len(known)) + known


def _of_product(
  terms: Terms, atoms: Sequence[int], shape: Shape, axes: Sequence[int], dtype: str
) -> int:
  """Returns the sum of a product of terms, all of which are summed over, without the axes."""
  if len(atoms) == 2 and atoms[0] != atoms[1]:
    made = _contraction(terms, atoms[0], atoms[1], shape, axes, dtype)
    if made is not None:
      return made
  whole = product(terms, atoms, dtype, shape)
  inner = exponent(terms, whole)
  if inner is not None:
    for axis in axes if len(axes) > 1 else ():
      # Shares that add up to 1, and others besides them.
      share = terms.single(log_sum_exp(terms, inner, [axis], dtype))
      if share is not None:
        return _of_shares(terms, share, shape, axis, axes, dtype)
    kept = tuple(size for axis, size in enumerate(shape) if axis not in axes)
    return exponential(terms, [(log_sum_exp(terms, inner, axes, dtype), 1)], dtype, kept)
  return _as_one(terms, 'Sum', whole, axes, dtype)


def _of_shares(
  terms: Terms, share: float, shape: Shape, axis: int, axes: Sequence[int], dtype: str
) -> int:
  """Returns the sum of exponentials whose sum along one axis is known by its logarithm."""
  times = size_of(tuple(shape[other] for other in axes if other != axis))
  kept = tuple(size for n, size in enumerate(shape) if n not in axes)
  value = np.full(kept, math.exp(share) * times, 'float32' if dtype in OF_ML else dtype)
  return terms.constant(value, dtype)


def log_sum_exp(terms: Terms, number: int, axes: Sequence[int], dtype: str) -> int:
  """Returns the logarithm of the sum of exponentials along axes, which are left out of its shape.

  What is the same along the axes is added to that of the rest: it does not matter what is
  subtracted first, as the greatest is.
  """
  shape = terms.shape(number)
  assert shape is not None
  whole = tuple(1 if axis in axes else size for axis, size in enumerate(shape))
  kept = tuple(size for axis, size in enumerate(shape) if axis not in axes)
  inside: list[tuple[int, Number]] = []
  outside: list[tuple[int, Number]] = []
  for monomial, coefficient in polynomial(terms, number).items():
    full = [_padded(terms, atom, len(shape)) for atom in monomial]
    if any(sizes[axis] != 1 for sizes in full for axis in axes):
      inside.append((product(terms, monomial, dtype, shape), coefficient))
    else:
      outside.append((product(terms, monomial, dtype, whole), coefficient))
  rest = total(terms, inside, dtype, shape)
  made = _as_one(terms, 'LogSumExp', rest, axes, dtype)
  return reshape(
    terms, total(terms, [(reshape(terms, made, whole), 1), *outside], dtype, whole), kept
  )


def _contraction(
  terms: Terms, one: int, other: int, shape: Shape, axes: Sequence[int], dtype: str
) -> int | None:
  """Returns the sum of what two terms multiply to, as einsum would; None of anything else.

  Every axis that is summed over has to be one of both.
  """
  if len(shape) > len(ascii_lowercase):
    return None
  labels = [
    ''.join(ascii_lowercase[axis] for axis, size in enumerate(whole) if size != 1)
    for whole in (_padded(terms, atom, len(shape)) for atom in (one, other))
  ]
  wide = [axis for axis, size in enumerate(shape) if size != 1]
  summed = {ascii_lowercase[axis] for axis in wide if axis in axes}
  kept = ''.join(ascii_lowercase[axis] for axis in wide if axis not in axes)
  if not summed or summed - (set(labels[0]) & set(labels[1])):
    return None
  flat = [
    reshape(terms, atom, tuple(size for size in terms.shape(atom) or () if size != 1))
    for atom in (one, other)
  ]
  made = contracted(terms, flat[0], labels[0], flat[1], labels[1], kept, dtype)
  if made is None:
    return None
  return reshape(terms, made, tuple(size for axis, size in enumerate(shape) if axis not in axes))


def _as_one(terms: Terms, kind: str, number: int, axes: Sequence[int], dtype: str) -> int:
  """Returns a reduction of a term that is not taken apart, on the fewest axes that tell it."""
  shape = terms.shape(number)
  assert shape is not None
  kept = tuple(size for axis, size in enumerate(shape) if axis not in axes)
  gone = {axis for axis in axes if shape[axis] != 1}
  if not gone:
    return reshape(terms, number, kept)
  before = as_transpose(terms, number)
  if before is not None:
    made = _as_one(terms, kind, before[0], [before[1][axis] for axis in axes], dtype)
    order = [before[1][axis] for axis in range(len(shape)) if axis not in axes]
    return transpose(terms, made, [sorted(order).index(axis) for axis in order])
  added = terms[number]
  if (
    kind == 'Sum'
    and 0 in gone
    and added.kind == 'UnsortedSegmentSum'
    and ((added.inputs[1], shape[0]) in terms.looked_up)
  ):
    # Every row of a look-up's gradient is added to some row of the table.
    return reshape(terms, reduced(terms, kind, terms[number].inputs[0], axes, dtype), kept)
  runs: list[tuple[bool, int]] = []
  for axis, size in enumerate(shape):
    if size == 1:
      continue
    is_gone = axis in gone
    if runs and runs[-1][0] == is_gone:
      runs[-1] = (is_gone, runs[-1][1] * size)
    else:
      runs.append((is_gone, size))
  places = tuple(n for n, (is_gone, _) in enumerate(runs) if is_gone)
  whole = reshape(terms, number, tuple(size for _, size in runs))
  inner = terms[whole]
  is_sum = kind == 'Sum' and 'float' in dtype
  if is_sum and inner.kind == CONCATENATION and inner.detail in places:
    sums = [(reduced(terms, kind, part, places, dtype), 1) for part in inner.inputs]
    made = total(terms, sums, dtype, terms.shape(sums[0][0]) or ())
    return reshape(terms, made, kept)
  left = tuple(size for is_gone, size in runs if not is_gone)
  return reshape(terms, terms.add(kind, [whole], places, dtype, left), kept)
