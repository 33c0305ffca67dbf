"""The functions that make random operations, in graphs and eagerly.

`tf.random.uniform`, dropout and the initializers all call them by their module, so that another
function in their place is asked. TensorFlow has no hook for that. Run with TensorFlow 2.16 to 2.21.
"""

import contextlib
import functools
import inspect
import sys
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import numpy as np
import tensorflow as tf
from tensorflow.python.framework import tensor_shape, tensor_util
from tensorflow.python.ops import gen_random_ops, gen_stateless_random_ops_v2, random_ops

from tf2verify.tensorflow_internals import op_callbacks

# By type of operation.
_FUNCTIONS = {
  'RandomUniform': 'random_uniform',
  'RandomStandardNormal': 'random_standard_normal',
  'TruncatedNormal': 'truncated_normal',
}
KINDS = tuple(_FUNCTIONS)
# A draw of classes by their logits.
CLASSES = 'Multinomial'
# Returns what takes the place of a draw, given its type of operation, its shape as a tensor and
# its dtype; None to draw.
Answer = Callable[[str, Any, Any], Any]

# Stateless operations that draw what a stateful one draws first, by function that makes that one.
_STATELESS = {
  'random_uniform': ('RandomUniform', gen_stateless_random_ops_v2.stateless_random_uniform_v2),
  'random_standard_normal': (
    'RandomStandardNormal',
    gen_stateless_random_ops_v2.stateless_random_normal_v2,
  ),
  'truncated_normal': (
    'TruncatedNormal',
    gen_stateless_random_ops_v2.stateless_truncated_normal_v2,
  ),
  'random_uniform_int': (
    'RandomUniformInt',
    gen_stateless_random_ops_v2.stateless_random_uniform_int_v2,
  ),
}
# The public functions that make those, and nothing else.
_ASKING = ('random_uniform', 'random_normal', 'truncated_normal')
_PHILOX = 1


@contextlib.contextmanager
def answered(answer: Answer, with_classes: bool = False) -> Iterator[None]:
  """Has random operations of floating-point numbers asked for until exit, before they are made.

  Args:
    answer: is asked.
    with_classes: whether draws of classes are asked for as well: by numbers of [0, 1).
  """
  with contextlib.ExitStack() as stack:
    for kind, name in _FUNCTIONS.items():
      known = getattr(gen_random_ops, name)
      asking = functools.partial(_asked, answer, kind, known, inspect.signature(known))
      stack.enter_context(mock.patch.object(gen_random_ops, name, asking))
    if with_classes:
      known = gen_random_ops.multinomial
      asking = functools.partial(_asked_classes, answer, known, inspect.signature(known))
      stack.enter_context(mock.patch.object(gen_random_ops, 'multinomial', asking))
    yield


def _asked_classes(
  answer: Answer,
  known: Callable[..., Any],
  signature: inspect.Signature,
  *arguments: Any,
  **keywords: Any,
) -> Any:
  bound = signature.bind(*arguments, **keywords)
  bound.apply_defaults()
  logits = tf.convert_to_tensor(bound.arguments['logits'])
  rows, classes = tf.unstack(tf.shape(logits))
  shape = tf.stack([rows, bound.arguments['num_samples']])
  found = answer(CLASSES, shape, tf.float32)
  if found is None:
    return known(*arguments, **keywords)
  return tf.cast(tf.floor(found * tf.cast(classes, tf.float32)), bound.arguments['output_dtype'])


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


@contextlib.contextmanager
def drawn_first(is_given: Callable[[tuple[int, int]], bool]) -> Iterator[None]:
  """Has eager draws by some seeds draw what a new kernel draws first, until exit.

  A kernel keeps how far it has drawn, and can only be forgotten with all others. Philox draws the
  same with the seeds as key and counter. Not for what `tf.raw_ops` draws.

  Args:
    is_given: whether seeds are such.
  """
  with contextlib.ExitStack() as stack:
    for name, (kind, stateless) in _STATELESS.items():
      known = getattr(gen_random_ops, name)
      drawing = _drawing_first(is_given, kind, known, stateless)
      stack.enter_context(mock.patch.object(gen_random_ops, name, drawing))
    yield


def is_asked_by_such() -> bool:
  """Returns whether the seeds that are asked for are of a draw that `drawn_first` knows.

  To be called by the function that stands in for TensorFlow's `get_seed`.
  """
  caller = sys._getframe(2)
  return caller.f_code.co_name in _ASKING and caller.f_globals is vars(random_ops)


def _drawing_first(
  is_given: Callable[[tuple[int, int]], bool],
  kind: str,
  known: Callable[..., Any],
  stateless: Callable[..., Any],
) -> Callable[..., Any]:
  @functools.wraps(known)
  def draw(
    shape: Any, *others: Any, seed: int = 0, seed2: int = 0, name: str | None = None, **named: Any
  ) -> Any:
    # Without a seed a kernel takes one of its own; a function that is traced has its own kernels.
    if not tf.executing_eagerly() or not (seed or seed2) or not is_given((seed, seed2)):
      return known(shape, *others, seed=seed, seed2=seed2, name=name, **named)
    key, counter = np.array([seed]).view(np.uint64), np.array([0, seed2]).view(np.uint64)
    with op_callbacks.told_as(kind):
      return stateless(shape, key, counter, _PHILOX, *others, name=name, **named)

  return draw
