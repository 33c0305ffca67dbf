"""Where Keras layers were constructed, whose operations have no line of their own."""

import contextlib
import sys
import types
import weakref
from collections.abc import Iterator
from typing import Any

from tf2verify.records.observation import CodePlace, SourceLine
from tf2verify.sides.graphs.source_lines import is_hook, is_own_file, is_user_file, user_line
from tf2verify.sides.graphs.user_sources import remember_layers, with_layers
from tf2verify.tensorflow_internals import layer_calls, op_callbacks

_SHOWN = 3


class MadeLayers:
  """Sees where layers are constructed, and which of them operations and variables are made in.

  A layer of Keras has the settings that it was constructed with: what it computes differently is
  to be mended there, not where it is called.
  """

  def __init__(self) -> None:
    self._made: dict[int, tuple[weakref.ref[Any], CodePlace]] = {}
    self._weights: dict[str, SourceLine | None] = {}

  @contextlib.contextmanager
  def recording(self) -> Iterator[None]:
    """Sees what is constructed until exit."""
    with layer_calls.constructed(self._on_layer, self._on_weight):
      yield

  def line(self, path: str | None) -> SourceLine | None:
    """Returns the user's line that is making a variable, with the layers that it runs in.

    Args:
      path: of a variable of Keras 3, which may have been declared before; None for another one.
    """
    declared = None if path is None else self._weights.get(path)
    return declared if declared is not None else with_layers(user_line(), self.around())

  def _on_weight(self, path: str) -> None:
    self._weights.setdefault(path, with_layers(user_line(), self.around()))

  def _on_layer(self, layer: Any) -> None:
    line = user_line()
    # That the case constructs the port says nothing; a layer of Keras in a hook is the port.
    if line is not None and not (is_hook(line.function) and _is_of_user(type(layer))):
      place = CodePlace(line.path, line.line, line.function, line.code, line.last_line)
      self._made[id(layer)] = (weakref.ref(layer), place)

  def around(self) -> tuple[CodePlace, ...]:
    """Returns where the layers were constructed whose calls are running, innermost first."""
    found: dict[CodePlace, None] = {}
    frame: types.FrameType | None = sys._getframe(1)
    codes = layer_calls.codes()
    while frame is not None and len(found) < _SHOWN:
      if frame.f_code in codes:
        known, place = self._made.get(id(frame.f_locals.get('self')), (None, None))
        if known is not None and place is not None and known() is not None:
          found[place] = None
      elif is_own_file(frame.f_code.co_filename):
        break
      frame = frame.f_back
    return tuple(found)

  @contextlib.contextmanager
  def of_operations(self, graph: Any) -> Iterator[None]:
    """Lets `user_source` know the layers of the operations that a graph gets until exit."""
    found: dict[str, tuple[CodePlace, ...]] = {}

    def on_op(op: op_callbacks.Operation) -> None:
      made = self.around() if op.graph is graph and op.name is not None else ()
      if made:
        found[str(op.name)] = made

    remember_layers(graph, found)
    with op_callbacks.called(on_op):
      yield


def _is_of_user(cls: type) -> bool:
  path = getattr(sys.modules.get(cls.__module__), '__file__', None)
  return path is None or is_user_file(path)
