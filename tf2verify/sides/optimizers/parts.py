"""What an object holds that takes the place of an optimizer: optimizers and variables."""

import dataclasses
import functools
import types
import unittest
import weakref
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
import tf_keras

from tf2verify.reference.slot_roles import is_average_word, role_of_word, slot_by_name
from tf2verify.reference.variables import variable_name
from tf2verify.sides.optimizers.state import SlotVariable, is_optimizer, told
from tf2verify.tensorflow_internals import keras3

# Objects that hold each other are many in Keras, and few in a custom optimizer.
_DEEPEST = 8
_MOST_OBJECTS = 20_000
_LEAVES = (str, bytes, bool, int, float, complex, type, types.ModuleType, np.ndarray, tf.Tensor)
_COUNTS = ('iterations', 'global_step')
_RATES = ('learning_rate', 'lr', 'rate')
_UNNAMED = 'values'
# Attributes by which TensorFlow keeps track of what an object holds under other names.
_OF_TENSORFLOW = ('_self_', '_obj_', '_unconditional_', '_tf_')
# Attributes that say nothing of what is kept: of variables in a wrapper, and of functions.
_WRAPPERS = ('value', 'self', 'args', 'keywords', 'func')


@dataclasses.dataclass(frozen=True, eq=False)
class HeldVariable:
  """A variable that an object holds."""

  # Attributes, keys and positions on the way to it, each with the number of items of what holds it;
  # 0 for an attribute.
  trail: tuple[tuple[Any, int], ...]
  variable: Any  # itself
  wrapper: Any = None  # the variable of Keras 3 that holds it; None without one

  def word(self, owner_key: Any = None) -> str:
    """Returns the last name on the way that is not the key of its owner; '' without any."""
    names = [key for key, _ in self.trail if isinstance(key, str) and key is not owner_key]
    names = [name.strip('_') for name in names if name.strip('_') not in _WRAPPERS]
    return names[-1] if names else ''


@dataclasses.dataclass(frozen=True, eq=False)
class OptimizerParts:
  """What was found."""

  optimizers: tuple[Any, ...]  # of tf-keras and `tf.compat.v1.train`, in order
  variables: tuple[HeldVariable, ...]  # those that none of them holds
  # What may be state, or may be shared by runs: arrays and eager tensors, weights of layers.
  values: tuple[HeldVariable, ...] = ()

  @property
  def state(self) -> tuple[Any, ...]:
    """Everything that must not be shared by two runs."""
    return (*self.optimizers, *(held.variable for held in self.variables))

  def count(self) -> int | None:
    """Returns the number of steps, where one variable of its own says so."""
    found = [held for held in self.variables if held.word() in _COUNTS and _is_count(held.variable)]
    return int(found[0].variable) if len(found) == 1 else None

  def counts(self) -> tuple[tuple[str, int], ...]:
    """Returns all variables that may count steps, by their place."""
    return tuple(
      ('/'.join(str(key) for key, _ in held.trail), int(held.variable))
      for held in self.held_counts()
    )

  def held_counts(self) -> list[HeldVariable]:
    """Returns the same as they are held."""
    return [held for held in self.variables if _is_count(held.variable)]

  def slots(self, variables: Sequence[Any]) -> Iterator[SlotVariable]:
    """Yields what is kept besides the optimizers, for given variables of the model."""
    model = {id(variable) for variable in variables}
    for held in self.variables:
      if id(held.variable) in model or held.word() in _RATES:
        continue
      name = variable_name(held.variable)
      if _is_count(held.variable):
        yield SlotVariable('step count', '', name, held.variable)
        continue
      role, owner, word = _role_and_owner(held, variables)
      of_place = _is_of_place(held, variables)
      yield SlotVariable(role, owner, name, held.variable, word, of_place=of_place)
    for held in self.values:
      owner, word = _owner_and_word(held, variables)
      if not owner or id(held.variable) in model:
        continue
      role, named = role_of_word(word or _UNNAMED), f'{owner}/{word or _UNNAMED}'
      if isinstance(held.variable, tf.Variable):
        yield SlotVariable(role, owner, variable_name(held.variable), held.variable, word)
      elif not word or is_average_word(word):  # others may be a batch's gradients, say
        yield SlotVariable(role, owner, named, np.array(held.variable), word)  # as it is now

  def not_copied(self, variables: Sequence[Any], own: Sequence[Any]) -> Iterator[tuple[str, str]]:
    """Yields state that is a variable of the model itself: its word, and the variable's name.

    That is what is called an average, or is a further variable of Keras 3 around the same value.
    An optimizer may hold the variables that it updates.

    Args:
      variables: of the model.
      own: the model's variables of Keras 3.
    """
    model = {id(variable) for variable in variables}
    for held in (*self.variables, *self.values):
      if id(held.variable) not in model:
        continue
      is_further = held.wrapper is not None and all(held.wrapper is not one for one in own)
      _, word = _owner_and_word(held, variables)
      if is_further or is_average_word(word):
        yield word, variable_name(held.variable)


def parts_of(made: Any) -> OptimizerParts:
  """Looks for optimizers and variables in an object: its items, attributes and closures."""
  optimizers: list[Any] = []
  held: list[HeldVariable] = []
  values: list[HeldVariable] = []
  seen: dict[int, Any] = {}
  pending: list[tuple[Any, tuple[tuple[Any, int], ...]]] = [(made, ())]
  while pending:
    current, trail = pending.pop()
    if id(current) in seen or len(seen) > _MOST_OBJECTS or len(trail) > _DEEPEST:
      continue
    seen[id(current)] = current
    wrapper = current if keras3.is_variable(current) else None
    current = keras3.held(current)
    if isinstance(current, tf.Variable):
      held.append(HeldVariable(trail, current, wrapper))
    elif is_optimizer(current):
      optimizers.append(current)
    elif _is_value(current):
      values.append(HeldVariable(trail, current))
    elif _is_layer(current):
      values += _weights(current, trail)
    else:
      pending += reversed([(item, (*trail, step)) for item, step in _children(current)])
  return OptimizerParts(tuple(optimizers), tuple(held), tuple(values))


def _is_layer(current: Any) -> bool:
  return isinstance(current, tf_keras.layers.Layer) or keras3.is_layer(current)


def _weights(layer: Any, trail: tuple[tuple[Any, int], ...]) -> Iterator[HeldVariable]:
  """Yields the weights of a layer, such as a second model of averages; nothing of a metric."""
  if isinstance(layer, tf_keras.metrics.Metric):
    return
  weights = told(lambda: list(layer.weights)) or ()
  for number, weight in enumerate(weights):
    wrapper = weight if keras3.is_variable(weight) else None
    yield HeldVariable((*trail, (number, len(weights))), keras3.held(weight), wrapper)


def _is_value(current: Any) -> bool:
  is_eager = isinstance(current, tf.Tensor) and hasattr(current, 'numpy')
  return (is_eager or isinstance(current, np.ndarray)) and tf.as_dtype(current.dtype).is_floating


def _children(current: Any) -> Iterator[tuple[Any, tuple[Any, int]]]:
  """Yields what an object holds, each with its name, and the number of items."""
  if current is None or isinstance(current, (*_LEAVES, unittest.TestCase)) or _is_layer(current):
    return
  if isinstance(current, Mapping):
    for key, item in list(current.items()):
      yield item, (key, len(current))
  elif isinstance(current, (list, tuple, set, frozenset)):
    names = getattr(current, '_fields', range(len(current)))
    for name, item in zip(names, current, strict=True):
      yield item, (name, len(current))
  else:
    for name, item in _attributes(current):
      yield item, (name, 0)


def _attributes(current: Any) -> Iterator[tuple[str, Any]]:
  if isinstance(current, functools.partial):
    yield from (('args', current.args), ('keywords', current.keywords), ('func', current.func))
  elif isinstance(current, types.MethodType):
    yield 'self', current.__self__
  elif isinstance(current, types.FunctionType):
    for name, cell in zip(current.__code__.co_freevars, current.__closure__ or (), strict=True):
      try:
        yield name, cell.cell_contents
      except ValueError:  # not assigned yet
        continue
  else:
    for name, item in list(getattr(current, '__dict__', {}).items()):
      if not name.startswith(_OF_TENSORFLOW):
        yield name, item
    for cls in type(current).__mro__:
      slots = vars(cls).get('__slots__', ())
      for name in (slots,) if isinstance(slots, str) else slots:
        value = None if name.startswith('__') else getattr(current, name, None)
        if not isinstance(value, weakref.ref):
          yield name, value


def _is_count(variable: Any) -> bool:
  return bool(variable.dtype.is_integer and variable.shape.rank == 0)


def _role_and_owner(held: HeldVariable, variables: Sequence[Any]) -> tuple[str, str, str]:
  """Returns what a variable is, of which variable of the model, and the object's word for it."""
  named_role, named = slot_by_name(
    variable_name(held.variable), [variable_name(variable) for variable in variables]
  )
  owner, word = _owner_and_word(held, variables)
  if owner:
    return (role_of_word(word) if word else named_role), owner, word
  return (role_of_word(word) if word and not named else named_role), named, word


def _owner_and_word(held: HeldVariable, variables: Sequence[Any]) -> tuple[str, str]:
  """Returns whose a value is by its place, '' if unknown, and what it is called there."""
  for key, length in reversed(held.trail):
    owner = _owner(key, length, held.variable, variables)
    if owner:
      return owner, held.word(key)
  return '', held.word()


def _is_of_place(held: HeldVariable, variables: Sequence[Any]) -> bool:
  """Returns whether its place in a list is all that tells whose a variable is."""
  for key, length in reversed(held.trail):
    if _owner(key, length, held.variable, variables):
      return isinstance(key, int) and key < length
  return False


def _owner(key: Any, length: int, held: Any, variables: Sequence[Any]) -> str:
  """Returns the variable that an item belongs to, by the key or the position; '' if unknown."""
  key = key.deref() if hasattr(key, 'deref') else key
  for variable in variables:
    name = variable_name(variable)
    if key is variable or (isinstance(key, int) and key == id(variable)):
      return name
    if isinstance(key, str) and key.removesuffix(':0') in (name, name.replace('/', '_')):
      return name
  trainable = [variable for variable in variables if variable.trainable]
  for listed in (trainable, variables):
    found = isinstance(key, int) and 0 <= key < length == len(listed)
    if found and listed[key].shape == held.shape:
      return variable_name(listed[key])
  return ''
