"""Variables that are made after the first call: a row each."""

import re
from collections.abc import Set

from tf2verify.diagnosis.evidence.variables import CreatedVariable
from tf2verify.diagnosis.rules.rule import Sentence
from tf2verify.records.diagnosis import Cause

REFUSED_CREATION = Sentence[CreatedVariable](
  lambda seen: seen.creation.refused,
  'a tf.function makes a variable while it is traced, which TensorFlow refuses at every trace but '
  'the first: make it before, in __init__ or build(), and keep it on self',
)
VARIABLE_MADE_IN_CALL = Sentence[CreatedVariable](
  lambda seen: seen.creation.creator == 'tf.Variable',
  'tf.Variable is called in call, so every call creates a new one: create it once in build() and '
  'store it on self, or use tf.compat.v1.get_variable under track_tf1_style_variables',
)
NO_VARIABLE_STORE = Sentence[CreatedVariable](
  lambda seen: seen.creation.name in seen.first_call,
  'get_variable created {0.creation.name} again: eager mode keeps no variable store; decorate the '
  'method with tf.compat.v1.keras.utils.track_tf1_style_variables',
)
PATH_OF_LATER_CALL = Sentence[CreatedVariable](
  lambda seen: True,
  'it did not exist after the first call: the code takes a different path in a later call; create '
  'every variable in the first',
)


def layer_built_in_call(evidence: CreatedVariable) -> Cause | None:
  """A layer is made anew in every call."""
  if evidence.creation.creator != 'keras layer':
    return None
  text = f'a Keras layer ({evidence.creation.layer}) is built inside call: make it once in __init__'
  if evidence.of_keras3:
    return Cause(f'{text}, and keep it in an attribute')
  return Cause(f'{text}, or in call through tf.compat.v1.keras.utils.get_or_create_layer')


def scope_counts_up(evidence: CreatedVariable) -> Cause | None:
  """A default name of a scope is made unique."""
  counted = _counted_up(evidence.creation.name, evidence.first_call)
  if counted is None:
    return None
  return Cause(
    f'the scope counts up at each call ({counted[0]} → {counted[1]}): wrap the body in a '
    'tf.compat.v1.variable_scope with a fixed name, or pass name= to the layers'
  )


def _counted_up(name: str, first: Set[str]) -> tuple[str, str] | None:
  """Returns the scope of the first call and the one that counts it up; None without such."""
  parts = name.split('/')
  for position, part in enumerate(parts):
    stem = re.sub(r'_\d+$', '', part)
    if stem == part:
      continue
    for earlier in (stem, *(f'{stem}_{n}' for n in range(1, 10))):
      before = '/'.join([*parts[:position], earlier, *parts[position + 1 :]])
      if earlier != part and before in first:
        return earlier, part
  return None
