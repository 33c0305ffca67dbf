"""Whether hooks, and the port, can be called with what they are given."""

import inspect
from typing import Any

from tf2verify import hooks
from tf2verify.errors import CaseDefinitionError


def check_signatures(case: object) -> None:
  """Raises `CaseDefinitionError` for a hook that cannot be called with its arguments."""
  for hook in hooks.HOOKS:
    method = getattr(case, hook.name)
    arguments, problem = hook.arguments, ''
    if not callable(method):
      problem = f'it is a {type(method).__name__}'
    else:
      signature = inspect.signature(method)
      arguments += tuple(name for name in hook.taken if name in signature.parameters)
      try:
        signature.bind(*arguments)
      except TypeError as error:
        problem = str(error)
    if problem:
      raise CaseDefinitionError(
        f'{type(case).__name__}.{hook.name} cannot be called: {problem}; write it as a method, '
        f'def {hook.name}({", ".join(("self", *arguments))})'
      )


def takes_training(layer: Any) -> bool:
  """Returns whether the call of a port has the parameter `training`, or may have it."""
  function = layer.call if hasattr(layer, 'call') else layer.__call__
  try:
    parameters = inspect.signature(function).parameters.values()
  except (TypeError, ValueError):
    return True
  return any(p.name == 'training' or p.kind is p.VAR_KEYWORD for p in parameters)
