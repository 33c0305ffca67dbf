"""What an object holds."""

import abc
import importlib
import types
from typing import Any

# `abc` has no public way to ask which classes were registered.
_abc: Any = importlib.import_module('_abc')
_REDUCING = ('__reduce_ex__', '__reduce__')
_MISSING = object()


def attributes_of(value: Any) -> tuple[dict[str, Any], dict[str, Any]]:
  """Returns the attributes of an object: those of its dictionary, and those of its slots."""
  own = getattr(value, '__dict__', None)
  slots = {name: getattr(value, name, _MISSING) for name in _slots_of(type(value))}
  found = {name: held for name, held in slots.items() if held is not _MISSING}
  return (own if isinstance(own, dict) else {}), found


def beyond(value: Any, has_attributes: bool) -> Any:
  """Returns what an object holds beyond its attributes, as `pickle` would ask for it.

  Args:
    value: the object.
    has_attributes: whether it has any.

  Raises:
    Exception: it holds what Python does not see, or its own code raised.
  """
  kind = type(value)
  custom = any(getattr(kind, name) is not getattr(object, name) for name in _REDUCING)
  found = value.__reduce_ex__(4) if custom else object.__reduce_ex__(value, 4)
  if isinstance(found, str):
    return found
  if not custom and has_attributes:
    return None
  made, arguments, state, listed, mapped = (*found, None, None, None)[:5]
  return made, arguments, state, listed and list(listed), mapped and list(mapped)


def _slots_of(kind: type) -> list[str]:
  """Returns the names of the slots that the instances of a class have."""
  found = []
  for base in kind.__mro__:
    slots = vars(base).get('__slots__', ())
    found += [slots] if isinstance(slots, str) else list(slots)
  return [name for name in found if name not in ('__dict__', '__weakref__')]


def registered(value: abc.ABCMeta) -> list[type]:
  """Returns the classes that were registered as subclasses of an abstract one, by name."""
  known = (reference() for reference in _abc._get_dump(value)[0])
  found = [one for one in known if one is not None]
  return sorted(found, key=lambda one: f'{one.__module__}.{one.__qualname__}')


def is_of_enum(name: str, member: Any) -> bool:
  """Returns whether an attribute of an enum is its own book-keeping."""
  return name.endswith('_') and not isinstance(member, types.FunctionType)
