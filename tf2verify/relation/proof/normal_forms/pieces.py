"""Slices and concatenations."""

from collections.abc import Callable, Sequence

import numpy as np

from tf2verify.relation.proof.normal_forms.shapes import (
  RESHAPE,
  TRANSPOSE,
  blocks,
  reshape,
  source,
  transpose,
)
from tf2verify.relation.proof.normal_forms.terms import LARGEST_FOLDED, Shape, Terms, size_of

SLICE = 'slice'
CONCATENATION = 'concatenation'

# Of every axis: the first element, how many, and how far apart.
Cuts = tuple[tuple[int, int, int], ...]


def whole(shape: Shape) -> Cuts:
  """Returns the cuts that leave all of a shape."""
  return tuple((0, size, 1) for size in shape)


Within = Callable[[Terms, int, Cuts], int | None]


def sliced(terms: Terms, number: int, cuts: Cuts, within: Within | None = None) -> int:
  """Returns a part of a term of known shape.

  Args:
    terms: all terms.
    number: of the term.
    cuts: which part.
    within: returns the part as computed from parts of what is read; None where it cannot.
  """
  shape = terms.shape(number)
  assert shape is not None and len(shape) == len(cuts)
  cuts = tuple((start, size, 1 if size == 1 else step) for start, size, step in cuts)
  if cuts == whole(shape):
    return number
  result = tuple(size for _, size, _ in cuts)
  term = terms[number]
  if term.value is not None and (term.value.size <= LARGEST_FOLDED):
    index = tuple(start + step * np.arange(size) for start, size, step in cuts)
    return terms.constant(term.value[np.ix_(*index)] if index else term.value, term.dtype)
  if term.kind == SLICE:
    inner: Cuts = term.detail
    both = tuple(
      (start + step * first, size, step * by)
      for (start, _, step), (first, size, by) in zip(inner, cuts, strict=True)
    )
    return sliced(terms, term.inputs[0], both, within)
  if term.kind == TRANSPOSE:
    perm: tuple[int, ...] = term.detail
    moved = tuple(cuts[perm.index(axis)] for axis in range(len(perm)))
    return transpose(terms, sliced(terms, term.inputs[0], moved, within), perm)
  if term.kind == CONCATENATION:
    found = _of_concatenation(terms, number, cuts, within)
    if found is not None:
      return found
  if term.kind == RESHAPE:
    found = _of_reshaped(terms, number, cuts, result, within)
    if found is not None:
      return found
  found = within(terms, number, cuts) if within else None
  return terms.add(SLICE, (number,), cuts, term.dtype, result) if found is None else found


def _of_reshaped(
  terms: Terms, number: int, cuts: Cuts, result: Shape, within: Within | None
) -> int | None:
  """Slices what was reshaped, where the slice is one of that; None where it is not."""
  shape, inner = terms.shape(number), source(terms, number)
  before = terms.shape(inner)
  if shape is None or before is None:
    return None
  moved = list(whole(before))
  for axes, places in blocks(before, shape) or ():
    cut = [place for place in places if cuts[place] != (0, shape[place], 1)]
    if not cut:
      continue
    long = [place for place in places if shape[place] != 1]
    wide = [axis for axis in axes if before[axis] != 1]
    if len(cut) != 1 or len(wide) != 1 or cut[0] != long[0]:
      return None
    start, size, step = cuts[cut[0]]
    rest = before[wide[0]] // shape[cut[0]]
    if rest > 1 and step != 1:
      return None
    moved[wide[0]] = (start * rest, size * rest, step)
  return None if 0 in before else reshape(terms, sliced(terms, inner, tuple(moved), within), result)


def _of_concatenation(terms: Terms, number: int, cuts: Cuts, within: Within | None) -> int | None:
  """Slices the only operand of a concatenation that a slice lies in; None if there is none."""
  term, place = terms[number], 0
  axis: int = term.detail
  start, size, step = cuts[axis]
  first, last = min(start, start + step * (size - 1)), max(start, start + step * (size - 1))
  for part in term.inputs:
    shape = terms.shape(part)
    assert shape is not None
    if place <= first and last < place + shape[axis]:
      moved = (*cuts[:axis], (start - place, size, step), *cuts[axis + 1 :])
      return sliced(terms, part, moved, within)
    place += shape[axis]
  return None


def concatenated(terms: Terms, parts: Sequence[int], axis: int) -> int:
  """Returns terms of known shapes one after the other along an axis.

  What is a concatenation along this axis already counts as its operands, and neighbours that
  are neighbouring slices of one term as one slice of it.
  """
  shapes = [terms.shape(part) or () for part in parts]
  first = shapes[0]
  before, after = size_of(first[:axis]), size_of(first[axis + 1 :])
  sizes = [shape[axis] for shape in shapes]
  flat: list[int] = []
  for part, size in zip(parts, sizes, strict=True):
    coarse = reshape(terms, part, _without_ones(before, size, after))
    term = terms[coarse]
    if term.kind == CONCATENATION and term.detail == int(before != 1):
      flat += term.inputs
    elif size:
      flat.append(coarse)
  place = int(before != 1)
  merged: list[int] = []
  for part in flat:
    joined = _joined(terms, merged[-1], part, place) if merged else None
    if joined is None:
      merged.append(part)
    else:
      merged[-1] = joined
  result = (*first[:axis], sum(sizes), *first[axis + 1 :])
  if not merged:
    return terms.constant(np.zeros(result, 'float32'), terms.dtype(parts[0]))
  if len(merged) == 1:
    return reshape(terms, merged[0], result)
  values = [terms.value(part) for part in merged]
  known = [value for value in values if value is not None]
  if len(known) == len(values) and sum(value.size for value in known) <= LARGEST_FOLDED:
    joint = terms.constant(np.concatenate(known, place), terms.dtype(parts[0]))
    return reshape(terms, joint, result)
  coarse_result = _without_ones(before, sum(sizes), after)
  made = terms.add(CONCATENATION, merged, place, terms.dtype(parts[0]), coarse_result)
  return reshape(terms, made, result)


def transposed_stack(terms: Terms, number: int, perm: Sequence[int]) -> int | None:
  """Transposes tensors that are stacked so that they are stacked along another axis.

  `dynamic_rnn` stacks what the steps yield before it transposes to examples first, where a loop
  in Python stacks along the axis of the steps at once.

  Args:
    terms: all terms.
    number: of a term of known shape.
    perm: the order of its axes.

  Returns:
    None if it is no stack, or if the tensors themselves have their axes in another order then.
  """
  shape, stack = terms.shape(number), source(terms, number)
  if terms[stack].kind != CONCATENATION or shape is None:
    return None
  axis, parts, coarse = terms[stack].detail, terms[stack].inputs, terms.shape(stack) or ()
  if coarse[axis] != len(parts):  # every operand has one element along the axis
    return None
  found = [places for axes, places in blocks(coarse, shape) or () if axis in axes]
  wide = [place for places in found for place in places if shape[place] != 1]
  if len(wide) != 1 or shape[wide[0]] != len(parts):
    return None
  (old,) = wide
  rest = [place for place in perm if place != old and shape[place] != 1]
  if rest != sorted(rest):
    return None
  result = [shape[place] for place in perm]
  new = list(perm).index(old)
  result[new] = 1
  moved = [reshape(terms, part, tuple(result)) for part in parts]
  return concatenated(terms, moved, new)


def _without_ones(before: int, size: int, after: int) -> Shape:
  return (*((before,) if before != 1 else ()), size, *((after,) if after != 1 else ()))


def _joined(terms: Terms, first: int, second: int, axis: int) -> int | None:
  """Returns one slice for two that follow each other along an axis; None if they do not."""
  one, other = terms[first], terms[second]
  if one.kind != SLICE or other.kind != SLICE or one.inputs != other.inputs:
    return None
  cuts: Cuts = one.detail
  more: Cuts = other.detail
  if len(cuts) <= axis or any(
    a != b for n, (a, b) in enumerate(zip(cuts, more, strict=True)) if n != axis
  ):
    return None
  (start, size, step), (begin, count, by) = cuts[axis], more[axis]
  if (step, by) != (1, 1) or start + size != begin:
    return None
  both = (*cuts[:axis], (start, size + count, 1), *cuts[axis + 1 :])
  return sliced(terms, one.inputs[0], both)
