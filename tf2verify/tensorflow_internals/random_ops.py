"""The functions that make random operations, in graphs and eagerly.

`tf.random.uniform`, dropout and the initializers all call them by their module, so that another
function in their place is asked. TensorFlow has no hook for that. Run with TensorFlow 2.16 to 2.21.
"""

import contextlib
import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

from tensorflow.python.framework import tensor_shape, tensor_util
from tensorflow.python.ops import gen_random_ops

# By type of operation.
_FUNCTIONS = {
  'RandomUniform': 'random_uniform',
  'RandomStandardNormal': 'random_standard_normal',
  'TruncatedNormal': 'truncated_normal',
}
# Returns what takes the place of a draw, given its type of operation, its shape as a tensor and
# its dtype; None to draw.
Answer = Callable[[str, Any, Any], Any]


@contextlib.contextmanager
def answered(answer: Answer) -> Iterator[None]:
  """Has random operations of floating-point numbers asked for until exit, before they are made."""
  with contextlib.ExitStack() as stack:
    for kind, name in _FUNCTIONS.items():
      known = getattr(gen_random_ops, name)
      asking = functools.partial(_asked, answer, kind, known, inspect.signature(known))
      stack.enter_context(mock.patch.object(gen_random_ops, name, asking))
    yield


def _asked(
  answer: Answer,
  kind: str,
  known: Callable[..., Any],
  signature: inspect.Signature,
  *arguments: Any,
  **keywords: Any,
) -> Any:
  given = signature.bind(*arguments, **keywords).arguments
  found = answer(kind, given['shape'], given['dtype'])
  return known(*arguments, **keywords) if found is None else found


def known_shape(shape: Any) -> tuple[int | None, ...]:
  """Returns what is known of a shape, which may be a tensor; empty for a scalar's, or for none."""
  known = tensor_util.constant_value_as_shape(shape)
  return () if known.rank is None else tuple(tensor_shape.TensorShape(known).as_list())
