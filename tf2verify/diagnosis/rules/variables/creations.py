"""Variables that are made after the first call."""

import re
from collections.abc import Set

from tf2verify.diagnosis.evidence.variables import CreatedVariable
from tf2verify.records.diagnosis import Cause


def refused_creation(evidence: CreatedVariable) -> Cause | None:
  """TensorFlow lets a function make variables at its first trace only."""
  if not evidence.creation.refused:
    return None
  return Cause(
    'a tf.function makes a variable while it is traced, which TensorFlow refuses at every trace '
    'but the first: make it before, in __init__ or build(), and keep it on self'
  )


def layer_built_in_call(evidence: CreatedVariable) -> Cause | None:
  """Every call makes another layer."""
  if evidence.creation.creator != 'keras layer':
    return None
  return Cause(
    f'a Keras layer ({evidence.creation.layer}) is built inside call: make it once in __init__, or '
    'in call through tf.compat.v1.keras.utils.get_or_create_layer'
  )


def variable_made_in_call(evidence: CreatedVariable) -> Cause | None:
  """Every call makes another variable."""
  if evidence.creation.creator != 'tf.Variable':
    return None
  return Cause(
    'tf.Variable is called in call, so every call makes another one: make it once in build() '
    'and keep it on self, or use tf.compat.v1.get_variable under track_tf1_style_variables'
  )


def no_variable_store(evidence: CreatedVariable) -> Cause | None:
  """Eager mode keeps none."""
  if evidence.creation.name not in evidence.first_call:
    return None
  return Cause(
    f'get_variable made {evidence.creation.name} anew: eager mode keeps no variable store; '
    'decorate the method with tf.compat.v1.keras.utils.track_tf1_style_variables'
  )


def scope_counts_up(evidence: CreatedVariable) -> Cause | None:
  """A default name of a scope is made unique."""
  counted = _counted_up(evidence.creation.name, evidence.first_call)
  if counted is None:
    return None
  return Cause(
    f'the scope counts up at each call ({counted[0]} → {counted[1]}): wrap the body in a '
    'tf.compat.v1.variable_scope with a fixed name, or pass name= to the layers'
  )


def path_of_later_call(evidence: CreatedVariable) -> Cause | None:
  """Without any of these, a later call runs other code."""
  return Cause(
    'it did not exist after the first call: the code takes another path in a later call; create '
    'every variable in the first'
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
