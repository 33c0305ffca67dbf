"""Where the settings of layers are: constructors of Keras, `arg_scope` of TF-Slim."""

import contextlib
import sys
import types
import weakref
from collections.abc import Iterator
from typing import Any

from tf2verify.records.observation import CodePlace, SourceLine
from tf2verify.sides.graphs.lines.source_lines import is_hook, is_own_file, is_user_file, user_line
from tf2verify.sides.graphs.lines.user_sources import Around, remember_layers, with_layers
from tf2verify.tensorflow_internals import arg_scopes, layer_calls, op_callbacks

_SHOWN = 3
_UNSET = object()


class MadeLayers:
  """Sees where layers are constructed, and which of them operations and variables are made in.

  A layer of Keras has the settings that it was constructed with: what it computes differently is
  to be fixed there, not where it is called.
  """

  def __init__(self) -> None:
    # With what called the function that constructs it.
    self._made: dict[int, tuple[weakref.ref[Any], CodePlace, tuple[CodePlace, ...]]] = {}
    # The arguments that scopes give, by identity, and who set them; they are kept alive by it.
    self._scopes: dict[int, tuple[dict[str, Any], dict[str, CodePlace]]] = {}
    self._weights: dict[str, SourceLine | None] = {}

  @contextlib.contextmanager
  def recording(self) -> Iterator[None]:
    """Sees what is constructed until exit."""
    with (
      layer_calls.constructed(self._on_layer, self._on_weight),
      arg_scopes.entered(self._on_scope),
    ):
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
      place = line.place
      self._made[id(layer)] = (weakref.ref(layer), place, line.callers)

  def _on_scope(self, outer: arg_scopes.Scope, scope: arg_scopes.Scope) -> None:
    line = user_line()
    for function, arguments in scope.items():
      if line is None or id(arguments) in self._scopes:
        continue  # as where a scope is entered again
      before = outer.get(function, {})
      _, places = self._scopes.get(id(before), ({}, {}))
      place = line.place
      own = {name for name, value in arguments.items() if before.get(name, _UNSET) is not value}
      outer_places = {name: known for name, known in places.items() if name not in own}
      self._scopes[id(arguments)] = (arguments, dict.fromkeys(own, place) | outer_places)

  def around(self) -> Around:
    """Returns where the layers were made, and given arguments, whose calls are running."""
    layers: dict[CodePlace, tuple[CodePlace, ...]] = {}
    scopes: dict[CodePlace, None] = {}
    frame: types.FrameType | None = sys._getframe(1)
    calls = layer_calls.Frames()
    while frame is not None:
      given = arg_scopes.given(frame)
      layer, path = calls.running(frame), calls.regularized(frame)
      declared = None if path is None else self._weights.get(path)
      if declared is not None:
        layers |= dict.fromkeys(declared.made or (declared.place,), ()) | layers
      elif layer is not None:
        known, place, callers = self._made.get(id(layer), (None, None, ()))
        if known is not None and place is not None and known() is not None:
          layers.setdefault(place, callers)
      elif given is not None:
        own = frame.f_locals.get('kwargs', {})
        _, places = self._scopes.get(id(given), ({}, {}))
        scopes.update(dict.fromkeys(place for name, place in places.items() if name not in own))
      elif is_own_file(frame.f_code.co_filename):
        break
      frame = frame.f_back
    callers = next(iter(layers.values()), ())
    return Around(tuple(layers)[:_SHOWN], tuple(scopes)[:_SHOWN], callers)

  @contextlib.contextmanager
  def of_operations(self, graph: Any) -> Iterator[None]:
    """Lets `user_source` know the layers of the operations that a graph gets until exit."""
    found: dict[str, Around] = {}

    def on_op(op: op_callbacks.Operation) -> None:
      around = self.around() if op.graph is graph and op.name is not None else Around()
      if around.layers or around.scopes:
        found[str(op.name)] = around

    remember_layers(graph, found)
    with op_callbacks.called(on_op), arg_scopes.entered(self._on_scope):
      yield


def _is_of_user(cls: type) -> bool:
  path = getattr(sys.modules.get(cls.__module__), '__file__', None)
  return path is None or is_user_file(path)
