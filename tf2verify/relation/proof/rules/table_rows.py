"""Rules for rows of a table: looked up by indices, and what is added to rows by indices."""

from collections.abc import Sequence

import numpy as np

from tf2verify.relation.proof.normal_forms.operation import Operation, Rule, axes_of
from tf2verify.relation.proof.normal_forms.pieces import sliced, whole
from tf2verify.relation.proof.normal_forms.polynomials import polynomial, product, total
from tf2verify.relation.proof.normal_forms.shapes import reshape, source
from tf2verify.relation.proof.normal_forms.terms import LARGEST_FOLDED, Shape, Terms, size_of
from tf2verify.relation.proof.rules.structure import among_zeros

_ADDED = 'UnsortedSegmentSum'
# What has more summands is added to rows as a whole.
_MOST_SUMMANDS = 16


def not_wrapped(terms: Terms, indices: int, size: int) -> int:
  """Returns indices as they are before those below 0 are counted from the end of the table.

  Keras 3 does so before each look-up. For an index that is not in the table, TF1 raises, and
  yields 0 on a GPU: what is proven of a look-up holds for those that are.
  """
  outer, inner = terms[indices], indices
  if outer.kind == 'reshape' and terms.shape(indices) is not None:
    (inner,) = outer.inputs
  select = terms[inner]
  if select.kind != 'Select':
    return indices
  below, moved, places = select.inputs
  condition, total = terms[below], terms[moved]
  is_below = condition.kind == 'Greater' and condition.inputs[1] == places
  if not is_below or terms.single(condition.inputs[0]) != 0:
    return indices
  if total.kind != 'polynomial' or dict(total.detail) != {(): size, (places,): 1}:
    return indices
  shape = terms.shape(indices)
  return places if shape is None or inner == indices else reshape(terms, places, shape)


def _consecutive_rows(terms: Terms, table: int, axis: int, places: Sequence[int]) -> int | None:
  """Returns the slice of a table that constant indices take out of it; None where it is none."""
  shape = terms.shape(table) or ()
  first = places[0]
  if list(places) != list(range(first, first + len(places))):
    return None
  if not 0 <= first <= places[-1] < shape[axis]:
    return None
  cuts = whole(shape)
  return sliced(terms, table, (*cuts[:axis], (first, len(places), 1), *cuts[axis + 1 :]))


def gather(op: Operation) -> Sequence[int] | None:
  """A look-up by indices along a constant axis."""
  shapes = op.shapes()
  if shapes is None or op.shape is None:
    return None
  axes: list[int] | None = [0]
  if op.op_type == 'GatherV2':
    axes = axes_of(op.terms.integers(op.inputs[2]), len(shapes[0]))
  batch = op.attributes.get('batch_dims', 0) % (len(shapes[1]) + 1)
  if axes is None:
    return None
  table, indices = op.inputs[:2]
  # The handle of a variable without a partner has no axes.
  if not batch and shapes[0]:
    indices = not_wrapped(op.terms, indices, shapes[0][axes[0]])
  values, places = op.terms.value(table), op.terms.integers(indices)
  if not batch and values is not None and places is not None and values.size <= LARGEST_FOLDED:
    array = np.take(values, np.reshape(places, shapes[1]).astype(int), axes[0])
    return [op.terms.constant(array, op.dtype)]
  if not batch and places and op.terms.shape(table) is not None:
    part = _consecutive_rows(op.terms, table, axes[0], places)
    if part is not None:
      return [reshape(op.terms, part, op.shape)]
  if batch or axes != [0]:
    return [op.terms.add('gather', (table, indices), (axes[0], batch), op.dtype, op.shape)]
  flat = reshape(op.terms, indices, (size_of(shapes[1]),))
  if shapes[0]:
    op.terms.looked_up.add((flat, shapes[0][0]))
  rows: Shape = (size_of(shapes[1]), *shapes[0][1:])
  if size_of(rows) != size_of(op.shape):
    return None
  found = op.terms.add('gather', (table, flat), (0, 0), op.dtype, rows)
  return [reshape(op.terms, found, op.shape)]


def added_to_rows(terms: Terms, values: int, indices: int, count: int, dtype: str) -> int | None:
  """Returns a table of zeros to whose rows others are added: the gradient of a look-up.

  Args:
    terms: all terms.
    values: a row for each index.
    indices: of rows of the table.
    count: how many rows the table has.
    dtype: of the values.

  Returns:
    None where shapes are not known.
  """
  shapes = terms.shape(values), terms.shape(indices)
  if shapes[0] is None or not shapes[1] or not count or 'float' not in dtype:
    return None
  if shapes[0][: len(shapes[1])] != shapes[1] or 0 in shapes[0]:
    return None
  places, row = size_of(shapes[1]), shapes[0][len(shapes[1]) :]
  rows = reshape(terms, values, (places, *row))
  indices = _looked_up(terms, indices, count)
  known = terms.integers(indices)
  if known is not None and known == list(range(known[0], known[0] + places)):
    if known[0] < 0 or known[-1] >= count:
      return None
    widths = [(known[0], count - known[-1] - 1), *((0, 0) for _ in row)]
    return among_zeros(terms, rows, widths, dtype)
  flat = reshape(terms, indices, (places,))
  summands = polynomial(terms, rows)
  table = (count, *row)
  if len(summands) > _MOST_SUMMANDS:
    return terms.add(_ADDED, (rows, flat), count, dtype, table)
  parts = []
  for atoms, coefficient in summands.items():
    numbers = [atom for atom in atoms if _is_number(terms, atom)]
    rest = [atom for atom in atoms if atom not in numbers]
    of_rows = product(terms, rest, dtype, (places, *row))
    added = terms.add(_ADDED, (of_rows, flat), count, dtype, table)
    parts.append((product(terms, [added, *numbers], dtype, table), coefficient))
  return total(terms, parts, dtype, table)


def _looked_up(terms: Terms, indices: int, count: int) -> int:
  """Returns indices as they are before they are wrapped, if rows are looked up by them, too.

  Otherwise an index below 0 is no mistake here: what it belongs to is added to no row.
  """
  found = not_wrapped(terms, indices, count)
  flat = reshape(terms, found, (size_of(terms.shape(found) or ()),))
  return found if (flat, count) in terms.looked_up else indices


def segment_sum(op: Operation) -> Sequence[int] | None:
  """`UnsortedSegmentSum` into a known number of rows."""
  count = op.terms.integers(op.inputs[2])
  if not count:
    return None
  values, indices = op.inputs[:2]
  found = added_to_rows(op.terms, values, indices, count[0], op.dtype)
  return None if found is None else [found]


def scattered(op: Operation) -> Sequence[int] | None:
  """`TensorScatterAdd` of rows that were summed by their index before, as TF1's optimizers do."""
  terms, (table, places, rows) = op.terms, op.inputs
  shape = terms.shape(table)
  column = terms[source(terms, places)]
  if shape is None or not shape or column.kind != 'ExpandDims' or 'float' not in op.dtype:
    return None
  unique = terms[column.inputs[0]]
  if unique.kind != 'Unique' or unique.detail[0] != 0:
    return None
  dense = _dense(terms, rows, unique.inputs[0], shape, op.dtype)
  return None if dense is None else [total(terms, ((table, 1), (dense, 1)), op.dtype, shape)]


def _dense(terms: Terms, rows: int, indices: int, shape: Shape, dtype: str) -> int | None:
  """Returns a table with products of summed rows where they belong, and zeros elsewhere."""
  term = terms[rows]
  if term.kind == _ADDED and len(term.inputs) == 3:
    by = terms[term.inputs[1]]
    if by.kind != 'Unique' or by.detail[0] != 1 or by.inputs != (indices,):
      return None
    return added_to_rows(terms, term.inputs[0], indices, shape[0], dtype)
  if term.kind != 'Mul':
    return None
  factors = [_factor(terms, one, indices, shape, dtype) for one in term.inputs]
  known = [factor for factor in factors if factor is not None]
  if len(known) < 2 or all(factor in term.inputs for factor in known):
    return None  # without rows among the factors, what has no row would not be zero
  return product(terms, known, dtype, shape)


def _factor(terms: Terms, number: int, indices: int, shape: Shape, dtype: str) -> int | None:
  return number if _is_number(terms, number) else _dense(terms, number, indices, shape, dtype)


def _is_number(terms: Terms, number: int) -> bool:
  shape = terms.shape(number)
  return shape is not None and size_of(shape) == 1


RULES: dict[str, Rule] = {
  'Gather': gather,
  'GatherV2': gather,
  'ResourceGather': gather,
  _ADDED: segment_sum,
  'TensorScatterAdd': scattered,
}
