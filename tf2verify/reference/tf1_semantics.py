"""TF1's meaning of tensors and shapes, under any version."""

import contextlib
from typing import Any, Callable, Dict, Iterator, List, Optional, Type, TypeVar

import tensorflow as tf

from .private_tensorflow import tensor_shape, v1

Made = TypeVar('Made')
_IS_TF1 = tf.__version__.startswith('1.')


@contextlib.contextmanager
def tf1_semantics(v2_tensorshape: bool) -> Iterator[None]:
  """Gives TF1's meaning to `==` on tensors and to the items of a shape, under any version.

  With tensor equality on, `variable in collection` compares elements, and every
  look-up hashes a variable slowly: 12 of the 20 seconds that building
  Inception-ResNet-v2 takes.

  Args:
    v2_tensorshape: whether `shape[i]` is an int, where there is TF2, or a `Dimension` with a
      `.value`, as in TF1.
  """
  equality = getattr(tf.Tensor, '_USE_EQUALITY', None)  # before TensorFlow 1.15
  shapes = getattr(tensor_shape, '_TENSORSHAPE_V2_OVERRIDE', None)
  try:
    if equality:
      v1.disable_tensor_equality()
    if not v2_tensorshape:
      v1.disable_v2_tensorshape()
    elif not _IS_TF1:
      v1.enable_v2_tensorshape()
    yield
  finally:
    if equality is not None:
      v1.enable_tensor_equality() if equality else v1.disable_tensor_equality()
    tensor_shape._TENSORSHAPE_V2_OVERRIDE = shapes


def with_either_shape(
  make: Callable[[Any, bool], Made], failure: Type[Exception], graph: Optional[Any] = None
) -> Made:
  """Calls user code with TF1's tensor shapes; where it counts on TF2's, again with those.

  Where both fail, the attempt that got further has met the mistake, the other one only a
  shape.

  Args:
    make: adds to a graph, given that and whether shapes are TF2's.
    failure: what user code that raises becomes; its cause is what was raised.
    graph: to be added to; None for a fresh one each time.

  Raises:
    failure: of the attempt that made more operations.
  """
  first = tf.Graph() if graph is None else graph
  second = tf.Graph() if graph is None else graph
  collections_ = {key: list(first.get_collection(key)) for key in collection_keys(first)}
  before = len(first.get_operations())
  try:
    return make(first, False)
  except failure as error:
    half_ported = isinstance(error.__cause__, (TypeError, AttributeError, ValueError))
    if _IS_TF1 or not half_ported:
      raise
    shown: Exception = error
  made_first = len(first.get_operations()) - before
  _put_back(second, collections_)
  before = len(second.get_operations())
  try:
    return make(second, True)
  except failure as error:
    if len(second.get_operations()) - before > made_first:
      shown = error
  except TypeError:  # a global step of the first attempt is still in the graph
    pass
  raise shown from shown.__cause__


def _put_back(graph: Any, collections_: Dict[str, List[Any]]) -> None:
  for key in collection_keys(graph):
    graph.get_collection_ref(key)[:] = collections_.get(key, [])


def collection_keys(graph: Any) -> List[str]:
  """Returns the keys of the collections of a graph that are texts."""
  return [key for key in graph.get_all_collection_keys() if isinstance(key, str)]
