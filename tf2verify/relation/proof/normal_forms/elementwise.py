"""Operations element by element, whatever shape their operands have been brought to.

Such an operation is the same on reshaped operands, if all are reshaped alike. So its term has the
fewest axes that tell its operands apart, and is reshaped to what it was. With one operand, it is
computed before a transpose.
"""

from collections.abc import Hashable, Sequence

from tf2verify.relation.proof.normal_forms.shapes import (
  TRANSPOSE,
  blocks,
  reshape,
  source,
  transpose,
)
from tf2verify.relation.proof.normal_forms.terms import Shape, Terms, size_of


def elementwise(
  terms: Terms,
  kind: str,
  operands: Sequence[int],
  dtype: str,
  shape: Shape,
  detail: Hashable = None,
  commutes: bool = False,
) -> int:
  """Returns the term of an operation on operands that are broadcast to a shape.

  Args:
    terms: all terms.
    kind: of the operation.
    operands: terms of known shapes.
    dtype: of the result.
    shape: of the result.
    detail: its attributes.
    commutes: whether the order of the operands does not matter.
  """
  inside = under_transpose(terms, operands, shape)
  if inside is not None:
    moved, before, perm = inside
    found = elementwise(terms, kind, moved, dtype, before, detail, commutes)
    return reshape(terms, transpose(terms, found, perm), shape)
  coarse, parts = coarsened(terms, operands, shape)
  parts = sorted(parts) if commutes else parts
  return reshape(terms, terms.add(kind, parts, detail, dtype, coarse), shape)


def under_transpose(
  terms: Terms, operands: Sequence[int], shape: Shape
) -> tuple[list[int], Shape, tuple[int, ...]] | None:
  """Returns what to compute before a transpose, where the only operand of a size is one.

  Returns:
    The operands, the shape of the result, and how to transpose that; None elsewhere.
  """
  large = [number for number in operands if size_of(terms.shape(number) or ()) != 1]
  if len(set(large)) != 1 or size_of(terms.shape(large[0]) or ()) != size_of(shape):
    return None
  inner = terms[source(terms, large[0])]
  before = terms.shape(inner.inputs[0]) if inner.kind == TRANSPOSE else None
  if before is None:
    return None
  moved = [
    inner.inputs[0] if number == large[0] else reshape(terms, number, ()) for number in operands
  ]
  return moved, before, inner.detail


def coarsened(terms: Terms, operands: Sequence[int], shape: Shape) -> tuple[Shape, list[int]]:
  """Returns the fewest axes on which operands are broadcast alike, and the operands on them."""
  patterns = [_full(terms.shape(number) or (), shape) for number in operands]
  runs: list[list[int]] = []
  for axis, size in enumerate(shape):
    if size == 1:
      continue
    alike = runs and all(full[axis] == full[runs[-1][-1]] for full in patterns)
    if alike:
      runs[-1].append(axis)
    else:
      runs.append([axis])
  coarse = tuple(size_of(tuple(shape[axis] for axis in run)) for run in runs)
  found = []
  for number, full in zip(operands, patterns, strict=True):
    sizes = [size if full[run[0]] else 1 for size, run in zip(coarse, runs, strict=True)]
    found.append(reshape(terms, number, without_leading_ones(tuple(sizes))))
  return coarse, found


def _full(operand: Shape, shape: Shape) -> list[bool]:
  """Returns for every axis of a result whether an operand has it, or is repeated along it."""
  padded = (1,) * (len(shape) - len(operand)) + operand
  return [size == wanted for size, wanted in zip(padded, shape, strict=True)]


def without_leading_ones(shape: Shape) -> Shape:
  """Returns a shape that is broadcast as another one, without axes of one element at its front."""
  place = 0
  while place < len(shape) and shape[place] == 1:
    place += 1
  return shape[place:]


def seen_in(terms: Terms, atom: int, within: Shape, shape: Shape) -> int | None:
  """Returns an operand of an operation, reshaped so that the operation yields another shape.

  Args:
    terms: all terms.
    atom: the operand, which is broadcast to `within`.
    within: the shape of what the operation yields.
    shape: what that is reshaped to.

  Returns:
    The operand broadcast to `shape`; None where the shapes do not fit.
  """
  if within == shape:
    return atom
  parts = blocks(within, shape)
  if parts is None:
    return None
  full = _full(terms.shape(atom) or (), within)
  sizes = [1] * len(shape)
  for before, after in parts:
    kinds = {full[axis] for axis in before if within[axis] != 1}
    if len(kinds) > 1:
      return None
    if kinds == {True}:
      for axis in after:
        sizes[axis] = shape[axis]
  return reshape(terms, atom, without_leading_ones(tuple(sizes)))
