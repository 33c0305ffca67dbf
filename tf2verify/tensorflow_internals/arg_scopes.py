"""The stack of TF-Slim's `arg_scope`, and the frames in which its arguments are given.

TF-Slim says which arguments hold, not where they were set. Run with tf-slim 1.1.0, its only version
for TensorFlow 2.
"""

import contextlib
import os
import sys
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any

_MODULE = 'tf_slim.ops.arg_scope'
_FILE = os.path.join('tf_slim', 'ops', 'arg_scope.py')
_GIVING = 'func_with_args'  # the function that a decorated one becomes

# Arguments by name, of the functions that a scope gives them to.
Scope = Mapping[Any, dict[str, Any]]


class _Stack(list[Scope]):
  def __init__(self, known: list[Scope], on_scope: Callable[[Scope, Scope], None]) -> None:
    super().__init__(known)
    self._on_scope = on_scope

  def append(self, scope: Scope) -> None:
    self._on_scope(self[-1] if self else {}, scope)
    super().append(scope)


@contextlib.contextmanager
def entered(on_scope: Callable[[Scope, Scope], None]) -> Iterator[None]:
  """Has a function called with the scope around and the scope that is entered, until exit.

  Where TF-Slim is not loaded, nothing is seen.
  """
  module: Any = sys.modules.get(_MODULE)
  if module is None:
    yield
    return
  known = module._ARGSTACK
  module._ARGSTACK = _Stack(known, on_scope)
  try:
    yield
  finally:
    module._ARGSTACK = known


def given(frame: types.FrameType) -> dict[str, Any] | None:
  """Returns the arguments by name that a scope gives in a frame; None for any other frame."""
  if frame.f_code.co_name != _GIVING or not frame.f_code.co_filename.endswith(_FILE):
    return None
  scope, key = (frame.f_locals.get(name) for name in ('current_scope', 'key_func'))
  return None if scope is None else scope.get(key)
