"""What the call of a port can be told."""

import inspect
from typing import Any

# An attribute of `call_tf2_layer` as it is by default.
_BY_DEFAULT = 'passes_training_where_taken'


def takes_training(layer: Any) -> bool:
  """Returns whether the call of a port has the parameter `training`, or may have it."""
  function = layer.call if hasattr(layer, 'call') else layer.__call__
  try:
    parameters = inspect.signature(function).parameters.values()
  except (TypeError, ValueError):
    return True
  return any(p.name == 'training' or p.kind is p.VAR_KEYWORD for p in parameters)


def by_default(hook: Any) -> Any:
  """Marks the hook `call_tf2_layer` as the one that passes `training` where a port takes it."""
  setattr(hook, _BY_DEFAULT, True)
  return hook


def passes_training(hook: Any) -> bool:
  """Returns whether a case leaves it to the default whether its port is told that it trains."""
  return bool(getattr(hook, _BY_DEFAULT, False))
