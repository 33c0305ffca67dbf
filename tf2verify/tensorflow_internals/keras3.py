"""Keras 3 next to tf-keras: its layers, variables and optimizers, and what it does not publish.

Nothing here imports Keras 3, which takes a second: a port that is made of it has done so. Its
variables are no `tf.Variable`s, but each holds one, `variable.value`. Run with Keras 3.15; 3.12
has the same names.
"""

import contextlib
import importlib
import re
import sys
from collections.abc import Iterator, Sequence
from types import CodeType
from typing import Any
from unittest import mock

import tensorflow as tf

# Its functions that draw, of `tf.random` and `tf.nn.experimental`.
PACKAGE = 'keras'
BACKEND = 'tensorflow'
_LAYERS = ('Layer', 'Variable')
_INITIALIZERS_OF_VARIABLES = ('_initialize', '_initialize_with_initializer')
_ADD_WEIGHT = ('add_weight', 'add_variable')
_OWNERS = re.compile(r'(?<!\w)keras/src/(layers|metrics)/(layer|metric)\.py$')
# What Keras 3 keeps for a thread.
_NAME_COUNTS = 'object_name_uids'
_OPEN_SCOPES = 'name_scope_stack'
_GLOBAL_SEEDS = 'global_seed_generator'
_POLICY = 'dtype_policy'
# Of tf-keras, which makes a class of its own for each kind of variable that it wraps.
_AUTOCAST = 'mixed_precision.autocast_variable'
# Generators of `seeds_of`, by seed.
_seeds: dict[int, Any] = {}
_VARIABLE_HOMES = re.compile(r'(?<!\w)keras/src/backend/(tensorflow/core|common/variables)\.py$')


def _state() -> Any:
  return importlib.import_module('keras.src.backend.common.global_state')


def loaded() -> Any:
  """Returns the module `keras` if this process has imported it and it is Keras 3, or None."""
  module = sys.modules.get(PACKAGE)
  version = str(getattr(module, '__version__', ''))
  is_whole = all(hasattr(module, name) for name in _LAYERS)
  return module if is_whole and not version.startswith('2.') else None


def backend() -> str:
  """Returns the name of the backend of Keras 3, which is loaded."""
  return str(loaded().backend.backend())


def is_layer(item: Any) -> bool:
  """Returns whether something is a layer or model of Keras 3."""
  module = loaded()
  return module is not None and isinstance(item, module.Layer)


def is_model(item: Any) -> bool:
  """Returns whether something is a model of Keras 3, which it can save to its own files."""
  module = loaded()
  return module is not None and isinstance(item, module.Model)


def as_model(layer: Any) -> Any:
  """Returns a model that holds a layer and can be saved; a model itself."""
  if is_model(layer):
    return layer
  holder = loaded().Model()
  holder.layer = layer
  holder.built = True  # it is never called; only its layer, which is built, has variables
  return holder


def version() -> str:
  """Returns the version of Keras 3, which is loaded."""
  return str(loaded().__version__)


def is_functional(item: Any) -> bool:
  """Returns whether something is a model of Keras 3 that is made of tensors: `Model(x, y)`."""
  # The class has no public name.
  return is_layer(item) and any(cls.__name__ == 'Functional' for cls in type(item).__mro__)


def is_layer_class(item: Any) -> bool:
  """Returns whether something is a class of such layers."""
  module = loaded()
  return module is not None and isinstance(item, type) and issubclass(item, module.Layer)


def is_variable(item: Any) -> bool:
  """Returns whether something is a variable of Keras 3."""
  module = loaded()
  return module is not None and isinstance(item, module.Variable)


def is_optimizer(item: Any) -> bool:
  """Returns whether something is an optimizer of Keras 3."""
  module = loaded()
  return module is not None and isinstance(item, module.optimizers.Optimizer)


def is_optimizer_class(item: Any) -> bool:
  """Returns whether something is a class of such optimizers."""
  module = loaded()
  return (
    module is not None and isinstance(item, type) and issubclass(item, module.optimizers.Optimizer)
  )


def optimizer_base() -> tuple[Any, str]:
  """Returns the base of all optimizers, and the method that is given gradients after clipping.

  The method takes a list of gradients and one of variables.
  """
  base = importlib.import_module('keras.src.optimizers.base_optimizer').BaseOptimizer
  return base, '_backend_update_step'


def mean_over_each_replica() -> contextlib.AbstractContextManager[Any]:
  """Lets losses take the mean of what a replica has: Keras 3 divides it by their number."""
  if loaded() is None:
    return contextlib.nullcontext()
  home = importlib.import_module('keras.src.losses.loss')
  return mock.patch.object(home, 'scale_loss_for_distribution', lambda value: value)


def positions_of(optimizer: Any, variables: Sequence[Any]) -> dict[int, int]:
  """Returns where the slots of variables stand in an optimizer's lists, by their identity."""
  known = optimizer._trainable_variables_indices
  found = ((id(variable), known.get(optimizer._var_key(variable))) for variable in variables)
  return {variable: position for variable, position in found if position is not None}


def is_metric(item: Any) -> bool:
  """Returns whether something is a metric of Keras 3."""
  module = loaded()
  return module is not None and isinstance(item, module.Metric)


def held(variable: Any) -> Any:
  """Returns the `tf.Variable` of a variable of Keras; any other variable itself."""
  return variable.value if is_variable(variable) else without_cast(variable)


def without_cast(variable: Any) -> Any:
  """Returns the variable that tf-keras wraps in mixed precision, to cast what it yields."""
  is_cast = type(variable).__module__.endswith(_AUTOCAST)
  return variable._variable if is_cast else variable


def parts(layer: Any) -> Iterator[Any]:
  """Yields a layer of Keras 3 and all that it holds, itself first."""
  yield from layer._flatten_layers()


def path_of_variable_being_made(code: CodeType, local: dict[str, Any]) -> str | None:
  """Returns the path of the variable that a frame of Keras 3 is making; None for another frame.

  Args:
    code: of the frame.
    local: the frame's variables.
  """
  if code.co_name not in _INITIALIZERS_OF_VARIABLES:
    return None
  if not _VARIABLE_HOMES.search(code.co_filename.replace('\\', '/')):
    return None
  return str(local['self'].path)


def is_add_weight(code: CodeType) -> bool:
  """Returns whether a frame is that of the method by which layers or metrics make a variable."""
  return bool(code.co_name in _ADD_WEIGHT and _OWNERS.search(code.co_filename.replace('\\', '/')))


def makes_seed_state(code: CodeType) -> bool:
  """Returns whether a frame of Keras 3 makes a seed generator, whose state is a variable."""
  path = code.co_filename.replace('\\', '/')
  return code.co_name == '__init__' and path.endswith('/keras/src/random/seed_generator.py')


def reset_names() -> None:
  """Counts names of layers from the start, where Keras 3 is loaded."""
  if loaded() is not None:
    importlib.import_module('keras.src.utils.naming').reset_uids()


def read_names() -> dict[str, int] | None:
  """Returns the counts of names; None where Keras 3 is not loaded."""
  if loaded() is None:
    return None
  return dict(_state().get_global_attribute(_NAME_COUNTS) or {})


def write_names(counts: dict[str, int] | None) -> None:
  """Puts counts of names back."""
  if loaded() is None:
    return
  reset_names()
  _state().get_global_attribute(_NAME_COUNTS).update(counts or {})


def read_open_scopes() -> tuple[Any, ...] | None:
  """Returns the name scopes that are open; None where Keras 3 is not loaded."""
  if loaded() is None:
    return None
  return tuple(_state().get_global_attribute(_OPEN_SCOPES) or ())


def write_open_scopes(scopes: tuple[Any, ...] | None) -> None:
  """Puts such scopes back.

  AutoGraph leaves one open where it gives up on code within it, and every variable that is made
  afterwards has its name in front.
  """
  if loaded() is not None:
    _state().set_global_attribute(_OPEN_SCOPES, list(scopes or ()))


def read_seeds() -> Any:
  """Returns the generator of seeds that layers without one share; None where there is none."""
  if loaded() is None:
    return None
  return _state().get_global_attribute(_GLOBAL_SEEDS)


def seeds_of(seed: int) -> Any:
  """Returns a generator of seeds for draws that name none; None where Keras 3 is not loaded.

  Keras would make its own at the first such draw, with a variable, also inside a `tf.function`.
  It is the same one for the same seed, for callers that leave its state alone.
  """
  module = loaded()
  if module is None:
    return None
  made = module.random.SeedGenerator
  # The variable of a distribution strategy is its own.
  if tf.distribute.has_strategy():
    return made(seed)
  known = _seeds.get(seed)
  if known is None or type(known) is not made:
    known = _seeds[seed] = made(seed)
  return known


def write_seeds(generator: Any) -> None:
  """Puts such a generator back."""
  if loaded() is not None:
    _state().set_global_attribute(_GLOBAL_SEEDS, generator)


def read_settings() -> tuple[Any, ...] | None:
  """Returns the settings of Keras 3; None where it is not loaded."""
  module = loaded()
  if module is None:
    return None
  config = module.config
  # Not `config.dtype_policy()`, which makes a policy of the `floatx` of now.
  policy = _state().get_global_attribute(_POLICY)
  return config.floatx(), config.epsilon(), config.image_data_format(), policy


def write_settings(values: tuple[Any, ...] | None) -> None:
  """Puts such settings back; what a process starts with, where they were read before it loaded."""
  module = loaded()
  if module is None or read_settings() == values:
    return
  config = module.config
  floatx, epsilon, data_format, policy = values or ('float32', 1e-7, 'channels_last', None)
  config.set_floatx(floatx)
  config.set_epsilon(epsilon)
  config.set_image_data_format(data_format)
  _state().set_global_attribute(_POLICY, policy)
