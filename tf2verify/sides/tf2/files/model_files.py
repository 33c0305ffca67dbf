"""The files that Keras has for its models: `.weights.h5` and `.keras`, of Keras 3 and tf-keras."""

import contextlib
import inspect
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import tf_keras

from tf2verify.reference.variables import variable_name
from tf2verify.sides import side
from tf2verify.sides.hooks.user_code import user_code
from tf2verify.sides.process import randomness
from tf2verify.sides.tf2.layers import layer_parts
from tf2verify.tensorflow_internals import keras3

_OF_KERAS = ('keras.', 'tf_keras.')
_MODULES_OF_KERAS = r'(tf_)?keras\.'
_ANY = inspect.Parameter.VAR_KEYWORD
# What makes variables, or an object, again when a file is read.
_BUILDS = ('build', 'build_from_config')
_CONFIGS = ('get_config', 'from_config')


def library_of(layer: Any) -> Any:
  """Returns the Keras that a layer is a model of, whose files it can be saved to; or None."""
  if keras3.is_model(layer):
    return keras3.loaded()
  return tf_keras if isinstance(layer, tf_keras.Model) else None


def save_weights(layer: Any, path: str) -> None:
  """Writes the weights of a model, or of a layer of Keras 3, to a `.weights.h5` file.

  Raises:
    UserCodeError: Keras cannot write it.
  """
  with without_warnings(), user_code(side.TF2, 'save_weights'):
    _model(layer).save_weights(path)


def load_weights(layer: Any, path: str) -> None:
  """Reads a `.weights.h5` file into a model, or layer, that has its variables; raises likewise."""
  with without_warnings(), user_code(side.TF2, 'load_weights'):
    _model(layer).load_weights(path)


def save_model(layer: Any, path: str) -> None:
  """Writes a model to a `.keras` file; raises `UserCodeError` where Keras cannot."""
  hook = 'save of a .keras file'
  with without_warnings(), randomness.seeded(randomness.CONSTANT), user_code(side.TF2, hook):
    layer.save(path)


def compiled(layer: Any, optimizer: Any) -> None:
  """Gives a model its optimizer, so that a `.keras` file has it; raises likewise."""
  with user_code(side.TF2, 'compile'):
    layer.compile(optimizer=optimizer)


def load_model(layer: Any, path: str, compiled: bool = False) -> Any:
  """Reads a `.keras` file of a model like this one; raises `UserCodeError` where Keras cannot.

  Args:
    layer: a model whose classes the file may need.
    path: of the file.
    compiled: whether the optimizer in the file is wanted as well.
  """
  load = library_of(layer).saving.load_model
  hook = 'keras.saving.load_model'
  with without_warnings(), randomness.seeded(randomness.CONSTANT), user_code(side.TF2, hook):
    return load(path, own_classes(layer), compile=compiled)


@contextlib.contextmanager
def without_warnings() -> Iterator[None]:
  """Keeps back what Keras supposes of a model that it builds anew: what is read is compared."""
  with warnings.catch_warnings():
    warnings.filterwarnings('ignore', category=UserWarning, module=_MODULES_OF_KERAS)
    yield


def own_classes(layer: Any) -> dict[str, Any]:
  """Returns the classes that Keras does not know, as a program that reads the file gives them."""
  classes = (type(part) for part in layer_parts.modules_of(layer))
  return {one.__name__: one for one in classes if not one.__module__.startswith(_OF_KERAS)}


def needed_to_build(layer: Any) -> str:
  """Returns what the classes of a model lack for Keras to make their variables; '' for nothing."""
  without = [name for name, cls in own_classes(layer).items() if not _has(cls, _BUILDS)]
  names = ', '.join(without)
  return f'give {names} a build(self, input_shape) that builds every layer in it' if without else ''


def needed_to_make(layer: Any) -> str:
  """Returns what the classes of a model lack for Keras to make them again; '' for nothing."""
  closed, silent = [], []
  for name, cls in own_classes(layer).items():
    _, *kinds = (one.kind for one in inspect.signature(cls.__init__).parameters.values())
    if _ANY not in kinds:
      closed.append(name)
    if set(kinds) - {_ANY} and not _has(cls, _CONFIGS):
      silent.append(name)
  parts = []
  if closed:
    parts.append(
      f'__init__ of {", ".join(closed)} has to take **kwargs (name, dtype, trainable) and to pass '
      'them to super().__init__'
    )
  if silent:
    parts.append(
      f'get_config of {", ".join(silent)} has to return the arguments of __init__: '
      '{**super().get_config(), ...}'
    )
  return '; '.join(parts)


def _has(cls: type, methods: Sequence[str]) -> bool:
  """Returns whether a class has one of some methods that is not of Keras."""
  own = (one for one in cls.__mro__ if not f'{one.__module__}.'.startswith(_OF_KERAS))
  return any(method in vars(one) for one in own for method in methods)


def inner_paths(model: Any) -> dict[str, Any]:
  """Returns the weights of a model by their names without its own, which one that is read may lack.

  Of several weights of one name there is one.
  """
  start = f'{model.name}/'
  return {_path(one).removeprefix(start): one for one in model.weights}


def in_order(model: Any, other: Any) -> dict[str, Any] | None:
  """Returns the weights of another model in the order of a model's, by the inner paths of these.

  A model that is read counts the layers of its own names anew, `dense_2` for `dense`, where its
  class gives them none. Their order, shapes and own names say which is which: `kernel`.

  Returns:
    None where these do not fit, or several weights have one path.
  """
  own, found = inner_paths(model), list(other.weights)
  if len(own) != len(found) or len(own) != len(model.weights):
    return None
  kinds = [[(_own_name(one), tuple(one.shape)) for one in ones] for ones in (own.values(), found)]
  return dict(zip(own, found, strict=True)) if kinds[0] == kinds[1] else None


def _own_name(variable: Any) -> str:
  return _path(variable).rpartition('/')[2]


def name_of(variable: Any) -> str:
  """Returns the name of a weight, as reports have it."""
  return variable_name(keras3.held(variable))


def _model(layer: Any) -> Any:
  return keras3.as_model(layer) if keras3.is_layer(layer) else layer


def _path(variable: Any) -> str:
  # The `tf.Variable` of a model that is read has not the path as its name.
  return str(variable.path) if keras3.is_variable(variable) else variable_name(variable)
