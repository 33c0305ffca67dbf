"""Nests of anything, mapped leaf by leaf."""

import collections.abc
from typing import Any, Callable


def map_leaves(function: Callable[[str, Any], Any], nest: Any, path: str = '') -> Any:
  """Returns a nest of the same structure with `function(path, leaf)` as its leaves."""
  if isinstance(nest, collections.abc.Mapping):
    items = {key: map_leaves(function, nest[key], '{}[{!r}]'.format(path, key)) for key in nest}
    return items if type(nest) is dict else type(nest)(items)  # type: ignore[call-arg]
  if isinstance(nest, tuple) and hasattr(nest, '_fields'):
    fields = nest._fields
    parts = [map_leaves(function, getattr(nest, n), '{}.{}'.format(path, n)) for n in fields]
    return type(nest)(*parts)
  if isinstance(nest, (list, tuple)):
    return type(nest)(
      map_leaves(function, child, '{}[{}]'.format(path, n)) for n, child in enumerate(nest)
    )
  return function(path, nest)
