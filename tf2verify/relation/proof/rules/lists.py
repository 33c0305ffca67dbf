"""Lists of tensors, which loops read and write, where the place of every element is known."""

from collections.abc import Sequence

import numpy as np

from tf2verify.relation.proof.normal_forms.operation import Operation, Rule
from tf2verify.relation.proof.normal_forms.pieces import concatenated, whole
from tf2verify.relation.proof.normal_forms.polynomials import total
from tf2verify.relation.proof.normal_forms.shapes import reshape
from tf2verify.relation.proof.normal_forms.terms import Shape, Terms
from tf2verify.relation.proof.rules.parts import part_of

LIST = 'list'
UNSET = 'element without a value'
_VARIANT = 'variant'
# Longer ones are not taken apart.
_LONGEST = 2048


def _made(terms: Terms, elements: Sequence[int]) -> Sequence[int]:
  return [terms.add(LIST, elements, None, _VARIANT, ())]


def _elements(op: Operation, place: int = 0) -> tuple[int, ...] | None:
  """Returns the elements of a list that an operation reads; None where they are not known."""
  term = op.terms[op.inputs[place]]
  return term.inputs if term.kind == LIST else None


def _index(op: Operation, elements: Sequence[int]) -> int | None:
  """Returns which element an operation reads or writes, by its second input."""
  found = op.terms.integers(op.inputs[1])
  return found[0] if found and 0 <= found[0] < len(elements) else None


def _shape(op: Operation, place: int) -> Shape | None:
  """Returns a shape that an operation reads, where all of it is known."""
  found = op.terms.integers(op.inputs[place])
  return None if found is None or min(found, default=0) < 0 else tuple(found)


def _zeros(op: Operation, place: int, dtype: str) -> int | None:
  """Returns what an element without a value is read as, given its shape."""
  shape = _shape(op, place)
  return None if shape is None else op.terms.constant(np.zeros(shape, 'float32'), dtype)


def _reserved(op: Operation) -> Sequence[int] | None:
  """`TensorListReserve`: a list of so many elements without values."""
  count = op.terms.integers(op.inputs[1])
  if not count or not 0 <= count[0] <= _LONGEST:
    return None
  dtype = str(op.attributes.get('element_dtype', ''))
  unset = op.terms.add(UNSET, (), dtype, dtype, None)
  return _made(op.terms, [unset] * count[0])


def _empty(op: Operation) -> Sequence[int] | None:
  """`EmptyTensorList`: a stack for the rounds of a loop."""
  return _made(op.terms, [])


def _from_tensor(op: Operation) -> Sequence[int] | None:
  """`TensorListFromTensor`: the rows of a tensor."""
  shape = op.terms.shape(op.inputs[0])
  if not shape or shape[0] > _LONGEST:
    return None
  rest = whole(shape)[1:]
  parts = [part_of(op.terms, op.inputs[0], ((n, 1, 1), *rest)) for n in range(shape[0])]
  return _made(op.terms, [reshape(op.terms, part, shape[1:]) for part in parts])


def _stacked(op: Operation) -> Sequence[int] | None:
  """`TensorListStack`: the elements along a new axis."""
  elements = _elements(op)
  if not elements:
    return None
  unset = [n for n in elements if op.terms[n].kind == UNSET]
  zeros = _zeros(op, 1, op.dtype) if unset else None
  if unset and zeros is None:
    return None
  known = [zeros if n in unset and zeros is not None else n for n in elements]
  shapes = [op.terms.shape(n) for n in known]
  if any(shape is None or shape != shapes[0] for shape in shapes):
    return None
  parts = [reshape(op.terms, n, (1, *(shapes[0] or ()))) for n in known]
  return [concatenated(op.terms, parts, 0)]


def _got(op: Operation) -> Sequence[int] | None:
  """`TensorListGetItem`: one element."""
  elements = _elements(op)
  place = None if elements is None else _index(op, elements)
  if elements is None or place is None:
    return None
  if op.terms[elements[place]].kind != UNSET:
    return [elements[place]]
  zeros = _zeros(op, 2, op.dtype)
  return None if zeros is None else [zeros]


def _set(op: Operation) -> Sequence[int] | None:
  """`TensorListSetItem`: the list with another element."""
  elements = _elements(op)
  place = None if elements is None else _index(op, elements)
  if elements is None or place is None:
    return None
  return _made(op.terms, (*elements[:place], op.inputs[2], *elements[place + 1 :]))


def _pushed(op: Operation) -> Sequence[int] | None:
  """`TensorListPushBack`: the list with one more element."""
  elements = _elements(op)
  if elements is None or len(elements) >= _LONGEST:
    return None
  return _made(op.terms, (*elements, op.inputs[1]))


def _popped(op: Operation) -> Sequence[int] | None:
  """`TensorListPopBack`: the list without its last element, and that."""
  elements = _elements(op)
  if not elements or op.terms[elements[-1]].kind == UNSET:
    return None
  return [*_made(op.terms, elements[:-1]), elements[-1]]


def _length(op: Operation) -> Sequence[int] | None:
  """`TensorListLength`."""
  elements = _elements(op)
  return None if elements is None else [op.terms.constant(np.asarray(len(elements), 'int32'))]


def _element_shape(op: Operation) -> Sequence[int] | None:
  """`TensorListElementShape`, where an element tells it."""
  elements = _elements(op)
  shapes = {op.terms.shape(n) for n in elements or ()} - {None}
  if len(shapes) != 1:
    return None
  return [op.terms.constant(np.asarray(shapes.pop(), op.dtype or 'int32'), op.dtype)]


def _added(op: Operation) -> Sequence[int] | None:
  """`AddN` of lists, as gradients of several readers are put together: of their elements."""
  lists = [_elements(op, place) for place in range(len(op.inputs))]
  known = [one for one in lists if one is not None]
  if len(known) < len(lists) or len({len(one) for one in known}) != 1:
    return None
  made = []
  for row in zip(*known, strict=True):
    values = [n for n in row if op.terms[n].kind != UNSET]
    shapes = {op.terms.shape(n) for n in values}
    if len(values) > 1:
      (shape, *others) = shapes
      if others or shape is None:
        return None
      made.append(total(op.terms, [(n, 1) for n in values], op.terms.dtype(values[0]), shape))
    else:
      made.append((values or row)[0])
  return _made(op.terms, made)


def _like(op: Operation) -> Sequence[int] | None:
  """`ZerosLike` of a list."""
  elements = _elements(op)
  if elements is None:
    return None
  shapes = [op.terms.shape(n) for n in elements]
  if any(shape is None for shape in shapes):
    return None
  zeros = [
    op.terms.constant(np.zeros(shape or (), 'float32'), op.terms.dtype(n))
    for n, shape in zip(elements, shapes, strict=True)
  ]
  return _made(op.terms, zeros)


RULES: dict[str, Rule] = {
  'AddN': _added,
  'EmptyTensorList': _empty,
  'TensorListElementShape': _element_shape,
  'TensorListFromTensor': _from_tensor,
  'TensorListGetItem': _got,
  'TensorListLength': _length,
  'TensorListPopBack': _popped,
  'TensorListPushBack': _pushed,
  'TensorListReserve': _reserved,
  'TensorListSetItem': _set,
  'TensorListStack': _stacked,
  'ZerosLike': _like,
}
