"""What optimizers and moving averages keep."""

from typing import Any, Iterator, Sequence, Tuple

from .optimizers import is_keras_optimizer, update_rule
from .slot_roles import role_of_momentum, slot_role
from .variables import variable_name


def slots_of(optimizer: Any, variables: Sequence[Any]) -> Iterator[Tuple[str, str, str]]:
  """Yields role, variable and name of what an optimizer keeps; no variable: of the whole."""
  rule = update_rule(optimizer)
  for word in optimizer.get_slot_names():
    role = slot_role(rule, word)
    if is_keras_optimizer(optimizer) and (rule, word) == ('momentum', 'momentum'):
      role = role_of_momentum(optimizer, '_resource_apply_dense')
    for variable in variables:
      try:
        slot = optimizer.get_slot(variable, word)
      except KeyError:  # one of Keras, of a variable that it does not update
        slot = None
      if slot is not None:
        yield role, variable_name(variable), variable_name(slot)
  if is_keras_optimizer(optimizer):
    yield 'step count', '', variable_name(optimizer.iterations)
    return
  for key, variable in optimizer._non_slot_dict.items():
    word = key[0] if isinstance(key, tuple) else key
    if variable is not None:
      yield str(word).replace('_', ' '), '', variable_name(variable)
