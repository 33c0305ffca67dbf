"""Whether hooks, and the port, can be called with what they are given."""

import inspect
import types
from typing import Any

from tf2verify import hooks
from tf2verify.errors import CaseDefinitionError
from tf2verify.sides.hooks.places import with_place


def check_signatures(case: object) -> None:
  """Raises `CaseDefinitionError` for a hook that cannot be called with its arguments."""
  for hook in hooks.HOOKS:
    method = getattr(case, hook.name)
    problem = call_problem(hook, method)
    if problem:
      arguments = ('self', *hook.arguments, *hook.taken)
      said = (
        f'{type(case).__name__}.{hook.name} cannot be called: {problem}; write it as a method, '
        f'def {hook.name}({", ".join(arguments)}){may_leave_out(hook)}'
      )
      raise CaseDefinitionError(with_place(said, hook.name, method))


def may_leave_out(hook: hooks.Hook) -> str:
  """Returns what is said of the arguments that a hook need not take; '' where there are none."""
  return f' (it may leave out {" and ".join(hook.taken)})' if hook.taken else ''


def call_problem(hook: hooks.Hook, method: Any) -> str:
  """Returns why a hook cannot be called with its arguments; '' where it can.

  Args:
    hook: the row of the table.
    method: what stands for it, without `self`.
  """
  if not callable(method):
    return f'it is a {type(method).__name__}'
  try:
    signature = inspect.signature(method)
  except (TypeError, ValueError):  # a function of C's need not tell
    return 'it has no parameter self' if isinstance(method, types.MethodType) else ''
  kinds = inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD
  names = [name for name, known in signature.parameters.items() if known.kind in kinds]
  # Names of its own are as good; those of the hook are taken by their place, in whatever order.
  for name, expected in zip(names, hook.arguments, strict=False):
    if name != expected and name in (*hook.arguments, *hook.taken):
      return f'its parameter {name} is where {expected} is passed'
  try:
    signature.bind(*hook.arguments, **{n: n for n in hook.taken if n in signature.parameters})
  except TypeError as error:
    return str(error)
  return ''
