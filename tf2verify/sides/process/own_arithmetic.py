"""What numpy does at 0/0 or an overflow: nothing here, what the user wants in the user's code."""

import contextlib
import contextvars
from collections.abc import Iterator
from typing import Any

import numpy as np

# What the user wants; None outside of tf2verify.
_WANTED: contextvars.ContextVar[Any] = contextvars.ContextVar('wanted', default=None)


@contextlib.contextmanager
def silent() -> Iterator[None]:
  """Compares whatever a model yields, infinities too, without a warning or FloatingPointError."""
  token = _WANTED.set(_WANTED.get() or np.geterr())
  try:
    with np.errstate(all='ignore'):
      yield
  finally:
    _WANTED.reset(token)


@contextlib.contextmanager
def as_user_wants() -> Iterator[None]:
  """Has numpy warn, or raise, as it did before `silent`: for code of the user."""
  wanted = _WANTED.get()
  with np.errstate(**wanted) if wanted else contextlib.nullcontext():
    yield
