"""Parts of what is computed, as computed from parts of what that reads.

One side projects to queries, keys and values at once and takes the result apart; the other one has
a projection for each. The gates of a cell are activated together, or each by itself.
"""

from collections.abc import Sequence

from tf2verify.relation.proof.normal_forms.contractions import CONTRACTION, product_of_rows
from tf2verify.relation.proof.normal_forms.elementwise import seen_in
from tf2verify.relation.proof.normal_forms.operation import Operation
from tf2verify.relation.proof.normal_forms.pieces import Cuts, sliced, whole
from tf2verify.relation.proof.normal_forms.polynomials import with_changed_variables
from tf2verify.relation.proof.normal_forms.shapes import TRANSPOSE, reshape, source, transpose
from tf2verify.relation.proof.normal_forms.terms import Shape, Terms, size_of
from tf2verify.relation.proof.rules.arithmetic import RULES

# Of every element by itself, without attributes that tell what they compute.
_COMPARISONS = ('Greater', 'GreaterEqual')
_FUNCTIONS = ('Sigmoid', 'Tanh', 'Elu', 'Selu', 'Erf', 'Softsign')


def part_of(terms: Terms, number: int, cuts: Cuts) -> int:
  """Returns a part of a term of known shape: of a sum, the sum of parts; of a product likewise."""
  shape = terms.shape(number)
  if shape is None or cuts == whole(shape) or 0 in shape or any(not size for _, size, _ in cuts):
    return sliced(terms, number, cuts)
  term = terms[number]
  if term.kind == TRANSPOSE:
    perm: tuple[int, ...] = term.detail
    before = tuple(cuts[perm.index(axis)] for axis in range(len(perm)))
    return transpose(terms, part_of(terms, term.inputs[0], before), perm)
  # In its own shape: the flat one in which a sum is kept has no axes to cut along.
  found = _of_elements(terms, number, cuts)
  return sliced(terms, number, cuts, _computed) if found is None else found


def _of_elements(terms: Terms, number: int, cuts: Cuts) -> int | None:
  for rule in (_of_sum, _of_function, _of_comparison):
    found = rule(terms, number, cuts)
    if found is not None:
      return found
  return None


def _computed(terms: Terms, number: int, cuts: Cuts) -> int | None:
  found = _of_elements(terms, number, cuts)
  return _of_product(terms, number, cuts) if found is None else found


def _of_product(terms: Terms, number: int, cuts: Cuts) -> int | None:
  term = terms[number]
  if term.kind != CONTRACTION:
    return None
  one, other = term.inputs
  batch, rows, columns = cuts
  inner = (0, (terms.shape(one) or ())[2], 1)
  first = part_of(terms, one, (batch, rows, inner))
  second = part_of(terms, other, (batch, columns, inner))
  return product_of_rows(terms, first, second, term.dtype)


def _of_function(terms: Terms, number: int, cuts: Cuts) -> int | None:
  shape, inner = terms.shape(number), terms[source(terms, number)]
  if inner.kind not in _FUNCTIONS or len(inner.inputs) != 1 or shape is None:
    return None
  if size_of(terms.shape(inner.inputs[0]) or ()) != size_of(shape):
    return None
  part = part_of(terms, reshape(terms, inner.inputs[0], shape), cuts)
  result = tuple(size for _, size, _ in cuts)
  found = RULES[inner.kind](Operation(terms, inner.kind, [part], {}, [(inner.dtype, result)]))
  return None if found is None else found[0]


def _of_comparison(terms: Terms, number: int, cuts: Cuts) -> int | None:
  shape, inner = terms.shape(number), terms[source(terms, number)]
  within = terms.shape(source(terms, number))
  if inner.kind not in _COMPARISONS or shape is None or within is None:
    return None
  seen = [seen_in(terms, atom, within, shape) for atom in inner.inputs]
  known = [one for one in seen if one is not None]
  if len(known) < len(seen):
    return None
  parts = []
  for one in known:
    own = terms.shape(one) or ()
    along = zip(own, cuts[len(cuts) - len(own) :], strict=True)
    parts.append(part_of(terms, one, tuple((0, 1, 1) if size == 1 else cut for size, cut in along)))
  result = tuple(size for _, size, _ in cuts)
  found = RULES[inner.kind](Operation(terms, inner.kind, parts, {}, [(inner.dtype, result)]))
  return None if found is None else found[0]


def _of_sum(terms: Terms, number: int, cuts: Cuts) -> int | None:
  def changed(atom: int) -> int:
    own = terms.shape(atom) or ()
    along = zip(own, cuts[len(cuts) - len(own) :], strict=True)
    return part_of(terms, atom, tuple((0, 1, 1) if size == 1 else cut for size, cut in along))

  return with_changed_variables(terms, number, changed, tuple(size for _, size, _ in cuts))


def turned(terms: Terms, number: int, perm: Sequence[int]) -> int:
  """Returns a term with its axes in another order; of a sum, the sum of what is turned so."""
  shape = terms.shape(number)
  assert shape is not None
  result = tuple(shape[axis] for axis in perm)

  def changed(atom: int) -> int:
    own = terms.shape(atom) or ()
    full: Shape = (1,) * (len(perm) - len(own)) + own
    return transpose(terms, reshape(terms, atom, full), perm)

  found = with_changed_variables(terms, number, changed, result)
  return transpose(terms, number, perm) if found is None else found
