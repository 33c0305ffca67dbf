"""Inputs of other sizes than the case gives: which dimensions vary together, and with what."""

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tf2verify.errors import CaseDefinitionError
from tf2verify.reference import nests
from tf2verify.reference.arrays import widened
from tf2verify.sides.hooks.inputs import checked_inputs
from tf2verify.sides.hooks.other_values import other_values
from tf2verify.sides.hooks.user_code import user_code

_HOOK = 'other_sizes'
_SHOWN = 3
# So many elements after strides still tell how wide an image is; and so many numbers make up one
# thing, such as a box.
_FEW = 4

# The path of an input, and one of its axes.
Axis = tuple[str, int]


@dataclasses.dataclass(frozen=True, eq=False)
class OtherSize:
  """Inputs of another size.

  Attributes:
    inputs: the nest of arrays.
    name: for reports: `batch 5`, `inputs of shape (5, 8)`.
    batch_only: whether nothing but the batch is another.
    lengths: the axes besides the batch that are longer, those of one size together; empty
      for a declared size.
  """

  inputs: Any
  name: str
  batch_only: bool = False
  lengths: tuple[frozenset[Axis], ...] = ()


@dataclasses.dataclass(frozen=True)
class Proposals:
  """Sizes worth a try, each a set of axes that are longer.

  Attributes:
    everything: the batch and each length at once, most of them first; empty if there is no length.
    batch: the batch alone; empty if no input has one.
    parts: what to try where `everything` is refused, the likeliest first.
    features: last axes of floating inputs, on which the shape of a variable mostly depends.
  """

  everything: tuple[frozenset[Axis], ...]
  batch: frozenset[Axis]
  parts: tuple[frozenset[Axis], ...]
  features: tuple[frozenset[Axis], ...]

  @property
  def extremes(self) -> tuple[frozenset[Axis], ...]:
    """The most and the fewest axes of `everything`."""
    return tuple(dict.fromkeys((*self.everything[:1], *self.everything[-1:])))


def shapes_of(inputs: Any) -> dict[str, tuple[int, ...]]:
  """Returns the shapes of the arrays of a nest by path."""
  return {path: np.shape(leaf) for path, leaf in nests.leaves_by_path(inputs).items()}


def proposals(inputs: Any) -> Proposals:
  """Returns the sizes that are worth a try for inputs.

  Axes that are the same quantity grow together: the first axis of all inputs, and
  axes of one size. What is not a quantity of its own is found out by the reference, which
  refuses a size at which its inputs do not fit together. An axis of size 1 is not a length:
  what grows there is the kind of the input (a column, a grey image).
  """
  leaves = nests.leaves_by_path(inputs)
  batch = _batch(leaves)
  sizes = {
    (path, axis): n
    for path, x in leaves.items()
    for axis, n in enumerate(x.shape)
    if n > 1 or (path, axis) in batch
  }
  features = {
    (path, x.ndim - 1) for path, x in leaves.items() if x.ndim > 1 and _is_measured(x)
  } - batch
  lengths = {axis for axis in sizes if axis not in batch and axis not in features}
  # A floating input of as many elements as another has steps: a weight for each of them.
  shared = {
    axis
    for axis in features & sizes.keys()
    if any(sizes[axis] == sizes[other] and axis[0] != other[0] for other in lengths)
  }
  # Pairs of nodes, corners of a box: numbers that no reference takes more of.
  parts = {axis for axis in lengths if axis[1] and _is_last(leaves, axis) and sizes[axis] <= _FEW}
  wholes = (batch | lengths | shared, batch | lengths, (batch | lengths) - parts)
  everything = [frozenset(axes) for axes in wholes if axes - batch]
  square = frozenset(axis for axis in sizes if sizes[axis] in {sizes[one] for one in batch})
  single = [frozenset(group) for group in _by_size(sizes, lengths)]
  alone = [part for part in (square, *single) if part and part != batch]
  return Proposals(
    everything=tuple(dict.fromkeys(everything)),
    batch=frozenset(batch),
    parts=tuple(part for part in dict.fromkeys(alone) if part not in everything),
    features=tuple(frozenset(group) for group in _by_size(sizes, features & sizes.keys())),
  )


def _is_last(leaves: Mapping[str, np.ndarray], axis: Axis) -> bool:
  return axis[1] == leaves[axis[0]].ndim - 1


def _batch(leaves: Mapping[str, np.ndarray]) -> set[Axis]:
  """Returns the axes of the batch: the first ones of the commonest size, or as long a one."""
  firsts = [x.shape[0] for x in leaves.values() if x.ndim and x.shape[0]]
  if not firsts:
    return set()
  size = max(firsts, key=firsts.count)
  found = set()
  for path, x in leaves.items():
    axes = x.shape if size > 1 else x.shape[:1]
    axis = next((axis for axis, n in enumerate(axes) if n == size), None)
    if axis is not None:
      found.add((path, axis))
  return found


def _by_size(sizes: Mapping[Axis, int], axes: Iterable[Axis]) -> list[list[Axis]]:
  groups: dict[int, list[Axis]] = {}
  for axis in sorted(axes):
    groups.setdefault(sizes[axis], []).append(axis)
  return list(groups.values())


def _is_measured(array: np.ndarray) -> bool:
  """Returns whether an array holds measured values: floating, and not a mask or counts."""
  if not (array.dtype.kind in 'fc' or array.dtype.name == 'bfloat16'):
    return False
  values = widened(array)
  return bool(np.any(values != np.round(values)))


def grown(
  inputs: Any, axes: frozenset[Axis], *, apart: bool = False, divided: bool = False
) -> OtherSize:
  """Returns inputs that are longer along some axes.

  Args:
    inputs: the nest of arrays.
    axes: which grow.
    apart: whether each length grows by another amount, the axes of one input among them, so
      that sizes that are the same by chance (height and width) are told apart; else by one.
    divided: whether each length grows by the greatest power of two that divides it, for a model
      that halves it several times.
  """
  batch = proposals(inputs).batch
  by = _amounts(inputs, axes, batch) if apart else dict.fromkeys(axes, 1)
  if divided:
    before = shapes_of(inputs)
    longer = ((path, axis, before[path][axis]) for path, axis in _lengths(inputs, axes))
    by.update({(path, axis): size & -size for path, axis, size in longer})
  shapes = {
    path: tuple(n + by.get((path, axis), 0) for axis, n in enumerate(shape))
    for path, shape in shapes_of(inputs).items()
  }
  firsts = {shapes[path][axis] for path, axis in axes}
  batch_only = axes <= batch
  name = f'batch {firsts.pop()}' if batch_only and len(firsts) == 1 else ''
  sizes = {(path, axis): shapes[path][axis] for path, axis in axes}
  lengths = tuple(frozenset(group) for group in _by_size(sizes, axes - batch))
  text = name or _shapes_text(inputs, shapes)
  return OtherSize(_resized(inputs, shapes), text, batch_only, lengths)


def grow_apart(inputs: Any, axes: frozenset[Axis]) -> bool:
  """Returns whether there are lengths among axes that can grow by different amounts."""
  return any(n > 1 for n in _amounts(inputs, axes, proposals(inputs).batch).values())


def divides(inputs: Any, axes: frozenset[Axis]) -> bool:
  """Returns whether there is a length among axes that can be halved."""
  sizes = shapes_of(inputs)
  return any(sizes[path][axis] % 2 == 0 for path, axis in _lengths(inputs, axes))


def _lengths(inputs: Any, axes: frozenset[Axis]) -> frozenset[Axis]:
  """Returns those of some axes that a model may halve: neither the batch nor the last one.

  The last one holds features, and a reshape takes twice as many of them for another batch.
  """
  ranks = {path: len(shape) for path, shape in shapes_of(inputs).items()}
  others = axes - proposals(inputs).batch
  return frozenset((path, axis) for path, axis in others if axis + 1 < ranks[path])


def _amounts(inputs: Any, axes: frozenset[Axis], batch: frozenset[Axis]) -> dict[Axis, int]:
  """Returns by how much axes grow: the batch by one, each length by another amount.

  Axes of one size in several inputs are one length; in one input they are several, which
  have to stay apart also after strides.
  """
  amounts = dict.fromkeys(axes & batch, 1)
  lengths: dict[tuple[int, int], int] = {}
  for path, shape in shapes_of(inputs).items():
    seen: list[int] = []
    for axis, size in enumerate(shape):
      if (path, axis) in axes - batch:
        nth = seen.count(size)
        seen.append(size)
        if (size, nth) not in lengths:
          before = [lengths[size, n] for n in range(nth)]
          lengths[size, nth] = _amount(size, before) if nth else len(lengths) + 1
        amounts[path, axis] = lengths[size, nth]
  return amounts


def _amount(size: int, before: Sequence[int]) -> int:
  """Returns by how much another axis of one size grows.

  Behind each stride of 2 that leaves a few elements it is then unlike the axes before it,
  and even or odd otherwise than without growth, where those are not.
  """
  strides = [2**n for n in range(size.bit_length()) if size >= _FEW * 2**n]

  def behind(amount: int) -> list[int]:
    return [-(-(size + amount) // stride) for stride in strides]

  known = [behind(amount) for amount in before]
  stays = [all(one[n] % 2 == old % 2 for one in known) for n, old in enumerate(behind(0))]
  apart = [
    amount
    for amount in range(1, 4 * max(strides, default=1) + max(before) + 1)
    if amount not in before
    and all(a != b for one in known for a, b in zip(one, behind(amount), strict=True))
  ]
  turned = (
    amount
    for amount in apart
    if all(
      not same or new % 2 != old % 2
      for same, new, old in zip(stays, behind(amount), behind(0), strict=True)
    )
  )
  return next(turned, apart[0])


def with_other_ends(inputs: Any, axes: frozenset[Axis]) -> Any:
  """Returns inputs with other values in the last slice along some axes, from among theirs."""

  def change(path: str, leaf: np.ndarray) -> np.ndarray:
    for axis in (axis for where, axis in axes if where == path):
      moved = np.moveaxis(np.array(leaf), axis, 0)
      other = next(other_values(moved[-1]), None)
      moved[-1] = moved[0] if other is None else other
      leaf = np.ascontiguousarray(np.moveaxis(moved, 0, axis))
    return leaf

  return nests.map_leaves(change, inputs)


def _resized(inputs: Any, shapes: Mapping[str, tuple[int, ...]]) -> Any:
  def resize(path: str, leaf: np.ndarray) -> np.ndarray:
    for axis, size in enumerate(shapes[path]):
      if size != leaf.shape[axis]:
        leaf = _along(leaf, axis, size)
    return leaf

  return nests.map_leaves(resize, inputs)


def _along(array: np.ndarray, axis: int, size: int) -> np.ndarray:
  """Returns an array with another size along an axis, made of the slices that it has.

  A slice that comes twice follows itself: what is sorted (row splits, segment ids) stays
  sorted, a mask stays one of the first elements, an id stays in its vocabulary. Of measured
  values the second is mixed with the next slice, so that no two slices are the same.
  """
  old = array.shape[axis]
  if size < old:
    return np.take(array, range(size), axis)
  source = np.arange(size) * old // size
  found = np.take(array, source, axis)
  if _is_measured(array):
    mixed = np.moveaxis(found, axis, 0)
    others = np.moveaxis(np.take(array, (source + 1) % old, axis), axis, 0)
    for row in np.flatnonzero(np.diff(source, prepend=-1) == 0):
      flat = others[row].reshape(-1) if old > 1 else np.roll(others[row].reshape(-1), 1)
      taken = np.arange(flat.size) % 2 == 0 if old > 1 else np.ones(flat.size, bool)
      merged = np.where(taken, flat, mixed[row].reshape(-1))
      mixed[row] = merged.reshape(mixed[row].shape)
  return np.ascontiguousarray(found)


def _shapes_text(inputs: Any, shapes: Mapping[str, tuple[int, ...]]) -> str:
  before = shapes_of(inputs)
  changed = [(path, shape) for path, shape in shapes.items() if shape != before[path]]
  if list(shapes) == ['']:
    return f'inputs of shape {shapes[""]}'
  texts = [f'{path} {shape}' for path, shape in changed[:_SHOWN]]
  return f'inputs of shape {", ".join(texts)}{", …" if len(changed) > _SHOWN else ""}'


def declared_sizes(declared: Any, inputs: Any) -> Iterator[OtherSize]:
  """Yields the inputs of the sizes that a case declares.

  Args:
    declared: the case's `other_sizes`, not None.
    inputs: of `make_inputs`, checked.

  Raises:
    CaseDefinitionError: no sizes, or not those of these inputs.
  """
  if callable(declared):
    yield from _returned_sizes(declared, inputs)
    return
  single = isinstance(declared, Mapping) or _is_shape(declared)
  if not single and not isinstance(declared, (list, tuple)):
    raise CaseDefinitionError(_not_understood(declared))
  for one in [declared] if single else declared:
    if one:
      shapes = _declared_shapes(one, inputs)
      yield OtherSize(_resized(inputs, shapes), _shapes_text(inputs, shapes))


def _is_shape(value: Any) -> bool:
  return bool(value) and isinstance(value, (list, tuple)) and all(type(n) is int for n in value)


def _not_understood(declared: Any) -> str:
  return (
    f'{_HOOK} is {declared!r:.80}; it must be None (try what the reference accepts), () (try '
    'nothing), a shape, a mapping from the path of an input to its shape, a list of these, or a '
    'method that returns or yields other inputs'
  )


def _declared_shapes(declared: Any, inputs: Any) -> dict[str, tuple[int, ...]]:
  before = shapes_of(inputs)
  if _is_shape(declared):
    if len(before) != 1:
      raise CaseDefinitionError(
        f'{_HOOK} is the shape {tuple(declared)}, and there are {len(before)} inputs: give a '
        f'mapping from {", ".join(before)}'
      )
    declared = {next(iter(before)): declared}
  if not isinstance(declared, Mapping):
    raise CaseDefinitionError(_not_understood(declared))
  found = dict(before)
  for key, shape in declared.items():
    path = key if key in before else f'[{key!r}]'
    if path not in before:
      raise CaseDefinitionError(
        f'{_HOOK} names the input {key!r}, which make_inputs does not return; it returns '
        f'{", ".join(before) or "one array"}'
      )
    fits = _is_shape(shape) and len(shape) == len(before[path]) and min(shape) > 0
    if not fits or (0 in before[path] and tuple(shape) != before[path]):
      raise CaseDefinitionError(
        f'{_HOOK} gives {path or "the input"} the shape {shape!r}; make_inputs gives it '
        f'{before[path]}: give as many dimensions, of at least one element each'
      )
    found[path] = tuple(shape)
  return found


def _returned_sizes(hook: Callable[[], Any], inputs: Any) -> Iterator[OtherSize]:
  with user_code('case', _HOOK):
    returned = hook()
    several = isinstance(returned, Iterator)
    nests_of_inputs = list(returned) if several else [returned]
  if not several and (returned is None or (isinstance(returned, tuple) and not returned)):
    return
  before = nests.leaves_by_path(inputs)
  for nest in nests_of_inputs:
    checked = checked_inputs(nest, _HOOK, hook)
    leaves = nests.leaves_by_path(checked)
    if {p: (x.dtype, x.ndim) for p, x in leaves.items()} != {
      p: (x.dtype, x.ndim) for p, x in before.items()
    }:
      raise CaseDefinitionError(
        f'{_HOOK} returned {_described(leaves)}; make_inputs returns {_described(before)}: return '
        'the same nest, of the same dtypes and numbers of dimensions (several: yield them)'
      )
    yield OtherSize(checked, _shapes_text(inputs, shapes_of(checked)))


def _described(leaves: Mapping[str, np.ndarray]) -> str:
  return ', '.join(f'{path} {x.dtype}{x.shape}'.strip() for path, x in leaves.items())
