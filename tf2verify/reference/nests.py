"""Nests of tensors and arrays: structure, paths and leaves."""

import collections.abc
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Tuple

import numpy as np
import tensorflow as tf

from .private_tensorflow import v1

# The path of a leaf that is the whole nest.
THE_OUTPUT = '(the output)'


class FlatNest(NamedTuple):
  """A nest taken apart.

  Attributes:
    structure: the nest as text, tuples and lists written alike.
    leaves: path and leaf, in order, dictionaries by sorted key. A leaf is a
      tensor, a numpy array or None; composite tensors come as their components.
  """

  structure: str
  leaves: Tuple[Tuple[str, Any], ...]


class NotATensor(TypeError):
  """A leaf of a nest is nothing that can be compared.

  Attributes:
    path: the leaf's place.
    leaf: the object.
  """

  def __init__(self, path: str, leaf: Any) -> None:
    super().__init__('{} is of type {}'.format(path or 'the result', type(leaf).__name__))
    self.path = path
    self.leaf = leaf


def _components(leaf: Any) -> Optional[Dict[str, Any]]:
  """Returns the parts of a composite tensor by name; None for any other object."""
  if isinstance(leaf, (tf.SparseTensor, v1.SparseTensorValue)):
    return {'indices': leaf.indices, 'values': leaf.values, 'dense_shape': leaf.dense_shape}
  if isinstance(leaf, tf.RaggedTensor):
    parts = {'flat_values': leaf.flat_values}
    for number, split in enumerate(leaf.nested_row_splits):
      parts['row_splits_{}'.format(number)] = split
    return parts
  if isinstance(leaf, tf.IndexedSlices):
    return {'values': leaf.values, 'indices': leaf.indices}
  return None


def _children(nest: Any, path: str) -> Optional[Tuple[str, List[Tuple[str, Any, str]], str]]:
  """Returns opening, (path, child, label) and closing of a nest; None for a leaf."""
  parts = _components(nest)
  if parts is not None:
    children = [('{}.{}'.format(path, name), parts[name], name + '=') for name in parts]
    return type(nest).__name__ + '(', children, ')'
  if isinstance(nest, collections.abc.Mapping):
    keys = sorted(nest, key=lambda key: (type(key).__name__, key))
    return (
      '{',
      [('{}[{!r}]'.format(path, key), nest[key], '{!r}: '.format(key)) for key in keys],
      '}',
    )
  if isinstance(nest, tuple) and hasattr(nest, '_fields'):
    fields = nest._fields
    children = [('{}.{}'.format(path, n), getattr(nest, n), n + '=') for n in fields]
    return type(nest).__name__ + '(', children, ')'
  if isinstance(nest, (list, tuple)):
    return '(', [('{}[{}]'.format(path, n), c, '') for n, c in enumerate(nest)], ')'
  return None


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


def _walk(nest: Any, path: str) -> Tuple[str, List[Tuple[str, Any]]]:
  found = _children(nest, path)
  if found is None:
    return _leaf(nest, path)
  opening, children, closing = found
  texts: List[str] = []
  leaves: List[Tuple[str, Any]] = []
  for child_path, child, label in children:
    text, below = _walk(child, child_path)
    texts.append(label + text)
    leaves += below
  return opening + ', '.join(texts) + closing, leaves


def _leaf(leaf: Any, path: str) -> Tuple[str, List[Tuple[str, Any]]]:
  place = path or THE_OUTPUT
  if leaf is None:
    return 'None', [(place, None)]
  if isinstance(leaf, tf.Variable):
    leaf = leaf.read_value()
  if isinstance(leaf, tf.Tensor):
    return 'Tensor', [(place, leaf)]
  if isinstance(leaf, (np.ndarray, np.generic, bool, int, float, complex, str, bytes)):
    return 'Tensor', [(place, np.asarray(leaf))]
  raise NotATensor(path, leaf)


def map_leaves(function: Callable[[str, Any], Any], nest: Any, path: str = '') -> Any:
  """Returns a nest of the same structure with `function(path, leaf)` as its leaves."""
  if isinstance(nest, collections.abc.Mapping):
    items = {key: map_leaves(function, nest[key], '{}[{!r}]'.format(path, key)) for key in nest}
    return items if type(nest) is dict else type(nest)(items)  # type: ignore[call-arg]
  if isinstance(nest, tuple) and hasattr(nest, '_fields'):
    fields = nest._fields
    parts = [map_leaves(function, getattr(nest, n), '{}.{}'.format(path, n)) for n in fields]
    return type(nest)(*parts)
  if isinstance(nest, (list, tuple)):
    return type(nest)(
      map_leaves(function, child, '{}[{}]'.format(path, n)) for n, child in enumerate(nest)
    )
  return function(path, nest)


def leaves_by_path(nest: Any) -> Dict[str, Any]:
  """Returns the leaves of a nest, as they are, by their paths."""
  found: Dict[str, Any] = {}
  map_leaves(found.__setitem__, nest)
  return found


def floating_leaves(nest: Any) -> Iterator[Tuple[str, Any]]:
  """Yields path and tensor of every floating leaf."""
  for path, leaf in flatten(nest).leaves:
    if isinstance(leaf, tf.Tensor) and leaf.dtype.is_floating:
      yield path, leaf
