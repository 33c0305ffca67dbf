"""What code finds by a name or by a type, and not through its own globals.

`tf.RegisterGradient`, `tf.register_tensor_conversion_function`, the dispatch of operations by type,
and the custom objects of both Keras. Run with TensorFlow 2.16 to 2.21.
"""

import dataclasses
import sys
from collections.abc import Iterator
from typing import Any

from tensorflow.python.framework import ops, tensor_conversion_registry
from tensorflow.python.util import dispatch


@dataclasses.dataclass(frozen=True)
class Registry:
  """A place where functions and classes are registered.

  Attributes:
    name: for a reader.
    is_of_ports: whether a port registers what it consists of there, too.
  """

  name: str
  is_of_ports: bool = False


_GRADIENTS = Registry('gradients of TensorFlow')
_CONVERSIONS = Registry('conversions to tensors')
_DISPATCH = Registry('operations by type')
_KERAS = (
  ('tf_keras.src.saving.object_registration', '_GLOBAL_CUSTOM_OBJECTS'),
  ('tf_keras.src.saving.object_registration', '_THREAD_LOCAL_CUSTOM_OBJECTS'),
  ('keras.src.saving.object_registration', 'GLOBAL_CUSTOM_OBJECTS'),
)
_CUSTOM = Registry('custom objects of Keras', is_of_ports=True)


def entries() -> Iterator[tuple[Registry, str, Any]]:
  """Yields each registry with the names in it, and what is registered under them."""
  for name, entry in list(ops.gradient_registry._registry.items()):
    yield _GRADIENTS, name, entry['type']
  for registered in list(tensor_conversion_registry._tensor_conversion_func_registry.values()):
    for base, function in list(registered):
      yield _CONVERSIONS, str(base), function
  yield from ((_DISPATCH, 'all', one) for one in list(dispatch._GLOBAL_DISPATCHERS))
  for types, function in list(dispatch._ELEMENTWISE_API_HANDLERS.items()):
    yield _DISPATCH, str(types), function
  for function, targets in list(dispatch._TYPE_BASED_DISPATCH_SIGNATURES.items()):
    yield from ((_DISPATCH, getattr(function, '__name__', ''), target) for target in list(targets))
  for module, name in _KERAS:
    known: Any = getattr(sys.modules.get(module), name, {})
    for key, value in list((known if isinstance(known, dict) else vars(known)).items()):
      yield _CUSTOM, str(key), value
