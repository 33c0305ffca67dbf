"""What an object holds."""

import abc
import importlib
import re
import types
from typing import Any

# `abc` has no public way to ask which classes were registered.
_abc: Any = importlib.import_module('_abc')
_REDUCING = ('__reduce_ex__', '__reduce__')
_MISSING = object()
# By which TF-Slim knows a function.
_ADDRESS = re.compile(r'(<function [^ ]+ at )0x[0-9a-f]+>')


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
    names = [slots] if isinstance(slots, str) else list(slots)
    found += [_mangled(name, base) for name in names if name not in ('__dict__', '__weakref__')]
  return found


def _mangled(name: str, kind: type) -> str:
  """Returns what Python calls an attribute of a class that begins with two underscores."""
  if not name.startswith('__') or name.endswith('__'):
    return name
  return f'_{kind.__name__.lstrip("_")}{name}'


def registered(value: abc.ABCMeta) -> list[type]:
  """Returns the classes that were registered as subclasses of an abstract one, by name."""
  known = (reference() for reference in _abc._get_dump(value)[0])
  found = [one for one in known if one is not None]
  return sorted(found, key=lambda one: f'{one.__module__}.{one.__qualname__}')


def is_of_enum(name: str, member: Any) -> bool:
  """Returns whether an attribute of an enum is its own book-keeping."""
  return name.endswith('_') and not isinstance(member, types.FunctionType)


def of_member(member: Any) -> list[Any]:
  """Returns the value of a member of an enum, and the attributes that it was given beyond it."""
  own = {name: value for name, value in vars(member).items() if not name.startswith('_')}
  return [member._value_, own] if own else [member._value_]


def text_of(value: Any) -> str:
  """Returns the `repr` of a plain value without addresses, which differ between processes."""
  found = repr(value)
  return _ADDRESS.sub(r'\1>', found) if ' at 0x' in found else found
