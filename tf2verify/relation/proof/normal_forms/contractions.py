"""Sums of products over shared axes: matmul, einsum, tensordot and 1x1 convolutions are one.

Their term has two operands whose last axis is summed over, `[batch, rows, sum]` and
`[batch, columns, sum]`, in an order that does not depend on which of them came first.
"""

from collections.abc import Sequence

from tf2verify.relation.proof.normal_forms.operation import Operation, Rule
from tf2verify.relation.proof.normal_forms.pieces import CONCATENATION, sliced, whole
from tf2verify.relation.proof.normal_forms.polynomials import product, split_common_factor, total
from tf2verify.relation.proof.normal_forms.shapes import reshape, transpose
from tf2verify.relation.proof.normal_forms.terms import Shape, Terms, size_of

CONTRACTION = 'contraction'


def contracted(
  terms: Terms, one: int, labels: str, other: int, others: str, result: str, dtype: str
) -> int | None:
  """Returns the sum of products that an equation of einsum says.

  Args:
    terms: all terms.
    one: the first operand, of known shape.
    labels: a letter for each of its axes.
    other: the second operand.
    others: its letters.
    result: those of the result.
    dtype: of the result.

  Returns:
    None where a letter occurs twice in one operand, or in one operand only and not in the result,
    or has two sizes.
  """
  shapes = terms.shape(one), terms.shape(other)
  if shapes[0] is None or shapes[1] is None:
    return None
  if len(labels) != len(shapes[0]) or len(others) != len(shapes[1]):
    return None
  sizes = dict(zip(labels, shapes[0], strict=True))
  for label, size in zip(others, shapes[1], strict=True):
    if sizes.setdefault(label, size) != size:
      return None
  letters = (labels, others, result)
  if any(len(set(text)) < len(text) for text in letters) or 0 in sizes.values():
    return None
  if set(labels) ^ set(others) != set(result) - (set(labels) & set(others)):
    return None
  batch = [label for label in result if label in labels and label in others]
  rows = [label for label in result if label in labels and label not in others]
  columns = [label for label in result if label in others and label not in labels]
  inner = [label for label in labels if label not in result]

  def count(wanted: Sequence[str]) -> int:
    return size_of(tuple(sizes[label] for label in wanted))

  def lowered(number: int, text: str, free: Sequence[str]) -> int:
    moved = transpose(terms, number, [text.index(label) for label in (*batch, *free, *inner)])
    return reshape(terms, moved, (count(batch), count(free), count(inner)))

  first, last = lowered(one, labels, rows), lowered(other, others, columns)
  if count(inner) == 1:  # nothing is added up
    sizes_of_both = (count(batch), count(rows), count(columns))
    left = reshape(terms, first, (*sizes_of_both[:2], 1))
    right = reshape(terms, last, (sizes_of_both[0], 1, sizes_of_both[2]))
    found = product(terms, [left, right], dtype, sizes_of_both)
  else:
    found = product_of_rows(terms, first, last, dtype)
  shape: Shape = tuple(sizes[label] for label in (*batch, *rows, *columns))
  found = reshape(terms, found, shape)
  made = [*batch, *rows, *columns]
  return transpose(terms, found, [made.index(label) for label in result])


def product_of_rows(terms: Terms, one: int, other: int, dtype: str) -> int:
  """Returns the product of terms `[batch, rows, sum]` and `[batch, columns, sum]`."""
  first, second = terms.shape(one), terms.shape(other)
  assert first is not None and second is not None
  result = (first[0], first[1], second[1])
  parts = _split(terms, one, other)
  if parts is None:
    exchanged = _split(terms, other, one)
    parts = None if exchanged is None else [(b, a) for a, b in exchanged]
  if parts is not None:
    made = [(product_of_rows(terms, a, b, dtype), 1) for a, b in parts]
    return total(terms, made, dtype, result)
  factor, one = split_common_factor(terms, one)
  another, other = split_common_factor(terms, other)
  if one > other:
    swapped = terms.add(CONTRACTION, (other, one), None, dtype, (first[0], second[1], first[1]))
    found = transpose(terms, swapped, (0, 2, 1))
  else:
    found = terms.add(CONTRACTION, (one, other), None, dtype, result)
  both = factor * another
  return found if both == 1 else total(terms, [(found, both)], dtype, result)


def _split(terms: Terms, one: int, other: int) -> list[tuple[int, int]] | None:
  """Returns parts of two operands where the first is a concatenation along the sum."""
  shape = terms.shape(one)
  assert shape is not None
  flat = reshape(terms, one, tuple(size for size in shape if size != 1))
  inner = terms[flat]
  if inner.kind != CONCATENATION or inner.detail != len(inner.shape or ()) - 1:
    return None
  found, start = [], 0
  for part in inner.inputs:
    size = (terms.shape(part) or (0,))[-1]
    cuts = whole(terms.shape(other) or ())
    piece = sliced(terms, other, (*cuts[:-1], (start, size, 1)))
    found.append((reshape(terms, part, (*shape[:-1], size)), piece))
    start += size
  return found


_LETTERS = 'abcdefghijklmnopqrstuvwxyz'


def matrix_product(op: Operation) -> Sequence[int] | None:
  """`MatMul` and `BatchMatMul`, transposed or not."""
  shapes = op.shapes()
  if shapes is None or op.shape is None or not _is_real(op):
    return None
  flags = op.attributes
  first = flags.get('transpose_a', flags.get('adj_x', False))
  second = flags.get('transpose_b', flags.get('adj_y', False))
  one, other = shapes
  batch = of_second = _LETTERS[: len(one) - 2]
  number = op.inputs[1]
  if one[:-2] != other[:-2]:
    if size_of(other[:-2]) != 1 or size_of(one[:-2]) == 1 or len(other) > len(one):
      return None
    # One matrix for the whole batch.
    number, of_second = reshape(op.terms, number, other[-2:]), ''
  return _one(
    contracted(
      op.terms,
      op.inputs[0],
      batch + ('zy' if first else 'yz'),
      number,
      of_second + ('xz' if second else 'zx'),
      f'{batch}yx',
      op.dtype,
    )
  )


def _one(number: int | None) -> Sequence[int] | None:
  return None if number is None else [number]


def _is_real(op: Operation) -> bool:
  """Returns whether both operands and the result are floating-point numbers of one dtype."""
  return 'float' in op.dtype and all(op.terms.dtype(n) == op.dtype for n in op.inputs)


def einsum(op: Operation) -> Sequence[int] | None:
  """`Einsum` of two operands, or of one that only moves axes."""
  shapes = op.shapes()
  equation = str(op.attributes.get('equation', '')).replace(' ', '')
  if shapes is None or '->' not in equation or not _is_real(op):
    return None
  left, result = equation.split('->')
  texts = left.split(',')
  if '...' in equation:
    unused = [letter for letter in _LETTERS if letter not in equation]
    ranks = [
      len(shape) - len(text.replace('...', ''))
      for text, shape in zip(texts, shapes, strict=True)
      if '...' in text
    ]
    if len(set(ranks)) != 1:
      return None
    hidden = ''.join(unused[: ranks[0]])
    texts = [text.replace('...', hidden) for text in texts]
    result = result.replace('...', hidden)
  if len(texts) == 1:
    if sorted(texts[0]) != sorted(result) or len(set(result)) < len(result):
      return None
    return [transpose(op.terms, op.inputs[0], [texts[0].index(label) for label in result])]
  if len(texts) != 2:
    return None
  one, other = op.inputs
  return _one(contracted(op.terms, one, texts[0], other, texts[1], result, op.dtype))


RULES: dict[str, Rule] = {
  **dict.fromkeys(('MatMul', 'BatchMatMul', 'BatchMatMulV2', 'BatchMatMulV3'), matrix_product),
  'Einsum': einsum,
}
