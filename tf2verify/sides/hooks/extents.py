"""Inputs that tell how much of others counts: lengths of examples, and masks of their steps."""

from collections.abc import Collection, Iterator, Mapping
from typing import Any

import numpy as np

from tf2verify.reference import nests


def lengths(inputs: Any) -> list[str]:
  """Returns the paths of inputs that may be lengths: an integer an example, no more than a size.

  Args:
    inputs: the nest of arrays.
  """
  leaves = nests.leaves_by_path(inputs)
  return [path for path in leaves if _is_length(leaves, path)]


def _is_length(leaves: Mapping[str, np.ndarray], path: str) -> bool:
  leaf = leaves[path]
  if leaf.dtype.kind not in 'iu' or not leaf.ndim or leaf.size != len(leaf) or not leaf.size:
    return False
  others = (x.shape for at, x in leaves.items() if at != path and x.ndim > 1)
  return bool(leaf.min() >= 0) and 0 < leaf.max() <= max((max(s) for s in others), default=0)


def is_mask(leaf: np.ndarray) -> bool:
  """Returns whether an array is ones and zeros, of several steps an example.

  Neither is a matrix of each step by each, an adjacency: a row of which all is masked is one that
  nobody gives.
  """
  if leaf.dtype.kind not in 'bif' or leaf.ndim < 2 or leaf.shape[1] < 2:
    return False
  is_square = leaf.shape[-1] == leaf.shape[-2]
  return not is_square and bool(leaf.any()) and bool(np.isin(leaf, (0, 1)).all())


def shortest(inputs: Any) -> Iterator[tuple[str, np.ndarray, str]]:
  """Yields lengths and masks in which the shortest example is empty, and then of one step.

  Args:
    inputs: the nest of arrays.

  Yields:
    The path of an input, the array to give in its place, and what that is; nothing where an
    example is as short as that.
  """
  found = lengths(inputs)
  for path, leaf in nests.leaves_by_path(inputs).items():
    if path in found:
      counts = leaf.reshape(-1)
    elif is_mask(leaf):
      counts = np.count_nonzero(leaf.reshape(len(leaf), -1), 1)
    else:
      continue
    for count, text in ((0, 'empty'), (1, 'of one step')):
      if counts.min() <= count:
        break
      changed = np.array(leaf)
      example = changed[int(counts.argmin())]  # of a mask, a view
      if path in found:
        changed[int(counts.argmin())] = count
      else:
        example.reshape(-1)[np.flatnonzero(example)[count:]] = 0
      yield path, changed, text


def read_to_end(
  before: Any, grown: Any, axes: Collection[Collection[tuple[str, int]]]
) -> tuple[Any, list[str]]:
  """Returns longer inputs of which the longest example is as long as they are.

  Args:
    before: the nest of arrays as it was.
    grown: the same, longer along axes.
    axes: which, by path and number; those of one size together.

  Returns:
    The nest, and the paths of the lengths that are others than in `grown`.
  """
  old, new = nests.leaves_by_path(before), nests.leaves_by_path(grown)
  sizes = {(old[path].shape[n], new[path].shape[n]) for group in axes for path, n in group}
  longer: dict[str, np.ndarray] = {}
  for path in lengths(before):
    greatest = old[path].max()
    ends = [pair for pair in sizes if pair[0] >= greatest]
    if ends:
      longer[path] = np.where(new[path] == greatest, min(ends)[1], new[path]).astype(
        old[path].dtype
      )
  return nests.map_leaves(lambda path, leaf: longer.get(path, leaf), grown), list(longer)
