"""Operations whose kernels end the process where what they read has another rank.

Those of convolutions and pooling, as oneDNN has them, do not raise an error. Where the graph tells
the rank, TensorFlow refuses to build the operation; where it does not, nobody has looked.
"""

from collections.abc import Callable, Collection, Mapping, Sequence

import numpy as np
import tensorflow as tf

_OF_ONE_RANK = (
  *('Conv2D', 'Conv3D', 'DepthwiseConv2d', 'FusedBatchNorm', 'LRN'),
  *('AvgPool', 'MaxPool', 'FractionalAvgPool', 'FractionalMaxPool'),
)


class UnknownRank(ValueError):
  """A changed graph has such an operation, of which nobody knows whether it ends the process."""


def of_unknown_rank(graph: tf.Graph) -> set[str]:
  """Returns the names of such operations that read a tensor of floats of unknown rank."""
  return {op.name for op in graph.get_operations() if _is_unsure(op)}


def refuse_unknown_ranks(graph: tf.Graph, known: Collection[str] = ()) -> tf.Graph:
  """Returns a graph without such operations.

  Args:
    graph: the graph.
    known: names of those that are there without a change of the graph, and run.

  Raises:
    UnknownRank: there are others.
  """
  found = of_unknown_rank(graph) - set(known)
  if found:
    raise UnknownRank(f'the rank of what {min(found)} reads is not known')
  return graph


def keeps_ranks(
  graph: tf.Graph,
  given: Mapping[str, np.ndarray],
  computed: Callable[[Sequence[str]], Mapping[str, np.ndarray] | None],
) -> bool:
  """Returns whether values may be given to a graph in place of what it computes.

  Args:
    graph: the graph; TensorFlow refuses values that do not fit the shapes it tells.
    given: the values, by tensor.
    computed: returns what it computes; None if that is not known.
  """
  known = (name for name in given if graph.get_tensor_by_name(name).shape.rank is None)
  unknown = list(known)
  if not unknown or not of_unknown_rank(graph):
    return True
  values = computed(unknown)
  return values is not None and all(values[name].ndim == given[name].ndim for name in unknown)


def _is_unsure(op: tf.Operation) -> bool:
  if not op.type.startswith(_OF_ONE_RANK):
    return False
  return any(tensor.dtype.is_floating and tensor.shape.rank is None for tensor in op.inputs)
