"""Which Keras a port was verified under, and which one it is served by."""

import os
from typing import Any

from tf2verify.environment import installed, legacy_keras
from tf2verify.sides.tf2 import layer_parts
from tf2verify.sides.tf2.imported_keras import is_keras2_anywhere

# Classes of TF1's API: they come from tf-keras in any process, and do not exist in Keras 3.
_TF1_ONLY = ('legacy_tf_layers', 'legacy_cells')
# Where `track_tf1_style_variables` keeps the variables of a layer, TF 2.16 to 2.21.
_SHIM_STORE = '_tf1_style_var_store'


def uses_keras_layers(layer: Any) -> bool:
  """Returns whether a port is or holds a layer of tf-keras, or one with weights made by Keras.

  A layer under `track_tf1_style_variables` does not count: Keras 3 has no such decorator, so
  that it fails there and does not compute something else.

  Args:
    layer: a layer or `tf.Module` that has been called.
  """
  return any(_is_of_keras(module) for module in layer_parts.modules_of(layer))


def _is_of_keras(module: Any) -> bool:
  homes = [cls.__module__.split('.') for cls in type(module).__mro__]
  if any(name in home for home in homes for name in _TF1_ONLY):
    return False
  if homes[0][0] == 'tf_keras':
    return True
  users_own = any(home[0] == 'tf_keras' for home in homes) and not hasattr(module, _SHIM_STORE)
  return users_own and bool(module._trainable_weights or module._non_trainable_weights)


def served_keras_note(layer: Any, case: Any = None) -> tuple[str, bool] | None:
  """Returns what to say of the Keras that was verified, and whether it is a blind spot.

  Args:
    layer: the port, after a call.
    case: which makes it; None without one.

  Returns:
    None where the Keras of production is the one verified, as tf-keras is that code imports by its
    own name, or no layer is of Keras. It is no
    blind spot where the user has set TF_USE_LEGACY_KERAS=1.
  """
  if legacy_keras.serves_keras_3():
    return None  # a layer of tf-keras is one by its own import
  serving = installed.version('keras')
  release = installed.minor(serving)
  if release is None or release < (3, 0) or not uses_keras_layers(layer):
    return None
  own = [type(module) for module in layer_parts.modules_of(layer)]
  if is_keras2_anywhere([*own, *([] if case is None else [type(case)])]):
    return None
  verified = f'the port was verified under Keras 2 (tf-keras {installed.version("tf_keras")})'
  if legacy_keras.CHOSEN not in os.environ:
    return f'{verified}, as {legacy_keras.FLAG}=1 in the environment asks for', False
  return (
    f'{verified}; in production tf.keras is Keras 3 (keras {serving}) unless '
    f'{legacy_keras.FLAG}=1 is set there, and some of its layers compute different numbers',
    True,
  )
