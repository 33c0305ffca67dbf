"""Sequences that belong together."""

from typing import Any, Iterable, Iterator


def pairs(*sequences: Any) -> Iterator[Any]:
  """Returns `zip` of sequences of one length, which newer versions of Python know as strict."""
  if len({len(sequence) for sequence in sequences}) > 1:
    raise AssertionError('of lengths {}'.format([len(sequence) for sequence in sequences]))
  return zip(*sequences)  # noqa: B905


def size_of(shape: Iterable[int]) -> int:
  """Returns the number of elements of a shape."""
  found = 1
  for size in shape:
    found *= size
  return found
