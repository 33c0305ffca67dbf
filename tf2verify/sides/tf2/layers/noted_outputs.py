"""A case of which it is noted what the calls of its port return: the structure of the outputs."""

from collections.abc import Callable
from typing import Any, final

import tensorflow as tf

from tf2verify.sides.tf2.layers import layer_parts
from tf2verify.sides.tf2.layers.port import flat_outputs
from tf2verify.tensorflow_internals import autograph


@final
class NotedOutputs:
  """What a case declares, to be given to its port in place of the case itself.

  Attributes:
    structures: the structure of the outputs of the last call, as text, by training mode; names of
      outputs alone do not show an output that is None, or the class of a named tuple.
  """

  def __init__(self, declaration: Any) -> None:
    self._declaration = declaration
    self.structures: dict[bool, str] = {}

  def __getattr__(self, name: str) -> Any:
    return getattr(self._declaration, name)

  @property
  def call_tf2_layer(self) -> Callable[[Any, Any, bool], Any]:
    """The hook, which notes what it returns; AutoGraph rewrites it, and not what notes it."""
    if autograph.converted(self._call) == self._call:
      return self._call  # it is off

    def converted(layer: Any, inputs: Any, training: bool) -> Any:
      with autograph.switched():
        return self._call(layer, inputs, training)

    left_alone: Callable[[Any, Any, bool], Any]
    left_alone = tf.autograph.experimental.do_not_convert(converted)
    return left_alone

  def _call(self, layer: Any, inputs: Any, training: bool) -> Any:
    call = layer_parts.call_of(self._declaration, layer)
    outputs = call(layer, inputs, training)
    self.structures[training] = flat_outputs(outputs).structure
    return outputs
