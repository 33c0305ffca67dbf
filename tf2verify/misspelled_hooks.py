"""Hooks and attributes of a case whose name is misspelled, so that nobody would call them."""

import difflib
import re
import types
from collections.abc import Collection, Iterator
from typing import Any

from tf2verify.stages import STAGES

# 2·(equal letters) / (letters of both). One wrong letter in `tf2_loss` is 0.875;
# `tolerance_of` for `tolerance` is 0.857.
_CLOSE = 0.87
# For a hook that has to be there: the case is an error in any case.
_CLOSE_TO_MISSING = 0.75
# `stage` and `losses` are words of models: too near to `stages` and `loss` to be called wrong.
_SHORTEST = 8
_STAGES = frozenset(stage.name for stage in STAGES)


def misspelled_hook(cls: type, base: type, hooks: Collection[str]) -> tuple[type, str, str] | None:
  """Finds a name that a case defines in place of a hook.

  That is a public one, close to a hook that the same class does not define, with the same
  digits (`call_tf1_layer` is a helper next to `call_tf2_layer`), which no method of the case
  uses: what is used is a helper.

  Args:
    cls: the case.
    base: what cases are derived from; its own names, and those of its bases, are not looked at.
    hooks: what may be declared.

  Returns:
    The class that defines the name, the name, the hook; None where all names are well.
  """
  own = [one for one in cls.__mro__ if one not in base.__mro__]
  used = frozenset(name for one in own for name in _used_names(one))
  for one in own:
    absent = [hook for hook in hooks if hook not in vars(one) and len(hook) >= _SHORTEST]
    for name in vars(one):
      if name.startswith('_') or hasattr(base, name) or name in used:
        continue
      same = [hook for hook in absent if _digits(hook) == _digits(name)]
      close = difflib.get_close_matches(name, same, 1, _CLOSE) or _of_stage(name, absent)
      if close:
        return one, name, close[0]
  return None


def _of_stage(name: str, hooks: Collection[str]) -> list[str]:
  """Returns the hook that begins with a name, where this is that of a stage: `training_steps`."""
  return [hook for hook in hooks if name in _STAGES and hook.startswith(f'{name}_')][:1]


def near_miss(cls: type, base: type, hook: str) -> str:
  """Returns the name that a case defines most like that of a hook which it lacks; '' without."""
  own = [one for one in cls.__mro__ if one not in base.__mro__]
  names = [
    name for one in own for name in vars(one) if not (name.startswith('_') or hasattr(base, name))
  ]
  return next(iter(difflib.get_close_matches(hook, names, 1, _CLOSE_TO_MISSING)), '')


def _digits(name: str) -> str:
  return ''.join(re.findall(r'\d', name))


def _used_names(cls: type) -> Iterator[str]:
  """Yields the attributes that the methods of a class name, each but its own."""
  for name, value in vars(cls).items():
    for function in _functions(value):
      yield from (used for used in _names_in(function.__code__) if used != name)


def _functions(value: Any) -> list[types.FunctionType]:
  """Returns the functions behind what stands in a class."""
  if isinstance(value, (staticmethod, classmethod)):
    value = value.__func__
  parts = (value.fget, value.fset) if isinstance(value, property) else (value,)
  if isinstance(value, type):
    parts = tuple(vars(value).values())
  return [part for part in parts if isinstance(part, types.FunctionType)]


def _names_in(code: types.CodeType) -> Iterator[str]:
  yield from code.co_names
  for constant in code.co_consts:
    if isinstance(constant, types.CodeType):
      yield from _names_in(constant)
    elif isinstance(constant, str):  # getattr(self, 'name')
      yield constant
