"""Nests of tensors: structure, paths and leaves."""

import collections.abc
from typing import Any, Dict, List, Optional, Tuple

import numpy as np
import tensorflow as tf

from .private_tensorflow import v1


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


def flatten(nest: Any, path: str = '') -> Tuple[str, List[Tuple[str, Any]]]:
  """Returns the structure as text, and path and leaf in order, dictionaries by sorted key.

  Raises:
    TypeError: a leaf is neither a tensor nor an array, a number, a string or None.
  """
  found = _children(nest, path)
  if found is not None:
    opening, children, closing = found
    texts: List[str] = []
    leaves: List[Tuple[str, Any]] = []
    for child_path, child, label in children:
      text, below = flatten(child, child_path)
      texts.append(label + text)
      leaves += below
    return opening + ', '.join(texts) + closing, leaves
  place = path or '(the output)'
  if nest is None:
    return 'None', [(place, None)]
  if isinstance(nest, tf.Variable):
    nest = nest.read_value()
  if isinstance(nest, (np.ndarray, np.generic, bool, int, float, complex, str, bytes)):
    return 'Tensor', [(place, np.asarray(nest))]
  if isinstance(nest, tf.Tensor):
    return 'Tensor', [(place, nest)]
  raise TypeError('{} is of type {}'.format(path or 'the result', type(nest).__name__))
