"""Two runs of one side, compared bit by bit."""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tf2verify.records.repetition import FirstVariation, RunOp, Variation
from tf2verify.records.tensor_key import Run, TensorKey
from tf2verify.reference.arrays import widened

_Array = np.ndarray[Any, Any]


def same_bits(first: _Array, second: _Array) -> bool:
  """Returns whether two arrays have shape, dtype and every bit in common; so -0 is not 0."""
  if first.shape != second.shape or first.dtype != second.dtype:
    return False
  if first.dtype == object:
    return bool(np.array_equal(first, second))
  return bool(np.array_equal(_bits(first), _bits(second)))


def digest(value: _Array | None) -> str:
  """Returns a text that is the same for arrays of the same bits, and else another."""
  if value is None:
    return 'None'
  found = hashlib.sha256(f'{value.shape} {value.dtype.name}'.encode())
  if value.dtype == object:
    found.update(repr(value.tolist()).encode())
  else:
    found.update(np.ascontiguousarray(value).view(np.uint8).data if value.size else b'')
  return found.hexdigest()


class Remembered:
  """A run to compare later ones with: its tensors, or only their digests where they are large.

  Attributes:
    digests: of every tensor.
    elements: of all tensors.
    is_whole: whether the tensors are kept.
  """

  def __init__(self, run: Run, most_elements: int) -> None:
    """Remembers a run, and as many of its elements as are to be kept."""
    self.digests = digests(run)
    self.elements = sum(value.size for value in run.values() if value is not None)
    self.is_whole = self.elements <= most_elements
    self._run: Run = run if self.is_whole else {}

  def varying(self, other: Run) -> tuple[Variation, ...]:
    """Returns the tensors that are not the same bits in another run."""
    if self.is_whole:
      return varying(self._run, other)
    return tuple(differing(self.digests, digests(other), 'different bits'))


def digests(run: Run) -> dict[TensorKey, str]:
  """Returns the digest of every tensor."""
  return {key: digest(value) for key, value in run.items()}


def differing(
  first: Mapping[TensorKey, str], second: Mapping[TensorKey, str], other: str
) -> list[Variation]:
  """Returns the tensors whose digests are not the same.

  Args:
    first: the digests of a run.
    second: of another one.
    other: says what differs.
  """
  keys = {**first, **second}
  return [Variation(key, other=other) for key in keys if first.get(key) != second.get(key)]


def varying(first: Run, second: Run) -> tuple[Variation, ...]:
  """Returns the tensors that are not the same bits in two runs, in the order of the first."""
  found = []
  for key in {**first, **second}:
    if key not in first or key not in second:
      found.append(Variation(key, other='in one run only'))
    else:
      variation = variation_of(key, first[key], second[key])
      if variation is not None:
        found.append(variation)
  return tuple(found)


def variation_of(key: TensorKey, first: _Array | None, second: _Array | None) -> Variation | None:
  """Returns how two values of one tensor differ; None where they are the same bits."""
  if first is None or second is None:
    return None if first is second else Variation(key, other='None in one run only')
  if same_bits(first, second):
    return None
  if first.shape != second.shape:
    return Variation(key, other=f'its shape varies: {first.shape}, {second.shape}')
  if first.dtype != second.dtype:
    return Variation(key, other=f'its dtype varies: {first.dtype}, {second.dtype}')
  differs = _differs(first, second)
  absolute, relative = _greatest(first, second, differs)
  return Variation(
    key,
    int(np.count_nonzero(differs)),
    first.size,
    absolute,
    relative,
    greatest=greatest_of(first),
  )


def greatest_of(array: _Array) -> float:
  """Returns the greatest |element| that is finite; 0 where nothing is floating."""
  if array.dtype.kind not in 'fc' or not array.size:
    return 0.0
  sizes = np.abs(array)
  return float(np.max(sizes, initial=0.0, where=np.isfinite(sizes)))


def first_variation(first: Sequence[RunOp], second: Sequence[RunOp]) -> FirstVariation | None:
  """Returns the first operation that gives other bits from the same bits.

  Where an operation reads other bits that no operation before it has given, they come
  from outside of TensorFlow. Where the two runs do not have the same operations at one
  place, that place is what varies.

  Args:
    first: the operations of one run, in their order.
    second: those of the other.
  """
  for one, other in zip(first, second, strict=False):
    if (one.op_type, one.name) != (other.op_type, other.name):
      return FirstVariation(
        one.op_type,
        one.name,
        one.source,
        f'in the other run {other.op_type} is in its place: the order of operations varies, '
        'as that of a set does',
        None,
      )
    if one.inputs != other.inputs:
      given = [
        number
        for number, pair in enumerate(zip(one.inputs, other.inputs, strict=False))
        if pair[0] != pair[1] and not (one.produced and one.produced[number])
      ]
      if given:
        why = (
          f'its input {given[0]} differs, and no operation computed it: Python did (a generator '
          'without a seed, as np.random.default_rng() is, the time, the order of a set, '
          'tf.numpy_function)'
        )
        return FirstVariation(one.op_type, one.name, one.source, why, None)
      continue
    for number, pair in enumerate(zip(one.outputs, other.outputs, strict=False)):
      variation = variation_of(TensorKey(one.op_type, f'{one.name}:{number}'), *pair)
      if variation is not None:
        return FirstVariation(one.op_type, one.name, one.source, '', variation)
  if len(first) != len(second):
    longer = max(first, second, key=len)
    extra = longer[min(len(first), len(second))]
    return FirstVariation(
      extra.op_type, extra.name, extra.source, 'only one of the two runs has it', None
    )
  return None


def _bits(array: _Array) -> _Array:
  if not array.size or array.dtype.kind not in 'fcV':
    return array
  return np.ascontiguousarray(array).view(np.uint8)


def _differs(first: _Array, second: _Array) -> _Array:
  """Returns, flat, which elements have other bits."""
  if first.dtype.kind not in 'fcV':
    return np.asarray(first != second).reshape(-1)
  width = first.dtype.itemsize
  one, other = (np.ascontiguousarray(a).view(np.uint8).reshape(-1, width) for a in (first, second))
  return np.asarray(np.any(one != other, axis=1))


def _greatest(first: _Array, second: _Array, differs: _Array) -> tuple[float, float]:
  """Returns the greatest absolute and relative difference; NaN where they cannot be formed."""
  if first.dtype.kind not in 'fcViub':
    return float('nan'), float('nan')
  places = np.flatnonzero(differs)
  one, other = (widened(array.reshape(-1)[places]) for array in (first, second))
  with np.errstate(all='ignore'):
    absolute = np.abs(other - one)
    relative = absolute / np.abs(one)
  if not np.isfinite(absolute).all():
    return float('nan'), float('nan')
  return float(np.max(absolute)), float(np.max(relative))
