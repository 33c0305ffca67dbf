"""How a builder is called."""

import inspect
from typing import Any, Callable, List

from .errors import RecorderError
from .user_code import call_name


def with_training(builder: Callable[..., Any]) -> Callable[[Any, bool], Any]:
  """Returns the builder as a function of inputs and training mode."""
  try:
    parameters = list(inspect.signature(builder).parameters.values())
  except (TypeError, ValueError):
    return builder
  for name in ('training', 'is_training'):
    if any(p.name == name and p.kind is not p.POSITIONAL_ONLY for p in parameters):
      _check_builder_call(builder, [], name)
      return lambda inputs, training: builder(inputs, **{name: training})
  required = [p for p in parameters if p.default is p.empty and p.kind is not p.KEYWORD_ONLY]
  positional = [p for p in required if p.kind is not p.VAR_KEYWORD]
  if len(positional) > 1 and not any(p.kind is p.VAR_POSITIONAL for p in positional):
    second = positional[1].name
    if not any(word in second.lower() for word in ('train', 'phase')):
      raise RecorderError(
        "the builder's second argument is `{0}`, and would be given False for inference and True "
        'for training; write a function for it: def build(inputs, training): return {1}(inputs, '
        '...what {0} is then...)'.format(second, getattr(builder, '__name__', 'your_builder'))
      )
  if len(positional) > 1 or any(p.kind is p.VAR_POSITIONAL for p in positional):
    _check_builder_call(builder, ['training'])
    return builder
  _check_builder_call(builder, [])
  return lambda inputs, training: builder(inputs)


def _check_builder_call(builder: Callable[..., Any], further: List[str], keyword: str = '') -> None:
  """Raises `RecorderError` where a builder cannot be called as it will be."""
  try:
    inspect.signature(builder).bind('inputs', *further, **({keyword: False} if keyword else {}))
  except TypeError as error:
    shown = ['inputs', *further, *([keyword + '=False'] if keyword else [])]
    raise RecorderError(
      'the builder is called as {0}({1}), which it does not take: {2}; write a function for it: '
      'def build(inputs, training): return {0}(...)'.format(
        call_name(builder), ', '.join(shown), error
      )
    ) from None
