"""Draws of a port that are answered by fixed numbers, to see what depends on them."""

import contextlib
import contextvars
import dataclasses
import enum
from collections.abc import Callable, Collection, Iterator
from typing import Any

import numpy as np
import tensorflow as tf

from tf2verify.sides.process import loop_draws
from tf2verify.tensorflow_internals import random_ops

# Of whole numbers, those of a class can be answered.
KINDS = (*random_ops.KINDS, random_ops.CLASSES)
_DTYPES = (tf.float32, tf.float64)
# Beyond what is drawn.
_FAR = {'RandomStandardNormal': 9.0, 'TruncatedNormal': 2.0}


class By(enum.Enum):
  """The numbers that stand for a draw: an end of their range, or some that are spread over it."""

  LEAST = enum.auto()
  GREATEST = enum.auto()
  SPREAD = enum.auto()


@dataclasses.dataclass
class _Answers:
  draws: Collection[int]
  by: By
  uncount: Callable[[], None] = lambda: None
  _asked: int = 0

  def answer(self, kind: str, shape: Any, dtype: Any) -> tf.Tensor | None:
    number, self._asked = self._asked, self._asked + 1
    if number not in self.draws or dtype not in _DTYPES:
      return None
    self.uncount()
    return tf.broadcast_to(tf.constant(self._numbers(kind, shape, dtype), dtype), shape)

  def _numbers(self, kind: str, shape: Any, dtype: Any) -> Any:
    kind = 'RandomUniform' if kind == random_ops.CLASSES else kind
    sizes = random_ops.known_shape(shape)
    if self.by is By.SPREAD:
      return loop_draws.numbers(kind, (sizes[-1] if sizes else 1) or 1).reshape(sizes and (-1,))
    if kind in _FAR:
      return _FAR[kind] * (-1.0 if self.by is By.LEAST else 1.0)
    return 0.0 if self.by is By.LEAST else 1.0 - np.finfo(dtype.as_numpy_dtype).eps


_WANTED: contextvars.ContextVar[tuple[Collection[int], By] | None] = contextvars.ContextVar(
  'tf2verify_answered_draws', default=None
)


@contextlib.contextmanager
def answering(draws: Collection[int], by: By) -> Iterator[None]:
  """Has draws answered, and not counted, in every scope that counts random ops until exit.

  Args:
    draws: which of those of `KINDS`, in their order in a scope, from 0.
    by: what they are answered by.
  """
  token = _WANTED.set((draws, by))
  try:
    yield
  finally:
    _WANTED.reset(token)


@contextlib.contextmanager
def scope(counts: bool, uncount: Callable[[], None]) -> Iterator[None]:
  """Answers the draws that are wanted, until exit.

  Args:
    counts: whether the scope counts random ops.
    uncount: takes back the count of a draw that is answered.
  """
  wanted = _WANTED.get()
  if wanted is None or not counts:
    yield
    return
  with random_ops.answered(_Answers(*wanted, uncount).answer, with_classes=True):
    yield
