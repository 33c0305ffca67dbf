"""The nests of tensors that a side takes and returns."""

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import tensorflow as tf


@dataclasses.dataclass(frozen=True)
class FlatNest:
  """A nest taken apart.

  Attributes:
    structure: the nest as text, tuples and lists written alike.
    leaves: path and leaf, in order, dictionaries by sorted key. A leaf is a
      tensor, a numpy array or None; composite tensors come as their components.
  """

  structure: str
  leaves: tuple[tuple[str, Any], ...]


class NotATensor(Exception):
  """A leaf of a nest is nothing that can be compared.

  Attributes:
    path: the leaf's place.
    leaf: the object.
  """

  def __init__(self, path: str, leaf: Any) -> None:
    super().__init__(f'{path or "the result"} is of type {type(leaf).__name__}')
    self.path = path
    self.leaf = leaf


def _components(leaf: Any) -> dict[str, Any] | None:
  """Returns the parts of a composite tensor by name; None for any other object."""
  if isinstance(leaf, (tf.SparseTensor, tf.compat.v1.SparseTensorValue)):
    return {'indices': leaf.indices, 'values': leaf.values, 'dense_shape': leaf.dense_shape}
  if isinstance(leaf, tf.RaggedTensor):
    splits = {f'row_splits_{n}': split for n, split in enumerate(leaf.nested_row_splits)}
    return {'flat_values': leaf.flat_values, **splits}
  if isinstance(leaf, tf.IndexedSlices):
    return {'values': leaf.values, 'indices': leaf.indices}
  return None


def _walk(nest: Any, path: str) -> tuple[str, list[tuple[str, Any]]]:
  children: list[tuple[str, Any, str]]  # path, child, label before the child
  components = _components(nest)
  if components is not None:
    children = [(f'{path}.{name}', part, f'{name}=') for name, part in components.items()]
    opening, closing = f'{type(nest).__name__}(', ')'
  elif isinstance(nest, Mapping):
    keys = sorted(nest, key=lambda key: (type(key).__name__, key))
    children = [(f'{path}[{key!r}]', nest[key], f'{key!r}: ') for key in keys]
    opening, closing = '{', '}'
  elif isinstance(nest, tuple) and hasattr(nest, '_fields'):
    children = [(f'{path}.{name}', getattr(nest, name), f'{name}=') for name in nest._fields]
    opening, closing = f'{type(nest).__name__}(', ')'
  elif isinstance(nest, (list, tuple)):
    children = [(f'{path}[{n}]', child, '') for n, child in enumerate(nest)]
    opening, closing = '(', ')'
  else:
    return _leaf(nest, path)
  texts, leaves = [], []
  for child_path, child, label in children:
    text, below = _walk(child, child_path)
    texts.append(label + text)
    leaves += below
  return opening + ', '.join(texts) + closing, leaves


def _leaf(leaf: Any, path: str) -> tuple[str, list[tuple[str, Any]]]:
  place = path or '(the output)'
  if leaf is None:
    return 'None', [(place, None)]
  if isinstance(leaf, tf.Variable):
    leaf = leaf.read_value()
  if isinstance(leaf, tf.Tensor):
    return 'Tensor', [(place, leaf)]
  if isinstance(leaf, (np.ndarray, np.generic, bool, int, float, complex, str, bytes)):
    return 'Tensor', [(place, np.asarray(leaf))]
  raise NotATensor(path, leaf)


def flatten(nest: Any) -> FlatNest:
  """Takes a nest apart.

  Args:
    nest: a tensor, or tuples, lists, namedtuples and dictionaries of tensors,
      `SparseTensor`, `RaggedTensor`, numbers, numpy arrays and None.

  Raises:
    NotATensor: for any other leaf.
  """
  structure, leaves = _walk(nest, '')
  return FlatNest(structure, tuple(leaves))


def map_leaves(function: Callable[[str, Any], Any], nest: Any, path: str = '') -> Any:
  """Returns a nest of the same structure with `function(path, leaf)` as its leaves."""
  if isinstance(nest, Mapping):
    items = {key: map_leaves(function, nest[key], f'{path}[{key!r}]') for key in nest}
    return items if type(nest) is dict else type(nest)(items)  # type: ignore[call-arg]
  if isinstance(nest, tuple) and hasattr(nest, '_fields'):
    return type(nest)(
      *(map_leaves(function, getattr(nest, name), f'{path}.{name}') for name in nest._fields)
    )
  if isinstance(nest, (list, tuple)):
    return type(nest)(map_leaves(function, child, f'{path}[{n}]') for n, child in enumerate(nest))
  return function(path, nest)


def floating_leaves(nest: Any) -> Iterator[tuple[str, tf.Tensor]]:
  """Yields path and tensor of every floating leaf."""
  for path, leaf in flatten(nest).leaves:
    if isinstance(leaf, tf.Tensor) and leaf.dtype.is_floating:
      yield path, leaf
